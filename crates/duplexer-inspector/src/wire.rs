//! The messages of all sessions, whole, within bounds. The page gets the begin of each and requests the rest.

use std::collections::VecDeque;
use std::fmt::Write as _;
use std::sync::Mutex;

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
    session: String,
    direction: FrameDirection,
    text: String,
}

#[derive(Debug, Default)]
pub(crate) struct Wire {
    log: Mutex<Log>,
}

#[derive(Debug, Default)]
struct Log {
    /// Number of the first message that is kept.
    first: u64,
    frames: VecDeque<Frame>,
    bytes: usize,
}

impl Wire {
    /// Adds a message and returns the event that describes it.
    pub(crate) fn add(&self, at: f64, session: &str, direction: FrameDirection, text: &str) -> Value {
        let mut log = lock(&self.log);
        let number = log.first + log.frames.len() as u64;
        log.bytes += text.len();
        log.frames.push_back(Frame { at, session: session.to_owned(), direction, text: text.to_owned() });
        while log.frames.len() > MAX_FRAMES || log.bytes > MAX_BYTES && log.frames.len() > 1 {
            let removed = log.frames.pop_front().map_or(0, |frame| frame.text.len());
            log.bytes -= removed;
            log.first += 1;
        }
        drop(log);
        let mut event = described(text);
        let shown = begin(text, SHOWN);
        let about = json!({
            "type": "frame", "n": number, "at": at, "session": session, "from": sender(direction),
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
        let mut own = log.frames.iter().filter(|frame| frame.session == session).peekable();
        let start = own.peek().map_or(0.0, |frame| frame.at);
        for frame in own {
            // What could not be read is no message.
            if jsonrpc::read(&frame.text).is_err() || frame.text.contains('\n') {
                continue;
            }
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "not negative, and small"
            )]
            let at = (frame.at - start).max(0.0) as u64;
            let from = sender(frame.direction);
            // Writing into memory cannot fail.
            let _ = writeln!(lines, "{{\"at_ms\":{at},\"from\":\"{from}\",\"message\":{}}}", frame.text);
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
        let event = wire.add(1.0, "auto", FrameDirection::Out, LIST);
        assert_eq!(
            (&event["kind"], &event["id"], &event["subject"]),
            (&json!("request"), &json!(1), &json!("add"))
        );
        assert_eq!((&event["era"], &event["cut"]), (&json!("handshake"), &json!(false)));
        let large = format!(r#"{{"jsonrpc":"2.0","id":1,"result":"{}"}}"#, "ä".repeat(5000));
        let event = wire.add(2.0, "auto", FrameDirection::In, &large);
        assert_eq!((&event["cut"], &event["size"]), (&json!(true), &json!(large.len())));
        assert!(event["text"].as_str().unwrap().len() <= SHOWN);
        assert_eq!(wire.text(1).unwrap(), large);
        assert_eq!(wire.text(2), None);
    }

    /// Issue 12: the log keeps at most 10 000 messages.
    #[test]
    fn old_messages_are_dropped() {
        let wire = Wire::default();
        for _ in 0..MAX_FRAMES + 3 {
            wire.add(0.0, "auto", FrameDirection::Out, LIST);
        }
        assert_eq!(lock(&wire.log).frames.len(), MAX_FRAMES);
        assert!(wire.text(2).is_none() && wire.text(3).is_some());
    }

    #[test]
    fn a_transcript_holds_the_messages_of_one_session() {
        let wire = Wire::default();
        wire.add(10.5, "auto", FrameDirection::Out, LIST);
        wire.add(11.0, "handshake", FrameDirection::Out, LIST);
        wire.add(11.0, "auto", FrameDirection::In, "noise");
        wire.add(13.0, "auto", FrameDirection::In, r#"{"jsonrpc":"2.0","id":1,"result":{}}"#);
        let text = wire.transcript("auto", "http", "http://a/mcp");
        let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(lines.len(), 3);
        assert_eq!((&lines[0]["duplexer"], &lines[0]["version"]), (&json!("transcript"), &json!(1)));
        assert_eq!((&lines[1]["at_ms"], &lines[1]["from"]), (&json!(0), &json!("client")));
        assert_eq!((&lines[2]["at_ms"], &lines[2]["from"]), (&json!(2), &json!("server")));
    }
}
