//! What travels back through the middleware: a typed result without its type, shaped only when it is written.

use std::any::Any;
use std::borrow::Cow;
use std::fmt;

use bytestring::ByteString;
use duplexer_types::json::Json;
use duplexer_types::lifecycle::EmptyResult;
use duplexer_types::version::ProtocolVersion;
use duplexer_types::wire::{self, ResultBody, ResultMeta};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use duplexer_core::error::McpError;

/// The result of a request on its way to the wire.
pub struct Outcome(Repr);

enum Repr {
    /// Shaped for its revision and stamped while it is written.
    Typed(Box<dyn AnyResult>),
    /// The result of a custom method: an object that is stamped but otherwise left as it is.
    Custom(Json),
    /// Finished JSON: rendered earlier, or made by someone who owns the whole envelope.
    Raw(ByteString),
}

impl Outcome {
    /// A result of the protocol.
    pub fn of<R: ResultBody>(result: R) -> Self {
        Self(Repr::Typed(Box::new(result)))
    }

    /// A result without content.
    pub fn empty() -> Self {
        Self::of(EmptyResult::new())
    }

    /// The result of a custom method. It must serialise as an object, or as nothing.
    pub fn custom<T: Serialize + ?Sized>(value: &T) -> Result<Self, McpError> {
        let json = Json::encode(value).map_err(|error| {
            tracing::error!(%error, "a handler's result cannot be written as JSON");
            invalid_result("it cannot be written")
        })?;
        if json.is_null() {
            return Ok(Self::empty());
        }
        if json.is_object() {
            Ok(Self(Repr::Custom(json)))
        } else {
            Err(invalid_result("it is not an object"))
        }
    }

    /// JSON text of a whole result: neither shaped nor stamped. Whoever makes it owns its envelope.
    pub fn raw(text: impl Into<ByteString>) -> Self {
        Self(Repr::Raw(text.into()))
    }

    /// The result as an `R`, if that is what it is.
    pub fn downcast_ref<R: ResultBody>(&self) -> Option<&R> {
        match &self.0 {
            Repr::Typed(result) => result.as_any().downcast_ref(),
            Repr::Custom(_) | Repr::Raw(_) => None,
        }
    }

    /// The result as an `R` that can be changed, if that is what it is.
    pub fn downcast_mut<R: ResultBody>(&mut self) -> Option<&mut R> {
        match &mut self.0 {
            Repr::Typed(result) => result.as_any_mut().downcast_mut(),
            Repr::Custom(_) | Repr::Raw(_) => None,
        }
    }

    /// The result as an `R`: taken out if it is one, read from its text if it was rendered earlier.
    pub fn into_typed<R: ResultBody + DeserializeOwned>(self) -> Result<R, Self> {
        match self.0 {
            Repr::Typed(result) if result.as_any().is::<R>() => match result.into_any().downcast::<R>() {
                Ok(result) => Ok(*result),
                // Looked at one line above; there is no result to give back any more.
                Err(_) => Err(Self::empty()),
            },
            Repr::Typed(result) => Err(Self(Repr::Typed(result))),
            Repr::Custom(json) => json.decode().map_err(|_| Self(Repr::Custom(json))),
            Repr::Raw(text) => serde_json::from_str(&text).map_err(|_| Self(Repr::Raw(text))),
        }
    }

    /// Whether a tool failed, told in-band.
    pub fn is_error(&self) -> bool {
        #[derive(Deserialize)]
        struct Told {
            #[serde(rename = "isError", default)]
            is_error: bool,
        }
        match (&self.0, self.text()) {
            (Repr::Typed(result), _) => result.is_error(),
            (_, text) => serde_json::from_str::<Told>(text).is_ok_and(|told| told.is_error),
        }
    }

    /// The `resultType` this result has in the envelope era.
    pub fn result_type(&self) -> Cow<'_, str> {
        match &self.0 {
            Repr::Typed(result) => result.result_type().into(),
            // A `resultType` that is not a string is whatever its maker meant, but not a final result.
            Repr::Custom(_) | Repr::Raw(_) => wire::result_type_of(self.text()).unwrap_or_default(),
        }
    }

    /// Whether it is finished text, which is neither looked at nor changed any more.
    pub(crate) fn is_raw(&self) -> bool {
        matches!(self.0, Repr::Raw(_))
    }

    /// The result as an `R`, read from its text if it was rendered earlier.
    pub(crate) fn read<R: DeserializeOwned>(&self) -> Option<R> {
        self.as_text().and_then(|text| serde_json::from_str(text).ok())
    }

    /// The JSON text of a result that is text already.
    pub(crate) fn as_text(&self) -> Option<&str> {
        match &self.0 {
            Repr::Typed(_) => None,
            Repr::Custom(_) | Repr::Raw(_) => Some(self.text()),
        }
    }

    /// The same with another text, to be stamped or left alone as it was.
    pub(crate) fn with_text(self, text: String) -> Result<Self, serde_json::Error> {
        match self.0 {
            Repr::Typed(_) | Repr::Raw(_) => Ok(Self::raw(text)),
            Repr::Custom(_) => Ok(Self(Repr::Custom(Json::parse(&text)?))),
        }
    }

    /// The JSON of a result that has no type.
    pub(crate) fn text(&self) -> &str {
        match &self.0 {
            Repr::Typed(_) => "{}",
            Repr::Custom(json) => json.as_str(),
            Repr::Raw(text) => text,
        }
    }

    /// Appends the result as `version` has it.
    pub(crate) fn write(
        &self,
        out: &mut Vec<u8>,
        version: ProtocolVersion,
        stamp: ResultMeta<'_>,
    ) -> Result<(), serde_json::Error> {
        match &self.0 {
            Repr::Typed(result) => result.write(out, version, stamp),
            Repr::Custom(json) => wire::write_custom_result(out, json, version, stamp),
            Repr::Raw(text) => {
                out.extend_from_slice(text.as_bytes());
                Ok(())
            }
        }
    }
}

/// What the peer sees when a handler's result cannot be said; the reason is for the log.
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

/// [`ResultBody`] as an object that can be told apart and written.
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
