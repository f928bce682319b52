//! Method and params of a message, kept as the text they came in.

use std::ops::Range;

use bytestring::ByteString;
use duplexer_types::jsonrpc;
use serde::Deserialize;

/// A request or notification as it arrived: the text once, and where its parts are.
#[derive(Clone, Debug)]
pub struct Invocation {
    method: Method,
    text: ByteString,
    params: Option<Range<usize>>,
    meta: Option<Range<usize>>,
    longest: Option<Range<usize>>,
}

#[derive(Clone, Debug)]
enum Method {
    InText(Range<usize>),
    Own(ByteString),
}

/// Where the parts of a frame are, without holding on to its text.
#[derive(Clone, Debug)]
pub(crate) struct Parts {
    method: Method,
    params: Option<Range<usize>>,
    meta: Option<Range<usize>>,
    longest: Option<Range<usize>>,
}

impl Parts {
    pub(crate) fn of(text: &str, frame: &jsonrpc::RawCall<'_>) -> Self {
        let method = match &frame.method {
            std::borrow::Cow::Borrowed(method) => Method::InText(place(text, method)),
            std::borrow::Cow::Owned(method) => Method::Own(method.as_str().into()),
        };
        Self {
            method,
            params: frame.params.map(|params| place(text, params)),
            meta: frame.meta.map(|meta| place(text, meta)),
            longest: frame.longest.map(|longest| place(text, longest)),
        }
    }
}

impl Invocation {
    /// An invocation that did not arrive as a frame. `params` is the JSON text of an object.
    pub fn new(method: impl Into<ByteString>, params: Option<ByteString>) -> Self {
        let text = params.unwrap_or_default();
        let params = if text.is_empty() { None } else { Some(0..text.len()) };
        let meta = jsonrpc::find_meta(&text).map(|meta| place(&text, meta));
        Self { method: Method::Own(method.into()), text, params, meta, longest: None }
    }

    /// The invocation that `frame`, read from `text`, holds. For transports that read frames themselves.
    pub fn of_frame(text: &ByteString, frame: &jsonrpc::RawCall<'_>) -> Self {
        Self::from_frame(text.clone(), Parts::of(text, frame))
    }

    /// The parts of a frame, found in the `text` they were read from.
    pub(crate) fn from_frame(text: ByteString, parts: Parts) -> Self {
        let Parts { method, params, meta, longest } = parts;
        Self { method, text, params, meta, longest }
    }

    /// The method.
    pub fn method(&self) -> &str {
        match &self.method {
            Method::InText(range) => part(&self.text, range),
            Method::Own(method) => method,
        }
    }

    /// The JSON text of the params object, if there is one.
    pub fn params(&self) -> Option<&str> {
        self.params.as_ref().map(|range| part(&self.text, range))
    }

    /// The JSON text of `params._meta`, if there is one.
    pub fn meta(&self) -> Option<&str> {
        self.meta.as_ref().map(|range| part(&self.text, range))
    }

    /// The params as a `T`, without `_meta`; absent params are an empty object.
    pub fn decode<'a, T: Deserialize<'a>>(&'a self) -> Result<T, serde_json::Error> {
        let longest = self.longest.as_ref().map(|range| part(&self.text, range));
        jsonrpc::decode(self.params(), [self.meta(), longest])
    }

    /// The same params under another method.
    #[must_use]
    pub fn with_method(mut self, method: impl Into<ByteString>) -> Self {
        self.method = Method::Own(method.into());
        self
    }

    /// The same method with other params.
    #[must_use]
    pub fn with_params(self, params: Option<ByteString>) -> Self {
        Self::new(self.method().to_owned(), params)
    }

    /// How much memory the text takes.
    pub(crate) fn size(&self) -> usize {
        self.text.len()
    }
}

/// Where `inner`, a part of `outer`, stands in it.
fn place(outer: &str, inner: &str) -> Range<usize> {
    let start = inner.as_ptr().addr().wrapping_sub(outer.as_ptr().addr());
    start..start + inner.len()
}

fn part<'a>(text: &'a str, range: &Range<usize>) -> &'a str {
    text.get(range.clone()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use duplexer_types::jsonrpc::RawFrame;

    use super::*;

    #[test]
    fn the_parts_of_a_frame_are_found_again_in_its_text() {
        let line = r#"{"jsonrpc":"2.0","id":1,"method":"a/b","params":{"x":1,"_meta":{"y":2}}}"#;
        let text = ByteString::from(line);
        let Ok(RawFrame::Request { call, .. }) = jsonrpc::read(&text) else { panic!("a request") };
        let parts = Parts::of(&text, &call);
        let invocation = Invocation::from_frame(text, parts);
        assert_eq!(invocation.method(), "a/b");
        assert_eq!(invocation.params(), Some(r#"{"x":1,"_meta":{"y":2}}"#));
        assert_eq!(invocation.meta(), Some(r#"{"y":2}"#));
        let other = invocation.with_method("c").with_params(Some(r#"{"_meta":3}"#.into()));
        assert_eq!((other.method(), other.meta()), ("c", Some("3")));
        assert_eq!(other.with_params(None).params(), None);
    }
}
