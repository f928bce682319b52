//! The messages of all sessions, whole, within bounds. The page gets the begin of each and requests the rest.

use std::collections::{HashMap, VecDeque};
use std::fmt::Write as _;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use duplexer_core::dispatch::lock;
use duplexer_core::transport::FrameDirection;
use duplexer_types::json::{find_member, find_members};
use duplexer_types::jsonrpc::{self, RawFrame};
use duplexer_types::meta::key;
use serde_json::{Value, json};

/// Maximum number of messages, and of bytes of their text.
const MAX_FRAMES: usize = 10_000;
const MAX_BYTES: usize = 64 * 1024 * 1024;
/// Maximum length of the text that the page gets at once, in bytes.
const SHOWN: usize = 2048;

/// One message.
#[derive(Debug)]
struct Frame {
    at: f64,
    of: Connection,
    direction: FrameDirection,
    text: String,
}

#[derive(Debug, Default)]
pub(crate) struct Wire {
    log: Mutex<Log>,
    connections: AtomicU64,
}

/// One connection of a session. A session that is opened again has another one, whose request ids start again.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Connection {
    session: &'static str,
    number: u64,
}

#[derive(Debug, Default)]
struct Log {
    /// Number of the first message that is kept.
    first: u64,
    frames: VecDeque<Frame>,
    bytes: usize,
}

impl Wire {
    /// Returns a new connection of a session.
    pub(crate) fn connection(&self, session: &'static str) -> Connection {
        Connection { session, number: self.connections.fetch_add(1, Ordering::Relaxed) }
    }

    /// Adds a message and returns the event that describes it.
    pub(crate) fn add(&self, at: f64, of: Connection, direction: FrameDirection, text: &str) -> Value {
        let mut log = lock(&self.log);
        let number = log.first + log.frames.len() as u64;
        log.bytes += text.len();
        log.frames.push_back(Frame { at, of, direction, text: text.to_owned() });
        while log.frames.len() > MAX_FRAMES || log.bytes > MAX_BYTES && log.frames.len() > 1 {
            let removed = log.frames.pop_front().map_or(0, |frame| frame.text.len());
            log.bytes -= removed;
            log.first += 1;
        }
        drop(log);
        let mut event = described(text);
        let shown = begin(text, SHOWN);
        let about = json!({
            "type": "frame", "n": number, "at": at, "session": of.session, "from": sender(direction),
            "size": text.len(), "text": shown, "cut": shown.len() < text.len(),
        });
        if let (Value::Object(event), Value::Object(about)) = (&mut event, about) {
            event.extend(about);
        }
        event
    }

    /// Returns the whole text of a message, if it is still kept.
    pub(crate) fn text(&self, number: u64) -> Option<String> {
        let log = lock(&self.log);
        let index = usize::try_from(number.checked_sub(log.first)?).ok()?;
        log.frames.get(index).map(|frame| frame.text.clone())
    }

    /// Returns the messages of a session as the lines of a transcript (docs/transcripts.md).
    pub(crate) fn transcript(&self, session: &str, transport: &str, target: &str) -> String {
        let by = concat!("duplexer ", env!("CARGO_PKG_VERSION"));
        let head = json!({
            "duplexer": "transcript", "version": 1, "transport": transport, "target": target, "by": by,
        });
        let mut lines = format!("{head}\n");
        let log = lock(&self.log);
        let own = log.frames.iter().filter(|frame| frame.of.session == session);
        let (mut begun, mut last, mut connections) = (None, 0, HashMap::new());
        for frame in own {
            // What could not be read is no message.
            if jsonrpc::read(&frame.text).is_err() {
                continue;
            }
            let since = frame.at - *begun.get_or_insert(frame.at);
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "not negative, and small"
            )]
            let at = since.max(0.0) as u64;
            // The clock is read before the message is added, so a later message can have an earlier time.
            last = at.max(last);
            let next = connections.len() + 1;
            let connection = match *connections.entry(frame.of.number).or_insert(next) {
                1 => String::new(),
                number => format!(",\"connection\":{number}"),
            };
            let from = sender(frame.direction);
            // Line ends are only between the parts of a message: strings have none.
            let text = frame.text.replace(['\n', '\r'], " ");
            // Writing into memory cannot fail.
            let _ =
                writeln!(lines, "{{\"at_ms\":{last},\"from\":\"{from}\"{connection},\"message\":{text}}}");
        }
        lines
    }
}

fn sender(direction: FrameDirection) -> &'static str {
    match direction {
        FrameDirection::Out => "client",
        FrameDirection::In => "server",
    }
}

/// Returns kind, id and method of a message, and whether a request is of the envelope era.
fn described(text: &str) -> Value {
    match jsonrpc::read(text) {
        Ok(RawFrame::Request { id, call }) => {
            let envelope = call.meta.is_some_and(|meta| find_member(meta, key::PROTOCOL_VERSION).is_some());
            let era = if envelope { "envelope" } else { "handshake" };
            json!({"kind": "request", "id": id, "method": call.method, "era": era, "subject": subject(call.params)})
        }
        Ok(RawFrame::Notification(call)) => {
            json!({"kind": "notification", "method": call.method, "subject": subject(call.params)})
        }
        Ok(RawFrame::Success { id, .. }) => json!({"kind": "result", "id": id}),
        Ok(RawFrame::Failure { id, .. }) => json!({"kind": "error", "id": id}),
        Ok(RawFrame::Batch(_)) => json!({"kind": "batch"}),
        Err(_) => json!({"kind": "unreadable"}),
    }
}

/// Returns the tool, prompt or resource that a message is about.
fn subject(params: Option<&str>) -> Option<String> {
    let [name, uri] = find_members(params?, ["name", "uri"]).ok()?;
    let text = name.one().or(uri.one())?;
    serde_json::from_str::<String>(text).ok().map(|text| begin(&text, 200).to_owned())
}

/// Returns the begin of a text, at most `length` bytes.
pub(crate) fn begin(text: &str, length: usize) -> &str {
    let end = (0..=length.min(text.len())).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
    text.get(..end).unwrap_or(text)
}

/// Returns the first bytes of a value.
pub(crate) fn begin_bytes(bytes: &[u8], length: usize) -> &[u8] {
    bytes.get(..length).unwrap_or(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIST: &str = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"add"}}"#;

    #[test]
    fn a_message_is_described_and_its_text_is_cut() {
        let wire = Wire::default();
        let auto = wire.connection("auto");
        let event = wire.add(1.0, auto, FrameDirection::Out, LIST);
        assert_eq!(
            (&event["kind"], &event["id"], &event["subject"]),
            (&json!("request"), &json!(1), &json!("add"))
        );
        assert_eq!((&event["era"], &event["cut"]), (&json!("handshake"), &json!(false)));
        let large = format!(r#"{{"jsonrpc":"2.0","id":1,"result":"{}"}}"#, "ä".repeat(5000));
        let event = wire.add(2.0, auto, FrameDirection::In, &large);
        assert_eq!((&event["cut"], &event["size"]), (&json!(true), &json!(large.len())));
        assert!(event["text"].as_str().unwrap().len() <= SHOWN);
        assert_eq!(wire.text(1).unwrap(), large);
        assert_eq!(wire.text(2), None);
    }

    /// Issue 12: the log keeps at most 10 000 messages.
    #[test]
    fn old_messages_are_dropped() {
        let wire = Wire::default();
        let auto = wire.connection("auto");
        for _ in 0..MAX_FRAMES + 3 {
            wire.add(0.0, auto, FrameDirection::Out, LIST);
        }
        assert_eq!(lock(&wire.log).frames.len(), MAX_FRAMES);
        assert!(wire.text(2).is_none() && wire.text(3).is_some());
    }

    #[test]
    fn a_transcript_holds_the_messages_of_one_session() {
        let wire = Wire::default();
        let (auto, other) = (wire.connection("auto"), wire.connection("handshake"));
        wire.add(10.5, auto, FrameDirection::Out, LIST);
        wire.add(11.0, other, FrameDirection::Out, LIST);
        wire.add(11.0, auto, FrameDirection::In, "noise");
        wire.add(13.0, auto, FrameDirection::In, "{\"jsonrpc\":\"2.0\",\r\n\"id\":1,\"result\":{}}");
        let text = wire.transcript("auto", "http", "http://a/mcp");
        let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(lines.len(), 3);
        assert_eq!((&lines[0]["duplexer"], &lines[0]["version"]), (&json!("transcript"), &json!(1)));
        assert_eq!((&lines[1]["at_ms"], &lines[1]["from"]), (&json!(0), &json!("client")));
        assert_eq!((&lines[2]["at_ms"], &lines[2]["from"]), (&json!(2), &json!("server")));
    }

    #[test]
    fn a_transcript_tells_connections_apart_and_its_time_never_decreases() {
        let wire = Wire::default();
        let (one, two) = (wire.connection("auto"), wire.connection("auto"));
        for (at, of) in [(5.0, one), (9.0, one), (8.0, two), (12.0, two)] {
            wire.add(at, of, FrameDirection::Out, LIST);
        }
        let text = wire.transcript("auto", "stdio", "server");
        let lines = text.lines().skip(1).map(|line| serde_json::from_str(line).unwrap());
        let found: Vec<(Value, Value)> =
            lines.map(|line: Value| (line["at_ms"].clone(), line["connection"].clone())).collect();
        let expected = [(0, None), (4, None), (4, Some(2)), (7, Some(2))];
        assert_eq!(found, expected.map(|(at, connection)| (json!(at), json!(connection))));
    }
}
