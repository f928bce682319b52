//! Server-sent events, as far as messages need them: the data of each event.

/// Reads the data of all complete events. Returns how many bytes they have.
pub(crate) fn events(bytes: &[u8], messages: &mut Vec<String>) -> usize {
    let (mut end, mut data, mut start) = (0, String::new(), 0);
    while let Some(length) = bytes.get(start..).and_then(|rest| rest.iter().position(|byte| *byte == b'\n')) {
        let line = bytes.get(start..start + length).unwrap_or_default();
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        start += length + 1;
        if line.is_empty() {
            if !data.is_empty() {
                messages.push(std::mem::take(&mut data));
            }
            end = start;
        } else if let Some(part) = line.strip_prefix(b"data:") {
            if !data.is_empty() {
                data.push('\n');
            }
            data.push_str(&String::from_utf8_lossy(part.strip_prefix(b" ").unwrap_or(part)));
        }
    }
    end
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn complete_events_are_read_and_the_rest_is_kept() {
        let check = |text: &str, expected: &[&str], rest: &str| {
            let mut messages = Vec::new();
            let end = events(text.as_bytes(), &mut messages);
            assert_eq!(
                (messages, &text[end..]),
                (expected.iter().map(|one| (*one).to_owned()).collect(), rest)
            );
        };
        check(
            "event: message\ndata: {\"a\":\ndata: 1}\n\n: note\n\ndata: {\"b\"",
            &["{\"a\":\n1}"],
            "data: {\"b\"",
        );
        check("data: {}\r\n\r\ndata:1\n\n", &["{}", "1"], "");
        check("data: {}\n", &[], "data: {}\n");
        check("", &[], "");
    }
}
