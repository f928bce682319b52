//! Asking the user and the client, one way in both eras.

use crate::kernel::context::Context;
use duplexer_core::error::McpError;
use duplexer_types::elicitation::{ElicitAction, ElicitParams, ElicitResult, FormSchema, PrimitiveSchema};
use duplexer_types::error::ErrorCode;
use duplexer_types::input::{InputRequest, InputResponse};
use duplexer_types::json::{Json, JsonObject};
use duplexer_types::roots::Root;
use duplexer_types::sampling::{CreateMessageParams, CreateMessageResult};
use schemars::JsonSchema;
use serde::de::DeserializeOwned;

use crate::catalog::tool::ToolError;
use crate::schema::validate::{self, SchemaValidator, Violation};
use crate::{schema, schema::Generated};

/// What a user did with a question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Elicited<T> {
    /// Answered it.
    Accepted(T),
    /// Refused to.
    Declined,
    /// Went away.
    Cancelled,
}

impl<T> Elicited<T> {
    /// The answer, for tools that cannot do without: otherwise the model is told that there was none.
    pub fn accepted(self) -> Result<T, ToolError> {
        match self {
            Self::Accepted(answer) => Ok(answer),
            Self::Declined => Err(ToolError::new("The user declined to answer.")),
            Self::Cancelled => Err(ToolError::new("The user dismissed the question.")),
        }
    }

    /// The answer, if there is one.
    pub fn ok(self) -> Option<T> {
        if let Self::Accepted(answer) = self { Some(answer) } else { None }
    }
}

/// Asking, in whatever way the client's revision has: a request to it, or a result that it answers by asking again.
///
/// In the envelope era a function that asks runs once per round, *from the top*, and finds earlier answers at once; do what
/// must happen once after the last question. The `key` names the question and stays the same from round to round. Questions
/// that are awaited together (`tokio::join!`) are asked together.
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
    /// Asks the user to fill a form: `T` is a struct of texts, numbers, booleans and choices.
    pub async fn elicit<T: DeserializeOwned + JsonSchema>(
        &self,
        key: &str,
        message: &str,
    ) -> Result<Elicited<T>, McpError> {
        let (form, made) = form::<T>()?;
        match self.elicit_form(key, message, form).await? {
            Elicited::Accepted(content) => read(key, &Json::from(content), made).map(Elicited::Accepted),
            Elicited::Declined => Ok(Elicited::Declined),
            Elicited::Cancelled => Ok(Elicited::Cancelled),
        }
    }

    /// Asks the user to fill a form that was made by hand. Unlike [`elicit`](Self::elicit) it does not check the answer.
    pub async fn elicit_form(
        &self,
        key: &str,
        message: &str,
        form: FormSchema,
    ) -> Result<Elicited<JsonObject>, McpError> {
        let result = elicited(self, key, ElicitParams::form(message, form)).await?;
        answered(result, |result| result.content.ok_or_else(|| unfit(key, "it was accepted without content")))
    }

    /// Asks the user to open a URL. An accepted answer says that the user agreed to, not that anything is done there.
    pub async fn elicit_url(&self, key: &str, message: &str, url: &str) -> Result<Elicited<()>, McpError> {
        let result = elicited(self, key, ElicitParams::url(message, url)).await?;
        answered(result, |_| Ok(()))
    }

    /// Uses the client's model. Deprecated by the protocol as of 2026-07-28.
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

    /// Where the client suggests to work. Deprecated by the protocol as of 2026-07-28.
    pub async fn roots(&self) -> Result<Vec<Root>, McpError> {
        match self.ask("roots", InputRequest::ListRoots).await? {
            InputResponse::ListRoots(result) => Ok(result.roots),
            _ => Err(unfit("roots", "it is of another kind")),
        }
    }
}

async fn elicited<S>(cx: &Context<S>, key: &str, params: ElicitParams) -> Result<ElicitResult, McpError> {
    match cx.ask(key, params).await? {
        InputResponse::Elicit(result) => Ok(result),
        _ => Err(unfit(key, "it is of another kind")),
    }
}

fn answered<T>(
    result: ElicitResult,
    accepted: impl FnOnce(ElicitResult) -> Result<T, McpError>,
) -> Result<Elicited<T>, McpError> {
    match result.action {
        ElicitAction::Accept => accepted(result).map(Elicited::Accepted),
        ElicitAction::Decline => Ok(Elicited::Declined),
        _ => Ok(Elicited::Cancelled),
    }
}

/// The form that a type is. Forms are flat: clients draw them.
fn form<T: DeserializeOwned + JsonSchema>() -> Result<(FormSchema, Generated), McpError> {
    let unusable =
        |reason: String| McpError::internal(format!("{} is not a form: {reason}", T::schema_name()));
    let made = schema::of_arguments::<T>().map_err(unusable)?;
    let text = schema::render(&made.value, schema::declared_order::<T>());
    let form: FormSchema = text.decode().map_err(|error| unusable(error.to_string()))?;
    let other = form.properties.iter().find(|(_, field)| matches!(field, PrimitiveSchema::Other(_)));
    match other {
        Some((name, _)) => {
            Err(unusable(format!("'{name}' is neither text, a number, a boolean nor a choice")))
        }
        None => Ok((form, made)),
    }
}

fn read<T: DeserializeOwned>(key: &str, content: &Json, made: Generated) -> Result<T, McpError> {
    let decoded = content.decode::<T>();
    if decoded.is_ok() && !made.demands_more {
        return decoded.map_err(McpError::internal);
    }
    let value = content.decode().map_err(McpError::internal)?;
    let mut faults = SchemaValidator::new(made.value).faults(&value);
    match decoded {
        Ok(decoded) if faults.is_empty() => return Ok(decoded),
        Err(error) if faults.is_empty() => {
            faults.push(Violation { at: String::new(), what: validate::reason(&error) });
        }
        _ => {}
    }
    Err(unfit(key, &validate::report("it does not follow the form:", &faults)))
}

/// The client gave an answer that is none.
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

    /// ELI-01, P-ELI-4: fields are primitives or choices, what is optional is not required, and anything else is the author's mistake.
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
