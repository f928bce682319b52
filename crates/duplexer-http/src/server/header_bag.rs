//! The headers of a request, for whoever looks for one.
//!
//! The ones that route a message are asked for many times per request; they are found once.

use duplexer_core::transport::HeaderSource;
use duplexer_types::headers::{self, Name, Values};
use http::header::{HeaderMap, HeaderName, HeaderValue};

/// The headers that say what a message is about; a second one may mean something else to somebody on the way.
pub(super) const ROUTING: [Name; 3] = [headers::PROTOCOL_VERSION, headers::METHOD, headers::NAME];
const NAMES: [HeaderName; 3] = [
    HeaderName::from_static(ROUTING[0].lower),
    HeaderName::from_static(ROUTING[1].lower),
    HeaderName::from_static(ROUTING[2].lower),
];

/// Which revision a message is in.
pub(super) const PROTOCOL_VERSION: HeaderName = HeaderName::from_static(ROUTING[0].lower);

pub(super) struct HeaderBag {
    all: HeaderMap,
    routing: [Found; 3],
}

enum Found {
    Absent,
    One(HeaderValue),
    Several,
}

impl HeaderBag {
    pub(super) fn new(all: HeaderMap) -> Self {
        let routing = NAMES.map(|name| {
            let mut values = all.get_all(name).iter();
            match (values.next(), values.next()) {
                (None, _) => Found::Absent,
                (Some(value), None) => Found::One(value.clone()),
                (Some(_), Some(_)) => Found::Several,
            }
        });
        Self { all, routing }
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

impl HeaderSource for HeaderBag {
    fn values<'a>(&'a self, name: &str, each: &mut dyn FnMut(&'a str)) {
        let values = self.all.get_all(name).iter();
        values.filter_map(|value| std::str::from_utf8(value.as_bytes()).ok()).for_each(each);
    }
}
