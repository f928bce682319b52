//! The headers of a request, for whoever looks for one.
//!
//! The ones that route a message are asked for many times per request; they are found once.

use duplexer_core::transport::HeaderSource;
use duplexer_types::headers::{self, Name, Values};
use http::header::{HeaderMap, HeaderValue};

/// The headers that say what a message is about; a second one may mean something else to somebody on the way.
const ROUTING: [Name; 3] = [headers::PROTOCOL_VERSION, headers::METHOD, headers::NAME];

pub(super) struct RequestHeaders {
    all: HeaderMap,
    routing: [Found; 3],
}

enum Found {
    Absent,
    One(HeaderValue),
    Several,
}

impl Found {
    fn add(&mut self, value: &HeaderValue) {
        *self = match self {
            Self::Absent => Self::One(value.clone()),
            Self::One(_) | Self::Several => Self::Several,
        };
    }
}

impl RequestHeaders {
    pub(super) fn new(all: HeaderMap) -> Self {
        let mut routing = [const { Found::Absent }; 3];
        // One walk over all of them costs less than a look-up for each.
        for (name, value) in &all {
            let known = ROUTING.iter().zip(&mut routing).find(|(known, _)| known.lower == name.as_str());
            if let Some((_, found)) = known {
                found.add(value);
            }
        }
        Self { all, routing }
    }

    /// Those of the routing headers that stand more than once.
    pub(super) fn repeated(&self) -> impl Iterator<Item = Name> {
        let found = ROUTING.into_iter().zip(&self.routing);
        found.filter(|(_, found)| matches!(found, Found::Several)).map(|(name, _)| name)
    }

    pub(super) fn look_up(&self, name: &str) -> Values<'_> {
        match ROUTING.iter().zip(&self.routing).find(|(known, _)| is_same(**known, name)) {
            Some((_, Found::Absent)) => Values::Absent,
            Some((_, Found::One(value))) => Values::One(value.as_bytes()),
            Some((_, Found::Several)) => Values::Several,
            None => self.all.get_all(name).iter().map(HeaderValue::as_bytes).collect(),
        }
    }
}

/// Those who ask have the name from the same place, so that the spelling is nearly always the same.
fn is_same(known: Name, asked: &str) -> bool {
    known.lower.len() == asked.len() && (known.canonical == asked || known.lower == asked || known.is(asked))
}

impl HeaderSource for RequestHeaders {
    fn values<'a>(&'a self, name: &str, each: &mut dyn FnMut(&'a str)) {
        let values = self.all.get_all(name).iter();
        values.filter_map(|value| std::str::from_utf8(value.as_bytes()).ok()).for_each(each);
    }
}
