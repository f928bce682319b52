//! Server-sent events: one message per event, its JSON on one line.

const START: &[u8] = b"event: message\r\ndata: ";
const END: &[u8] = b"\r\n\r\n";
/// What keeps a silent stream alive.
pub(super) const PING: &[u8] = b": ping\r\n\r\n";

/// Appends a message. Line breaks in JSON text are white space, and would end the data in a stream.
pub(super) fn write(out: &mut Vec<u8>, json: &[u8]) {
    out.reserve(START.len() + json.len() + END.len());
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

#[cfg(test)]
mod tests {
    use super::*;

    /// HTTPM-11.
    #[test]
    fn a_message_is_one_line_of_data() {
        let mut out = Vec::new();
        write(&mut out, b"{\"a\":1}");
        write(&mut out, b"{\n  \"a\": \"x\\ny\"\r\n}");
        let text = "event: message\r\ndata: {\"a\":1}\r\n\r\nevent: message\r\ndata: {   \"a\": \"x\\ny\"  }\r\n\r\n";
        assert_eq!(std::str::from_utf8(&out), Ok(text));
    }
}
