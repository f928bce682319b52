//! Reading server-sent events, piece by piece, within a bound.

/// A stream that does not keep to the bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TooLarge;

/// Takes bytes in and gives the data of events out. What is no data is passed over: there are no ids to remember here.
#[derive(Debug)]
pub(crate) struct EventReader {
    line: Vec<u8>,
    data: Vec<u8>,
    event: Event,
    after_return: bool,
    limit: usize,
}

/// What is known of the event that is being read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Event {
    /// No data yet.
    #[default]
    Empty,
    /// Data of a message.
    Message,
    /// Something other than a message.
    Other,
}

impl EventReader {
    pub(crate) fn new(limit: usize) -> Self {
        Self { line: Vec::new(), data: Vec::new(), event: Event::Empty, after_return: false, limit }
    }

    /// Reads on; `each` is given the data of every message that is complete.
    pub(crate) fn feed(&mut self, bytes: &[u8], each: &mut impl FnMut(Vec<u8>)) -> Result<(), TooLarge> {
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
        if self.line.len() + self.data.len() + part.len() > self.limit {
            return Err(TooLarge);
        }
        self.line.extend_from_slice(part);
        Ok(())
    }

    fn end_of_line(&mut self, each: &mut impl FnMut(Vec<u8>)) {
        let line = std::mem::take(&mut self.line);
        if line.is_empty() {
            let data = std::mem::take(&mut self.data);
            if std::mem::take(&mut self.event) != Event::Other && !data.is_empty() {
                each(data);
            }
            return;
        }
        let (name, value) = match line.iter().position(|byte| *byte == b':') {
            Some(colon) => (&line[..colon], &line[colon + 1..]),
            None => (&line[..], &b""[..]),
        };
        let value = value.strip_prefix(b" ").unwrap_or(value);
        match name {
            b"data" => {
                if self.event == Event::Message || !self.data.is_empty() {
                    self.data.push(b'\n');
                }
                self.data.extend_from_slice(value);
                if self.event == Event::Empty {
                    self.event = Event::Message;
                }
            }
            b"event" if value != b"message" => self.event = Event::Other,
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn read(pieces: &[&[u8]], limit: usize) -> Result<Vec<String>, TooLarge> {
        let mut reader = EventReader::new(limit);
        let mut all = Vec::new();
        for piece in pieces {
            reader.feed(piece, &mut |data| all.push(String::from_utf8(data).unwrap()))?;
        }
        Ok(all)
    }

    /// P-HTTP-20: comments, ids and other events are passed over; line ends of any kind.
    #[test]
    fn events_are_read_whatever_their_line_ends() {
        let check = |text: &str, events: &[&str]| {
            let events: Vec<String> = events.iter().map(|event| (*event).to_owned()).collect();
            assert_eq!(read(&[text.as_bytes()], 1000), Ok(events), "{text:?}");
        };
        check("event: message\r\ndata: {}\r\n\r\n", &["{}"]);
        check("data:{}\n\ndata: 2\r\r", &["{}", "2"]);
        check(": ping\r\n\r\n:\r\n\r\ndata: 1\r\n\r\n", &["1"]);
        check("id: 5\ndata:\nretry: 10\n\n", &[]);
        check("event: endpoint\ndata: /x\n\ndata: 1\n\n", &["1"]);
        check("data: a\ndata: b\n\n", &["a\nb"]);
        check("data: unfinished", &[]);
    }

    #[test]
    fn an_event_has_a_bound() {
        assert_eq!(read(&[b"data: 123456789"], 10), Err(TooLarge));
        assert_eq!(read(&[b"data: 123\n", b"data: 456\n", b"data: 789\n"], 12), Err(TooLarge));
        assert_eq!(read(&[b"data: 1\n\n", b"data: 2\n\n"], 8), Ok(vec!["1".to_owned(), "2".to_owned()]));
    }

    proptest! {
        /// Where the network cuts makes no difference.
        #[test]
        fn pieces_make_no_difference(text in "[a:d \r\n{}t]{0,60}", cuts in prop::collection::vec(0usize..60, 0..4)) {
            let text = text.replace('a', "data: ");
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
