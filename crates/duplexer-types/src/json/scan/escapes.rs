//! The slow part of reading a string: its escapes.

use super::{NotJson, Scanner};
use crate::json::plain::plain_prefix;

impl Scanner<'_> {
    /// Consumes the rest of a string, from a special character that does not end it.
    pub(super) fn string_after_plain(&mut self) -> Result<(), NotJson> {
        loop {
            match self.byte().ok_or(NotJson)? {
                b'"' => {
                    self.at += 1;
                    return Ok(());
                }
                b'\\' => self.escape()?,
                _ => return Err(NotJson),
            }
            self.at += plain_prefix(self.text.as_bytes().get(self.at..).ok_or(NotJson)?);
        }
    }

    fn escape(&mut self) -> Result<(), NotJson> {
        self.at += 1;
        match self.byte().ok_or(NotJson)? {
            b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' => self.at += 1,
            b'u' => match self.code_unit()? {
                0xD800..=0xDBFF => {
                    if self.byte() != Some(b'\\') {
                        return Err(NotJson);
                    }
                    self.at += 1;
                    if self.byte() != Some(b'u') || !(0xDC00..=0xDFFF).contains(&self.code_unit()?) {
                        return Err(NotJson);
                    }
                }
                0xDC00..=0xDFFF => return Err(NotJson),
                _ => {}
            },
            _ => return Err(NotJson),
        }
        Ok(())
    }

    /// Reads the four hexadecimal digits after a `u`.
    fn code_unit(&mut self) -> Result<u32, NotJson> {
        let digits = self.text.get(self.at + 1..self.at + 5).ok_or(NotJson)?;
        if !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Err(NotJson);
        }
        self.at += 5;
        u32::from_str_radix(digits, 16).map_err(|_| NotJson)
    }
}
