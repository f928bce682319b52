//! As much of HTTP as the server under load needs: one request after the other on a connection that is kept.

use std::fmt;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

/// What went wrong, for a person.
#[derive(Debug)]
pub(super) struct Fault(pub(super) String);

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl From<std::io::Error> for Fault {
    fn from(error: std::io::Error) -> Self {
        Self(error.to_string())
    }
}

/// A response; its body has been read and is of no interest.
pub(super) struct Reply {
    pub(super) status: u16,
    headers: Vec<(String, String)>,
}

impl Reply {
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    pub(super) fn expect(&self, status: u16) -> Result<(), Fault> {
        if self.status == status {
            return Ok(());
        }
        Err(Fault(format!("a request was answered with {} and not with {status}", self.status)))
    }
}

/// A connection to the server.
pub(super) struct Connection {
    stream: BufReader<TcpStream>,
    port: u16,
}

const INITIALIZE: &str = concat!(
    r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","#,
    r#""capabilities":{},"clientInfo":{"name":"soak","version":"1"}}}"#
);
const INITIALIZED: &str = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
const ECHO: &str =
    r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":{"text":"x"}}}"#;

impl Connection {
    pub(super) fn open(port: u16) -> Result<Self, Fault> {
        let stream = TcpStream::connect(("127.0.0.1", port))?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(Duration::from_secs(60)))?;
        Ok(Self { stream: BufReader::new(stream), port })
    }

    pub(super) fn initialize(&mut self) -> Result<Reply, Fault> {
        self.request("POST", None, INITIALIZE)
    }

    /// A session that is ready to be used.
    pub(super) fn open_session(&mut self) -> Result<String, Fault> {
        let opened = self.initialize()?;
        opened.expect(200)?;
        let session =
            opened.header("mcp-session-id").ok_or_else(|| Fault("a handshake without a session".into()))?;
        self.request("POST", Some(session), INITIALIZED)?.expect(202)?;
        Ok(session.to_owned())
    }

    pub(super) fn call(&mut self, session: &str) -> Result<Reply, Fault> {
        self.request("POST", Some(session), ECHO)
    }

    pub(super) fn end_session(&mut self, session: &str) -> Result<Reply, Fault> {
        self.request("DELETE", Some(session), "")
    }

    fn request(&mut self, method: &str, session: Option<&str>, body: &str) -> Result<Reply, Fault> {
        let session = session.map_or_else(String::new, |id| format!("mcp-session-id: {id}\r\n"));
        let head = format!(
            "{method} /mcp HTTP/1.1\r\nhost: 127.0.0.1:{}\r\ncontent-type: application/json\r\n\
             accept: application/json, text/event-stream\r\n{session}content-length: {}\r\n\r\n",
            self.port,
            body.len()
        );
        self.stream.get_mut().write_all((head + body).as_bytes())?;
        self.reply()
    }

    fn reply(&mut self) -> Result<Reply, Fault> {
        let odd = |line: &str| Fault(format!("the server says {line:?}"));
        let line = self.line()?;
        let status = line.split(' ').nth(1).and_then(|code| code.parse().ok()).ok_or_else(|| odd(&line))?;
        let mut headers = Vec::new();
        loop {
            let line = self.line()?;
            if line.is_empty() {
                break;
            }
            let (name, value) = line.split_once(": ").ok_or_else(|| odd(&line))?;
            headers.push((name.to_ascii_lowercase(), value.to_owned()));
        }
        let reply = Reply { status, headers };
        let length = reply.header("content-length").and_then(|length| length.parse().ok());
        let mut body = vec![0; length.ok_or_else(|| Fault("a body without a length".into()))?];
        self.stream.read_exact(&mut body)?;
        Ok(reply)
    }

    fn line(&mut self) -> Result<String, Fault> {
        let mut line = String::new();
        if self.stream.read_line(&mut line)? == 0 {
            return Err(Fault("the server has closed the connection".into()));
        }
        Ok(line.trim_end_matches(['\r', '\n']).to_owned())
    }
}
