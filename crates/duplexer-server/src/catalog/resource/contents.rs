//! What a resource's function may return.

use std::borrow::Cow;

use crate::kernel::handler::{IntoReply, Reply};
use crate::kernel::outcome::Outcome;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use duplexer_types::input::InputRequiredResult;
use duplexer_types::json::{Json, JsonObject};
use duplexer_types::resource::{
    BlobResourceContents, ReadResourceResult, ResourceContents, TextResourceContents,
};
use serde::Serialize;

use super::error::ResourceError;

/// What a resource's function may return: text, bytes, [`Json`], [`AsJson`], contents or results made by hand, or a
/// `Result` of these.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be the contents of a resource",
    label = "not contents",
    note = "a resource's function returns text, `Vec<u8>`, `Json`, `AsJson(value)`, `ResourceContents` or `ReadResourceResult`",
    note = "it may return `Result<T, E>` of these, where `E: Into<ResourceError>`"
)]
pub trait ResourceOutput: Sized + 'static {
    /// The contents as a result.
    fn into_contents(self, uri: &str, about: ResourceMeta<'_>) -> Result<Outcome, ResourceError>;
}

/// What was said about the resource that is read.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct ResourceMeta<'a> {
    /// What kind of contents it has.
    pub mime_type: Option<&'a str>,
    /// What its contents carry as `_meta`.
    pub meta: Option<&'a JsonObject>,
}

/// Any value, as JSON.
#[derive(Clone, Copy, Debug)]
pub struct AsJson<T>(pub T);

/// What files contain.
#[derive(Debug)]
pub(crate) enum Loaded {
    Text(String),
    Bytes(Vec<u8>),
}

impl Loaded {
    pub(crate) fn into_text(self) -> Option<String> {
        if let Self::Text(text) = self { Some(text) } else { None }
    }
}

fn text(text: String, default: &str, uri: &str, about: ResourceMeta<'_>) -> Outcome {
    let mut contents = TextResourceContents::new(uri, text);
    contents.mime_type = Some(about.mime_type.unwrap_or(default).to_owned());
    contents.meta = about.meta.cloned();
    Outcome::of(ReadResourceResult::new([ResourceContents::Text(contents)]))
}

fn bytes(bytes: &[u8], uri: &str, about: ResourceMeta<'_>) -> Outcome {
    let mut contents = BlobResourceContents::new(uri, STANDARD.encode(bytes));
    contents.mime_type = Some(about.mime_type.unwrap_or("application/octet-stream").to_owned());
    contents.meta = about.meta.cloned();
    Outcome::of(ReadResourceResult::new([ResourceContents::Blob(contents)]))
}

macro_rules! contents {
    ($([$($generic:tt)*] $type:ty => |$value:ident, $uri:ident, $about:ident| $outcome:expr;)*) => {$(
        impl<$($generic)*> ResourceOutput for $type {
            fn into_contents(self, $uri: &str, $about: ResourceMeta<'_>) -> Result<Outcome, ResourceError> {
                let $value = self;
                let _ = ($uri, $about);
                Ok($outcome)
            }
        }
    )*};
}

const PLAIN: &str = "text/plain";
const JSON: &str = "application/json";

contents! {
    [] String                       => |value, uri, about| text(value, PLAIN, uri, about);
    [] &'static str                 => |value, uri, about| text(value.to_owned(), PLAIN, uri, about);
    [] Cow<'static, str>            => |value, uri, about| text(value.into_owned(), PLAIN, uri, about);
    [] Vec<u8>                      => |value, uri, about| bytes(&value, uri, about);
    [] Json                         => |value, uri, about| text(value.as_str().to_owned(), JSON, uri, about);
    [T: Serialize + 'static] AsJson<T> => |value, uri, about| {
        let json = serde_json::to_string_pretty(&value.0).map_err(|error| ResourceError::Internal(error.into()))?;
        text(json, JSON, uri, about)
    };
    [] Loaded                       => |value, uri, about| match value {
        Loaded::Text(loaded) => text(loaded, PLAIN, uri, about),
        Loaded::Bytes(loaded) => bytes(&loaded, uri, about),
    };
    [] ResourceContents             => |value, uri, about| Outcome::of(ReadResourceResult::new([value]));
    [] Vec<ResourceContents>        => |value, uri, about| Outcome::of(ReadResourceResult::new(value));
    [] ReadResourceResult           => |value, uri, about| Outcome::of(value);
    [] InputRequiredResult          => |value, uri, about| Outcome::of(value);
    [] Reply<ReadResourceResult>    => |value, uri, about| value.into_outcome();
}

impl<T: ResourceOutput, E: Into<ResourceError> + 'static> ResourceOutput for Result<T, E> {
    fn into_contents(self, uri: &str, about: ResourceMeta<'_>) -> Result<Outcome, ResourceError> {
        self.map_err(Into::into)?.into_contents(uri, about)
    }
}
