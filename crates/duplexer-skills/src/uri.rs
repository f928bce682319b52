//! URIs of skills and their files: `skill://path/of/the/skill/file`.

/// Scheme of the URIs that this crate makes. Those of other servers may have another one.
const SCHEME: &str = "skill://";

/// Returns the URI of a path relative to the root of all skills.
pub(crate) fn of_path(path: &str) -> String {
    let segments: Vec<String> = path.split('/').filter(|segment| !segment.is_empty()).map(encode).collect();
    format!("{SCHEME}{}", segments.join("/"))
}

/// Percent-encodes everything but the characters that never have a meaning in a URI.
fn encode(segment: &str) -> String {
    let mut encoded = String::with_capacity(segment.len());
    for byte in segment.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~') {
            encoded.push(char::from(byte));
        } else {
            encoded.push('%');
            for digit in [byte >> 4, byte & 15] {
                encoded.push(char::from_digit(digit.into(), 16).unwrap_or('0').to_ascii_uppercase());
            }
        }
    }
    encoded
}

/// Returns the path of a file below a directory, decoded. `None` if the file is not below it, or if the path is not one
/// of plain names: empty ones, `.`, `..`, and names with separators or control characters are refused.
pub(crate) fn path_below(directory: &str, file: &str) -> Option<String> {
    let rest = file.strip_prefix(directory)?.strip_prefix('/')?;
    if rest.contains(['?', '#']) {
        return None;
    }
    let names: Option<Vec<String>> = rest.split('/').map(decode).collect();
    let names = names?;
    names.iter().all(|name| is_plain(name)).then(|| names.join("/"))
}

/// Returns the last segment of a URI, decoded if that is possible.
pub(crate) fn name(uri: &str) -> String {
    let segment = uri.rsplit('/').next().unwrap_or_default();
    decode(segment).unwrap_or_else(|| segment.to_owned())
}

/// Returns the URI of a path below a directory. `None` if the path is not one of plain names.
pub(crate) fn below(directory: &str, path: &str) -> Option<String> {
    let names: Vec<&str> = path.split('/').collect();
    let encoded: Vec<String> = names.iter().map(|name| encode(name)).collect();
    names.iter().all(|name| is_plain(name)).then(|| format!("{directory}/{}", encoded.join("/")))
}

/// Whether a text can be the name of a file on every platform.
fn is_plain(name: &str) -> bool {
    !matches!(name, "" | "." | "..") && !name.contains(['/', '\\', ':']) && !name.contains(char::is_control)
}

fn decode(segment: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(segment.len());
    let mut rest = segment.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let mut digit = || char::from(rest.next()?).to_digit(16);
        let value = digit()? * 16 + digit()?;
        bytes.push(u8::try_from(value).ok()?);
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// SKL-03, SKL-10: segments are encoded one by one, and no URI ends with a slash.
    #[test]
    fn a_path_becomes_a_uri() {
        assert_eq!(of_path("acme/refunds/SKILL.md"), "skill://acme/refunds/SKILL.md");
        assert_eq!(of_path("a b/ü#?%.md"), "skill://a%20b/%C3%BC%23%3F%25.md");
        assert_eq!(of_path("/a//b/"), "skill://a/b");
    }

    /// SKL-D5: a URI of a peer cannot leave the directory of its skill.
    #[test]
    fn only_plain_names_are_below_a_directory() {
        let below = |file: &str| path_below("skill://a", file);
        assert_eq!(below("skill://a/SKILL.md").as_deref(), Some("SKILL.md"));
        assert_eq!(below("skill://a/x%20y/%C3%BC.md").as_deref(), Some("x y/ü.md"));
        for outside in [
            "skill://a",
            "skill://a/",
            "skill://ab/SKILL.md",
            "skill://b/SKILL.md",
            "skill://a/../b",
            "skill://a/%2e%2e/b",
            "skill://a/x/%2E%2E/%2e%2e/b",
            "skill://a/./b",
            "skill://a//b",
            "skill://a/x%2Fy",
            "skill://a/x%5Cy",
            "skill://a/C%3A",
            "skill://a/x%00",
            "skill://a/x%0A",
            "skill://a/x%ff",
            "skill://a/x%2",
            "skill://a/x%zz",
            "skill://a/x?y",
            "skill://a/x#y",
        ] {
            assert_eq!(below(outside), None, "{outside}");
        }
    }

    proptest! {
        #[test]
        fn every_plain_path_survives_its_uri(path in "[^/\\\\:\\p{C}]{1,8}(/[^/\\\\:\\p{C}]{1,8}){0,3}") {
            prop_assume!(path.split('/').all(|name| name != "." && name != ".."));
            let directory = of_path("a/b");
            prop_assert_eq!(path_below(&directory, &of_path(&format!("a/b/{path}"))), Some(path));
        }

        #[test]
        fn no_uri_panics(directory in ".*", file in ".*") {
            let _ = path_below(&directory, &file);
        }
    }
}
