//! The protected bench server, as black-box tests start it.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};

/// Child process that is killed on drop.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        // Both fail only if it has ended already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The lines name the address of the server, so the port is chosen before it starts. If it is taken meanwhile, tries another.
fn start(lines: impl Fn(&str) -> String) -> (Running, String) {
    let path = std::env::temp_dir().join(format!("tokens-{}", std::process::id()));
    loop {
        let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        std::fs::write(&path, lines(&format!("http://{address}/mcp"))).unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_bench-server"));
        command.args(["http", &address.port().to_string(), "--static-tokens"]).arg(&path).arg("bench");
        let mut running = Running(command.stderr(Stdio::piped()).spawn().unwrap());
        let mut place = String::new();
        BufReader::new(running.0.stderr.take().unwrap()).read_line(&mut place).unwrap();
        if place.trim_end() == format!("http://{address}/mcp") {
            std::fs::remove_file(path).unwrap();
            return (running, address.to_string());
        }
    }
}

fn status(address: &str, token: &str) -> String {
    let meta = r#"{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}"#;
    let body =
        format!(r#"{{"jsonrpc":"2.0","id":1,"method":"server/discover","params":{{"_meta":{meta}}}}}"#);
    let head = [
        "POST /mcp HTTP/1.1".to_owned(),
        format!("Host: {address}"),
        "Content-Type: application/json".to_owned(),
        "Accept: application/json, text/event-stream".to_owned(),
        "MCP-Protocol-Version: 2026-07-28".to_owned(),
        "Mcp-Method: server/discover".to_owned(),
        format!("Authorization: Bearer {token}"),
        "Connection: close".to_owned(),
        format!("Content-Length: {}", body.len()),
    ];
    let mut stream = TcpStream::connect(address).unwrap();
    write!(stream, "{}\r\n\r\n{body}", head.join("\r\n")).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer.split(' ').nth(1).unwrap().to_owned()
}

/// AUTH-02, AUTH-04: by token, audience, scope and time.
#[test]
fn tokens_of_the_file_are_accepted() {
    let (_running, address) = start(|here| {
        format!(
            "# token subject audience scopes expiry\n\
             good ada {here} bench,more 4102444800\n\
             weak ada {here} other -\n\
             late ada {here} bench 1\n\
             foreign ada http://other.example/mcp bench -\n"
        )
    });
    for (token, expected) in
        [("good", "200"), ("weak", "403"), ("late", "401"), ("foreign", "401"), ("unknown", "401")]
    {
        assert_eq!(status(&address, token), expected, "{token}");
    }
}
