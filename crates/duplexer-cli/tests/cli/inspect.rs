//! `duplexer inspect`: where the page is, and who gets it. What the page does is tested in a browser.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::configured::folder;
use crate::support::{Demo, PROGRAM, RunningServer, data_folder, run};

/// Sends a request to a page. Returns head and body.
fn request(url: &str, line: &str, token: Option<&str>, body: &str) -> (String, String) {
    let address = url.trim_start_matches("http://").split('/').next().unwrap();
    let mut stream = TcpStream::connect(address).unwrap();
    let token = token.map(|token| format!("authorization: Bearer {token}\r\n")).unwrap_or_default();
    let length = body.len();
    let head =
        format!("{line} HTTP/1.1\r\nhost: {address}\r\n{token}content-length: {length}\r\nconnection: close");
    write!(stream, "{head}\r\n\r\n{body}").unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    let (head, body) = text.split_once("\r\n\r\n").unwrap();
    (head.to_owned(), body.to_owned())
}

fn token(url: &str) -> &str {
    url.split_once("#token=").unwrap().1
}

/// Opens a session through the API of the page.
fn session(url: &str) -> Value {
    let opened = request(url, "POST /inspector/api/session", Some(token(url)), r#"{"session":"auto"}"#);
    serde_json::from_str(&opened.1).unwrap()
}

#[test]
fn a_program_is_inspected_with_the_printed_address() {
    let mut page = RunningServer::start(&["inspect", "--", PROGRAM, "demo", "--stdio"]);
    let line = page.note();
    let url = line.trim_start_matches("The inspector is at ");
    assert!(url.starts_with("http://127.0.0.1:"), "{line}");
    let (head, html) = request(url, "GET /", None, "");
    assert!(head.starts_with("HTTP/1.1 200") && head.contains("default-src 'none'"), "{head}");
    assert!(html.contains("<title>Inspector</title>"), "{html}");
    assert!(request(url, "GET /inspector/api/info", None, "").0.starts_with("HTTP/1.1 401"));
    assert!(request(url, "GET /inspector/api/info", Some("guess"), "").0.starts_with("HTTP/1.1 401"));
    assert_eq!(session(url)["server"]["name"], "duplexer-demo");
    assert_eq!(page.interrupt(), Some(0));
}

/// A name in `mcp.json` selects a URL or a program, with its configured headers.
#[test]
fn a_configured_server_is_inspected_by_its_name() {
    let demo = Demo::start();
    let servers = json!({
        "web": { "url": demo.url, "headers": { "X-Team": "ours" } },
        "program": { "command": PROGRAM, "args": ["demo", "--stdio"] },
    });
    let here = folder("inspected", "mcp.json", &servers);
    let words = json!([PROGRAM, "demo", "--stdio"]);
    for (name, target) in [
        ("web", json!({"kind": "url", "url": demo.url})),
        ("program", json!({"kind": "command", "words": words})),
    ] {
        let mut command = Command::new(PROGRAM);
        command.args(["inspect", name]).current_dir(&here).env("XDG_DATA_HOME", data_folder());
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut page = RunningServer::of(command.spawn().unwrap());
        let line = page.note();
        let url = line.trim_start_matches("The inspector is at ");
        assert_eq!(session(url)["server"]["name"], "duplexer-demo", "{name}");
        let get = |path: &str| -> Value {
            let answer = request(url, &format!("GET /inspector/api/{path}"), Some(token(url)), "").1;
            serde_json::from_str(&answer).unwrap()
        };
        assert_eq!(get("info")["target"], target);
        let events = get("events?after=0")["events"].to_string();
        // The page does not show the values of configured headers, which can be secret.
        assert_eq!(events.contains(r#"["x-team","(not shown)"]"#), name == "web", "{events}");
        assert_eq!(page.interrupt(), Some(0));
    }
    assert_eq!(demo.running.interrupt(), Some(0));
}

/// The demo serves the page at `/`, unless it is not to.
#[test]
fn the_demo_shows_itself() {
    let demo = Demo::start();
    let line = demo.welcome.iter().find_map(|line| line.strip_prefix("Look at it in a browser: ")).unwrap();
    assert_eq!(session(line)["server"]["name"], "duplexer-demo");
    let info = request(line, "GET /inspector/api/info", Some(token(line)), "").1;
    let info: Value = serde_json::from_str(&info).unwrap();
    assert_eq!(info["target"], json!({"kind": "url", "url": demo.url}));
    run(&["call", &demo.url, "add", "a:=2", "b:=3"]).ok();
    assert_eq!(demo.running.interrupt(), Some(0));
    let without = Demo::with(&["--no-inspector"]);
    assert!(!without.welcome.join("\n").contains("browser"));
    assert!(request(&without.url, "GET /", None, "").0.starts_with("HTTP/1.1 404"));
    assert_eq!(without.running.interrupt(), Some(0));
}

#[test]
fn what_cannot_be_inspected_is_refused_at_once() {
    run(&["inspect", "ftp://a"]).failed(2, "is not where a server could be");
    run(&["inspect", "no-such-server"]).failed(2, "is not where a server could be");
    run(&["inspect", "-H", "A: b", "--", "true"]).failed(2, "--header is for servers at a URL");
    assert_eq!(run(&["inspect"]).code, Some(2));
}
