//! Echoed texts: a short one is plain, a long one resembles a document with characters that JSON escapes.

/// Returns a text of this many bytes.
pub fn of(length: usize) -> String {
    const LINE: &str =
        "He said \"duplex\" and meant both directions at once, all the time, on one antenna.\n";
    if length < LINE.len() {
        return LINE.replace(['"', '\n'], "-").chars().take(length).collect();
    }
    LINE.chars().cycle().take(length).collect()
}

/// Returns the text as JSON, with quotes.
pub fn json(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_as_long_as_asked_for_and_only_long_ones_need_escapes() {
        for length in [0, 1, 43, 64, 1024, 65_536] {
            let text = of(length);
            assert_eq!(text.len(), length);
            assert_eq!(json(&text).contains('\\'), length > 100, "{length}");
        }
    }
}
