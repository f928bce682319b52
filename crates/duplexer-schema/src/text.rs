//! Short texts about values and forms.

use std::fmt::{self, Write as _};

use serde_json::Value;

/// How many characters of a value a text shows.
const SHOWN: usize = 80;

/// Returns a value as JSON, cut where it gets long. The cost does not grow with the value.
pub(crate) fn shown(value: &Value) -> String {
    let mut cut = Cut { text: String::new(), room: SHOWN };
    if write(value, &mut cut).is_err() {
        cut.text.push('…');
    }
    cut.text
}

struct Cut {
    text: String,
    room: usize,
}

impl fmt::Write for Cut {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for letter in text.chars() {
            self.room = self.room.checked_sub(1).ok_or(fmt::Error)?;
            self.text.push(letter);
        }
        Ok(())
    }
}

fn write(value: &Value, out: &mut Cut) -> fmt::Result {
    match value {
        Value::Array(items) => {
            out.write_char('[')?;
            for (index, item) in items.iter().enumerate() {
                separate(index, out)?;
                write(item, out)?;
            }
            out.write_char(']')
        }
        Value::Object(members) => {
            out.write_char('{')?;
            for (index, (name, value)) in members.iter().enumerate() {
                separate(index, out)?;
                write_string(name, out)?;
                out.write_char(':')?;
                write(value, out)?;
            }
            out.write_char('}')
        }
        Value::String(text) => write_string(text, out),
        scalar => write!(out, "{scalar}"),
    }
}

fn separate(index: usize, out: &mut Cut) -> fmt::Result {
    if index > 0 { out.write_char(',') } else { Ok(()) }
}

fn write_string(text: &str, out: &mut Cut) -> fmt::Result {
    // No more than can be shown is escaped; the closing quote of a cut text is lost with the rest.
    let end = text.char_indices().nth(SHOWN).map_or(text.len(), |(at, _)| at);
    let quoted = Value::from(&text[..end]).to_string();
    if end == text.len() {
        return out.write_str(&quoted);
    }
    out.write_str(quoted.strip_suffix('"').unwrap_or(&quoted))?;
    Err(fmt::Error)
}

/// Returns the values as a choice: `"a"`, or `one of "a", "b"`.
pub(crate) fn choices<'a>(values: impl IntoIterator<Item = &'a Value>) -> String {
    /// More than this many values of an `enum` are not listed.
    const LISTED: usize = 50;
    let mut all: Vec<String> = values.into_iter().take(LISTED + 1).map(shown).collect();
    if all.len() > LISTED {
        all.truncate(LISTED);
        all.push("…".to_owned());
    }
    if let [one] = &*all { one.clone() } else { format!("one of {}", all.join(", ")) }
}

/// Appends a member name or an index to a JSON pointer.
pub(crate) fn push_token(pointer: &mut String, token: &str) {
    pointer.push('/');
    for letter in token.chars() {
        match letter {
            '~' => pointer.push_str("~0"),
            '/' => pointer.push_str("~1"),
            other => pointer.push(other),
        }
    }
}

/// Returns `1 item`, `2 items`.
pub(crate) fn counted(count: u64, singular: &str) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{count} {singular}{plural}")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn long_values_are_cut() {
        let check = |value: Value| {
            let text = shown(&value);
            assert!(text.chars().count() <= SHOWN + 1 && text.ends_with('…'), "{text}");
        };
        check(json!("x".repeat(10_000)));
        check(json!("\n".repeat(79)));
        check(Value::from((0..1000).collect::<Vec<i32>>()));
        check(json!({ "k".repeat(200): 1 }));
        assert_eq!(shown(&json!({"a": [1, "b\"", null], "c": 2.5})), r#"{"a":[1,"b\"",null],"c":2.5}"#);
    }
}
