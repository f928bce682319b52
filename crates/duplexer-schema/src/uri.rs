//! Resolution of URI references (RFC 3986, section 5.2).
//!
//! The result is only a key: nothing is ever fetched from it.

/// Splits a reference into the part before its fragment and the fragment.
pub(crate) fn split_fragment(uri: &str) -> (&str, &str) {
    uri.split_once('#').unwrap_or((uri, ""))
}

/// Resolves `reference` against the absolute `base`. Neither the base's fragment nor the reference's is kept.
pub(crate) fn resolve(base: &str, reference: &str) -> String {
    let (reference, _) = split_fragment(reference);
    let (base, _) = split_fragment(base);
    if reference.is_empty() {
        return base.to_owned();
    }
    if scheme(reference).is_some() {
        return reference.to_owned();
    }
    let base = Parts::of(base);
    let (path_of_reference, query) = split_query(reference);
    let (authority, path) = if let Some(rest) = path_of_reference.strip_prefix("//") {
        let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
        (Some(authority), without_dots(path))
    } else if path_of_reference.starts_with('/') {
        (base.authority, without_dots(path_of_reference))
    } else if path_of_reference.is_empty() {
        (base.authority, base.path.to_owned())
    } else {
        (base.authority, without_dots(&merged(&base, path_of_reference)))
    };
    let mut resolved = String::new();
    if let Some(scheme) = base.scheme {
        resolved.push_str(scheme);
        resolved.push(':');
    }
    if let Some(authority) = authority {
        resolved.push_str("//");
        resolved.push_str(authority);
    }
    resolved.push_str(&path);
    if let Some(query) = query {
        resolved.push('?');
        resolved.push_str(query);
    }
    resolved
}

/// Decodes `%XX`. Bytes that are not UTF-8 afterwards become replacement characters, which match no name.
pub(crate) fn percent_decoded(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&first, tail)) = rest.split_first() {
        let code = (first == b'%').then(|| hex_pair(tail)).flatten();
        bytes.push(code.unwrap_or(first));
        rest = if code.is_some() { tail.get(2..).unwrap_or_default() } else { tail };
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

fn hex_pair(bytes: &[u8]) -> Option<u8> {
    let digit = |at: usize| bytes.get(at).and_then(|byte| char::from(*byte).to_digit(16));
    u8::try_from(digit(0)? * 16 + digit(1)?).ok()
}

struct Parts<'a> {
    scheme: Option<&'a str>,
    authority: Option<&'a str>,
    path: &'a str,
}

impl<'a> Parts<'a> {
    fn of(uri: &'a str) -> Self {
        let scheme = scheme(uri);
        let rest = scheme.map_or(uri, |scheme| &uri[scheme.len() + 1..]);
        let (rest, _) = split_query(rest);
        match rest.strip_prefix("//") {
            Some(rest) => {
                let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
                Self { scheme, authority: Some(authority), path }
            }
            None => Self { scheme, authority: None, path: rest },
        }
    }
}

fn scheme(uri: &str) -> Option<&str> {
    let (scheme, _) = uri.split_once(':')?;
    let mut letters = scheme.chars();
    let begins = letters.next().is_some_and(|letter| letter.is_ascii_alphabetic());
    let goes_on = letters.all(|letter| letter.is_ascii_alphanumeric() || "+-.".contains(letter));
    (begins && goes_on).then_some(scheme)
}

fn split_query(text: &str) -> (&str, Option<&str>) {
    text.split_once('?').map_or((text, None), |(path, query)| (path, Some(query)))
}

fn merged(base: &Parts<'_>, path: &str) -> String {
    if base.authority.is_some() && base.path.is_empty() {
        return format!("/{path}");
    }
    let folder = base.path.rfind('/').map_or("", |at| &base.path[..=at]);
    format!("{folder}{path}")
}

fn without_dots(path: &str) -> String {
    let mut kept: Vec<&str> = Vec::new();
    let mut segments = path.split('/').peekable();
    while let Some(segment) = segments.next() {
        let is_last = segments.peek().is_none();
        match segment {
            "." | ".." => {
                if segment == ".." && kept.last().is_some_and(|last| !last.is_empty()) {
                    kept.pop();
                }
                if is_last {
                    kept.push("");
                }
            }
            other => kept.push(other),
        }
    }
    kept.join("/")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_are_resolved_against_their_base() {
        let check = |base: &str, reference: &str, expected: &str| {
            assert_eq!(resolve(base, reference), expected, "{reference} against {base}");
        };
        check("http://a/b/c/d?q", "g", "http://a/b/c/g");
        check("http://a/b/c/d", "../g", "http://a/b/g");
        check("http://a/b/c/d", "../../../g", "http://a/g");
        check("http://a/b/c/d", "./", "http://a/b/c/");
        check("http://a/b/c/d", "/x?y#z", "http://a/x?y");
        check("http://a/b/c/d", "//other/x", "http://other/x");
        check("http://a", "x", "http://a/x");
        check("http://a/b", "#z", "http://a/b");
        check("http://a/b", "urn:x:y", "urn:x:y");
        check("urn:uuid:1", "#part", "urn:uuid:1");
        check("", "a/b", "a/b");
        check("a/b", "c", "a/c");
    }

    #[test]
    fn escapes_of_a_fragment_are_decoded() {
        assert_eq!(percent_decoded("/a%25b%22c"), "/a%b\"c");
        assert_eq!(percent_decoded("100%"), "100%");
        assert_eq!(percent_decoded("%zz"), "%zz");
    }
}
