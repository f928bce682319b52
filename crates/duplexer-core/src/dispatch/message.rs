//! Method and params of a message, kept as the text they arrived in.

use std::borrow::Cow;
use std::ops::Range;

use bytestring::ByteString;
use duplexer_types::jsonrpc;
use duplexer_types::methods::Method;
use serde::Deserialize;

/// A request or notification: the text once, and the ranges of its parts.
///
/// ```
/// use duplexer_core::dispatch::Message;
///
/// #[derive(serde::Deserialize)]
/// struct Search {
///     word: String,
/// }
///
/// let message = Message::new("com.example/search", Some(r#"{"word":"tea"}"#.into()));
/// assert_eq!(message.method(), "com.example/search");
/// assert_eq!(message.decode::<Search>()?.word, "tea");
/// # Ok::<_, serde_json::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Message {
    method: MethodName,
    known: Option<Method>,
    text: ByteString,
    params: Option<Range<usize>>,
    meta: Option<Range<usize>>,
    /// The longest other member of the params: decoding need not scan it again.
    skip_hint: Option<Range<usize>>,
}

#[derive(Clone, Debug)]
enum MethodName {
    InText(Range<usize>),
    Own(ByteString),
}

impl Message {
    /// Creates a message that did not arrive as a frame. `params` is the JSON text of an object.
    pub fn new(method: impl Into<ByteString>, params: Option<ByteString>) -> Self {
        let method = method.into();
        let known = Method::parse(&method);
        Self::from_parts(MethodName::Own(method), known, params)
    }

    fn from_parts(method: MethodName, known: Option<Method>, params: Option<ByteString>) -> Self {
        let text = params.unwrap_or_default();
        let params = if text.is_empty() { None } else { Some(0..text.len()) };
        let meta = jsonrpc::find_meta(&text).map(|meta| range_of(&text, meta));
        Self { method, known, text, params, meta, skip_hint: None }
    }

    /// Finds the parts of `frame` in the `text` it was read from. The message is complete once it is given the text.
    pub(super) fn locate(text: &str, frame: &jsonrpc::RawCall<'_>) -> Self {
        let method = match &frame.method {
            Cow::Borrowed(method) => MethodName::InText(range_of(text, method)),
            Cow::Owned(method) => MethodName::Own(method.as_str().into()),
        };
        Self {
            method,
            known: Method::parse(&frame.method),
            text: ByteString::new(),
            params: frame.params.map(|params| range_of(text, params)),
            meta: frame.meta.map(|meta| range_of(text, meta)),
            skip_hint: frame.longest.map(|longest| range_of(text, longest)),
        }
    }

    /// Gives a located message its text.
    pub(super) fn attach(&mut self, text: ByteString) {
        self.text = text;
    }

    /// Returns the method.
    pub fn method(&self) -> &str {
        match &self.method {
            MethodName::InText(range) => part(&self.text, range),
            MethodName::Own(method) => method,
        }
    }

    /// Returns the method as a row of the protocol's table; `None` for a custom method. Looked up once, on arrival.
    pub fn known(&self) -> Option<Method> {
        self.known
    }

    /// Returns the JSON text of the params object, if there is one.
    pub fn params(&self) -> Option<&str> {
        self.params.as_ref().map(|range| part(&self.text, range))
    }

    /// Returns the JSON text of the params object. It shares the text of the message.
    pub fn params_text(&self) -> Option<ByteString> {
        self.params().map(|params| self.text.slice_ref(params))
    }

    /// Returns the JSON text of `params._meta`, if there is one.
    pub fn meta(&self) -> Option<&str> {
        self.meta.as_ref().map(|range| part(&self.text, range))
    }

    /// Decodes the params as a `T`, without `_meta`; absent params are an empty object.
    ///
    /// # Errors
    ///
    /// Fails if the params are not a `T`.
    pub fn decode<'a, T: Deserialize<'a>>(&'a self) -> Result<T, serde_json::Error> {
        let skip_hint = self.skip_hint.as_ref().map(|range| part(&self.text, range));
        jsonrpc::decode(self.params(), [self.meta(), skip_hint])
    }

    /// Replaces the method and keeps the params.
    #[must_use]
    pub fn with_method(mut self, method: impl Into<ByteString>) -> Self {
        let method = method.into();
        self.known = Method::parse(&method);
        self.method = MethodName::Own(method);
        self
    }

    /// Replaces the params and keeps the method.
    #[must_use]
    pub fn with_params(self, params: Option<ByteString>) -> Self {
        let method = MethodName::Own(self.method().to_owned().into());
        Self::from_parts(method, self.known, params)
    }

    /// Returns whether both are one message: method and params are the same text at the same place.
    pub fn is_same(&self, other: &Self) -> bool {
        let at = |text: &ByteString| (text.as_ptr().addr(), text.len());
        // Ranges of one text are compared without cutting the text.
        let same_method = match (&self.method, &other.method) {
            (MethodName::InText(one), MethodName::InText(other)) => one == other,
            (MethodName::Own(one), MethodName::Own(other)) => at(one) == at(other),
            _ => false,
        };
        same_method && at(&self.text) == at(&other.text) && self.params == other.params
    }

    /// Returns the text that the ranges refer to: the whole frame, if it arrived as one.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }
}

/// Returns the range of `inner`, a part of `outer`, in it.
fn range_of(outer: &str, inner: &str) -> Range<usize> {
    let start = inner.as_ptr().addr().wrapping_sub(outer.as_ptr().addr());
    start..start + inner.len()
}

fn part<'a>(text: &'a str, range: &Range<usize>) -> &'a str {
    text.get(range.clone()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::super::Frame;
    use super::*;

    #[test]
    fn the_parts_of_a_frame_are_found_again_in_its_text() {
        let line = r#"{"jsonrpc":"2.0","id":1,"method":"a/b","params":{"x":1,"_meta":{"y":2}}}"#;
        let text = ByteString::from(line);
        let Ok(Frame::Request(_, message)) = Frame::parse(&text) else { panic!("a request") };
        assert_eq!(message.method(), "a/b");
        assert_eq!(message.params(), Some(r#"{"x":1,"_meta":{"y":2}}"#));
        assert_eq!(message.meta(), Some(r#"{"y":2}"#));
        let other = message.with_method("c").with_params(Some(r#"{"_meta":3}"#.into()));
        assert_eq!((other.method(), other.meta()), ("c", Some("3")));
        assert_eq!(other.with_params(None).params(), None);
    }

    #[test]
    fn a_message_is_the_same_until_it_is_changed() {
        let text = ByteString::from(r#"{"jsonrpc":"2.0","id":1,"method":"a/b","params":{"x":1}}"#);
        let Ok(Frame::Request(_, message)) = Frame::parse(&text) else { panic!("a request") };
        assert!(message.is_same(&message.clone()));
        assert!(!message.is_same(&message.clone().with_method("a/b")));
        assert!(!message.is_same(&message.clone().with_params(Some(r#"{"x":1}"#.into()))));
        assert!(!message.is_same(&message.clone().with_params(None)));
    }

    #[test]
    fn the_row_of_a_method_follows_the_method() {
        let progress = "notifications/progress";
        let custom = Message::new("a/b", None);
        assert_eq!(custom.known(), None);
        let known = custom.with_method(progress).with_params(Some("{}".into()));
        assert_eq!(known.known(), Method::parse(progress));
        assert_eq!(known.with_method("a/b").known(), None);
    }
}
