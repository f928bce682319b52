//! The bearer token of a request, read from the `Authorization` header only.

use http::HeaderMap;
use http::header::AUTHORIZATION;

/// Credentials of a request.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Credentials<'a> {
    Nothing,
    Token(&'a str),
    /// A token that is bound to a key, sent with the scheme `DPoP`.
    Bound(&'a str),
    /// A header of the right scheme that holds no token.
    Malformed,
    /// More than one header: it is undefined which one applies.
    Ambiguous,
}

pub(super) fn credentials(headers: &HeaderMap) -> Credentials<'_> {
    let mut values = headers.get_all(AUTHORIZATION).iter();
    let (Some(value), None) = (values.next(), values.next()) else {
        return if headers.contains_key(AUTHORIZATION) {
            Credentials::Ambiguous
        } else {
            Credentials::Nothing
        };
    };
    let Ok(text) = value.to_str() else { return Credentials::Nothing };
    let (scheme, token) = text.split_once(' ').unwrap_or((text, ""));
    match scheme.to_ascii_lowercase().as_str() {
        "bearer" => token_of(token.trim(), Credentials::Token),
        "dpop" => token_of(token.trim(), Credentials::Bound),
        _ => Credentials::Nothing,
    }
}

/// Validates the characters of a token (RFC 6750).
fn token_of<'a>(token: &'a str, scheme: fn(&'a str) -> Credentials<'a>) -> Credentials<'a> {
    let is_fine = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~+/=".contains(&byte);
    if token.is_empty() || !token.bytes().all(is_fine) {
        return Credentials::Malformed;
    }
    scheme(token)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// AUTH-01
    #[test]
    fn a_token_follows_the_scheme_bearer_in_any_case() {
        let check = |values: &[&str], expected: Credentials<'_>| {
            let mut headers = HeaderMap::new();
            for value in values {
                headers.append(AUTHORIZATION, value.parse().unwrap());
            }
            assert_eq!(credentials(&headers), expected, "{values:?}");
        };
        check(&["Bearer abc"], Credentials::Token("abc"));
        check(&["bEARER abc.d-e_f~+/="], Credentials::Token("abc.d-e_f~+/="));
        check(&["dPoP abc"], Credentials::Bound("abc"));
        check(&["DPoP"], Credentials::Malformed);
        check(&[], Credentials::Nothing);
        check(&["Bearer"], Credentials::Malformed);
        check(&["Bearer "], Credentials::Malformed);
        check(&["Bearer a b"], Credentials::Malformed);
        check(&["Basic YTpi"], Credentials::Nothing);
        check(&["abc"], Credentials::Nothing);
        check(&["Bearer abc", "Bearer abc"], Credentials::Ambiguous);
    }
}
