//! Return types of a resource's function.

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
use crate::catalog::function::Seal;

/// Return types of a resource's function: text, bytes, [`Json`], [`AsJson`], `ResourceContents`, `ReadResourceResult`,
/// or a `Result` of these.
///
/// The trait is sealed: it cannot be implemented outside this crate.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be the contents of a resource",
    label = "not contents",
    note = "a resource's function returns text, `Vec<u8>`, `Json`, `AsJson(value)`, `ResourceContents` or `ReadResourceResult`",
    note = "it may return `Result<T, E>` of these, where `E: Into<ResourceError>`; for errors of other crates write `.or_show()?` or `.or_hide()?` (`ResultExt` of the prelude)"
)]
pub trait ResourceOutput: Sized + 'static {
    #[doc(hidden)]
    fn into_contents(self, uri: &str, meta: ResourceMeta<'_>, seal: Seal) -> Result<Outcome, ResourceError>;
}

/// Metadata of a resource that its contents repeat.
#[derive(Clone, Copy, Debug)]
pub struct ResourceMeta<'a> {
    /// Media type of the contents.
    pub mime_type: Option<&'a str>,
    /// The `_meta` of the contents.
    pub meta: Option<&'a JsonObject>,
}

/// Contents that are any value, serialized as JSON.
///
/// ```
/// use duplexer::{AsJson, Resource, Server};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), duplexer::BoxError> {
/// #[derive(serde::Serialize)]
/// struct Settings {
///     verbose: bool,
/// }
///
/// let settings = Resource::new("config://app", || async { AsJson(Settings { verbose: true }) });
/// let server = Server::builder("app", "1.0.0").resource(settings.name("settings")).build()?;
/// # let client = duplexer::testing::TestClient::new(&server).await?;
/// # client.read_resource("config://app").await?;
/// # assert!(client.transcript().to_string().contains("verbose"));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug)]
pub struct AsJson<T>(pub T);

/// Contents of a file.
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

fn text(text: String, default: &str, uri: &str, meta: ResourceMeta<'_>) -> Outcome {
    let mut contents = TextResourceContents::new(uri, text);
    contents.mime_type = Some(meta.mime_type.unwrap_or(default).to_owned());
    contents.meta = meta.meta.cloned();
    Outcome::of(ReadResourceResult::new([ResourceContents::Text(contents)]))
}

fn bytes(bytes: &[u8], uri: &str, meta: ResourceMeta<'_>) -> Outcome {
    let mut contents = BlobResourceContents::new(uri, STANDARD.encode(bytes));
    contents.mime_type = Some(meta.mime_type.unwrap_or("application/octet-stream").to_owned());
    contents.meta = meta.meta.cloned();
    Outcome::of(ReadResourceResult::new([ResourceContents::Blob(contents)]))
}

macro_rules! contents {
    ($([$($generic:tt)*] $type:ty => |$value:ident, $uri:ident, $meta:ident| $outcome:expr;)*) => {$(
        impl<$($generic)*> ResourceOutput for $type {
            fn into_contents(self, $uri: &str, $meta: ResourceMeta<'_>, _: Seal) -> Result<Outcome, ResourceError> {
                let $value = self;
                let _ = ($uri, $meta);
                Ok($outcome)
            }
        }
    )*};
}

const PLAIN: &str = "text/plain";
const JSON: &str = "application/json";

contents! {
    [] String                       => |value, uri, meta| text(value, PLAIN, uri, meta);
    [] &'static str                 => |value, uri, meta| text(value.to_owned(), PLAIN, uri, meta);
    [] Cow<'static, str>            => |value, uri, meta| text(value.into_owned(), PLAIN, uri, meta);
    [] Vec<u8>                      => |value, uri, meta| bytes(&value, uri, meta);
    [] Json                         => |value, uri, meta| text(value.as_str().to_owned(), JSON, uri, meta);
    [T: Serialize + 'static] AsJson<T> => |value, uri, meta| {
        let json = serde_json::to_string_pretty(&value.0).map_err(|error| ResourceError::Internal(error.into()))?;
        text(json, JSON, uri, meta)
    };
    [] Loaded                       => |value, uri, meta| match value {
        Loaded::Text(loaded) => text(loaded, PLAIN, uri, meta),
        Loaded::Bytes(loaded) => bytes(&loaded, uri, meta),
    };
    [] ResourceContents             => |value, uri, meta| Outcome::of(ReadResourceResult::new([value]));
    [] Vec<ResourceContents>        => |value, uri, meta| Outcome::of(ReadResourceResult::new(value));
    [] ReadResourceResult           => |value, uri, meta| Outcome::of(value);
    [] InputRequiredResult          => |value, uri, meta| Outcome::of(value);
    [] Reply<ReadResourceResult>    => |value, uri, meta| value.into_outcome();
}

impl<T: ResourceOutput, E: Into<ResourceError> + 'static> ResourceOutput for Result<T, E> {
    fn into_contents(self, uri: &str, meta: ResourceMeta<'_>, seal: Seal) -> Result<Outcome, ResourceError> {
        self.map_err(Into::into)?.into_contents(uri, meta, seal)
    }
}
