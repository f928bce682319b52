//! Nonces that servers demand in proofs: the newest of each origin.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use duplexer_oauth_base::address::origin;
use reqwest::header::HeaderMap;
use url::Url;

/// Maximum origins whose nonce is kept.
const MAX_ORIGINS: usize = 64;
const MAX_NONCE: usize = 1024;

/// Name of the header that has a nonce.
const HEADER: &str = "dpop-nonce";

#[derive(Debug, Default)]
pub(crate) struct Nonces(Mutex<HashMap<String, String>>);

impl Nonces {
    fn nonces(&self) -> MutexGuard<'_, HashMap<String, String>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn of(&self, url: &Url) -> Option<String> {
        self.nonces().get(&origin(url)).cloned()
    }

    /// Keeps the nonce of a response, if it has one. Returns whether it is another one than before.
    pub(crate) fn learn(&self, url: &Url, headers: &HeaderMap) -> bool {
        let Some(nonce) = headers.get(HEADER).and_then(|value| value.to_str().ok()) else { return false };
        if nonce.is_empty() || nonce.len() > MAX_NONCE {
            return false;
        }
        let mut nonces = self.nonces();
        let origin = origin(url);
        if nonces.len() >= MAX_ORIGINS && !nonces.contains_key(&origin) {
            // A lost nonce costs one more request.
            nonces.clear();
        }
        nonces.insert(origin, nonce.to_owned()).as_deref() != Some(nonce)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// OAC-74
    #[test]
    fn each_origin_has_its_newest_nonce() {
        let nonces = Nonces::default();
        let url = |text: &str| Url::parse(text).unwrap();
        let headers = |nonce: &str| HeaderMap::from_iter([(HEADER.parse().unwrap(), nonce.parse().unwrap())]);
        assert!(nonces.learn(&url("https://a/token"), &headers("one")));
        assert!(!nonces.learn(&url("https://a/other?x"), &headers("one")));
        assert!(
            nonces.learn(&url("https://a/"), &headers("two"))
                && nonces.learn(&url("https://b/"), &headers("three"))
        );
        assert!(!nonces.learn(&url("https://a/"), &HeaderMap::new()));
        assert!(!nonces.learn(&url("https://a/"), &headers(&"x".repeat(2000))));
        let of = |text: &str| nonces.of(&url(text));
        assert_eq!(
            (of("https://a/x").as_deref(), of("https://b").as_deref(), of("https://c")),
            (Some("two"), Some("three"), None)
        );
        for number in 0..200 {
            nonces.learn(&url(&format!("https://{number}.example")), &headers("x"));
        }
        assert!(nonces.nonces().len() <= MAX_ORIGINS);
    }
}
