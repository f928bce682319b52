//! What a hostile server costs its client in memory. The only test of its binary: the measure is of all threads.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};

use duplexer::client::{Client, ClientError, Negotiation, PinnedVersion};
use duplexer::error::ErrorKind;
use duplexer_bench::allocations::{Peak, in_use, peak_during};
use duplexer_http_client::HttpTransport;
use tokio::runtime::Builder;

#[global_allocator]
static ALLOCATOR: Peak = Peak;

const KB: usize = 1024;
const MB: usize = 1024 * KB;
/// Maximum size of a message, as the client sets it.
const LIMIT: usize = MB;
/// Size of one line without an end, and of many short ones.
const LINE: usize = 10 * MB;
const LINES: usize = 2 * MB;

/// A behaviour of the server, which the name of the tool selects.
struct Case {
    tool: &'static str,
    content_type: &'static str,
    /// Sent until [`LINE`] or [`LINES`] bytes are written, after `begin`.
    begin: &'static str,
    repeated: &'static str,
    end: End,
    /// How the call ends, and the maximum of memory that it needs at once.
    outcome: Option<ErrorKind>,
    peak: usize,
}

enum End {
    /// The response ends in the middle.
    Close,
    /// The response to the request follows.
    Answer,
}

const EVENTS: &str = "text/event-stream";
const UNKNOWN: &str = "data: {\"jsonrpc\":\"2.0\",\"id\":987654321,\"result\":{\"content\":[]}}\n\n";
const NOTIFIED: &str = "data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/x\",\"params\":{\"a\":1}}\n\n";
const CASES: &[Case] = &[
    // One line of 10 MB as a body, as an event, and as a name of an event.
    case("body", "application/json", "{\"a\":\"", "xxxxxxxxxxxxxxxx", Some(ErrorKind::Protocol), 4 * MB),
    case("event", EVENTS, "data: ", "xxxxxxxxxxxxxxxx", Some(ErrorKind::Protocol), 4 * MB),
    case("name", EVENTS, "event: ", "xxxxxxxxxxxxxxxx", Some(ErrorKind::Protocol), 4 * MB),
    // Many lines of one event.
    case("lines", EVENTS, "", "data: xxxxxxxxxxxxxx\n", Some(ErrorKind::Protocol), 4 * MB),
    // Delays, comments, ids and events without a message, without an end.
    case("retry", EVENTS, "", "retry: 99999999999999\n\n", Some(ErrorKind::Closed), 2 * MB),
    case("comment", EVENTS, "", ": comment\n", Some(ErrorKind::Closed), 2 * MB),
    case("id", EVENTS, "", "id: 1\n\n", Some(ErrorKind::Closed), 2 * MB),
    case("empty", EVENTS, "", "data: {}\n\n", Some(ErrorKind::Closed), 2 * MB),
    // Other types of content are not read.
    case("page", "text/html", "<html>", "xxxxxxxxxxxxxxxx", Some(ErrorKind::Protocol), MB),
    case("bytes", "application/octet-stream", "", "xxxxxxxxxxxxxxxx", Some(ErrorKind::Protocol), MB),
    // Responses to requests that do not exist, and unknown notifications, before the response.
    Case { end: End::Answer, outcome: None, ..case("unknown", EVENTS, "", UNKNOWN, None, 2 * MB) },
    Case { end: End::Answer, outcome: None, ..case("notified", EVENTS, "", NOTIFIED, None, 2 * MB) },
];

const fn case(
    tool: &'static str,
    content_type: &'static str,
    begin: &'static str,
    repeated: &'static str,
    outcome: Option<ErrorKind>,
    peak: usize,
) -> Case {
    Case { tool, content_type, begin, repeated, end: End::Close, outcome, peak }
}

/// Serves connections one after another, with buffers of constant size.
fn serve(listener: &TcpListener) {
    while let Ok((stream, _)) = listener.accept() {
        stream.set_nodelay(true).unwrap();
        std::thread::spawn(move || while serve_one(&stream).is_some() {});
    }
}

fn serve_one(stream: &TcpStream) -> Option<()> {
    let mut reader = BufReader::new(stream);
    let (mut line, mut length) = (String::new(), 0);
    loop {
        line.clear();
        reader.read_line(&mut line).ok().filter(|read| *read > 0)?;
        match line.to_ascii_lowercase().split_once(':') {
            Some(("content-length", value)) => length = value.trim().parse().ok()?,
            None if line.trim().is_empty() => break,
            _ => {}
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    respond(stream, &String::from_utf8(body).ok()?)
}

fn respond(mut stream: &TcpStream, request: &str) -> Option<()> {
    let after = |name: &str| request.split_once(name).map(|(_, rest)| rest);
    let id = after("\"id\":")?.split([',', '}']).next()?;
    let answer = |result: &str| {
        format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{{\"resultType\":\"complete\",{result}}}}}")
    };
    let json = |mut stream: &TcpStream, body: &str| {
        let head = format!(
            "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
            body.len()
        );
        stream.write_all((head + body).as_bytes()).ok()
    };
    if request.contains("\"server/discover\"") {
        let found = r#""supportedVersions":["2026-07-28"],"capabilities":{"tools":{}},"ttlMs":0,"cacheScope":"private""#;
        return json(stream, &answer(found));
    }
    if request.contains("\"tools/list\"") {
        let page =
            after("\"cursor\":\"").and_then(|rest| rest.split('-').next()?.parse().ok()).unwrap_or(0_u32);
        let tool = r#"{"name":"t","inputSchema":{"type":"object"}}"#;
        let cursor = format!("{}-{}", page + 1, "x".repeat(10 * KB));
        let list = format!(r#""tools":[{tool}],"nextCursor":"{cursor}","ttlMs":0,"cacheScope":"private""#);
        return json(stream, &answer(&list));
    }
    let case = CASES.iter().find(|case| request.contains(&format!("\"name\":\"{}\"", case.tool)))?;
    let head = format!("HTTP/1.1 200 OK\r\ncontent-type: {}\r\nconnection: close\r\n\r\n", case.content_type);
    stream.write_all((head + case.begin).as_bytes()).ok()?;
    let many = case.repeated.repeat(64 * KB / case.repeated.len());
    let size = if case.repeated.ends_with('\n') { LINES } else { LINE };
    for _ in 0..size / many.len() {
        stream.write_all(many.as_bytes()).ok()?;
    }
    if matches!(case.end, End::Answer) {
        let event = format!("data: {}\n\n", answer(r#""content":[{"type":"text","text":"done"}]"#));
        stream.write_all(event.as_bytes()).ok()?;
    }
    None
}

/// Megabytes of anything end in a typed error, or in the result behind them, within a bound; nothing is left of them. The same
/// holds for a list without an end.
#[test]
fn memory_stays_flat() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    std::thread::spawn(move || serve(&listener));
    let runtime = Builder::new_current_thread().enable_all().build().unwrap();
    let client = runtime.block_on(async {
        let pinned = Negotiation::Pinned(PinnedVersion::new("2026-07-28"));
        let transport = HttpTransport::builder(&url).limit(LIMIT).build().unwrap();
        Client::builder("c", "1").max_pages(100).negotiation(pinned).connect(transport).await.unwrap()
    });
    let call = |case: &Case| {
        let (result, peak) = peak_during(|| runtime.block_on(client.call_tool(case.tool, ()).into_future()));
        match (result, case.outcome) {
            (Ok(result), None) => assert_eq!(result.to_text(), "done", "{}", case.tool),
            (Err(error), Some(kind)) => {
                assert_eq!(error.kind(), kind, "{}: {error}", case.tool);
                assert!(error.to_string().len() < 400, "{error}");
            }
            (result, _) => panic!("{}: {result:?}", case.tool),
        }
        assert!(peak < case.peak, "{}: {peak} bytes", case.tool);
    };
    let pages = || {
        let (error, peak) = peak_during(|| runtime.block_on(client.all_tools()).unwrap_err());
        assert!(matches!(error, ClientError::TooManyPages { pages: 100, .. }), "{error}");
        assert!(peak < 2 * MB, "pages: {peak} bytes");
    };
    CASES.iter().for_each(call);
    pages();
    let before = in_use();
    for _ in 0..2 {
        CASES.iter().for_each(call);
        pages();
    }
    let grown = in_use().saturating_sub(before);
    assert!(grown < 256 * KB, "{grown} bytes are left");
}
