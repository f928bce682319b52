//! Form parameters of a request, each at most once (RFC 6749, section 3).

use std::collections::HashMap;

use http::HeaderMap;
use http::header::CONTENT_TYPE;
use url::form_urlencoded;
use zeroize::Zeroize;

use crate::error::OAuthError;

/// Parameters by name. Empty ones are treated as absent. Values are zeroized on drop: some are secrets.
pub(super) struct Form(HashMap<String, String>);

impl Form {
    pub(super) fn parse(text: &[u8]) -> Result<Self, OAuthError> {
        let mut form = Self(HashMap::new());
        for (name, value) in form_urlencoded::parse(text) {
            if form.0.insert(name.into_owned(), value.into_owned()).is_some() {
                return Err(OAuthError::invalid_request("a parameter is given more than once"));
            }
        }
        form.0.retain(|_, value| !value.is_empty());
        Ok(form)
    }

    /// Reads the form in the body of a POST.
    pub(super) fn posted(headers: &HeaderMap, body: &[u8]) -> Result<Self, OAuthError> {
        if media_type(headers) != "application/x-www-form-urlencoded" {
            return Err(OAuthError::invalid_request("the body must be application/x-www-form-urlencoded"));
        }
        Self::parse(body)
    }

    pub(super) fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    pub(super) fn required(&self, name: &'static str) -> Result<&str, OAuthError> {
        self.get(name).ok_or_else(|| OAuthError::invalid_request(format!("{name} is missing")))
    }

    /// Returns the scopes in `scope`.
    pub(super) fn scopes(&self) -> Option<Vec<String>> {
        self.get("scope").map(|scope| scope.split_ascii_whitespace().map(Into::into).collect())
    }
}

/// Returns the media type of a body, in lower case and without parameters.
pub(super) fn media_type(headers: &HeaderMap) -> String {
    let kind = headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    kind.split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
}

impl Drop for Form {
    fn drop(&mut self) {
        self.0.values_mut().for_each(Zeroize::zeroize);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// O16
    #[test]
    fn a_parameter_appears_once() {
        assert!(Form::parse(b"a=1&a=1").is_err() && Form::parse(b"a=1&%61=2").is_err());
        let form = Form::parse(b"a=x+y%0D&b=").unwrap_or_else(|_| panic!("a form"));
        assert_eq!((form.get("a"), form.get("b")), (Some("x y\r"), None));
    }
}
