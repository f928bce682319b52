//! A server of the envelope era asks for input: it answers with what it needs, and the client asks again.

use crate::elicitation::{ElicitParams, ElicitResult};
use crate::json::{Json, JsonObject, Occurrence, find_members};
use crate::model::model;
use crate::roots::ListRootsResult;
use crate::sampling::{CreateMessageParams, CreateMessageResult};
use crate::version::feature;
use crate::wire::{Shape, Wire, result_type};

model! {
    /// The server needs something before it can go on.
    ///
    /// It says what it needs, or what it wants to get back, or both; never neither.
    pub result InputRequiredResult {} optional {
        /// What is needed, each under a name of the server's choice.
        input_requests: JsonObject<InputRequest> = "inputRequests",
        /// What the server wants to get back, as it came.
        request_state: String = "requestState",
    } unless cannot_be_said impl {
        fn result_type(&self) -> &str {
            result_type::INPUT_REQUIRED
        }
    }
}

fn cannot_be_said(result: &InputRequiredResult, shape: Shape) -> Option<&'static str> {
    if !shape.has(feature::ENVELOPE) {
        return Some("this revision cannot ask for input in a result");
    }
    let neither = result.input_requests.is_none() && result.request_state.is_none();
    neither.then_some("nothing is asked for")
}

impl InputRequiredResult {
    /// Asks for input.
    pub fn asking(requests: impl IntoIterator<Item = (impl Into<String>, InputRequest)>) -> Self {
        Self::new().input_requests(requests.into_iter().collect::<JsonObject<InputRequest>>())
    }

    /// Asks to come back with this state.
    pub fn resuming(state: impl Into<String>) -> Self {
        Self::new().request_state(state)
    }
}

/// Something a server needs.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(test, derive(arbitrary::Arbitrary))]
#[non_exhaustive]
pub enum InputRequest {
    /// Ask the user.
    Elicit(Box<ElicitParams>),
    /// Use the model.
    CreateMessage(Box<CreateMessageParams>),
    /// Tell the roots.
    ListRoots,
    /// Something this library does not know.
    #[cfg_attr(test, arbitrary(skip))]
    Other(Json),
}

impl From<ElicitParams> for InputRequest {
    fn from(params: ElicitParams) -> Self {
        Self::Elicit(params.into())
    }
}

impl From<CreateMessageParams> for InputRequest {
    fn from(params: CreateMessageParams) -> Self {
        Self::CreateMessage(params.into())
    }
}

/// What a client gives for an [`InputRequest`].
///
/// On the wire nothing but its members tells what it answers. One that cannot be read is kept as it came,
/// so that the server can ask again.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(test, derive(arbitrary::Arbitrary))]
#[non_exhaustive]
pub enum InputResponse {
    /// What the user answered.
    Elicit(ElicitResult),
    /// What the model said.
    CreateMessage(CreateMessageResult),
    /// The roots.
    ListRoots(ListRootsResult),
    /// Something this library does not know.
    #[cfg_attr(test, arbitrary(skip))]
    Other(Json),
}

impl Wire for InputResponse {
    fn write<S: serde::Serializer>(&self, shape: Shape, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Elicit(result) => result.write(shape, serializer),
            Self::CreateMessage(result) => result.write(shape, serializer),
            Self::ListRoots(result) => result.write(shape, serializer),
            Self::Other(json) => json.write(shape, serializer),
        }
    }
}

impl serde::Serialize for InputResponse {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.write(Shape::FULL, serializer)
    }
}

impl<'de> serde::Deserialize<'de> for InputResponse {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let json = Json::deserialize(deserializer)?;
        let known = match find_members(json.as_str(), ["action", "model", "roots"]).unwrap_or_default() {
            [Occurrence::One(_), ..] => json.decode().ok().map(Self::Elicit),
            [_, Occurrence::One(_), _] => json.decode().ok().map(Self::CreateMessage),
            [.., Occurrence::One(_)] => json.decode().ok().map(Self::ListRoots),
            _ => None,
        };
        Ok(known.unwrap_or(Self::Other(json)))
    }
}
