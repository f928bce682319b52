//! Names of skills: the last segment of their paths.

/// Maximum length of a name.
const MAX_NAME: usize = 64;

/// Reason why a text is not the name of a skill.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum NameFault {
    #[error("a name has 1 to {MAX_NAME} characters")]
    Length,
    #[error("a name consists of `a` to `z`, digits and `-`")]
    Character,
    #[error("a name neither begins nor ends with `-`, and has no `--`")]
    Hyphen,
}

/// Checks the name of a skill.
pub(crate) fn check(name: &str) -> Result<(), NameFault> {
    if name.is_empty() || name.chars().count() > MAX_NAME {
        return Err(NameFault::Length);
    }
    if !name.bytes().all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-')) {
        return Err(NameFault::Character);
    }
    if name.starts_with('-') || name.ends_with('-') || name.contains("--") {
        return Err(NameFault::Hyphen);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// SKL-03.
    #[test]
    fn a_name_is_lower_case_with_single_hyphens() {
        for fine in ["a", "7", "pdf-processing", "a-b-c", &"a".repeat(64)] {
            assert_eq!(check(fine), Ok(()), "{fine}");
        }
        for (name, fault) in [
            ("", NameFault::Length),
            (&*"a".repeat(65), NameFault::Length),
            ("Pdf", NameFault::Character),
            ("a b", NameFault::Character),
            ("a_b", NameFault::Character),
            ("a/b", NameFault::Character),
            ("é", NameFault::Character),
            ("-a", NameFault::Hyphen),
            ("a-", NameFault::Hyphen),
            ("a--b", NameFault::Hyphen),
        ] {
            assert_eq!(check(name), Err(fault), "{name}");
        }
    }
}
