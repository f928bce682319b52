//! The headers of one request. Those that are looked up for every request are found once, and the map is reused for the
//! response.

use std::sync::Arc;

use duplexer_core::transport::HeaderSource;
use duplexer_types::headers::{self, Name, Values};
use http::header::{HeaderMap, HeaderValue};

/// Headers that route a message. An intermediary could read another value of a repeated one than this service does.
const ROUTING: [Name; 3] = [headers::PROTOCOL_VERSION, headers::METHOD, headers::NAME];

/// Largest map that is reused for a response. The connection keeps it until the next request.
const MAX_REUSED: usize = 32;

/// The headers of one request.
pub(super) struct RequestHeaders {
    all: HeaderMap,
    known: KnownHeaders,
}

/// The values of the routing headers and of the session id.
#[derive(Default)]
pub(super) struct KnownHeaders {
    routing: [Found; 3],
    session: Found,
}

#[derive(Default)]
enum Found {
    #[default]
    Absent,
    One(HeaderValue),
    Several,
}

impl KnownHeaders {
    /// Adds a header if it is one of these. `name` is in lower case.
    pub(super) fn add(&mut self, name: &str, value: &HeaderValue) {
        const VERSION: &str = headers::PROTOCOL_VERSION.lower;
        const METHOD: &str = headers::METHOD.lower;
        const NAME: &str = headers::NAME.lower;
        const SESSION: &str = headers::SESSION_ID.lower;
        let [version, method, target] = &mut self.routing;
        let found = match name {
            VERSION => version,
            METHOD => method,
            NAME => target,
            SESSION => &mut self.session,
            _ => return,
        };
        *found = match found {
            Found::Absent => Found::One(value.clone()),
            Found::One(_) | Found::Several => Found::Several,
        };
    }

    /// Returns the value of the version header.
    pub(super) fn version(&self) -> Values<'_> {
        let [version, ..] = &self.routing;
        version.values()
    }
}

impl Found {
    fn values(&self) -> Values<'_> {
        match self {
            Self::Absent => Values::Absent,
            Self::One(value) => Values::One(value.as_bytes()),
            Self::Several => Values::Several,
        }
    }
}

impl RequestHeaders {
    pub(super) fn new(all: HeaderMap, known: KnownHeaders) -> Self {
        Self { all, known }
    }

    /// Returns the routing headers that appear more than once.
    pub(super) fn repeated(&self) -> impl Iterator<Item = Name> {
        let found = ROUTING.into_iter().zip(&self.known.routing);
        found.filter(|(_, found)| matches!(found, Found::Several)).map(|(name, _)| name)
    }

    /// Returns the value of the version header.
    pub(super) fn version(&self) -> Values<'_> {
        self.known.version()
    }

    /// Returns the session that the request names.
    pub(super) fn session(&self) -> Values<'_> {
        self.known.session.values()
    }

    /// Returns the values of a header.
    pub(super) fn look_up(&self, name: &str) -> Values<'_> {
        match ROUTING.iter().zip(&self.known.routing).find(|(known, _)| is_same(**known, name)) {
            Some((_, found)) => found.values(),
            None => self.all.get_all(name).iter().map(HeaderValue::as_bytes).collect(),
        }
    }

    fn into_empty_map(mut self) -> HeaderMap {
        if self.all.capacity() > MAX_REUSED {
            return HeaderMap::new();
        }
        self.all.clear();
        self.all
    }
}

/// Returns the map of a request that has ended without its headers, for the response. The HTTP library in turn uses the
/// map of a response for the next request, so that usually neither of them allocates. A handler that has kept the headers
/// keeps the map.
pub(super) fn reusable(headers: Option<Arc<RequestHeaders>>) -> HeaderMap {
    let headers = headers.and_then(Arc::into_inner);
    headers.map_or_else(HeaderMap::new, RequestHeaders::into_empty_map)
}

/// Compares a name. Callers use the constants of the same table, so the spelling is nearly always identical.
fn is_same(known: Name, name: &str) -> bool {
    known.lower.len() == name.len() && (known.canonical == name || known.lower == name || known.is(name))
}

impl HeaderSource for RequestHeaders {
    fn values<'a>(&'a self, name: &str, each: &mut dyn FnMut(&'a str)) {
        let values = self.all.get_all(name).iter();
        values.filter_map(|value| std::str::from_utf8(value.as_bytes()).ok()).for_each(each);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(count: usize) -> RequestHeaders {
        let name = |number| http::HeaderName::try_from(format!("x-{number}")).unwrap();
        let all = (0..count).map(|number| (name(number), HeaderValue::from_static("1"))).collect();
        RequestHeaders::new(all, KnownHeaders::default())
    }

    #[test]
    fn the_map_of_a_request_is_reused_empty_unless_it_is_large() {
        let reused = headers(9).into_empty_map();
        assert!(reused.is_empty() && reused.capacity() >= 9);
        assert_eq!(headers(60).into_empty_map().capacity(), 0);
    }

    #[test]
    fn a_repeated_session_id_is_no_session() {
        let mut known = KnownHeaders::default();
        known.add("mcp-session-id", &HeaderValue::from_static("a"));
        assert_eq!(known.session.values(), Values::One(b"a"));
        known.add("mcp-session-id", &HeaderValue::from_static("a"));
        let headers = RequestHeaders::new(HeaderMap::new(), known);
        assert_eq!(headers.session(), Values::Several);
        assert_eq!(headers.repeated().count(), 0, "it does not route a message");
    }
}
