//! Challenges of any bytes are read without a panic, and what was read is read again from its canonical form.

use std::fmt::Write;

use duplexer_oauth::Challenge;

/// Parameters that the client uses.
const NAMES: [&str; 5] = ["resource_metadata", "scope", "error", "error_description", "algs"];

/// Reads each line of `data` as a value of `WWW-Authenticate`.
pub fn challenge(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let all = Challenge::parse(text.lines());
    for challenge in &all {
        let is_token = |byte: u8| byte.is_ascii_graphic() && !byte.is_ascii_uppercase();
        assert!(!challenge.scheme().is_empty() && challenge.scheme().bytes().all(is_token));
        canonical(challenge);
    }
    let selected = Challenge::select(text.lines());
    let expected = all.iter().find(|challenge| matches!(challenge.scheme(), "bearer" | "dpop"));
    assert_eq!(expected.unwrap_or(&Challenge::default()), &selected);
}

/// The known parameters survive a round trip through quoted strings.
fn canonical(challenge: &Challenge) {
    let mut text = challenge.scheme().to_owned();
    let mut separator = " ";
    for name in NAMES {
        if let Some(value) = challenge.parameter(name) {
            let escaped = value.replace('\\', "\\\\").replace('"', "\\\"");
            // Writing to a string does not fail.
            let _ = write!(text, "{separator}{name}=\"{escaped}\"");
            separator = ", ";
        }
    }
    let again = Challenge::parse([text.as_str()]);
    // Escapes can make the canonical form longer than the limit.
    if text.len() <= 16 * 1024 {
        assert_eq!(again.len(), 1, "{text:?}");
        for name in NAMES {
            assert_eq!(again[0].parameter(name), challenge.parameter(name), "{text:?}");
        }
    }
}
