//! Text with styles. Knows no terminal: `terminal` decides about colour.
//!
//! A style is never part of the text itself, so a text of a server can be cleaned of control characters as it is printed,
//! and cannot imitate a style.

use std::borrow::Cow;

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// What a part of a text is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Style {
    Plain,
    Heading,
    /// The name of a tool, a resource, a prompt or a member of an object.
    Name,
    /// Less important than what is around it.
    Faint,
    Error,
    /// A text within JSON.
    Quoted,
    /// A number, `true`, `false` or `null` within JSON.
    Literal,
    Sent,
    Received,
}

impl Style {
    /// Returns the parameters of the terminal's command for this style.
    fn codes(self) -> Option<&'static str> {
        match self {
            Self::Plain => None,
            Self::Heading => Some("1;4"),
            Self::Name => Some("1;36"),
            Self::Faint => Some("2"),
            Self::Error => Some("1;31"),
            Self::Quoted => Some("32"),
            Self::Literal => Some("33"),
            Self::Sent => Some("1;35"),
            Self::Received => Some("1;34"),
        }
    }
}

/// Whether styles are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Colour {
    On,
    Off,
}

/// A text and its styles.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Text {
    text: String,
    /// Each style with the end of its part.
    parts: Vec<(Style, usize)>,
}

impl Text {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    pub(crate) fn plain(text: impl AsRef<str>) -> Self {
        Self::new().then(Style::Plain, text)
    }

    /// Appends a part.
    pub(crate) fn then(mut self, style: Style, text: impl AsRef<str>) -> Self {
        self.push(style, text.as_ref());
        self
    }

    /// Appends a part.
    pub(crate) fn push(&mut self, style: Style, text: &str) {
        self.text.push_str(text);
        match self.parts.last_mut() {
            Some((last, end)) if *last == style => *end = self.text.len(),
            _ => self.parts.push((style, self.text.len())),
        }
    }

    pub(crate) fn append(&mut self, other: &Self) {
        for (style, part) in other.parts() {
            self.push(style, part);
        }
    }

    /// Returns the text without styles.
    pub(crate) fn as_str(&self) -> &str {
        &self.text
    }

    fn parts(&self) -> impl Iterator<Item = (Style, &str)> {
        let mut start = 0;
        self.parts.iter().map(move |(style, end)| {
            let part = self.text.get(start..*end).unwrap_or_default();
            start = *end;
            (*style, part)
        })
    }

    /// Returns the text for a terminal: cleaned of control characters, and with the commands of its styles if they are shown.
    pub(crate) fn for_terminal(&self, colour: Colour) -> String {
        let mut shown = String::with_capacity(self.text.len() + 8 * self.parts.len());
        for (style, part) in self.parts() {
            match style.codes().filter(|_| colour == Colour::On) {
                Some(codes) => shown.extend(["\x1b[", codes, "m", &clean(part), "\x1b[0m"]),
                None => shown.push_str(&clean(part)),
            }
        }
        shown
    }
}

/// Joins texts by line ends.
pub(crate) fn lines(texts: impl IntoIterator<Item = Text>) -> Text {
    let mut all = Text::new();
    for (index, text) in texts.into_iter().enumerate() {
        if index > 0 {
            all.push(Style::Plain, "\n");
        }
        all.append(&text);
    }
    all
}

/// Replaces control characters, except line ends and tabs, and bidirectional controls.
pub(crate) fn clean(text: &str) -> Cow<'_, str> {
    let is_command = |c: char| c.is_control() && c != '\n' && c != '\t' || is_bidi_control(c);
    if text.contains(is_command) {
        Cow::Owned(text.replace(is_command, "\u{fffd}"))
    } else {
        Cow::Borrowed(text)
    }
}

/// Returns whether a character changes the direction of the text after it, which can make a text read as another.
fn is_bidi_control(c: char) -> bool {
    matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Breaks a line between words so that it fits into `width` columns. A longer word is broken only if it has no other place.
pub(crate) fn wrapped(line: &str, width: usize) -> Vec<String> {
    let width = width.max(1);
    let (mut all, mut current, mut used) = (Vec::new(), String::new(), 0);
    for word in line.split_whitespace() {
        let columns = word.width();
        if used > 0 && used + 1 + columns > width {
            all.push(std::mem::take(&mut current));
            used = 0;
        }
        if used > 0 {
            current.push(' ');
            used += 1;
        }
        for c in word.chars() {
            let columns = c.width().unwrap_or(0);
            if used > 0 && used + columns > width {
                all.push(std::mem::take(&mut current));
                used = 0;
            }
            current.push(c);
            used += columns;
        }
    }
    all.push(current);
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_terminal_gets_no_commands_from_a_server() {
        assert_eq!(clean("a\tb\nc"), "a\tb\nc");
        for control in ["\u{61c}", "\u{200e}", "\u{200f}", "\u{202a}", "\u{202e}", "\u{2066}", "\u{2069}"] {
            assert_eq!(clean(&format!("safe{control}exe.txt")), "safe\u{fffd}exe.txt");
        }
        assert_eq!(clean("שלום é\u{200d}"), "שלום é\u{200d}");
        assert_eq!(clean("\u{1b}[2Jgone\u{7}"), "\u{fffd}[2Jgone\u{fffd}");
        let text = Text::new().then(Style::Error, "\u{1b}[2J").then(Style::Plain, "\u{7}");
        assert_eq!(text.for_terminal(Colour::On), "\x1b[1;31m\u{fffd}[2J\x1b[0m\u{fffd}");
        assert_eq!(text.for_terminal(Colour::Off), "\u{fffd}[2J\u{fffd}");
    }

    #[test]
    fn styles_do_not_change_a_text() {
        let text = lines([Text::plain("a").then(Style::Name, "b"), Text::plain("c")]);
        assert_eq!(text.as_str(), "ab\nc");
        assert_eq!(text.for_terminal(Colour::On), "a\x1b[1;36mb\x1b[0m\nc");
    }

    #[test]
    fn a_line_is_broken_between_words() {
        let check = |line: &str, width, expected: &[&str]| assert_eq!(wrapped(line, width), expected);
        check("", 10, &[""]);
        check("one two three", 7, &["one two", "three"]);
        check("one two three", 80, &["one two three"]);
        check("a incomprehensible b", 8, &["a", "incompre", "hensible", "b"]);
        check("日本 語です", 6, &["日本", "語です"]);
        check("日本語です", 4, &["日本", "語で", "す"]);
        check("ab", 0, &["a", "b"]);
    }
}
