//! One round of a request: the answers that came with it, and how to ask for more.

use duplexer::prelude::*;
use duplexer::types::elicitation::{
    BooleanSchema, ElicitAction, ElicitParams, FormSchema, PrimitiveSchema, StringSchema,
};
use duplexer::types::input::{InputRequest, InputResponse};
use duplexer::types::json::Members;
use duplexer::types::sampling::{CreateMessageParams, SamplingMessage};
use serde::Deserialize;

/// What came along with the arguments. An answer of the wrong kind counts as none, so it is asked for again.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Round {
    input_responses: Option<Members<InputResponse>>,
    request_state: Option<String>,
}

impl Round {
    pub(super) fn of(cx: &Context) -> Result<Self, McpError> {
        cx.params()
    }

    /// What was asked to be given back.
    pub(super) fn state(&self) -> Option<&str> {
        self.request_state.as_deref()
    }

    /// A form the user has filled.
    pub(super) fn form(&self, key: &str) -> Option<&Members> {
        match self.answer(key)? {
            InputResponse::Elicit(result) if result.action == ElicitAction::Accept => result.content.as_ref(),
            _ => None,
        }
    }

    /// A field of that form.
    pub(super) fn text(&self, key: &str, field: &str) -> Option<String> {
        self.form(key)?.get(field)?.decode().ok()
    }

    /// What the model has said.
    pub(super) fn said(&self, key: &str) -> Option<String> {
        match self.answer(key)? {
            InputResponse::CreateMessage(result) => {
                Some(result.content.0.iter().filter_map(|block| block.as_text()).collect())
            }
            _ => None,
        }
    }

    /// The URIs of the client's roots.
    pub(super) fn roots(&self, key: &str) -> Option<Vec<&str>> {
        match self.answer(key)? {
            InputResponse::ListRoots(result) => {
                Some(result.roots.iter().map(|root| root.uri.as_str()).collect())
            }
            _ => None,
        }
    }

    fn answer(&self, key: &str) -> Option<&InputResponse> {
        self.input_responses.as_ref()?.get(key)
    }
}

/// A form with one field, which must be filled.
pub(super) fn form(message: &str, field: &str, schema: PrimitiveSchema) -> InputRequest {
    let form = FormSchema::new(Members::new().with(field, schema)).required(vec![field.to_owned()]);
    ElicitParams::form(message, form).into()
}

pub(super) fn text_field() -> PrimitiveSchema {
    PrimitiveSchema::String(StringSchema::new())
}

pub(super) fn boolean() -> PrimitiveSchema {
    PrimitiveSchema::Boolean(BooleanSchema::new())
}

/// A question to the model.
pub(super) fn model(question: &str) -> InputRequest {
    CreateMessageParams::new(vec![SamplingMessage::user(question)], 100_u64).into()
}
