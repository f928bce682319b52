//! Validation and comparison of redirect URIs.
//!
//! They are compared as text. Only the port of a loopback address can differ (RFC 8252): a native client listens on any
//! free port.

use url::{Host, Url};

use crate::error::OAuthError;
use crate::urls;

const MAX: usize = 2048;

/// Accepts https URIs, and http on a loopback address. Rejects schemes that a browser runs or passes to a program.
pub(super) fn check(uri: &str) -> Result<(), OAuthError> {
    let wrong = |reason: &'static str| Err(OAuthError::new("invalid_redirect_uri", reason));
    if uri.len() > MAX || !uri.bytes().all(|byte| matches!(byte, b'!'..=b'~')) {
        return wrong("a redirect URI is visible ASCII, of at most 2048 characters");
    }
    let Ok(url) = Url::parse(uri) else { return wrong("a redirect URI must be a URL") };
    if !urls::is_protected(&url) {
        return wrong("a redirect URI must be https, or http on a loopback address");
    }
    if !has_plain_host(&url) {
        return wrong("the host of a redirect URI has letters, digits, dots, hyphens and underscores only");
    }
    if url.fragment().is_some() || !url.username().is_empty() || url.password().is_some() {
        return wrong("a redirect URI must have neither a fragment nor a user");
    }
    Ok(())
}

/// Returns whether the host is an IP address or a plain name. The URL standard allows more in a name, such as semicolons,
/// which have a meaning in the policy of the consent page.
pub(super) fn has_plain_host(url: &Url) -> bool {
    match url.host() {
        Some(Host::Domain(name)) => {
            name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b".-_".contains(&byte))
        }
        Some(Host::Ipv4(_) | Host::Ipv6(_)) => true,
        None => false,
    }
}

/// Returns whether a client that registered `known` can request `requested`.
pub(super) fn is_same(known: &str, requested: &str) -> bool {
    known == requested
        || matches!((without_port(known), without_port(requested)), (Some(one), Some(other)) if one == other)
}

/// Splits a loopback URI into the parts before and after its port.
fn without_port(uri: &str) -> Option<(&str, &str)> {
    let host = ["http://127.0.0.1", "http://[::1]", "http://localhost"].into_iter().find(|host| {
        uri.strip_prefix(host).is_some_and(|rest| rest.is_empty() || rest.starts_with([':', '/', '?']))
    })?;
    let rest = uri.strip_prefix(host)?;
    let rest = match rest.strip_prefix(':') {
        None => rest,
        Some(port) => {
            let digits = port.bytes().take_while(u8::is_ascii_digit).count();
            let (number, rest) = port.split_at(digits);
            number.parse::<u16>().ok()?;
            if !(rest.is_empty() || rest.starts_with(['/', '?'])) {
                return None;
            }
            rest
        }
    };
    Some((host, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// O02
    #[test]
    fn a_redirect_is_the_registered_one_to_the_letter() {
        let known = "https://client.example/cb?a=1";
        assert!(is_same(known, known));
        for other in [
            "https://client.example/CB?a=1",
            "https://CLIENT.example/cb?a=1",
            "https://client.example/cb/?a=1",
            "https://client.example:443/cb?a=1",
            "https://client.example:8443/cb?a=1",
            "https://client.example/cb?a=2",
            "https://client.example/cb?a=1&b=2",
            "https://client.example/cb",
            "https://me@client.example/cb?a=1",
            "https://client.example/cb?a=1#x",
            "https://client.example/./cb?a=1",
            "http://client.example/cb?a=1",
        ] {
            assert!(!is_same(known, other), "{other}");
        }
    }

    /// O02: the port of a loopback address alone may differ.
    #[test]
    fn a_native_client_listens_on_any_free_port() {
        for known in ["http://127.0.0.1/cb", "http://127.0.0.1:1/cb"] {
            assert!(is_same(known, "http://127.0.0.1:5050/cb") && is_same(known, "http://127.0.0.1/cb"));
            for other in [
                "http://127.0.0.1:5050/cb/",
                "http://127.0.0.1:5050/cb?x",
                "http://localhost:5050/cb",
                "http://127.0.0.1:99999/cb",
                "http://127.0.0.1:1@evil.example/cb",
                "http://127.0.0.1:/cb",
                "http://127.0.0.1.evil.example/cb",
                "https://127.0.0.1:5050/cb",
            ] {
                assert!(!is_same(known, other), "{other}");
            }
        }
        assert!(is_same("http://[::1]:1/", "http://[::1]:2/"));
        assert!(is_same("http://localhost:1", "http://localhost:2"));
    }

    /// O03
    #[test]
    fn nothing_that_a_browser_runs_is_registered() {
        for fine in [
            "https://client.example/cb",
            "http://localhost:3030/callback",
            "http://127.0.0.1/",
            "http://[::1]:1/",
        ] {
            assert_eq!(check(fine), Ok(()), "{fine}");
        }
        for wrong in [
            "javascript:alert(1)",
            "data:text/html,x",
            "myapp://callback",
            "com.example.app:/cb",
            "http://client.example/cb",
            "https://client.example/cb#x",
            "https://me:pw@client.example/cb",
            "/cb",
            "",
            "https://client.example/c b",
            "https://client.example/\r\nx",
            // O-csp: the host is part of the policy of the consent page.
            "https://a;sandbox/cb",
            "https://a,b/cb",
            "https://a'b/cb",
            "https://*/cb",
        ] {
            assert!(check(wrong).is_err(), "{wrong}");
        }
        assert!(check(&format!("https://client.example/{}", "x".repeat(3000))).is_err());
    }
}
