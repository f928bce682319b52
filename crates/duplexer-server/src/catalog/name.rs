//! Validation of names.

/// Reason why a name is invalid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub(crate) struct InvalidName(&'static str);

/// Checks that a name consists of 1 to 128 ASCII letters, digits, `_`, `-` and `.`.
pub(crate) fn check(name: &str) -> Result<(), InvalidName> {
    if name.is_empty() {
        return Err(InvalidName("a name has at least one character"));
    }
    if name.len() > 128 {
        return Err(InvalidName("a name has at most 128 characters"));
    }
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.');
    if name.bytes().all(allowed) {
        Ok(())
    } else {
        Err(InvalidName("a name consists of ASCII letters, digits, '_', '-' and '.'"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// NAME-01.
    #[test]
    fn names_are_plain() {
        for name in ["a", "get_weather", "db.query-2", &"x".repeat(128)] {
            assert!(check(name).is_ok(), "{name}");
        }
        for name in ["", "two words", "a,b", "é", "a/b", &"x".repeat(129)] {
            assert!(check(name).is_err(), "{name}");
        }
    }
}
