//! JSON with the places of its values, with comments and trailing commas where a host allows them.

mod edit;

use serde::de::IgnoredAny;

use super::data::{Content, Fault, Member, Node};

pub(super) use edit::{insert, is_empty_map, on_one_line, remove};

/// Maximum depth of values in a file.
const MAX_DEPTH: usize = 256;

/// What a host allows beyond JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Dialect {
    Strict,
    Comments,
    CommentsAndCommas,
}

/// Parses a text. One without any value gives `None`.
pub(super) fn parse(text: &str, dialect: Dialect) -> Result<Option<Node>, Fault> {
    let mut reader = Reader { text, at: 0, dialect, depth: 0 };
    if text.starts_with('\u{feff}') {
        reader.at = '\u{feff}'.len_utf8();
    }
    reader.blanks()?;
    if reader.peek().is_none() {
        return Ok(None);
    }
    let root = reader.value()?;
    reader.blanks()?;
    match reader.peek() {
        None => Ok(Some(root)),
        Some(_) => Err(reader.fault("nothing is expected after the end of the value")),
    }
}

struct Reader<'a> {
    text: &'a str,
    at: usize,
    dialect: Dialect,
    depth: usize,
}

impl Reader<'_> {
    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn fault(&self, reason: impl Into<String>) -> Fault {
        Fault::at(self.text, self.at, reason)
    }

    /// Skips white space and comments.
    fn blanks(&mut self) -> Result<(), Fault> {
        loop {
            match self.peek() {
                Some(b' ' | b'\t' | b'\r' | b'\n') => self.at += 1,
                Some(b'/') => self.comment()?,
                _ => return Ok(()),
            }
        }
    }

    fn comment(&mut self) -> Result<(), Fault> {
        let rest = self.text.get(self.at..).unwrap_or_default();
        let end = if rest.starts_with("//") {
            rest.find('\n').unwrap_or(rest.len())
        } else if rest.starts_with("/*") {
            let inner = rest.get(2..).unwrap_or_default();
            inner.find("*/").map(|end| end + 4).ok_or_else(|| self.fault("a comment has no end"))?
        } else {
            return Err(self.fault("a value is expected here"));
        };
        if self.dialect == Dialect::Strict {
            return Err(self.fault("a comment, which this program does not allow in its JSON"));
        }
        self.at += end;
        Ok(())
    }

    fn value(&mut self) -> Result<Node, Fault> {
        match self.peek() {
            Some(b'{') => self.collection(Self::object),
            Some(b'[') => self.collection(Self::array),
            Some(b'"') => {
                let start = self.at;
                let text = self.string()?;
                Ok(Node { start, end: self.at, content: Content::Text(text) })
            }
            _ => self.literal(),
        }
    }

    fn collection(&mut self, read: fn(&mut Self) -> Result<Content, Fault>) -> Result<Node, Fault> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(self.fault("the values are nested too deeply"));
        }
        let start = self.at;
        self.at += 1;
        let content = read(self)?;
        self.depth -= 1;
        Ok(Node { start, end: self.at, content })
    }

    fn object(&mut self) -> Result<Content, Fault> {
        let mut members: Vec<Member> = Vec::new();
        loop {
            self.blanks()?;
            if self.ends(b'}', members.last().is_none_or(|last| last.comma.is_some()), members.is_empty())? {
                return Ok(Content::Map(members));
            }
            if self.peek() != Some(b'"') {
                return Err(self.fault("a name in double quotes is expected here"));
            }
            let start = self.at;
            let key = self.string()?;
            let key_end = self.at;
            self.blanks()?;
            if self.peek() != Some(b':') {
                return Err(self.fault("`:` is expected here"));
            }
            self.at += 1;
            self.blanks()?;
            let value = self.value()?;
            self.blanks()?;
            let comma = self.comma();
            members.push(Member { key, start, key_end, value, comma });
        }
    }

    fn array(&mut self) -> Result<Content, Fault> {
        let mut nodes = Vec::new();
        let mut has_comma = true;
        loop {
            self.blanks()?;
            if self.ends(b']', has_comma, nodes.is_empty())? {
                return Ok(Content::List(nodes));
            }
            nodes.push(self.value()?);
            self.blanks()?;
            has_comma = self.comma().is_some();
        }
    }

    fn comma(&mut self) -> Option<usize> {
        let comma = (self.peek() == Some(b',')).then_some(self.at);
        self.at += usize::from(comma.is_some());
        comma
    }

    /// Returns whether a collection ends here. Another value needs a comma before it; the end after a comma is for some
    /// dialects only.
    fn ends(&mut self, end: u8, has_comma: bool, is_empty: bool) -> Result<bool, Fault> {
        if self.peek() != Some(end) {
            let expected = format!("`,` or `{}` is expected here", char::from(end));
            return if has_comma { Ok(false) } else { Err(self.fault(expected)) };
        }
        if has_comma && !is_empty && self.dialect != Dialect::CommentsAndCommas {
            return Err(self.fault("a comma before the end, which this program does not allow in its JSON"));
        }
        self.at += 1;
        Ok(true)
    }

    fn string(&mut self) -> Result<String, Fault> {
        let start = self.at;
        let bytes = self.text.as_bytes();
        let mut at = start + 1;
        loop {
            match bytes.get(at) {
                None | Some(b'\n') => return Err(self.fault("a text has no end")),
                Some(b'\\') => at += 2,
                Some(b'"') => break,
                Some(_) => at += 1,
            }
        }
        let written = self.text.get(start..=at).unwrap_or_default();
        let text = serde_json::from_str(written).map_err(|error| self.fault(without_place(&error)))?;
        self.at = at + 1;
        Ok(text)
    }

    fn literal(&mut self) -> Result<Node, Fault> {
        let start = self.at;
        let rest = self.text.get(start..).unwrap_or_default();
        let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.');
        let end = rest.find(|c| !is_part(c)).unwrap_or(rest.len());
        let written = rest.get(..end).unwrap_or_default();
        if serde_json::from_str::<IgnoredAny>(written).is_err() {
            return Err(self.fault("a value is expected here"));
        }
        self.at += end;
        Ok(Node { start, end: self.at, content: Content::Literal(written.to_owned()) })
    }
}

/// Returns the text of an error without the place, which counts from the begin of a part.
fn without_place(error: &serde_json::Error) -> String {
    let text = error.to_string();
    text.split(" at line").next().unwrap_or_default().to_owned()
}
