//! Encoding of text in a header: verbatim, or as `=?base64?...?=` if a header cannot hold it.

use std::borrow::Cow;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;

const PREFIX: &str = "=?base64?";
const SUFFIX: &str = "?=";

/// Encodes `text` as a header value.
pub fn encode(text: &str) -> Cow<'_, str> {
    if is_plain(text) && sentinel(text).is_none() {
        Cow::Borrowed(text)
    } else {
        Cow::Owned(format!("{PREFIX}{}{SUFFIX}", BASE64_STANDARD.encode(text)))
    }
}

/// Decodes a header value. `None` if it is malformed; it then matches no text.
///
/// Surrounding white space is ignored. The base64 form must be canonical and contain UTF-8. Any other value must be
/// ASCII without control characters, except tabs.
pub fn decode(value: &[u8]) -> Option<Cow<'_, str>> {
    let value = std::str::from_utf8(value).ok()?.trim_matches([' ', '\t']);
    match sentinel(value) {
        Some(base64) => {
            let bytes = BASE64_STANDARD.decode(base64).ok()?;
            String::from_utf8(bytes).ok().map(Cow::Owned)
        }
        None if value.bytes().all(|byte| matches!(byte, b' '..=b'~' | b'\t')) => Some(Cow::Borrowed(value)),
        None => None,
    }
}

/// Whether the value has the base64 form, well-formed or not.
pub(super) fn is_sentinel(value: &[u8]) -> bool {
    std::str::from_utf8(value).is_ok_and(|value| sentinel(value.trim_matches([' ', '\t'])).is_some())
}

/// Returns the text between the markers, which are case-sensitive.
fn sentinel(value: &str) -> Option<&str> {
    value.strip_prefix(PREFIX)?.strip_suffix(SUFFIX)
}

fn is_plain(text: &str) -> bool {
    text.bytes().all(|byte| matches!(byte, b' '..=b'~')) && !text.starts_with(' ') && !text.ends_with(' ')
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// HDR-01, P-HDR-12.
    #[test]
    fn only_what_a_header_cannot_hold_is_encoded() {
        let check = |text: &str, value: &str| assert_eq!(encode(text), value, "{text:?}");
        for plain in
            ["", "us-west1", "a b", "SGVsbG8=", "=?base64?SGVsbG8=", "=?BASE64?SGVsbG8=?=", "=?base64?="]
        {
            check(plain, plain);
        }
        check("日本", "=?base64?5pel5pys?=");
        check(" a", "=?base64?IGE=?=");
        check("a ", "=?base64?YSA=?=");
        check("a\tb", "=?base64?YQli?=");
        check("a\r\nb", "=?base64?YQ0KYg==?=");
        check("\u{7f}", "=?base64?fw==?=");
        check("=?base64?SGVsbG8=?=", "=?base64?PT9iYXNlNjQ/U0dWc2JHOD0/PQ==?=");
    }

    /// HDR-02, P-HDR-10, P-HDR-13, P-HDR-14, P-HDR-23.
    #[test]
    fn decoding_is_strict_about_the_base64_form_only() {
        let check =
            |value: &[u8], text: Option<&str>| assert_eq!(decode(value).as_deref(), text, "{value:?}");
        check(b"=?base64?SGVsbG8=?=", Some("Hello"));
        check(b" \t=?base64?SGVsbG8=?= ", Some("Hello"));
        check(b"=?base64??=", Some(""));
        check(b"  a b\t", Some("a b"));
        check(b"", Some(""));
        for literal in
            ["SGVsbG8=", "=?base64?SGVsbG8=", "SGVsbG8=?=", "=?BASE64?SGVsbG8=?=", "=?base64?=", "a\tb"]
        {
            check(literal.as_bytes(), Some(literal));
        }
        for malformed in [
            &b"=?base64?SGVsbG8?="[..],
            b"=?base64?SGVs!!!bG8=?=",
            b"=?base64?SGVsbG8==?=",
            b"=?base64?SGVsbG9=?=",
            b"=?base64? SGVsbG8=?=",
            b"=?base64?SGVs_-8=?=",
            b"=?base64?gA==?=",
            b"caf\xc3\xa9",
            b"\xff",
            b"a\x00b",
            b"a\nb",
        ] {
            check(malformed, None);
        }
    }

    proptest! {
        #[test]
        fn any_text_survives_a_header(text in any::<String>()) {
            let value = encode(&text);
            prop_assert!(is_plain(&value));
            let back = decode(value.as_bytes());
            prop_assert_eq!(back.as_deref(), Some(&*text));
        }
    }
}
