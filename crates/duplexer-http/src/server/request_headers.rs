//! The headers of one request. The routing headers, which are looked up many times per request, are found once.

use duplexer_core::transport::HeaderSource;
use duplexer_types::headers::{self, Name, Values};
use http::header::{HeaderMap, HeaderValue};

/// Headers that route a message. An intermediary could read another value of a repeated one than this service does.
const ROUTING: [Name; 3] = [headers::PROTOCOL_VERSION, headers::METHOD, headers::NAME];

/// The headers of one request.
pub(super) struct RequestHeaders {
    all: HeaderMap,
    routing: RoutingHeaders,
}

/// The values of the routing headers.
#[derive(Default)]
pub(super) struct RoutingHeaders([Found; 3]);

#[derive(Default)]
enum Found {
    #[default]
    Absent,
    One(HeaderValue),
    Several,
}

impl RoutingHeaders {
    /// Adds a header if it is a routing header. `name` is in lower case.
    pub(super) fn add(&mut self, name: &str, value: &HeaderValue) {
        let known = ROUTING.iter().zip(&mut self.0).find(|(known, _)| known.lower == name);
        if let Some((_, found)) = known {
            *found = match found {
                Found::Absent => Found::One(value.clone()),
                Found::One(_) | Found::Several => Found::Several,
            };
        }
    }

    /// Returns the value of the version header.
    pub(super) fn version(&self) -> Values<'_> {
        let [version, ..] = &self.0;
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
    pub(super) fn new(all: HeaderMap, routing: RoutingHeaders) -> Self {
        Self { all, routing }
    }

    /// Returns the routing headers that appear more than once.
    pub(super) fn repeated(&self) -> impl Iterator<Item = Name> {
        let found = ROUTING.into_iter().zip(&self.routing.0);
        found.filter(|(_, found)| matches!(found, Found::Several)).map(|(name, _)| name)
    }

    /// Returns the values of a header.
    pub(super) fn look_up(&self, name: &str) -> Values<'_> {
        match ROUTING.iter().zip(&self.routing.0).find(|(known, _)| is_same(**known, name)) {
            Some((_, found)) => found.values(),
            None => self.all.get_all(name).iter().map(HeaderValue::as_bytes).collect(),
        }
    }
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
