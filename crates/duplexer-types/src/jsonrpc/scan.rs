//! A validating walk over JSON text that finds members without building anything.
//!
//! It accepts what `serde_json` accepts, never recurses, and notes nesting beyond [`MAX_DEPTH`] without
//! stopping, so that an id that stands behind a deep value can still be read.

use std::borrow::Cow;

use super::plain::plain_prefix;
use super::stack::{Container, OpenContainers};

/// How deep a frame may nest, itself included.
pub const MAX_DEPTH: usize = 128;

/// The text is not JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Fault;

pub(crate) struct Scanner<'a> {
    text: &'a str,
    at: usize,
    too_deep: bool,
}

/// Where a walk over the members of one object stands.
pub(crate) struct Object {
    first: bool,
}

/// Whether the text of a string is what stands between its quotes.
#[derive(Clone, Copy)]
enum Escapes {
    None,
    Some,
}

impl<'a> Scanner<'a> {
    pub(crate) fn new(text: &'a str) -> Self {
        Self { text, at: 0, too_deep: false }
    }

    /// Whether a value was nested too deeply.
    pub(crate) fn too_deep(&self) -> bool {
        self.too_deep
    }

    /// The next byte that is not white space.
    #[inline]
    pub(crate) fn peek(&mut self) -> Option<u8> {
        loop {
            match self.byte() {
                Some(b' ' | b'\t' | b'\n' | b'\r') => self.at += 1,
                byte => return byte,
            }
        }
    }

    pub(crate) fn position(&mut self) -> usize {
        self.peek();
        self.at
    }

    /// The text from the next value on.
    pub(crate) fn rest(&mut self) -> &'a str {
        let start = self.position();
        self.text.get(start..).unwrap_or_default()
    }

    /// The text from `start` up to here.
    pub(crate) fn since(&self, start: usize) -> &'a str {
        self.text.get(start..self.at).unwrap_or_default()
    }

    /// Nothing but white space may follow.
    pub(crate) fn end(&mut self) -> Result<(), Fault> {
        if self.peek().is_none() { Ok(()) } else { Err(Fault) }
    }

    pub(crate) fn open_object(&mut self) -> Result<Object, Fault> {
        self.expect(b'{')?;
        Ok(Object { first: true })
    }

    /// The name of the next member, up to and including its colon; `None` at the end of the object.
    pub(crate) fn next_name(&mut self, object: &mut Object) -> Result<Option<Cow<'a, str>>, Fault> {
        let first = std::mem::replace(&mut object.first, false);
        match self.peek() {
            Some(b'}') => {
                self.at += 1;
                return Ok(None);
            }
            Some(b',') if !first => self.at += 1,
            Some(_) if first => {}
            _ => return Err(Fault),
        }
        self.expect(b'"')?;
        let start = self.at;
        let escapes = self.string_rest()?;
        let inner = self.text.get(start..self.at - 1).ok_or(Fault)?;
        let name = match escapes {
            Escapes::None => Cow::Borrowed(inner),
            Escapes::Some => string(self.since(start - 1)).ok_or(Fault)?,
        };
        self.expect(b':')?;
        Ok(Some(name))
    }

    /// The items of an array, each as its own text.
    pub(crate) fn items(&mut self) -> Result<Vec<&'a str>, Fault> {
        self.expect(b'[')?;
        let mut items = Vec::new();
        if self.peek() == Some(b']') {
            self.at += 1;
            return Ok(items);
        }
        loop {
            items.push(self.value(1)?);
            match self.peek() {
                Some(b',') => self.at += 1,
                Some(b']') => {
                    self.at += 1;
                    return Ok(items);
                }
                _ => return Err(Fault),
            }
        }
    }

    /// One value, as text. `depth` containers are open around it.
    pub(crate) fn value(&mut self, depth: usize) -> Result<&'a str, Fault> {
        let start = self.position();
        match self.byte() {
            Some(b'"') => {
                self.at += 1;
                self.string_rest()?;
            }
            Some(b'{' | b'[') => self.container(depth)?,
            _ => self.scalar()?,
        }
        Ok(self.since(start))
    }

    /// Steps over a value that an earlier walk over the same text has found here.
    pub(crate) fn pass(&mut self, value: &'a str) -> Option<&'a str> {
        let start = self.position();
        let end = start.checked_add(value.len())?;
        let here = self.text.get(start..end)?;
        std::ptr::eq(here, value).then(|| self.at = end)?;
        Some(value)
    }

    /// An object or array with all that is in it.
    fn container(&mut self, depth: usize) -> Result<(), Fault> {
        let mut open = OpenContainers::default();
        loop {
            match self.peek().ok_or(Fault)? {
                b'{' => {
                    self.at += 1;
                    self.note_depth(depth + open.len() + 1);
                    if self.peek() == Some(b'}') {
                        self.at += 1;
                    } else {
                        open.push(Container::Object);
                        self.name()?;
                        continue;
                    }
                }
                b'[' => {
                    self.at += 1;
                    self.note_depth(depth + open.len() + 1);
                    if self.peek() == Some(b']') {
                        self.at += 1;
                    } else {
                        open.push(Container::Array);
                        continue;
                    }
                }
                _ => self.scalar()?,
            }
            if self.close(&mut open)? {
                return Ok(());
            }
        }
    }

    fn note_depth(&mut self, depth: usize) {
        self.too_deep |= depth > MAX_DEPTH;
    }

    /// After a value: closes what ends here. True when nothing is open, false when another value follows.
    fn close(&mut self, open: &mut OpenContainers) -> Result<bool, Fault> {
        while let Some(container) = open.last() {
            match (self.peek(), container) {
                (Some(b','), Container::Array) => {
                    self.at += 1;
                    return Ok(false);
                }
                (Some(b','), Container::Object) => {
                    self.at += 1;
                    self.name()?;
                    return Ok(false);
                }
                (Some(b']'), Container::Array) | (Some(b'}'), Container::Object) => {
                    self.at += 1;
                    open.pop();
                }
                _ => return Err(Fault),
            }
        }
        Ok(true)
    }

    /// A member name and the colon behind it.
    fn name(&mut self) -> Result<(), Fault> {
        self.expect(b'"')?;
        self.string_rest()?;
        self.expect(b':')
    }

    fn scalar(&mut self) -> Result<(), Fault> {
        match self.byte().ok_or(Fault)? {
            b'"' => {
                self.at += 1;
                self.string_rest().map(drop)
            }
            b't' => self.literal("true"),
            b'f' => self.literal("false"),
            b'n' => self.literal("null"),
            _ => self.number(),
        }
    }

    fn literal(&mut self, literal: &str) -> Result<(), Fault> {
        let rest = self.text.get(self.at..).ok_or(Fault)?;
        if rest.starts_with(literal) {
            self.at += literal.len();
            Ok(())
        } else {
            Err(Fault)
        }
    }

    fn number(&mut self) -> Result<(), Fault> {
        let start = self.at;
        self.at += usize::from(self.byte() == Some(b'-'));
        if self.byte() == Some(b'0') {
            self.at += 1;
        } else {
            self.digits()?;
        }
        if self.byte() == Some(b'.') {
            self.at += 1;
            self.digits()?;
        }
        let has_exponent = matches!(self.byte(), Some(b'e' | b'E'));
        if has_exponent {
            self.at += 1;
            self.at += usize::from(matches!(self.byte(), Some(b'+' | b'-')));
            self.digits()?;
        }
        // A number that no double can hold is refused, as `serde_json` does. Short ones cannot be.
        let number = self.since(start);
        if (has_exponent || number.len() > 300) && !number.parse().is_ok_and(f64::is_finite) {
            return Err(Fault);
        }
        Ok(())
    }

    fn digits(&mut self) -> Result<(), Fault> {
        let start = self.at;
        while self.byte().is_some_and(|byte| byte.is_ascii_digit()) {
            self.at += 1;
        }
        if self.at > start { Ok(()) } else { Err(Fault) }
    }

    /// A string from behind its opening quote to behind its closing one.
    fn string_rest(&mut self) -> Result<Escapes, Fault> {
        let mut escapes = Escapes::None;
        loop {
            self.at += plain_prefix(self.text.as_bytes().get(self.at..).ok_or(Fault)?);
            match self.byte().ok_or(Fault)? {
                b'"' => {
                    self.at += 1;
                    return Ok(escapes);
                }
                b'\\' => {
                    escapes = Escapes::Some;
                    self.escape()?;
                }
                _ => return Err(Fault),
            }
        }
    }

    fn escape(&mut self) -> Result<(), Fault> {
        self.at += 1;
        match self.byte().ok_or(Fault)? {
            b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' => self.at += 1,
            b'u' => match self.code_unit()? {
                0xD800..=0xDBFF => {
                    if self.byte() != Some(b'\\') {
                        return Err(Fault);
                    }
                    self.at += 1;
                    if self.byte() != Some(b'u') || !(0xDC00..=0xDFFF).contains(&self.code_unit()?) {
                        return Err(Fault);
                    }
                }
                0xDC00..=0xDFFF => return Err(Fault),
                _ => {}
            },
            _ => return Err(Fault),
        }
        Ok(())
    }

    /// The four hexadecimal digits behind a `u`.
    fn code_unit(&mut self) -> Result<u32, Fault> {
        let digits = self.text.get(self.at + 1..self.at + 5).ok_or(Fault)?;
        if !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Err(Fault);
        }
        self.at += 5;
        u32::from_str_radix(digits, 16).map_err(|_| Fault)
    }

    fn expect(&mut self, byte: u8) -> Result<(), Fault> {
        if self.peek() == Some(byte) {
            self.at += 1;
            Ok(())
        } else {
            Err(Fault)
        }
    }

    #[inline]
    fn byte(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }
}

/// The text of a JSON string; `None` if `json` is not one. Expects JSON that has been scanned.
pub(crate) fn string(json: &str) -> Option<Cow<'_, str>> {
    let inner = json.strip_prefix('"')?.strip_suffix('"')?;
    if inner.contains('\\') {
        serde_json::from_str(json).ok().map(Cow::Owned)
    } else {
        Some(Cow::Borrowed(inner))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn accepts(text: &str) -> bool {
        let mut scanner = Scanner::new(text);
        scanner.value(0).is_ok() && scanner.end().is_ok()
    }

    #[test]
    fn verdicts_are_those_of_serde_json() {
        for text in [
            "",
            " ",
            "null",
            "nul",
            "nulls",
            "true",
            "tru",
            "false",
            "0",
            "-0",
            "00",
            "01",
            "-",
            "1.",
            ".5",
            "1.5",
            "1e",
            "1e5",
            "1E+5",
            "1e-5",
            "1e999",
            "-1e999",
            "1e-999",
            "+1",
            "\"",
            "\"\"",
            "\"a",
            "\"\\\"",
            "\"\\x\"",
            "\"\\u12\"",
            "\"\\u1234\"",
            "\"\\ud800\"",
            "\"\\ud800\\udc00\"",
            "\"\\udc00\"",
            "\"\\ud800\\u0041\"",
            "\"\\u+123\"",
            "\"\u{1}\"",
            "\"\t\"",
            "[",
            "[]",
            "[ ]",
            "[,]",
            "[1,]",
            "[1 2]",
            "[1,2]",
            "{",
            "{}",
            "{ }",
            "{\"a\"}",
            "{\"a\":}",
            "{\"a\":1,}",
            "{\"a\":1,\"b\":[{}]}",
            "{a:1}",
            "[}",
            "{]",
            "[[]",
            "[]]",
            "1 1",
            " [ 1 , { \"a\" : null } ] ",
            "\"日本語🦀\"",
            "NaN",
            "Infinity",
            "'a'",
            "[1]x",
            "\u{feff}1",
        ] {
            let expected = serde_json::from_str::<serde_json::Value>(text).is_ok();
            assert_eq!(accepts(text), expected, "{text:?}");
        }
    }

    #[test]
    fn huge_numbers_are_judged_as_serde_json_does() {
        for text in ["9".repeat(308), "9".repeat(400), format!("0.{}", "9".repeat(400)), "1".repeat(309)] {
            let expected = serde_json::from_str::<serde_json::Value>(&text).is_ok();
            assert_eq!(accepts(&text), expected, "{text}");
        }
    }

    /// Robustness, "Nesting": 128 levels at most; a hundred thousand are refused without recursion.
    #[test]
    fn depth_is_counted_and_never_recursed_into() {
        for (depth, too_deep) in [(1, false), (127, false), (128, false), (129, true), (100_000, true)] {
            let text = format!("{}{}", "[".repeat(depth), "]".repeat(depth));
            let mut scanner = Scanner::new(&text);
            assert_eq!(scanner.value(0), Ok(&*text));
            assert_eq!(scanner.too_deep(), too_deep, "{depth}");
        }
        let mixed = format!("{}1{}", "{\"a\":[".repeat(300), "]}".repeat(300));
        assert!(accepts(&mixed));
        assert!(!accepts(&mixed.replacen("]}", "}]", 1)));
    }

    #[test]
    fn strings_are_found_at_every_alignment() {
        for length in 0..40 {
            for (special, ok) in [("\"", true), ("\\n\"", true), ("\u{1f}\"", false), ("é\"", true)] {
                let text = format!("\"{}{special}", "x".repeat(length));
                assert_eq!(accepts(&text), ok, "{text:?}");
            }
        }
    }

    proptest! {
        #[test]
        fn any_text_gets_the_verdict_of_serde_json(text in "[\\[\\]{}:,\"\\\\a0-9eE.+\\- \tun]{0,24}") {
            let expected = serde_json::from_str::<serde_json::Value>(&text).is_ok();
            prop_assert_eq!(accepts(&text), expected);
        }
    }
}
