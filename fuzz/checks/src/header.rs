//! Header values round-trip, and mirrored arguments pass their own check and no other.

use std::borrow::Cow;

use duplexer_types::headers::{ParamHeaders, Values, decode, encode, is_param};
use duplexer_types::json::Json;

use crate::tree::{Reading, Tree};

/// Uses `data` as a header value and as a text to encode.
pub fn header_value(data: &[u8]) {
    if let Some(text) = decode(data) {
        let again = encode(&text);
        assert_eq!(decode(again.as_bytes()).as_deref(), Some(&*text));
        // Canonical: a text has one base64 form only.
        if matches!(text, Cow::Owned(_)) && again != text {
            assert_eq!(again.as_bytes(), data.trim_ascii());
        }
    }
    let Ok(text) = std::str::from_utf8(data) else { return };
    let value = encode(text);
    assert!(value.bytes().all(|byte| matches!(byte, b' '..=b'~')), "{value:?}");
    assert_eq!(value.trim(), value);
    assert_eq!(decode(value.as_bytes()).as_deref(), Some(text));
}

/// Uses the first line of `data` as a schema, the second as arguments, the others as headers.
pub fn param_headers(data: &[u8]) {
    let mut lines = data.splitn(3, |byte| *byte == b'\n');
    let mut text = || lines.next().and_then(|line| std::str::from_utf8(line).ok());
    let (Some(schema), Some(arguments)) = (text(), text()) else { return };
    let rest = lines.next().unwrap_or_default();
    let Ok(schema) = Json::parse(schema) else { return };
    let headers = match ParamHeaders::from_schema(&schema) {
        Ok(headers) => headers,
        Err(invalid) => return assert!(!invalid.to_string().is_empty()),
    };
    foreign(&headers, arguments, rest);
    let emitted = headers.emit(Some(arguments));
    for (name, value) in &emitted {
        assert!(is_param(name) && name.bytes().all(|byte| byte.is_ascii_graphic()), "{name:?}");
        assert!(value.bytes().all(|byte| matches!(byte, b' '..=b'~')), "{value:?}");
    }
    // Arguments with a member twice are ambiguous: no headers make them acceptable.
    let sound = matches!(Tree::read(arguments), Reading::Tree(tree) if !tree.repeats());
    if sound && arguments.starts_with('{') {
        own(&headers, arguments, &emitted);
    }
}

/// The check terminates for any headers.
fn foreign(headers: &ParamHeaders, arguments: &str, lines: &[u8]) {
    let lines: Vec<_> = lines.split(|byte| *byte == b'\n').collect();
    let lookup = |name: &str| -> Values<'_> {
        let same = lines.iter().filter_map(|line| {
            let (head, value) = line.split_at_checked(name.len())?;
            head.eq_ignore_ascii_case(name.as_bytes()).then_some(())?;
            value.strip_prefix(b":")
        });
        same.collect()
    };
    for arguments in [None, Some(arguments)] {
        if let Err(error) = headers.check(arguments, lookup) {
            assert_eq!(error.code.0, -32020);
        }
    }
}

/// Emitted headers are accepted; with a header missing, repeated or changed, or with every argument twice, they are
/// rejected.
fn own(headers: &ParamHeaders, arguments: &str, emitted: &[(String, String)]) {
    let accepted = |arguments: &str, sent: &[(String, String)]| {
        let lookup = |name: &str| -> Values<'_> {
            sent.iter().filter(|(sent, _)| sent == name).map(|(_, value)| value.as_bytes()).collect()
        };
        headers.check(Some(arguments), lookup).is_ok()
    };
    assert!(accepted(arguments, emitted), "{arguments:?} {emitted:?}");
    for (index, one) in emitted.iter().enumerate().take(8) {
        let mut missing = emitted.to_vec();
        missing.remove(index);
        let mut doubled = emitted.to_vec();
        doubled.push(one.clone());
        let mut changed = emitted.to_vec();
        changed[index].1.insert(0, '~');
        for sent in [missing, doubled, changed] {
            assert!(!accepted(arguments, &sent), "{arguments:?} {sent:?}");
        }
    }
    let members = arguments.trim_end().strip_prefix('{').and_then(|rest| rest.strip_suffix('}'));
    if let Some(members) = members
        && !emitted.is_empty()
    {
        let twice = format!("{{{members},{members}}}");
        assert!(!accepted(&twice, emitted), "{twice:?}");
    }
}
