//! A server asks the user: with a form, or by opening a URL.

use serde::de::Error as _;
use serde::ser::{Error as _, SerializeMap};

use crate::error::{ErrorCode, ErrorObject};
use crate::json::{Json, JsonObject};
use crate::model::{model, open_enum};
use crate::version::feature;
use crate::wire::{Shape, Wire, WireObject};

pub use choice::{Choice, EnumSchema, MultiSelectSchema};
pub use schema::{
    BooleanSchema, FormSchema, NumberKind, NumberSchema, PrimitiveSchema, StringFormat, StringSchema,
};

mod choice;
mod schema;

/// What the user is asked.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(test, derive(arbitrary::Arbitrary))]
#[non_exhaustive]
pub enum ElicitParams {
    /// To fill a form.
    Form(ElicitFormParams),
    /// To open a URL.
    Url(ElicitUrlParams),
    /// Something this library does not know.
    #[cfg_attr(test, arbitrary(skip))]
    Other(JsonObject),
}

model! {
    /// The user is asked to fill a form.
    pub struct ElicitFormParams says "mode" = "form" since V2025_11_25 {
        /// What is asked.
        message: String = "message",
        /// The form.
        requested_schema: FormSchema = "requestedSchema",
    }
}

model! {
    /// The user is asked to open a URL.
    pub struct ElicitUrlParams says "mode" = "url" {
        /// What is asked.
        message: String = "message",
        /// Where to go.
        url: String = "url",
    } optional {
        /// Names the request in `notifications/elicitation/complete` (2025-11-25, which needs it).
        elicitation_id: String = "elicitationId" since V2025_11_25 until V2025_11_25,
    } unless cannot_be_said
}

/// Asking by URL is another question than asking with a form: it is refused where it does not exist.
fn cannot_be_said(params: &ElicitUrlParams, shape: Shape) -> Option<&'static str> {
    if !shape.has(feature::URL_ELICITATION) {
        return Some("this revision cannot ask by URL");
    }
    let needs_id = shape.has(feature::ELICITATION_ID) && shape != Shape::FULL;
    (needs_id && params.elicitation_id.is_none()).then_some("this revision needs an elicitationId")
}

impl ElicitParams {
    /// Asks the user to fill a form.
    pub fn form(message: impl Into<String>, schema: FormSchema) -> Self {
        Self::Form(ElicitFormParams::new(message, schema))
    }

    /// Asks the user to open a URL.
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

/// Without a `mode` it is a form.
impl<'de> serde::Deserialize<'de> for ElicitParams {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let json = Json::object_of(deserializer)?;
        match json.member("mode") {
            None | Some("\"form\"") => json.decode().map(Self::Form),
            Some("\"url\"") => json.decode().map(Self::Url),
            Some(_) => json.decode().map(|members: JsonObject| Self::Other(members)),
        }
        .map_err(D::Error::custom)
    }
}

model! {
    /// What the user answered.
    pub result ElicitResult meta until V2025_11_25 {
        /// What the user did.
        action: ElicitAction = "action",
    } optional {
        /// The filled form: strings, numbers, booleans, arrays of strings.
        #[cfg_attr(test, arbitrary(with = crate::arbitrary::answers))]
        content: JsonObject = "content",
    }
}

open_enum! {
    /// What the user did.
    pub enum ElicitAction {
        /// Answered, or agreed to open the URL.
        Accept = "accept",
        /// Refused.
        Decline = "decline",
        /// Went away.
        Cancel = "cancel",
    }
}

impl ElicitResult {
    /// The form, filled.
    pub fn accept(content: JsonObject) -> Self {
        Self::new(ElicitAction::Accept).content(content)
    }

    /// The user agreed to open the URL.
    pub fn agree() -> Self {
        Self::new(ElicitAction::Accept)
    }

    /// The user refused.
    pub fn decline() -> Self {
        Self::new(ElicitAction::Decline)
    }

    /// The user went away.
    pub fn cancel() -> Self {
        Self::new(ElicitAction::Cancel)
    }
}

model! {
    /// What a URL was opened for has been done (2025-11-25).
    pub struct ElicitationCompleteParams {
        /// Which one.
        elicitation_id: String = "elicitationId",
    }
}

model! {
    /// The user must open URLs before the request can be served (2025-11-25): a request's failure, and the
    /// data of [`ErrorCode::URL_ELICITATION_REQUIRED`].
    pub struct UrlElicitationRequired {
        /// Which ones.
        elicitations: Vec<ElicitUrlParams> = "elicitations",
    }
}

impl UrlElicitationRequired {
    /// The error that says so.
    pub fn error(&self) -> ErrorObject {
        let message = match *self.elicitations {
            [_] | [] => "URL elicitation required",
            _ => "URL elicitations required",
        };
        let mut error = ErrorObject::new(ErrorCode::URL_ELICITATION_REQUIRED, message);
        error.data = Json::encode(self).ok();
        error
    }

    /// Reads it back from a received error.
    pub fn from_error(error: &ErrorObject) -> Option<Self> {
        if error.code == ErrorCode::URL_ELICITATION_REQUIRED { error.data() } else { None }
    }
}
