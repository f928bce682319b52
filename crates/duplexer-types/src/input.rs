//! Multi round-trip requests (envelope era): a result requests input, and the client retries with the responses.

use crate::elicitation::{ElicitParams, ElicitResult};
use crate::json::{Json, JsonObject, Occurrence, find_members};
use crate::model::{model, read_from_json};
use crate::roots::ListRootsResult;
use crate::sampling::{CreateMessageParams, CreateMessageResult};
use crate::version::feature;
use crate::wire::{Shape, Wire, result_type};

model! {
    /// Result that [requests input](https://modelcontextprotocol.io/specification/2026-07-28/basic/patterns/mrtr) from the client, in place of the final result of a
    /// `tools/call`, `prompts/get` or `resources/read` request. Its `resultType` is `input_required`.
    ///
    /// It holds input requests, or a request state, or both.
    ///
    /// ```
    /// use duplexer_types::elicitation::ElicitParams;
    /// use duplexer_types::input::{InputRequest, InputRequiredResult};
    ///
    /// let login = ElicitParams::url("Log in to your calendar.", "https://calendar.example/login");
    /// let asked = InputRequiredResult::asking([("login", InputRequest::Elicit(Box::new(login)))]).request_state("sealed");
    /// assert!(asked.input_requests.unwrap().get("login").is_some());
    /// ```
    #[doc(alias = "tools/call")]
    #[doc(alias = "prompts/get")]
    #[doc(alias = "resources/read")]
    pub result InputRequiredResult {} optional {
        /// The input requests, by keys that the server chooses.
        input_requests: JsonObject<InputRequest> = "inputRequests",
        /// Opaque state of the server, which the client returns verbatim.
        request_state: String = "requestState",
    } unless is_invalid impl {
        fn result_type(&self) -> &str {
            result_type::INPUT_REQUIRED
        }
    }
}

fn is_invalid(result: &InputRequiredResult, shape: Shape) -> Option<&'static str> {
    if !shape.has(feature::ENVELOPE) {
        return Some("this revision cannot ask for input in a result");
    }
    let neither = result.input_requests.is_none() && result.request_state.is_none();
    neither.then_some("nothing is asked for")
}

impl InputRequiredResult {
    /// Creates a result with input requests.
    pub fn asking(requests: impl IntoIterator<Item = (impl Into<String>, InputRequest)>) -> Self {
        Self::new().input_requests(requests.into_iter().collect::<JsonObject<InputRequest>>())
    }

    /// Creates a result with a request state and no input requests.
    pub fn resuming(state: impl Into<String>) -> Self {
        Self::new().request_state(state)
    }
}

/// [Input request](https://modelcontextprotocol.io/specification/2026-07-28/basic/patterns/mrtr) of a server.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(test, derive(arbitrary::Arbitrary))]
#[non_exhaustive]
pub enum InputRequest {
    /// Parameters of an `elicitation/create` request.
    Elicit(Box<ElicitParams>),
    /// Parameters of a `sampling/createMessage` request.
    CreateMessage(Box<CreateMessageParams>),
    /// A `roots/list` request.
    ListRoots,
    /// A request that this library does not know.
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

/// Response of a client to an [`InputRequest`] ([specification](https://modelcontextprotocol.io/specification/2026-07-28/basic/patterns/mrtr)).
///
/// Only its members show which request it answers. A response that cannot be decoded is kept verbatim, so that the
/// server can request the input again.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(test, derive(arbitrary::Arbitrary))]
#[non_exhaustive]
pub enum InputResponse {
    /// Result of an elicitation.
    Elicit(ElicitResult),
    /// Result of sampling.
    CreateMessage(CreateMessageResult),
    /// The roots of the client.
    ListRoots(ListRootsResult),
    /// A response that this library does not know.
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

impl InputResponse {
    #[expect(clippy::unnecessary_wraps, reason = "all types that are read from JSON have this signature")]
    fn read(json: &Json) -> Result<Self, serde_json::Error> {
        let known = match find_members(json.as_str(), ["action", "model", "roots"]).unwrap_or_default() {
            [Occurrence::One(_), ..] => json.decode().ok().map(Self::Elicit),
            [_, Occurrence::One(_), _] => json.decode().ok().map(Self::CreateMessage),
            [.., Occurrence::One(_)] => json.decode().ok().map(Self::ListRoots),
            _ => None,
        };
        Ok(known.unwrap_or_else(|| Self::Other(json.clone())))
    }
}

read_from_json!(InputResponse);
