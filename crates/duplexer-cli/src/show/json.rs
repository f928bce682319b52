//! JSON as the server sent it, in lines: members keep their order, numbers and texts their spelling.

use serde::de::IgnoredAny;

use crate::text::{Style, Text};

/// Formats JSON with line breaks for objects and arrays. A text that is no JSON is returned as it is.
pub(crate) fn pretty(json: &str) -> Text {
    formatted(json, Layout::Lines)
}

/// Returns JSON unchanged, with the styles of its parts.
pub(crate) fn verbatim(json: &str) -> Text {
    formatted(json, Layout::Verbatim)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Layout {
    Lines,
    Verbatim,
}

fn formatted(json: &str, layout: Layout) -> Text {
    // It also bounds the depth, and with it the length of the indentation.
    if serde_json::from_str::<IgnoredAny>(json).is_err() {
        return Text::plain(json);
    }
    let mut writer = Writer { text: Text::new(), depth: 0, is_empty: false, layout };
    let mut rest = json;
    while let Some(first) = rest.chars().next() {
        let end = match first {
            '"' => string_end(rest),
            '{' | '}' | '[' | ']' | ',' | ':' => 1,
            c if c.is_ascii_whitespace() => {
                rest.find(|c: char| !c.is_ascii_whitespace()).unwrap_or(rest.len())
            }
            _ => rest.find([',', '}', ']', ' ', '\n', '\r', '\t']).unwrap_or(rest.len()),
        };
        let (token, next) = rest.split_at(end);
        writer.token(token, next.trim_start().chars().next());
        rest = next;
    }
    writer.text
}

/// Returns the length of the string at the begin of a valid JSON text.
fn string_end(text: &str) -> usize {
    let mut escaped = false;
    for (index, byte) in text.bytes().enumerate().skip(1) {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'"' => return index + 1,
            _ => {}
        }
    }
    text.len()
}

struct Writer {
    text: Text,
    depth: usize,
    /// The object or array that was opened last has no members.
    is_empty: bool,
    layout: Layout,
}

impl Writer {
    /// Writes a token; `next` is the first character of the next one.
    fn token(&mut self, token: &str, next: Option<char>) {
        let first = token.chars().next().unwrap_or(' ');
        if self.layout == Layout::Verbatim {
            return self.text.push(style(first, next), token);
        }
        match first {
            '{' | '[' => {
                self.text.push(Style::Plain, token);
                self.depth += 1;
                self.is_empty = matches!(next, Some('}' | ']'));
                if !self.is_empty {
                    self.line();
                }
            }
            '}' | ']' => {
                self.depth = self.depth.saturating_sub(1);
                if !self.is_empty {
                    self.line();
                }
                self.is_empty = false;
                self.text.push(Style::Plain, token);
            }
            ',' => {
                self.text.push(Style::Plain, token);
                self.line();
            }
            ':' => self.text.push(Style::Plain, ": "),
            c if c.is_ascii_whitespace() => {}
            _ => self.text.push(style(first, next), token),
        }
    }

    fn line(&mut self) {
        self.text.push(Style::Plain, "\n");
        self.text.push(Style::Plain, &"  ".repeat(self.depth));
    }
}

/// Returns the style of a token: a string before a colon is the name of a member.
fn style(first: char, next: Option<char>) -> Style {
    match (first, next) {
        ('"', Some(':')) => Style::Name,
        ('"', _) => Style::Quoted,
        ('-' | '0'..='9' | 't' | 'f' | 'n', _) => Style::Literal,
        _ => Style::Plain,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_keep_their_order_and_numbers_their_spelling() {
        let check = |json: &str, shown: &str| assert_eq!(pretty(json).as_str(), shown);
        check(
            r#"{"table":"a", "rows":[1.50,-2e3,{}],"none":[],"x":{"b":null,"a":true}}"#,
            "{\n  \"table\": \"a\",\n  \"rows\": [\n    1.50,\n    -2e3,\n    {}\n  ],\n  \"none\": [],\n  \"x\": {\n    \"b\": null,\n    \"a\": true\n  }\n}",
        );
        check(r#""a\"{b\\""#, r#""a\"{b\\""#);
        check("{ }", "{}");
        check("{\"a\":\"[\"\n, \"b\": \"{\"}", "{\n  \"a\": \"[\",\n  \"b\": \"{\"\n}");
        check(" 5 ", "5");
        check("not JSON {", "not JSON {");
        let deep = "[".repeat(100_000);
        check(&deep, &deep);
    }

    #[test]
    fn verbatim_json_only_gets_styles() {
        let json = r#"{ "a" : [1, "x"] }"#;
        assert_eq!(verbatim(json).as_str(), json);
    }
}
