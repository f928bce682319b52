//! Expansion of a template into a URI.

use std::fmt::Write as _;

use super::parse::Piece;
use super::{UriTemplate, Value};

impl UriTemplate {
    /// Expands the template. Variables without a value are omitted.
    #[cfg_attr(
        not(test),
        expect(dead_code, reason = "clients of templates use it, and the tests of matching")
    )]
    pub(crate) fn expand(&self, values: &[(String, Value)]) -> String {
        let mut uri = String::new();
        for piece in &self.expressions {
            match piece {
                Piece::Literal(literal) => uri.push_str(literal),
                Piece::Expression { operator, names } => expression(&mut uri, *operator, names, values),
            }
        }
        uri
    }
}

fn expression(
    uri: &mut String,
    operator: Option<char>,
    names: &[(String, bool)],
    values: &[(String, Value)],
) {
    let separator = match operator {
        None | Some('+' | '#') => ',',
        Some('?') => '&',
        Some(other) => other,
    };
    let mut first = true;
    for (name, explode) in names {
        let Some((_, value)) = values.iter().find(|(known, _)| known == name) else { continue };
        let parts: Vec<&String> = value.parts().iter().collect();
        let parts: Vec<String> =
            if *explode { parts.into_iter().cloned().collect() } else { vec![join(&parts)] };
        for part in parts {
            if !first {
                uri.push(separator);
            } else if let Some(prefix) = operator.filter(|operator| *operator != '+') {
                uri.push(prefix);
            }
            first = false;
            match operator {
                Some(';') if part.is_empty() => uri.push_str(name),
                Some(';' | '?' | '&') => {
                    let _ = write!(uri, "{name}=");
                }
                _ => {}
            }
            encode(uri, &part, matches!(operator, Some('+' | '#')));
        }
    }
}

fn join(parts: &[&String]) -> String {
    parts.iter().map(|part| part.as_str()).collect::<Vec<_>>().join(",")
}

/// Percent-encodes a text. Reserved expansion keeps reserved characters and existing escapes.
fn encode(uri: &mut String, text: &str, reserved: bool) {
    for (at, byte) in text.bytes().enumerate() {
        let plain = byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
        let encoded = || {
            let digits = text.as_bytes().get(at + 1..at + 3);
            byte == b'%' && digits.is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit))
        };
        if plain || (reserved && (b":/?#[]@!$&'()*+,;=".contains(&byte) || encoded())) {
            uri.push(char::from(byte));
        } else {
            let _ = write!(uri, "%{byte:02X}");
        }
    }
}
