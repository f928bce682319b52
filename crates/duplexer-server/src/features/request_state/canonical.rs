//! One spelling for JSON that means the same: members sorted by name, no white space, strings escaped in one way.
//!
//! Literals, numbers among them, stay as they were written: `1` and `1.0` are two values here, and a numeral of any
//! length counts to its last digit. Repeated members stay too, in their order.

use std::borrow::Cow;

use duplexer_core::error::BoxError;

/// As deep as frames may nest.
const DEEPEST: usize = 128;

/// The canonical spelling of `text`, which must be JSON.
pub(super) fn canonical(text: &str) -> Result<Vec<u8>, BoxError> {
    let mut reader = Reader { rest: text };
    let tree = reader.value(DEEPEST)?;
    let mut out = Vec::with_capacity(text.len());
    tree.write(&mut out)?;
    Ok(out)
}

enum Tree<'a> {
    Object(Vec<(Cow<'a, str>, Tree<'a>)>),
    Array(Vec<Tree<'a>>),
    String(Cow<'a, str>),
    Literal(&'a str),
}

impl Tree<'_> {
    fn write(&self, out: &mut Vec<u8>) -> Result<(), serde_json::Error> {
        match self {
            Self::Object(members) => {
                out.push(b'{');
                for (position, (name, value)) in members.iter().enumerate() {
                    separate(out, position);
                    serde_json::to_writer(&mut *out, name)?;
                    out.push(b':');
                    value.write(out)?;
                }
                out.push(b'}');
            }
            Self::Array(items) => {
                out.push(b'[');
                for (position, item) in items.iter().enumerate() {
                    separate(out, position);
                    item.write(out)?;
                }
                out.push(b']');
            }
            Self::String(text) => serde_json::to_writer(&mut *out, text)?,
            Self::Literal(text) => out.extend_from_slice(text.as_bytes()),
        }
        Ok(())
    }
}

fn separate(out: &mut Vec<u8>, position: usize) {
    if position > 0 {
        out.push(b',');
    }
}

/// Reads text that a JSON parser has accepted before: it looks for ends, not for faults.
struct Reader<'a> {
    rest: &'a str,
}

impl<'a> Reader<'a> {
    fn value(&mut self, depth: usize) -> Result<Tree<'a>, BoxError> {
        let depth = depth.checked_sub(1).ok_or("it nests too deep")?;
        match self.peek()? {
            '{' => self.object(depth),
            '[' => self.array(depth),
            '"' => self.string().map(Tree::String),
            _ => {
                let end = self.rest.find([',', ']', '}', ' ', '\t', '\n', '\r']).unwrap_or(self.rest.len());
                self.take(end).map(Tree::Literal)
            }
        }
    }

    fn object(&mut self, depth: usize) -> Result<Tree<'a>, BoxError> {
        let mut members = Vec::new();
        self.take(1)?;
        while self.peek()? != '}' {
            let name = self.string()?;
            self.pass(':')?;
            members.push((name, self.value(depth)?));
            if self.peek()? == ',' {
                self.take(1)?;
            }
        }
        self.take(1)?;
        // Stable, so that the order of repeated members counts.
        members.sort_by(|(one, _), (other, _)| one.cmp(other));
        Ok(Tree::Object(members))
    }

    fn array(&mut self, depth: usize) -> Result<Tree<'a>, BoxError> {
        let mut items = Vec::new();
        self.take(1)?;
        while self.peek()? != ']' {
            items.push(self.value(depth)?);
            if self.peek()? == ',' {
                self.take(1)?;
            }
        }
        self.take(1)?;
        Ok(Tree::Array(items))
    }

    fn string(&mut self) -> Result<Cow<'a, str>, BoxError> {
        #[derive(serde::Deserialize)]
        struct Text<'a>(#[serde(borrow)] Cow<'a, str>);

        if self.peek()? != '"' {
            return Err("a string is missing".into());
        }
        let mut escaped = false;
        let end = self.rest.bytes().skip(1).position(|byte| {
            let ends = byte == b'"' && !escaped;
            escaped = byte == b'\\' && !escaped;
            ends
        });
        let token = self.take(end.ok_or("a string does not end")? + 2)?;
        Ok(serde_json::from_str::<Text<'_>>(token)?.0)
    }

    fn peek(&mut self) -> Result<char, BoxError> {
        self.rest = self.rest.trim_start_matches([' ', '\t', '\n', '\r']);
        self.rest.chars().next().ok_or_else(|| "it ends too early".into())
    }

    fn pass(&mut self, expected: char) -> Result<(), BoxError> {
        if self.peek()? == expected { self.take(1).map(drop) } else { Err("a separator is missing".into()) }
    }

    fn take(&mut self, length: usize) -> Result<&'a str, BoxError> {
        if length == 0 {
            return Err("a value is missing".into());
        }
        let (taken, rest) = self.rest.split_at_checked(length).ok_or("it ends too early")?;
        self.rest = rest;
        Ok(taken)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn spelled(text: &str) -> String {
        String::from_utf8(canonical(text).unwrap()).unwrap()
    }

    /// RST-05: compact, keys sorted.
    #[test]
    fn what_means_the_same_is_spelled_the_same() {
        let check = |text: &str, expected: &str| assert_eq!(spelled(text), expected, "{text}");
        check(" {\"b\" : 1 ,\n\"a\":[ true, null ,{ } , [] ]}", r#"{"a":[true,null,{},[]],"b":1}"#);
        check(r#"{"\u0061":"\u0062\/\"\\","A":"é"}"#, r#"{"A":"é","a":"b/\"\\"}"#);
        check(
            "[1, 1.0, 1e0, -0, 123456789012345678901234567890]",
            "[1,1.0,1e0,-0,123456789012345678901234567890]",
        );
        check(r#"{"a":2,"a":1}"#, r#"{"a":2,"a":1}"#);
        check("\"\"", "\"\"");
    }

    #[test]
    fn nesting_has_an_end() {
        let deep = |levels: usize| format!("{}{}", "[".repeat(levels), "]".repeat(levels));
        assert!(canonical(&deep(128)).is_ok());
        assert!(canonical(&deep(129)).is_err());
    }

    proptest! {
        /// Text that is no JSON never gets here, but must not hurt if it does.
        #[test]
        fn any_text_comes_to_an_end(text in "[\\[\\]{}:, \"\\\\a1é]{0,40}") {
            let _ = canonical(&text);
        }
    }
}
