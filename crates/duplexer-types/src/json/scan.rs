//! A validating walk over JSON text that allocates nothing.
//!
//! It accepts what `serde_json` accepts, and numbers of any size, and never recurses. It records nesting beyond [`MAX_DEPTH`] without
//! stopping, so that an id behind a deeply nested value can still be read.

mod escapes;
mod number;

use std::borrow::Cow;
use std::fmt;

use super::plain::plain_prefix;
use super::stack::{Container, OpenContainers};

/// Maximum nesting depth of a frame, the frame included.
pub const MAX_DEPTH: usize = 128;

/// The text is not JSON, or not the kind of value that was requested.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotJson;

impl fmt::Display for NotJson {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("not JSON")
    }
}

impl std::error::Error for NotJson {}

/// Validating reader over JSON text. It yields the texts of values and builds nothing.
#[derive(Debug)]
pub struct Scanner<'a> {
    text: &'a str,
    at: usize,
    too_deep: bool,
}

/// Position inside one object.
pub(crate) struct Object {
    first: bool,
}

/// Whether a string contains escapes; without them its value is the text between its quotes.
#[derive(Clone, Copy)]
enum Escapes {
    None,
    Some,
}

impl<'a> Scanner<'a> {
    /// Starts at the beginning of `text`.
    pub const fn new(text: &'a str) -> Self {
        Self { text, at: 0, too_deep: false }
    }

    /// Whether a value was nested deeper than [`MAX_DEPTH`].
    pub(crate) const fn too_deep(&self) -> bool {
        self.too_deep
    }

    /// Returns the next byte that is not white space, without consuming it. It shows the kind of the next value.
    #[inline]
    pub fn peek(&mut self) -> Option<u8> {
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

    /// Returns the text from the next value on.
    pub(crate) fn rest(&mut self) -> &'a str {
        let start = self.position();
        self.text.get(start..).unwrap_or_default()
    }

    /// Returns the text from `start` up to here.
    pub(crate) fn since(&self, start: usize) -> &'a str {
        self.text.get(start..self.at).unwrap_or_default()
    }

    /// Checks that only white space follows.
    ///
    /// # Errors
    ///
    /// Fails if there is more text.
    pub fn end(&mut self) -> Result<(), NotJson> {
        if self.peek().is_none() { Ok(()) } else { Err(NotJson) }
    }

    pub(crate) fn open_object(&mut self) -> Result<Object, NotJson> {
        self.expect(b'{')?;
        Ok(Object { first: true })
    }

    /// Consumes the first member of an object if it is written exactly like `member`. Returns whether it is.
    #[inline]
    pub(crate) fn skip_first(&mut self, object: &mut Object, member: &str) -> bool {
        let rest = self.text.as_bytes().get(self.at..).unwrap_or_default();
        let is_here = object.first && rest.starts_with(member.as_bytes());
        if is_here {
            self.at += member.len();
            object.first = false;
        }
        is_here
    }

    /// Returns the name of the next member and consumes its colon; `None` at the end of the object.
    pub(crate) fn next_name(&mut self, object: &mut Object) -> Result<Option<Cow<'a, str>>, NotJson> {
        let bytes = self.text.as_bytes();
        match bytes.get(self.at..) {
            // Without white space, as nearly every peer writes it.
            Some([b'"', ..]) if object.first => self.at += 1,
            Some([b',', b'"', ..]) if !object.first => self.at += 2,
            Some([b'}', ..]) => {
                self.at += 1;
                return Ok(None);
            }
            _ if self.ends(object)? => return Ok(None),
            _ => {}
        }
        object.first = false;
        let start = self.at;
        let end = start + plain_prefix(bytes.get(start..).ok_or(NotJson)?);
        if let Some([b'"', b':', ..]) = bytes.get(end..) {
            self.at = end + 2;
            return Ok(Some(Cow::Borrowed(self.text.get(start..end).ok_or(NotJson)?)));
        }
        self.unusual_name(start).map(Some)
    }

    /// Returns a name with escapes, or with white space before its colon.
    #[cold]
    fn unusual_name(&mut self, start: usize) -> Result<Cow<'a, str>, NotJson> {
        let escapes = self.string_rest()?;
        let name = match escapes {
            Escapes::None => Cow::Borrowed(self.text.get(start..self.at - 1).ok_or(NotJson)?),
            Escapes::Some => string(self.since(start - 1)).ok_or(NotJson)?,
        };
        self.expect(b':')?;
        Ok(name)
    }

    /// Consumes the end of an object, or else what stands before the text of its next name.
    fn ends(&mut self, object: &Object) -> Result<bool, NotJson> {
        match self.peek() {
            Some(b'}') => {
                self.at += 1;
                return Ok(true);
            }
            Some(b',') if !object.first => self.at += 1,
            Some(_) if object.first => {}
            _ => return Err(NotJson),
        }
        self.expect(b'"')?;
        Ok(false)
    }

    /// Reads an object. `visit` is called with the name of each member and must consume its value.
    ///
    /// # Errors
    /// Fails if the text is not an object, or with the first error of `visit`.
    pub fn members<E: From<NotJson>>(
        &mut self,
        mut visit: impl FnMut(&mut Self, Cow<'a, str>) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut object = self.open_object()?;
        while let Some(name) = self.next_name(&mut object)? {
            visit(self, name)?;
        }
        Ok(())
    }

    /// Reads an array. `visit` is called at each item and must consume it.
    ///
    /// # Errors
    /// Fails if the text is not an array, or with the first error of `visit`.
    pub fn items<E: From<NotJson>>(
        &mut self,
        mut visit: impl FnMut(&mut Self) -> Result<(), E>,
    ) -> Result<(), E> {
        self.expect(b'[')?;
        if self.peek() == Some(b']') {
            self.at += 1;
            return Ok(());
        }
        loop {
            visit(self)?;
            match self.peek() {
                Some(b',') => self.at += 1,
                Some(b']') => {
                    self.at += 1;
                    return Ok(());
                }
                _ => return Err(NotJson.into()),
            }
        }
    }

    /// Reads a string and decodes its escapes.
    ///
    /// # Errors
    /// Fails if the text is not a string.
    pub fn string(&mut self) -> Result<Cow<'a, str>, NotJson> {
        string(self.value(0)?).ok_or(NotJson)
    }

    /// Reads one value and returns its text. `depth` is the number of open containers around it.
    ///
    /// # Errors
    /// Fails if the text is not JSON.
    pub fn value(&mut self, depth: usize) -> Result<&'a str, NotJson> {
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

    /// Skips a value that an earlier walk over the same text found at this position.
    pub(crate) fn skip(&mut self, value: &'a str) -> Option<&'a str> {
        let start = self.position();
        let end = start.checked_add(value.len())?;
        let here = self.text.get(start..end)?;
        std::ptr::eq(here, value).then(|| self.at = end)?;
        Some(value)
    }

    /// Consumes an object or array with its contents.
    fn container(&mut self, depth: usize) -> Result<(), NotJson> {
        let mut open = OpenContainers::default();
        loop {
            match self.peek().ok_or(NotJson)? {
                b'{' => {
                    self.at += 1;
                    self.record_depth(depth + open.len() + 1);
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
                    self.record_depth(depth + open.len() + 1);
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

    fn record_depth(&mut self, depth: usize) {
        self.too_deep |= depth > MAX_DEPTH;
    }

    /// After a value: closes the containers that end here. Returns true when none is open, false when another value
    /// follows.
    fn close(&mut self, open: &mut OpenContainers) -> Result<bool, NotJson> {
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
                _ => return Err(NotJson),
            }
        }
        Ok(true)
    }

    /// Consumes a member name and its colon.
    #[inline]
    fn name(&mut self) -> Result<(), NotJson> {
        self.expect(b'"')?;
        let rest = self.text.as_bytes().get(self.at..).ok_or(NotJson)?;
        let end = plain_prefix(rest);
        if rest.get(end..).is_some_and(|rest| rest.starts_with(b"\":")) {
            self.at += end + 2;
            return Ok(());
        }
        self.string_rest()?;
        self.expect(b':')
    }

    fn scalar(&mut self) -> Result<(), NotJson> {
        match self.byte().ok_or(NotJson)? {
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

    fn literal(&mut self, literal: &str) -> Result<(), NotJson> {
        let rest = self.text.get(self.at..).ok_or(NotJson)?;
        if rest.starts_with(literal) {
            self.at += literal.len();
            Ok(())
        } else {
            Err(NotJson)
        }
    }

    /// Consumes a string whose opening quote has been consumed.
    #[inline]
    fn string_rest(&mut self) -> Result<Escapes, NotJson> {
        self.at += plain_prefix(self.text.as_bytes().get(self.at..).ok_or(NotJson)?);
        if self.byte() == Some(b'"') {
            self.at += 1;
            return Ok(Escapes::None);
        }
        self.string_after_plain()?;
        Ok(Escapes::Some)
    }

    #[inline]
    fn expect(&mut self, byte: u8) -> Result<(), NotJson> {
        if self.peek() == Some(byte) {
            self.at += 1;
            Ok(())
        } else {
            Err(NotJson)
        }
    }

    #[inline]
    fn byte(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }
}

/// Decodes a JSON string; `None` if `json` is not one. Expects JSON that has been scanned.
pub(crate) fn string(json: &str) -> Option<Cow<'_, str>> {
    let inner = json.strip_prefix('"')?.strip_suffix('"')?;
    if plain_prefix(inner.as_bytes()) < inner.len() {
        serde_json::from_str(json).ok().map(Cow::Owned)
    } else {
        Some(Cow::Borrowed(inner))
    }
}

#[cfg(test)]
mod tests;
