//! Validation of configured URLs and scopes. URLs are kept verbatim: issuers and resources are compared as text.

pub(crate) use duplexer_oauth_base::address::{is_protected, origin, well_known};

use url::Url;

use crate::error::AuthConfigError;

/// Validates an issuer: https (or http on this machine), without query and fragment.
pub(crate) fn issuer(text: &str) -> Result<Url, AuthConfigError> {
    let wrong = |reason| AuthConfigError::Issuer { url: text.to_owned(), reason };
    let url = Url::parse(text).map_err(|_| wrong("it is not a URL"))?;
    if !is_protected(&url) {
        return Err(wrong("it must be https, except on this machine"));
    }
    check_parts(&url).map_err(wrong)?;
    Ok(url)
}

/// Validates the canonical URL of a protected server. Plain http is for this machine and for tests.
pub(crate) fn resource(text: &str) -> Result<Url, AuthConfigError> {
    let wrong = |reason| AuthConfigError::Resource { url: text.to_owned(), reason };
    let url = Url::parse(text).map_err(|_| wrong("it is not a URL"))?;
    if !matches!(url.scheme(), "https" | "http") || url.host().is_none() {
        return Err(wrong("it must be an http(s) URL"));
    }
    check_parts(&url).map_err(wrong)?;
    Ok(url)
}

/// Validates the URL of an endpoint that secrets are sent to.
pub(crate) fn endpoint(text: &str) -> Result<Url, AuthConfigError> {
    let wrong = |reason| AuthConfigError::Endpoint { url: text.to_owned(), reason };
    let url = Url::parse(text).map_err(|_| wrong("it is not a URL"))?;
    if is_protected(&url) { Ok(url) } else { Err(wrong("it must be https, except on this machine")) }
}

fn check_parts(url: &Url) -> Result<(), &'static str> {
    if url.fragment().is_some() {
        Err("it must not have a fragment")
    } else if url.query().is_some() {
        Err("it must not have a query")
    } else if !url.username().is_empty() || url.password().is_some() {
        Err("it must not name a user")
    } else {
        Ok(())
    }
}

/// Compares two URLs of protected servers, ignoring a trailing slash.
pub(crate) fn is_same(one: &str, other: &str) -> bool {
    fn canonical(text: &str) -> String {
        let url = Url::parse(text).map_or_else(|_| text.to_owned(), String::from);
        url.strip_suffix('/').map(str::to_owned).unwrap_or(url)
    }
    one == other || canonical(one) == canonical(other)
}

/// Validates the name of a scope (RFC 6749).
pub(crate) fn check_scope(scope: &str) -> Result<(), AuthConfigError> {
    let is_fine = |byte: u8| matches!(byte, 0x21 | 0x23..=0x5b | 0x5d..=0x7e);
    if scope.is_empty() || !scope.bytes().all(is_fine) {
        return Err(AuthConfigError::Scope(scope.to_owned()));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// AS-01
    #[test]
    fn an_issuer_is_https_or_this_machine_and_nothing_more() {
        for fine in [
            "https://auth.example.com",
            "https://auth.example.com/tenant",
            "http://localhost:8000",
            "http://127.0.0.1:8000",
            "http://[::1]:8000",
        ] {
            assert!(issuer(fine).is_ok(), "{fine}");
        }
        for wrong in [
            "auth.example.com",
            "http://auth.example.com",
            "http://localhost.example.com",
            "https://auth.example.com?x=1",
            "https://auth.example.com#x",
            "https://me@auth.example.com",
            "ftp://auth.example.com",
        ] {
            assert!(issuer(wrong).is_err(), "{wrong}");
        }
    }

    /// AUTH-06, AUTH-07: the path of the server follows the document name; an empty path stays empty.
    #[test]
    fn a_well_known_document_is_inserted_before_the_path() {
        let check = |url: &str, expected: &str| {
            assert_eq!(well_known("x", &resource(url).unwrap()), expected, "{url}");
        };
        check("https://h", "/.well-known/x");
        check("https://h/", "/.well-known/x");
        check("https://h/mcp", "/.well-known/x/mcp");
        check("https://h/a/b/", "/.well-known/x/a/b");
        assert!(is_same("https://H/mcp", "https://h:443/mcp/"));
        assert!(is_same("https://h", "https://h/") && !is_same("https://h/mcp", "https://h/mc"));
        assert!(check_scope("files:read").is_ok());
        for wrong in ["", "a b", "a\"b", "a\\b", "a\n"] {
            assert!(check_scope(wrong).is_err(), "{wrong:?}");
        }
    }
}
