//! Minimal HTTP client for the server under load: sequential requests on one connection.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::time::Duration;

use super::{Fault, Message};

/// A response with its whole body.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    headers: Vec<(String, String)>,
    pub(crate) body: String,
}

impl Reply {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    pub(crate) fn expect(&self, status: u16) -> Result<(), Fault> {
        if self.status == status {
            return Ok(());
        }
        let body: String = self.body.chars().take(200).collect();
        Err(Fault(format!("a request was answered with {} and not with {status}: {body}", self.status)))
    }
}

/// A connection to the server.
pub(crate) struct Connection {
    stream: BufReader<TcpStream>,
    port: u16,
}

impl Connection {
    pub(crate) fn open(port: u16) -> Result<Self, Fault> {
        let stream = TcpStream::connect(("127.0.0.1", port))?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(Duration::from_secs(60)))?;
        Ok(Self { stream: BufReader::new(stream), port })
    }

    pub(crate) fn initialize(&mut self) -> Result<Reply, Fault> {
        self.post(&Message::initialize())
    }

    /// Opens a session.
    pub(crate) fn open_session(&mut self) -> Result<String, Fault> {
        let opened = self.initialize()?;
        opened.expect(200)?;
        let session =
            opened.header("mcp-session-id").ok_or_else(|| Fault("a handshake without a session".into()))?;
        self.post(&Message::initialized(session))?.expect(202)?;
        Ok(session.to_owned())
    }

    pub(crate) fn end_session(&mut self, session: &str) -> Result<Reply, Fault> {
        self.send("DELETE", &Message::empty_in(session))?;
        self.reply()
    }

    /// Opens the standalone stream of a session and reads its head.
    pub(crate) fn listen_in(&mut self, session: &str) -> Result<(), Fault> {
        self.send("GET", &Message::empty_in(session))?;
        self.streaming()
    }

    pub(crate) fn post(&mut self, message: &Message) -> Result<Reply, Fault> {
        self.send("POST", message)?;
        self.reply()
    }

    /// Sends a request without waiting for the response.
    pub(crate) fn send(&mut self, method: &str, message: &Message) -> Result<(), Fault> {
        self.send_part(method, message, message.body.len())
    }

    /// Sends the head of a request and the beginning of its body, whose whole length the head announces.
    pub(crate) fn send_part(&mut self, method: &str, message: &Message, length: usize) -> Result<(), Fault> {
        let Message { headers, body } = message;
        let head = format!(
            "{method} /mcp HTTP/1.1\r\nhost: 127.0.0.1:{}\r\ncontent-type: application/json\r\n\
             accept: application/json, text/event-stream\r\n{headers}content-length: {}\r\n\r\n",
            self.port,
            body.len()
        );
        let part = body.as_bytes().get(..length).unwrap_or_default();
        Ok(self.stream.get_mut().write_all(&[head.as_bytes(), part].concat())?)
    }

    pub(crate) fn reply(&mut self) -> Result<Reply, Fault> {
        let mut reply = self.head()?;
        let length = reply.header("content-length").and_then(|length| length.parse().ok());
        let mut body = vec![0; length.ok_or_else(|| Fault("a body without a length".into()))?];
        self.stream.read_exact(&mut body)?;
        reply.body = String::from_utf8_lossy(&body).into_owned();
        Ok(reply)
    }

    /// Reads the head of a response with an SSE body.
    pub(crate) fn streaming(&mut self) -> Result<(), Fault> {
        let head = self.head()?;
        head.expect(200)?;
        match head.header("content-type") {
            Some("text/event-stream") => Ok(()),
            other => Err(Fault(format!("a stream of events was asked for, and {other:?} came"))),
        }
    }

    /// Reads an SSE stream up to the line that contains this text.
    pub(crate) fn hear(&mut self, words: &str) -> Result<(), Fault> {
        while !self.line()?.contains(words) {}
        Ok(())
    }

    /// Closes the write half and returns everything that the server still sends.
    pub(crate) fn leave(mut self) -> Result<Vec<u8>, Fault> {
        self.stream.get_ref().shutdown(Shutdown::Write)?;
        let mut rest = Vec::new();
        self.stream.read_to_end(&mut rest)?;
        Ok(rest)
    }

    fn head(&mut self) -> Result<Reply, Fault> {
        let odd = |line: &str| Fault(format!("the server says {line:?}"));
        let line = self.line()?;
        let status = line.split(' ').nth(1).and_then(|code| code.parse().ok()).ok_or_else(|| odd(&line))?;
        let mut headers = Vec::new();
        loop {
            let line = self.line()?;
            if line.is_empty() {
                return Ok(Reply { status, headers, body: String::new() });
            }
            let (name, value) = line.split_once(": ").ok_or_else(|| odd(&line))?;
            headers.push((name.to_ascii_lowercase(), value.to_owned()));
        }
    }

    fn line(&mut self) -> Result<String, Fault> {
        let mut line = String::new();
        if self.stream.read_line(&mut line)? == 0 {
            return Err(Fault("the server has closed the connection".into()));
        }
        Ok(line.trim_end_matches(['\r', '\n']).to_owned())
    }
}
