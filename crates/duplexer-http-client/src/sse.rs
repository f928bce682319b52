//! Incremental parser of server-sent events with a size limit.

use std::time::Duration;

/// An event exceeds the size limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TooLarge;

/// One event, reduced to the fields that the transport uses.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Event {
    /// The data. Empty for the priming event of a stream.
    pub(crate) data: Vec<u8>,
    /// The type of an event that is not a message.
    pub(crate) kind: Option<Vec<u8>>,
    /// Id after which the stream can be resumed. Empty: it cannot.
    pub(crate) id: Option<Vec<u8>>,
    /// Delay before a resumption.
    pub(crate) retry: Option<Duration>,
}

/// Turns bytes into events. Ignores comments and unknown fields.
#[derive(Debug)]
pub(crate) struct EventReader {
    line: Vec<u8>,
    event: Event,
    /// Whether the event has a line of data, which can be empty.
    has_data: bool,
    after_return: bool,
    limit: usize,
}

impl EventReader {
    pub(crate) fn new(limit: usize) -> Self {
        Self { line: Vec::new(), event: Event::default(), has_data: false, after_return: false, limit }
    }

    /// Parses the next bytes and calls `each` for every complete event that is not empty.
    pub(crate) fn feed(&mut self, bytes: &[u8], each: &mut impl FnMut(Event)) -> Result<(), TooLarge> {
        let mut rest = bytes;
        if self.after_return && rest.first() == Some(&b'\n') {
            rest = &rest[1..];
        }
        self.after_return &= bytes.is_empty();
        while let Some(end) = rest.iter().position(|byte| matches!(byte, b'\n' | b'\r')) {
            self.extend(&rest[..end])?;
            let is_return = rest[end] == b'\r';
            rest = &rest[end + 1..];
            match rest.first() {
                Some(b'\n') if is_return => rest = &rest[1..],
                None => self.after_return = is_return,
                Some(_) => {}
            }
            self.end_of_line(each);
        }
        self.extend(rest)
    }

    fn extend(&mut self, part: &[u8]) -> Result<(), TooLarge> {
        let held = self.event.data.len() + self.event.kind.as_ref().map_or(0, Vec::len);
        if self.line.len() + held + part.len() > self.limit {
            return Err(TooLarge);
        }
        self.line.extend_from_slice(part);
        Ok(())
    }

    fn end_of_line(&mut self, each: &mut impl FnMut(Event)) {
        let line = std::mem::take(&mut self.line);
        if line.is_empty() {
            self.end_of_event(each);
            return;
        }
        let (name, value) = match line.iter().position(|byte| *byte == b':') {
            Some(colon) => (&line[..colon], &line[colon + 1..]),
            None => (&line[..], &b""[..]),
        };
        let value = value.strip_prefix(b" ").unwrap_or(value);
        match name {
            b"data" => {
                let data = &mut self.event.data;
                if self.has_data {
                    data.push(b'\n');
                }
                data.extend_from_slice(value);
                self.has_data = true;
            }
            b"event" => self.event.kind = (value != b"message").then(|| value.to_vec()),
            b"id" if !value.contains(&0) => self.event.id = Some(value.to_vec()),
            b"retry" => self.event.retry = milliseconds(value).or(self.event.retry),
            _ => {}
        }
    }

    fn end_of_event(&mut self, each: &mut impl FnMut(Event)) {
        let event = std::mem::take(&mut self.event);
        self.has_data = false;
        if event != Event::default() {
            each(event);
        }
    }
}

/// Accepts ASCII digits only.
fn milliseconds(value: &[u8]) -> Option<Duration> {
    let digits =
        std::str::from_utf8(value).ok().filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()));
    digits?.parse().ok().map(Duration::from_millis)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn read(pieces: &[&[u8]], limit: usize) -> Result<Vec<Event>, TooLarge> {
        let mut reader = EventReader::new(limit);
        let mut all = Vec::new();
        for piece in pieces {
            reader.feed(piece, &mut |event| all.push(event))?;
        }
        Ok(all)
    }

    fn message(data: &str) -> Event {
        Event { data: data.into(), ..Event::default() }
    }

    /// P-HTTP-20: comments and other events are ignored; line ends of any kind.
    #[test]
    fn events_are_read_whatever_their_line_ends() {
        let check = |text: &str, events: &[&str]| {
            let events: Vec<_> = events.iter().map(|data| message(data)).collect();
            assert_eq!(read(&[text.as_bytes()], 1000), Ok(events), "{text:?}");
        };
        check("event: message\r\ndata: {}\r\n\r\n", &["{}"]);
        check("data:{}\n\ndata: 2\r\r", &["{}", "2"]);
        check(": ping\r\n\r\n:\r\n\r\ndata: 1\r\n\r\n", &["1"]);
        check("data:\n\nother: 4\n\n", &[]);
        check("data: a\ndata: b\n\n", &["a\nb"]);
        check("data: unfinished", &[]);
    }

    /// P-LEG-18: an event without data, or of another type, still moves the resumption point.
    #[test]
    fn ids_and_times_are_read_from_any_event() {
        let check = |text: &str, id: Option<&str>, retry: Option<u64>, data: &str| {
            let (id, retry) = (id.map(Into::into), retry.map(Duration::from_millis));
            let expected = Event { id, retry, ..message(data) };
            assert_eq!(read(&[text.as_bytes()], 1000), Ok(vec![expected]), "{text:?}");
        };
        check("id: 5\ndata:\nretry: 10\n\n", Some("5"), Some(10), "");
        check("id:a b\ndata: 1\n\n", Some("a b"), None, "1");
        check("id\ndata: 1\n\n", Some(""), None, "1");
        check("id: a\0b\nretry: -1\nretry: 99999999999999999999\nretry:\ndata: 1\n\n", None, None, "1");
        check("retry: 5\nretry: x\n\n", None, Some(5), "");
    }

    /// An event of another type is distinguished from a message, and still moves the resumption point.
    #[test]
    fn events_that_are_no_messages_have_a_type() {
        let check = |text: &str, id: Option<&str>, kind: Option<&str>| {
            let expected = Event { id: id.map(Into::into), kind: kind.map(Into::into), ..message("/x") };
            assert_eq!(read(&[text.as_bytes()], 1000), Ok(vec![expected]), "{text:?}");
        };
        check("event: endpoint\ndata: /x\n\n", None, Some("endpoint"));
        check("data: /x\nid: 7\nevent: other\n\n", Some("7"), Some("other"));
        check("event: other\nevent: message\ndata: /x\n\n", None, None);
    }

    #[test]
    fn an_event_has_a_bound() {
        assert_eq!(read(&[b"data: 123456789"], 10), Err(TooLarge));
        assert_eq!(read(&[b"data: 123\n", b"data: 456\n", b"data: 789\n"], 12), Err(TooLarge));
        assert_eq!(read(&[b": 123456789"], 10), Err(TooLarge));
        assert_eq!(read(&[b"data: 1\n\n", b"data: 2\n\n"], 8), Ok(vec![message("1"), message("2")]));
    }

    proptest! {
        /// The boundaries of the chunks make no difference.
        #[test]
        fn pieces_make_no_difference(text in "[ai:d \r\n{}t]{0,60}", cuts in prop::collection::vec(0usize..60, 0..4)) {
            let text = text.replace('a', "data: ").replace('i', "id: ");
            let bytes = text.as_bytes();
            let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(bytes.len())).collect();
            cuts.sort_unstable();
            let (mut pieces, mut from) = (Vec::new(), 0);
            for cut in cuts {
                pieces.push(&bytes[from..cut]);
                from = cut;
            }
            pieces.push(&bytes[from..]);
            prop_assert_eq!(read(&pieces, 10_000), read(&[bytes], 10_000));
        }
    }
}
