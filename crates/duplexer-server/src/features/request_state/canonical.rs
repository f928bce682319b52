//! Canonical form of JSON: members sorted by name, no white space, one spelling of each string.
//!
//! Literals, numbers included, stay verbatim: `1` and `1.0` differ, and every digit of a numeral counts. Repeated
//! members stay too, in their order.

use std::borrow::Cow;

use duplexer_types::json::Scanner;
use duplexer_types::jsonrpc::MAX_DEPTH;

use duplexer_core::error::BoxError;

/// Returns the canonical form of `text`.
pub(super) fn canonical(text: &str) -> Result<Vec<u8>, BoxError> {
    let tree = read(&mut Scanner::new(text), MAX_DEPTH)?;
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

/// Reads the next value, which may nest `depth` levels deep.
fn read<'a>(scanner: &mut Scanner<'a>, depth: usize) -> Result<Tree<'a>, BoxError> {
    let depth = depth.checked_sub(1).ok_or("it nests too deep")?;
    match scanner.peek() {
        Some(b'{') => {
            let mut members = Vec::new();
            scanner.members(|scanner, name| -> Result<(), BoxError> {
                members.push((name, read(scanner, depth)?));
                Ok(())
            })?;
            // The sort is stable: the order of repeated members counts.
            members.sort_by(|(one, _), (other, _)| one.cmp(other));
            Ok(Tree::Object(members))
        }
        Some(b'[') => {
            let mut items = Vec::new();
            scanner.items(|scanner| -> Result<(), BoxError> {
                items.push(read(scanner, depth)?);
                Ok(())
            })?;
            Ok(Tree::Array(items))
        }
        Some(b'"') => Ok(Tree::String(scanner.string()?)),
        _ => Ok(Tree::Literal(scanner.value(0)?)),
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
        /// Text that is not JSON is an error; JSON keeps its meaning.
        #[test]
        fn any_json_keeps_its_meaning(text in "[\\[\\]{}:, \"\\\\a1é]{0,40}") {
            let meaning = serde_json::from_str::<serde_json::Value>(&text).ok();
            if let Some(meaning) = meaning {
                let again = serde_json::from_slice::<serde_json::Value>(&canonical(&text).unwrap()).unwrap();
                prop_assert_eq!(again, meaning);
            } else {
                let _ = canonical(&text);
            }
        }
    }
}
