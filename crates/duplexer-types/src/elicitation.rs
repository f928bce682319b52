//! Elicitation: a server requests input from the user, through a form or a URL.

use serde::ser::{Error as _, SerializeMap};

use crate::error::{ErrorCode, ErrorObject};
use crate::json::{Json, JsonObject};
use crate::model::{model, open_enum, read_from_json};
use crate::version::feature;
use crate::wire::{Shape, Wire, WireObject};

pub use answer::InvalidAnswer;
pub use choice::{Choice, EnumSchema, MultiSelectSchema};
pub use schema::{
    BooleanSchema, FormSchema, NumberKind, NumberSchema, PrimitiveSchema, StringFormat, StringSchema,
};

mod answer;
mod choice;
mod schema;

/// Parameters of an [`elicitation/create`](https://modelcontextprotocol.io/specification/2026-07-28/client/elicitation#creating-elicitation-requests) request.
///
/// ```
/// use duplexer_types::elicitation::{ElicitParams, FormSchema, NumberKind, NumberSchema, PrimitiveSchema};
/// use duplexer_types::json::JsonObject;
///
/// let guests = PrimitiveSchema::Number(NumberSchema::new(NumberKind::Integer).minimum(1.0));
/// let form = FormSchema::new(JsonObject::new().with("guests", guests)).required(["guests".to_owned()]);
/// let question = ElicitParams::form("For how many?", form);
/// ```
#[doc(alias = "elicitation/create")]
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(test, derive(arbitrary::Arbitrary))]
#[non_exhaustive]
pub enum ElicitParams {
    /// Form mode.
    Form(ElicitFormParams),
    /// URL mode.
    Url(ElicitUrlParams),
    /// A mode that this library does not know.
    #[cfg_attr(test, arbitrary(skip))]
    Other(JsonObject),
}

model! {
    /// Parameters of an `elicitation/create` request in [form mode](https://modelcontextprotocol.io/specification/2026-07-28/client/elicitation#form-mode-elicitation-requests).
    pub struct ElicitFormParams const "mode" = "form" since V2025_11_25 {
        /// Message that explains the request to the user.
        message: String = "message",
        /// Schema of the form.
        requested_schema: FormSchema = "requestedSchema",
    }
}

model! {
    /// Parameters of an `elicitation/create` request in [URL mode](https://modelcontextprotocol.io/specification/2026-07-28/client/elicitation#url-mode-elicitation-requests).
    pub struct ElicitUrlParams const "mode" = "url" {
        /// Message that explains the request to the user.
        message: String = "message",
        /// URL that the user opens.
        url: String = "url",
    } optional {
        /// Identifier of the elicitation in `notifications/elicitation/complete` (2025-11-25, where it is required).
        elicitation_id: String = "elicitationId" since V2025_11_25 until V2025_11_25,
    } unless is_unsupported
}

/// URL mode cannot be converted to form mode, so revisions without it reject the request.
fn is_unsupported(params: &ElicitUrlParams, shape: Shape) -> Option<&'static str> {
    if !shape.has(feature::URL_ELICITATION) {
        return Some("this revision cannot ask by URL");
    }
    let needs_id = shape.has(feature::ELICITATION_ID) && shape != Shape::FULL;
    (needs_id && params.elicitation_id.is_none()).then_some("this revision needs an elicitationId")
}

impl ElicitParams {
    /// Creates a request in form mode.
    pub fn form(message: impl Into<String>, schema: FormSchema) -> Self {
        Self::Form(ElicitFormParams::new(message, schema))
    }

    /// Creates a request in URL mode.
    pub fn url(message: impl Into<String>, url: impl Into<String>) -> Self {
        Self::Url(ElicitUrlParams::new(message, url))
    }
}

impl Wire for ElicitParams {
    fn write<S: serde::Serializer>(&self, shape: Shape, serializer: S) -> Result<S::Ok, S::Error> {
        crate::wire::object(self, shape, serializer)
    }
}

impl WireObject for ElicitParams {
    fn members<M: SerializeMap>(&self, shape: Shape, map: &mut M) -> Result<(), M::Error> {
        match self {
            Self::Form(params) => params.members(shape, map),
            Self::Url(params) => params.members(shape, map),
            Self::Other(members) if shape.has(feature::URL_ELICITATION) => {
                members.iter().try_for_each(|(name, value)| map.serialize_entry(name, value))
            }
            Self::Other(_) => Err(M::Error::custom("this revision asks with forms only")),
        }
    }
}

impl serde::Serialize for ElicitParams {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.write(Shape::FULL, serializer)
    }
}

impl ElicitParams {
    /// Form mode is the default.
    fn read(json: &Json) -> Result<Self, serde_json::Error> {
        match json.member("mode") {
            None | Some("\"form\"") => json.decode().map(Self::Form),
            Some("\"url\"") => json.decode().map(Self::Url),
            Some(_) => json.decode().map(|members: JsonObject| Self::Other(members)),
        }
    }
}

read_from_json!(object ElicitParams);

model! {
    /// Result of an [`elicitation/create`](https://modelcontextprotocol.io/specification/2026-07-28/client/elicitation#response-actions) request.
    ///
    /// ```
    /// use duplexer_types::elicitation::{ElicitAction, ElicitResult};
    /// use serde_json::json;
    ///
    /// let answer = ElicitResult::accept(json!({"guests": 4}));
    /// assert_eq!(answer.action, ElicitAction::Accept);
    /// assert_eq!(ElicitResult::decline().content, None);
    /// ```
    #[doc(alias = "elicitation/create")]
    pub result ElicitResult meta until V2025_11_25 {
        /// Action of the user.
        action: ElicitAction = "action",
    } optional {
        /// Data of the submitted form: strings, numbers, booleans, arrays of strings.
        #[cfg_attr(test, arbitrary(with = crate::arbitrary::answers))]
        content: JsonObject = "content",
    }
}

open_enum! {
    /// [Action](https://modelcontextprotocol.io/specification/2026-07-28/client/elicitation#response-actions) of the user.
    pub enum ElicitAction {
        /// The user submitted the form, or consented to open the URL.
        Accept = "accept",
        /// The user declined.
        Decline = "decline",
        /// The user dismissed the request.
        Cancel = "cancel",
    }
}

impl ElicitResult {
    /// Creates the result of a submitted form: `ElicitResult::accept(json!({"guests": 4}))`.
    ///
    /// Content that is not an object is empty content. [`FormSchema::check`] finds values that do not fit the form.
    pub fn accept(content: impl Into<Json>) -> Self {
        Self::new(ElicitAction::Accept).content(content.into().decode::<JsonObject>().unwrap_or_default())
    }

    /// Creates the result of a user who consents to open the URL.
    pub fn agree() -> Self {
        Self::new(ElicitAction::Accept)
    }

    /// Creates the result of a user who declines.
    pub fn decline() -> Self {
        Self::new(ElicitAction::Decline)
    }

    /// Creates the result of a user who dismisses the request.
    pub fn cancel() -> Self {
        Self::new(ElicitAction::Cancel)
    }
}

model! {
    /// Parameters of a
    /// [`notifications/elicitation/complete`](https://modelcontextprotocol.io/specification/2025-11-25/client/elicitation#completion-notifications-for-url-mode-elicitation)
    /// notification (2025-11-25).
    #[doc(alias = "notifications/elicitation/complete")]
    pub struct ElicitationCompleteParams {
        /// Identifier of the completed elicitation.
        elicitation_id: String = "elicitationId",
    }
}

model! {
    /// Data of [`ErrorCode::URL_ELICITATION_REQUIRED`]: the user must open URLs before the request can be processed
    /// ([2025-11-25](https://modelcontextprotocol.io/specification/2025-11-25/client/elicitation#url-elicitation-required-error)).
    pub struct UrlElicitationRequired {
        /// The required elicitations.
        elicitations: Vec<ElicitUrlParams> = "elicitations",
    }
}

impl UrlElicitationRequired {
    /// Returns the error with this data.
    pub fn error(&self) -> ErrorObject {
        let message = match *self.elicitations {
            [_] | [] => "URL elicitation required",
            _ => "URL elicitations required",
        };
        let mut error = ErrorObject::new(ErrorCode::URL_ELICITATION_REQUIRED, message);
        error.data = Json::encode(self).ok();
        error
    }

    /// Reads the data of a received error.
    pub fn from_error(error: &ErrorObject) -> Option<Self> {
        if error.code == ErrorCode::URL_ELICITATION_REQUIRED { error.data() } else { None }
    }
}
