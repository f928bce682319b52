//! Encoding of server-sent events: one message per event, its JSON on one line.

use std::fmt;
use std::io::Write as _;
use std::str::FromStr;
use std::time::Duration;

use bytes::Bytes;

use crate::session::StreamId;

const START: &[u8] = b"event: message\r\ndata: ";
const END: &[u8] = b"\r\n\r\n";
/// Comment that keeps a silent stream alive.
pub(super) const PING: &[u8] = b": ping\r\n\r\n";

/// Id of an event: its stream and its sequence number. A client sends it back to resume the stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct EventId {
    pub(super) stream: StreamId,
    pub(super) sequence: u64,
}

impl fmt::Display for EventId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.stream, self.sequence)
    }
}

/// Error of a text that is not an event id of this service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct NotAnEventId;

impl FromStr for EventId {
    type Err = NotAnEventId;

    fn from_str(text: &str) -> Result<Self, NotAnEventId> {
        let (stream, sequence) = text.split_once('-').ok_or(NotAnEventId)?;
        let is_number = !sequence.is_empty() && sequence.bytes().all(|byte| byte.is_ascii_digit());
        if !is_number {
            return Err(NotAnEventId);
        }
        let stream = StreamId(bits(stream).ok_or(NotAnEventId)?);
        Ok(Self { stream, sequence: sequence.parse().map_err(|_| NotAnEventId)? })
    }
}

/// Parses 32 hexadecimal digits.
pub(super) fn bits(text: &str) -> Option<u128> {
    let is_hex = text.len() == 32 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_hex.then(|| u128::from_str_radix(text, 16).ok()).flatten()
}

/// Appends a message. Line breaks in its JSON are replaced by spaces, because they would end the data line.
pub(super) fn write(out: &mut Vec<u8>, id: Option<EventId>, json: &[u8]) {
    out.reserve(START.len() + json.len() + END.len() + id.map_or(0, |_| 64));
    write_id(out, id);
    out.extend_from_slice(START);
    let from = out.len();
    out.extend_from_slice(json);
    if memchr::memchr2(b'\n', b'\r', json).is_some() {
        for byte in out.iter_mut().skip(from).filter(|byte| matches!(byte, b'\n' | b'\r')) {
            *byte = b' ';
        }
    }
    out.extend_from_slice(END);
}

/// Appends a priming event: an id to resume from, and the time to wait before that.
pub(super) fn write_priming(out: &mut Vec<u8>, id: EventId, retry: Duration) {
    write_id(out, Some(id));
    // Writing into memory cannot fail.
    let _ = write!(out, "retry: {}\r\ndata: \r\n\r\n", retry.as_millis());
}

/// Returns the `endpoint` event of the HTTP+SSE transport.
pub(super) fn endpoint(uri: &str) -> Bytes {
    format!("event: endpoint\r\ndata: {uri}\r\n\r\n").into()
}

fn write_id(out: &mut Vec<u8>, id: Option<EventId>) {
    if let Some(id) = id {
        let _ = write!(out, "id: {id}\r\n");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: EventId = EventId { stream: StreamId(0xab), sequence: 7 };

    /// HTTPM-11.
    #[test]
    fn a_message_is_one_line_of_data() {
        let mut out = Vec::new();
        write(&mut out, None, b"{\"a\":1}");
        write(&mut out, None, b"{\n  \"a\": \"x\\ny\"\r\n}");
        let text = "event: message\r\ndata: {\"a\":1}\r\n\r\nevent: message\r\ndata: {   \"a\": \"x\\ny\"  }\r\n\r\n";
        assert_eq!(std::str::from_utf8(&out), Ok(text));
    }

    /// HTTPL-19: an id, the time to wait, and no data.
    #[test]
    fn a_priming_event_has_an_id_and_a_retry_time() {
        let mut out = Vec::new();
        write_priming(&mut out, ID, Duration::from_millis(1500));
        write(&mut out, Some(ID), b"{}");
        let text = "id: 000000000000000000000000000000ab-7\r\nretry: 1500\r\ndata: \r\n\r\n\
                    id: 000000000000000000000000000000ab-7\r\nevent: message\r\ndata: {}\r\n\r\n";
        assert_eq!(std::str::from_utf8(&out), Ok(text));
    }

    #[test]
    fn an_event_id_is_read_as_it_was_written() {
        assert_eq!(ID.to_string().parse(), Ok(ID));
        for other in
            ["", "7", "ab-7", "000000000000000000000000000000ab-", "+00000000000000000000000000000ab-7"]
        {
            assert_eq!(other.parse::<EventId>(), Err(NotAnEventId), "{other}");
        }
        let beyond = format!("{}-99999999999999999999999", StreamId(1));
        assert_eq!(beyond.parse::<EventId>(), Err(NotAnEventId));
    }
}
