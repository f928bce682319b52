//! Session state of the handshake era: the session id and the negotiated revision, which later messages carry.

use std::sync::{Mutex, MutexGuard, PoisonError};

use duplexer_types::headers::{PROTOCOL_VERSION, SESSION_ID};
use duplexer_types::version::{ProtocolVersion, feature};
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use serde::Deserialize;

/// Session of a transport. Empty until a handshake has opened one.
#[derive(Default)]
pub(crate) struct Session(Mutex<Negotiated>);

#[derive(Default)]
struct Negotiated {
    id: Option<HeaderValue>,
    version: Option<ProtocolVersion>,
}

/// The session id of the server is not visible ASCII.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct InvalidId;

impl Session {
    /// Starts a new session with the id from the response headers of `initialize`, if there is one.
    pub(crate) fn open(&self, head: &HeaderMap) -> Result<(), InvalidId> {
        let mut id = head.get(SESSION_ID.lower).cloned();
        // The id suffices to use the session.
        if let Some(id) = &mut id {
            id.set_sensitive(true);
        }
        if id.as_ref().is_some_and(|id| !is_visible_ascii(id.as_bytes())) {
            return Err(InvalidId);
        }
        *self.negotiated() = Negotiated { id, version: None };
        Ok(())
    }

    /// Stores the revision from the result of `initialize`.
    pub(crate) fn set_version(&self, result: &str) {
        #[derive(Deserialize)]
        struct Opened<'a> {
            #[serde(rename = "protocolVersion")]
            version: std::borrow::Cow<'a, str>,
        }
        let opened = serde_json::from_str::<Opened<'_>>(result).ok();
        self.negotiated().version = opened.and_then(|opened| opened.version.parse().ok());
    }

    /// Adds the headers that every message of the session carries.
    pub(crate) fn add_headers(&self, headers: &mut HeaderMap) {
        let negotiated = self.negotiated();
        if let Some(id) = &negotiated.id {
            headers.insert(HeaderName::from_static(SESSION_ID.lower), id.clone());
        }
        if let Some(version) = negotiated.version.filter(|version| version.has(feature::VERSION_HEADER)) {
            let version = HeaderValue::from_static(version.as_str());
            headers.insert(HeaderName::from_static(PROTOCOL_VERSION.lower), version);
        }
    }

    /// Returns whether the server has assigned a session id.
    pub(crate) fn has_id(&self) -> bool {
        self.negotiated().id.is_some()
    }

    /// Returns whether the negotiated revision has batches.
    pub(crate) fn has_batches(&self) -> bool {
        self.negotiated().version.is_some_and(|version| version.has(feature::BATCHES))
    }

    fn negotiated(&self) -> MutexGuard<'_, Negotiated> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn is_visible_ascii(id: &[u8]) -> bool {
    !id.is_empty() && id.iter().all(u8::is_ascii_graphic)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn opened(id: &'static str, version: &str) -> Session {
        let session = Session::default();
        let head =
            HeaderMap::from_iter([(HeaderName::from_static("mcp-session-id"), HeaderValue::from_static(id))]);
        session.open(&head).unwrap();
        session.set_version(&format!(r#"{{"protocolVersion": "{version}", "capabilities": {{}}}}"#));
        session
    }

    fn stamped(session: &Session) -> Vec<String> {
        let mut headers = HeaderMap::new();
        session.add_headers(&mut headers);
        let mut all: Vec<_> =
            headers.iter().map(|(name, value)| format!("{name}: {}", value.to_str().unwrap())).collect();
        all.sort();
        all
    }

    /// P-LEG-8, P-LEG-19: the id always, the revision where it has a header.
    #[test]
    fn messages_of_a_session_carry_its_id_and_revision() {
        for version in ["2025-06-18", "2025-11-25"] {
            let expected = [format!("mcp-protocol-version: {version}"), "mcp-session-id: s-1".to_owned()];
            assert_eq!(stamped(&opened("s-1", version)), expected);
        }
        for version in ["2024-11-05", "2025-03-26", "1999-01-01"] {
            assert_eq!(stamped(&opened("s-1", version)), ["mcp-session-id: s-1"]);
        }
        assert_eq!(stamped(&Session::default()), Vec::<String>::new());
        assert!(opened("s-1", "2025-03-26").has_batches());
        assert!(!opened("s-1", "2025-06-18").has_batches());
    }

    /// P-LEG-7: an id is visible ASCII.
    #[test]
    fn an_id_that_cannot_be_one_is_refused() {
        for wrong in [&b""[..], b"a b", b"a\tb", b"\xc3\xa4"] {
            let value = HeaderValue::from_bytes(wrong).unwrap();
            let head = HeaderMap::from_iter([(HeaderName::from_static("mcp-session-id"), value)]);
            assert_eq!(Session::default().open(&head), Err(InvalidId), "{wrong:?}");
        }
        assert!(opened("!~", "2025-11-25").has_id());
    }

    #[test]
    fn another_opening_begins_anew() {
        let session = opened("s-1", "2025-11-25");
        session.open(&HeaderMap::new()).unwrap();
        assert_eq!(stamped(&session), Vec::<String>::new());
    }
}
