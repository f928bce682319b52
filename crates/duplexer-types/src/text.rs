//! Text of a peer in errors and logs: limited in length, without characters that control, reorder or hide text.

/// Maximum characters of a peer's text in an error or a log.
const MAX_SHOWN: usize = 200;

/// Returns a peer's text in a form that can be shown: at most 200 characters, with control characters and invisible ones
/// escaped.
///
/// ```
/// use duplexer_types::text::shown;
///
/// assert_eq!(shown("no\x1b[2J"), "no\\u{1b}[2J");
/// ```
pub fn shown(text: &str) -> String {
    let mut shown = String::new();
    for (index, character) in text.chars().enumerate() {
        if index == MAX_SHOWN {
            shown.push('…');
            break;
        }
        if character.is_control() || is_invisible(character) {
            shown.extend(character.escape_default());
        } else {
            shown.push(character);
        }
    }
    shown
}

/// Returns whether a character has no glyph, or a blank one that is not white space.
pub fn is_invisible(character: char) -> bool {
    matches!(
        character,
        // Soft hyphen, combining grapheme joiner, Arabic letter mark, Mongolian vowel separator.
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{180e}'
        // Fillers and blank letters.
        | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{2800}' | '\u{3164}' | '\u{ffa0}'
        // Zero width characters, direction marks, line separators, invisible operators.
        | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}'
        // Interlinear annotation, shorthand and musical formats.
        | '\u{fff0}'..='\u{fffb}' | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}'
        // Tags.
        | '\u{e0000}'..='\u{e00ff}'
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// OAC-92
    #[test]
    fn a_peers_text_is_limited_and_escaped() {
        assert_eq!(shown("no\x1b[31m\r\n"), r"no\u{1b}[31m\r\n");
        assert_eq!(shown("a\u{202e}b"), r"a\u{202e}b");
        assert_eq!(shown(&"é".repeat(1000)).chars().count(), MAX_SHOWN + 1);
        assert_eq!(shown("plain"), "plain");
    }
}
