//! Requests to the user and the client from a handler, with one API for both eras.

use crate::kernel::context::Context;
use duplexer_core::dispatch::NotifyFuture;
use duplexer_core::error::McpError;
use duplexer_types::elicitation::{
    ElicitAction, ElicitParams, ElicitResult, ElicitUrlParams, ElicitationCompleteParams, FormSchema,
    PrimitiveSchema,
};
use duplexer_types::error::ErrorCode;
use duplexer_types::input::{InputRequest, InputResponse};
use duplexer_types::json::{Json, JsonObject};
use duplexer_types::methods;
use duplexer_types::roots::Root;
use duplexer_types::sampling::{CreateMessageParams, CreateMessageResult};
use duplexer_types::version::feature;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;

use crate::catalog::tool::ToolError;
use crate::features::input_rounds::random_id;
use crate::schema::arguments::ArgumentSchema;
use crate::schema::{self, validate};

/// Response of a user to an elicitation.
///
/// ```
/// # use duplexer_server::elicit::Elicited;
/// assert_eq!(Elicited::Accepted(4).ok(), Some(4));
/// assert_eq!(Elicited::<u8>::Declined.accepted().unwrap_err().to_string(), "The user declined to answer.");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Elicited<T> {
    /// The user submitted a value.
    Accepted(T),
    /// The user declined to answer.
    Declined,
    /// The user dismissed the question.
    Cancelled,
}

impl<T> Elicited<T> {
    /// Returns the value, for tools that require one.
    ///
    /// # Errors
    ///
    /// Fails with a text for the model if the user declined or dismissed the question.
    pub fn accepted(self) -> Result<T, ToolError> {
        match self {
            Self::Accepted(value) => Ok(value),
            Self::Declined => Err(ToolError::new("The user declined to answer.")),
            Self::Cancelled => Err(ToolError::new("The user dismissed the question.")),
        }
    }

    /// Returns the value, if there is one.
    pub fn ok(self) -> Option<T> {
        if let Self::Accepted(value) = self { Some(value) } else { None }
    }
}

/// Identifier of an elicitation by URL, from [`Context::elicit_url`].
///
/// Only revision 2025-11-25 has identifiers. In later revisions there is none, and nothing to notify with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ElicitationId(Option<String>);

impl ElicitationId {
    /// Returns the identifier as the client knows it, for a notification outside the request
    /// ([`Connection::elicitation_complete`](crate::Connection::elicitation_complete)).
    pub fn as_str(&self) -> Option<&str> {
        self.0.as_deref()
    }
}

/// Requests to the user and the client, with the mechanism of the client's revision: a request from server to client,
/// or an input-required result that the client answers by repeating its call.
///
/// In the envelope era a handler that asks runs once per round, *from the start*, and receives earlier answers at once;
/// place side effects after the last question. The `key` identifies the question and must be the same in every round.
/// Questions that are awaited together (`tokio::join!`) are sent together.
///
/// ```
/// # use duplexer_server::{Context, tool::ToolError};
/// # use schemars::JsonSchema;
/// # use serde::Deserialize;
/// #[derive(Deserialize, JsonSchema)]
/// struct Booking {
///     /// How many people?
///     guests: u8,
/// }
///
/// async fn book(cx: Context) -> Result<String, ToolError> {
///     let booking: Booking = cx.elicit("booking", "For how many?").await?.accepted()?;
///     Ok(format!("A table for {}.", booking.guests))
/// }
/// ```
impl<S: Send + Sync> Context<S> {
    /// Asks the user to fill in a form: `T` is a struct of texts, numbers, booleans and choices.
    ///
    /// # Errors
    ///
    /// Fails if the client cannot ask its user, if the response does not follow the form, or if `T` is not a form.
    #[doc(alias("elicitation", "ask", "question"))]
    pub async fn elicit<T: DeserializeOwned + JsonSchema>(
        &self,
        key: &str,
        message: impl Into<String>,
    ) -> Result<Elicited<T>, McpError> {
        let (form, schema) = form::<T>()?;
        match self.elicit_form(key, message, form).await? {
            Elicited::Accepted(content) => {
                // A form is flat, so its check takes a few steps per member: no thread is needed.
                let decoded = schema.decode(Json::from(content).as_str());
                decoded.map(Elicited::Accepted).map_err(|violations| {
                    unfit(key, &validate::report("it does not follow the form:", &violations))
                })
            }
            Elicited::Declined => Ok(Elicited::Declined),
            Elicited::Cancelled => Ok(Elicited::Cancelled),
        }
    }

    /// Asks the user to fill in a hand-written form. Unlike [`elicit`](Self::elicit) it does not validate the response.
    ///
    /// # Errors
    ///
    /// Fails if the client cannot ask its user, or accepts without content.
    pub fn elicit_form(
        &self,
        key: &str,
        message: impl Into<String>,
        form: FormSchema,
    ) -> impl Future<Output = Result<Elicited<JsonObject>, McpError>> + Send {
        let params = ElicitParams::form(message, form);
        async move {
            let result = ask_user(self, key, params).await?;
            response(result, |result| {
                result.content.ok_or_else(|| unfit(key, "it was accepted without content"))
            })
        }
    }

    /// Asks the user to open a URL. Acceptance means that the user agreed, not that anything is completed there; when it
    /// is, tell the client with [`elicitation_complete`](Self::elicitation_complete).
    ///
    /// # Errors
    ///
    /// Fails if the client cannot ask its user.
    pub fn elicit_url(
        &self,
        key: &str,
        message: impl Into<String>,
        url: impl Into<String>,
    ) -> impl Future<Output = Result<Elicited<ElicitationId>, McpError>> + Send {
        let has_ids = self.protocol_version().has(feature::ELICITATION_ID);
        let id = ElicitationId(has_ids.then(random_id));
        let mut params = ElicitUrlParams::new(message, url);
        params.elicitation_id.clone_from(&id.0);
        async move {
            let result = ask_user(self, key, ElicitParams::Url(params)).await?;
            response(result, |_| Ok(id))
        }
    }

    /// Notifies the client that what the user had to do at a URL is complete, on the stream of this request.
    ///
    /// Does nothing in revisions without this notification (all but 2025-11-25).
    pub fn elicitation_complete(&self, id: &ElicitationId) -> NotifyFuture {
        match &id.0 {
            Some(id) => {
                self.notify::<methods::ElicitationComplete>(&ElicitationCompleteParams::new(id.as_str()))
            }
            None => NotifyFuture::done(),
        }
    }

    /// Requests a completion from the client's model. Deprecated by the protocol as of 2026-07-28.
    ///
    /// # Errors
    ///
    /// Fails if the client does not support sampling or refuses the request.
    #[doc(alias("sampling", "create_message", "llm"))]
    pub async fn sample(
        &self,
        key: &str,
        params: CreateMessageParams,
    ) -> Result<CreateMessageResult, McpError> {
        match self.ask(key, params).await? {
            InputResponse::CreateMessage(result) => Ok(result),
            _ => Err(unfit(key, "it is of another kind")),
        }
    }

    /// Requests the client's roots. Deprecated by the protocol as of 2026-07-28.
    ///
    /// # Errors
    ///
    /// Fails if the client does not support roots.
    #[doc(alias("list_roots", "folders"))]
    pub async fn roots(&self, key: &str) -> Result<Vec<Root>, McpError> {
        match self.ask(key, InputRequest::ListRoots).await? {
            InputResponse::ListRoots(result) => Ok(result.roots),
            _ => Err(unfit(key, "it is of another kind")),
        }
    }
}

async fn ask_user<S>(cx: &Context<S>, key: &str, params: ElicitParams) -> Result<ElicitResult, McpError> {
    match cx.ask(key, params).await? {
        InputResponse::Elicit(result) => Ok(result),
        _ => Err(unfit(key, "it is of another kind")),
    }
}

fn response<T>(
    result: ElicitResult,
    accepted: impl FnOnce(ElicitResult) -> Result<T, McpError>,
) -> Result<Elicited<T>, McpError> {
    match result.action {
        ElicitAction::Accept => accepted(result).map(Elicited::Accepted),
        ElicitAction::Decline => Ok(Elicited::Declined),
        _ => Ok(Elicited::Cancelled),
    }
}

/// Derives the form of a type. Forms are flat: clients render them.
fn form<T: DeserializeOwned + JsonSchema>() -> Result<(FormSchema, ArgumentSchema), McpError> {
    let unusable =
        |reason: String| McpError::internal(format!("{} is not a form: {reason}", T::schema_name()));
    let generated = schema::of_arguments::<T>().map_err(unusable)?;
    let mut form: FormSchema = generated.listed.decode().map_err(|error| unusable(error.to_string()))?;
    // The protocol defines no other members of a form.
    form.others = JsonObject::new();
    let other = form.properties.iter().find(|(_, field)| matches!(field, PrimitiveSchema::Other(_)));
    match other {
        Some((name, _)) => {
            Err(unusable(format!("'{name}' is neither text, a number, a boolean nor a choice")))
        }
        None => Ok((form, ArgumentSchema::derived(generated))),
    }
}

/// Error for a response of the client that cannot be used.
fn unfit(key: &str, reason: &str) -> McpError {
    McpError::new(ErrorCode::INVALID_PARAMS, format!("The answer to '{key}' cannot be used: {reason}"))
}

#[cfg(test)]
mod tests {
    use duplexer_types::elicitation::Choice;
    use serde::Deserialize;

    use super::*;

    #[derive(Deserialize, JsonSchema)]
    #[expect(dead_code, reason = "only its schema is of interest")]
    struct Flat {
        name: String,
        age: Option<u8>,
        size: Size,
        colours: Vec<Colour>,
    }

    #[derive(Deserialize, JsonSchema)]
    enum Colour {
        #[schemars(title = "Like the sky")]
        Blue,
        #[schemars(title = "Like grass")]
        Green,
    }

    #[derive(Deserialize, JsonSchema)]
    #[serde(rename_all = "lowercase")]
    enum Size {
        Small,
        Large,
    }

    #[derive(Deserialize, JsonSchema)]
    #[expect(dead_code, reason = "only its schema is of interest")]
    struct Nested {
        inner: Flat,
    }

    /// ELI-01, P-ELI-4: fields are primitives or choices, optional fields are not required, and every other type is rejected.
    #[test]
    fn a_form_is_flat() {
        let (flat, _) = form::<Flat>().unwrap();
        assert_eq!(flat.properties.len(), 4);
        let required = ["name", "size", "colours"].map(str::to_owned);
        assert_eq!(flat.required.as_deref(), Some(&required[..]));
        assert!(matches!(flat.properties.get("size"), Some(PrimitiveSchema::Enum(_))));
        let Some(PrimitiveSchema::MultiSelect(colours)) = flat.properties.get("colours") else { panic!() };
        assert_eq!(colours.choices[0], Choice::titled("Blue", "Like the sky"));
        let mistake = form::<Nested>().unwrap_err();
        let cause = std::error::Error::source(&mistake).unwrap().to_string();
        assert_eq!(cause, "Nested is not a form: 'inner' is neither text, a number, a boolean nor a choice");
    }
}
