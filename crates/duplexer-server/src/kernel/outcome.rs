//! The result of a request with its type erased. It is written in the shape of the revision at the end of the chain.

use std::any::Any;
use std::borrow::Cow;
use std::fmt;

use bytestring::ByteString;
use duplexer_types::json::Json;
use duplexer_types::lifecycle::EmptyResult;
use duplexer_types::tool::CallToolResult;
use duplexer_types::version::ProtocolVersion;
use duplexer_types::wire::{self, ResultBody, ResultMeta};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use duplexer_core::error::McpError;

/// The result of a request, as it passes back through the middleware.
///
/// ```
/// use duplexer::server::Outcome;
/// use duplexer::types::content::Content;
/// use duplexer::types::tool::CallToolResult;
///
/// let mut outcome = Outcome::of(CallToolResult::text("Dear Ada"));
/// if let Some(result) = outcome.downcast_mut::<CallToolResult>() {
///     result.content.push(Content::text("-- the server"));
/// }
/// assert!(!outcome.is_error());
/// ```
pub struct Outcome {
    repr: Repr,
    /// Maximum size of its text, in bytes.
    limit: usize,
}

enum Repr {
    /// Written in the shape of its revision, with `_meta`.
    Typed(Box<dyn AnyResult>),
    /// The result of a custom method: an object that gets `_meta` and is otherwise verbatim.
    Custom(Json),
    /// Finished JSON: rendered earlier, or made by code that owns the whole envelope.
    Raw(ByteString),
}

impl Outcome {
    /// Wraps a result of the protocol.
    pub fn of<R: ResultBody>(result: R) -> Self {
        Self::from(Repr::Typed(Box::new(result)))
    }

    /// Returns a result without content.
    pub fn empty() -> Self {
        Self::of(EmptyResult::new())
    }

    /// Wraps the result of a custom method. It must serialise as an object, or as null.
    ///
    /// # Errors
    ///
    /// Fails if the value is neither, or cannot be written as JSON.
    pub fn custom<T: Serialize + ?Sized>(value: &T) -> Result<Self, McpError> {
        let json = Json::encode(value).map_err(|error| {
            tracing::error!(%error, "a handler's result cannot be written as JSON");
            invalid_result("it cannot be written")
        })?;
        if json.is_null() {
            return Ok(Self::empty());
        }
        if json.is_object() {
            Ok(Repr::Custom(json).into())
        } else {
            Err(invalid_result("it is not an object"))
        }
    }

    /// Wraps the JSON text of a whole result. It is written verbatim: the caller owns its envelope.
    pub fn raw(text: impl Into<ByteString>) -> Self {
        Self::from(Repr::Raw(text.into()))
    }

    /// Returns the result as an `R`, if it is one.
    pub fn downcast_ref<R: ResultBody>(&self) -> Option<&R> {
        match &self.repr {
            Repr::Typed(result) => result.as_any().downcast_ref(),
            Repr::Custom(_) | Repr::Raw(_) => None,
        }
    }

    /// Returns the result as a mutable `R`, if it is one.
    pub fn downcast_mut<R: ResultBody>(&mut self) -> Option<&mut R> {
        match &mut self.repr {
            Repr::Typed(result) => result.as_any_mut().downcast_mut(),
            Repr::Custom(_) | Repr::Raw(_) => None,
        }
    }

    /// Converts the result into an `R`: unwraps a typed result, or decodes text that was rendered earlier.
    ///
    /// # Errors
    ///
    /// Returns the outcome unchanged if it is not an `R`.
    pub fn into_typed<R: ResultBody + DeserializeOwned>(self) -> Result<R, Self> {
        let limit = self.limit;
        match self.repr {
            Repr::Typed(result) if result.as_any().is::<R>() => match result.into_any().downcast::<R>() {
                Ok(result) => Ok(*result),
                // Checked by the guard above; there is no result left to return.
                Err(_) => Err(Self::empty()),
            },
            Repr::Typed(result) => Err(Self { repr: Repr::Typed(result), limit }),
            Repr::Custom(json) => json.decode().map_err(|_| Self { repr: Repr::Custom(json), limit }),
            Repr::Raw(text) => serde_json::from_str(&text).map_err(|_| Self { repr: Repr::Raw(text), limit }),
        }
    }

    /// Returns whether a tool failed, as its result reports in-band.
    pub fn is_error(&self) -> bool {
        #[derive(Deserialize)]
        struct IsError {
            #[serde(rename = "isError", default)]
            is_error: bool,
        }
        match (&self.repr, self.text()) {
            (Repr::Typed(result), _) => result.is_error(),
            (_, text) => serde_json::from_str::<IsError>(text).is_ok_and(|read| read.is_error),
        }
    }

    /// Returns whether this is a result of the protocol that has not been written yet.
    pub fn is_typed(&self) -> bool {
        matches!(self.repr, Repr::Typed(_))
    }

    /// Returns the `resultType` of this result in the envelope era.
    pub fn result_type(&self) -> Cow<'_, str> {
        match &self.repr {
            Repr::Typed(result) => result.result_type().into(),
            // A `resultType` that is not a string is unknown, and therefore not a final result.
            Repr::Custom(_) | Repr::Raw(_) => wire::result_type_of(self.text()).unwrap_or_default(),
        }
    }

    /// Limits the size of the text. A limit that it already has stays if it is smaller.
    pub(crate) fn limited(mut self, bytes: usize) -> Self {
        self.limit = self.limit.min(bytes);
        self
    }

    /// Returns whether it is finished text, which is neither checked nor changed.
    pub(crate) fn is_raw(&self) -> bool {
        matches!(self.repr, Repr::Raw(_))
    }

    /// Decodes the result as an `R`, if it is text.
    pub(crate) fn read<R: DeserializeOwned>(&self) -> Option<R> {
        self.as_text().and_then(|text| serde_json::from_str(text).ok())
    }

    /// Returns the JSON text of a result that is text.
    pub(crate) fn as_text(&self) -> Option<&str> {
        match &self.repr {
            Repr::Typed(_) => None,
            Repr::Custom(_) | Repr::Raw(_) => Some(self.text()),
        }
    }

    /// Replaces the text. The new text gets `_meta` only if the old one did.
    pub(crate) fn with_text(self, text: String) -> Result<Self, serde_json::Error> {
        match self.repr {
            Repr::Typed(_) | Repr::Raw(_) => Ok(Self::raw(text)),
            Repr::Custom(_) => Ok(Self { repr: Repr::Custom(Json::parse(&text)?), limit: self.limit }),
        }
    }

    /// Returns the JSON of a result that has no type.
    pub(crate) fn text(&self) -> &str {
        match &self.repr {
            Repr::Typed(_) => "{}",
            Repr::Custom(json) => json.as_str(),
            Repr::Raw(text) => text,
        }
    }

    /// Appends the result in the shape of `version`.
    pub(crate) fn write(
        &self,
        out: &mut Vec<u8>,
        version: ProtocolVersion,
        stamp: ResultMeta<'_>,
    ) -> Result<(), serde_json::Error> {
        let start = out.len();
        match &self.repr {
            Repr::Typed(result) => result.write(out, version, stamp)?,
            Repr::Custom(json) => wire::write_custom_result(out, json, version, stamp)?,
            Repr::Raw(text) => out.extend_from_slice(text.as_bytes()),
        }
        let size = out.len() - start;
        if size > self.limit {
            out.truncate(start);
            return self.write_too_large(size, out, version, stamp);
        }
        Ok(())
    }

    /// Writes what takes the place of a result that is too large: of a tool, an error for the model.
    #[cold]
    fn write_too_large(
        &self,
        size: usize,
        out: &mut Vec<u8>,
        version: ProtocolVersion,
        stamp: ResultMeta<'_>,
    ) -> Result<(), serde_json::Error> {
        let limit = self.limit;
        tracing::warn!(size, limit, "a result is larger than the limit");
        if self.downcast_ref::<CallToolResult>().is_none() {
            let text = format!("the result has {size} bytes, and the limit is {limit}");
            return Err(serde::ser::Error::custom(text));
        }
        let text = format!("The result has {size} bytes. The limit is {limit}: request less.");
        wire::write_result(out, &CallToolResult::error(text), version, stamp)
    }
}

impl From<Repr> for Outcome {
    fn from(repr: Repr) -> Self {
        Self { repr, limit: usize::MAX }
    }
}

/// Returns the error for a result that the protocol cannot express. The reason is for the log.
pub(crate) fn invalid_result(reason: &'static str) -> McpError {
    tracing::error!(reason, "a handler returned an invalid result");
    McpError::new(duplexer_types::error::ErrorCode::INTERNAL_ERROR, "Handler returned an invalid result")
}

impl fmt::Debug for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Outcome")
            .field("result_type", &self.result_type())
            .field("is_error", &self.is_error())
            .finish()
    }
}

/// Object-safe form of [`ResultBody`] that can be downcast and written.
trait AnyResult: Any + Send + Sync {
    fn write(
        &self,
        out: &mut Vec<u8>,
        version: ProtocolVersion,
        stamp: ResultMeta<'_>,
    ) -> Result<(), serde_json::Error>;
    fn is_error(&self) -> bool;
    fn result_type(&self) -> &str;
    fn as_any(&self) -> &dyn Any;
    fn as_any_mut(&mut self) -> &mut dyn Any;
    fn into_any(self: Box<Self>) -> Box<dyn Any + Send + Sync>;
}

impl<R: ResultBody> AnyResult for R {
    fn write(
        &self,
        out: &mut Vec<u8>,
        version: ProtocolVersion,
        stamp: ResultMeta<'_>,
    ) -> Result<(), serde_json::Error> {
        wire::write_result(out, self, version, stamp)
    }

    fn is_error(&self) -> bool {
        ResultBody::is_error(self)
    }

    fn result_type(&self) -> &str {
        ResultBody::result_type(self)
    }

    fn as_any(&self) -> &dyn Any {
        self
    }

    fn as_any_mut(&mut self) -> &mut dyn Any {
        self
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any + Send + Sync> {
        self
    }
}
