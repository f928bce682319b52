//! What a tool may return, and what that looks like to the model and to programs.

use std::any::{Any, TypeId};
use std::borrow::Cow;
use std::sync::Arc;

use crate::kernel::handler::Reply;
use crate::kernel::outcome::Outcome;
use duplexer_types::content::Content;
use duplexer_types::input::InputRequiredResult;
use duplexer_types::json::Json;
use duplexer_types::tool::CallToolResult;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use super::error::ToolError;
use crate::schema;

/// What a tool may return.
///
/// - Any `Serialize + JsonSchema` value: structured content with an output schema, and the same JSON as text. Where a
///   revision wants an object there, other values are wrapped as `{"result": ..}`.
/// - Text (`String`, `&'static str`, `Cow<'static, str>`): just that. `()`: nothing.
/// - [`Content`], `Vec<Content>`, `[Content; N]`: as it stands.
/// - [`CallToolResult`], or an [`InputRequiredResult`] or [`Reply`] where the whole answer is made by hand.
/// - `Result<T, E>` of any of these, where `E` can become a [`ToolError`].
///
/// `Via` tells the kinds apart and is always inferred. The one case where it cannot be is a `Result` whose error is itself a
/// `JsonSchema`, such as `Result<T, String>`: use [`ToolError`] as the error. (With `#[tool]` that works as well.)
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be the result of a tool",
    label = "not a result",
    note = "a tool returns something that implements `Serialize` and `JsonSchema`, or text, or `Content`, or `CallToolResult`",
    note = "it may return `Result<T, E>` of these, where `E: Into<ToolError>`; for an error type of your own write `impl From<MyError> for ToolError`"
)]
pub trait ToolOutput<Via>: Sized + 'static {
    /// What is known about the output before there is any.
    fn declared() -> OutputSchema;

    /// The output as a result.
    fn into_output(self, declared: &OutputSchema) -> Result<Output, ToolError>;
}

/// What is known about the output of a tool before there is any.
#[derive(Clone, Debug)]
pub struct OutputSchema(Kind);

#[derive(Clone, Debug)]
enum Kind {
    /// Nothing is said about it.
    Free,
    Text,
    Nothing,
    /// It follows this schema.
    Structured(Arc<Value>),
}

impl OutputSchema {
    pub(crate) fn schema(&self) -> Option<&Value> {
        match &self.0 {
            Kind::Structured(schema) => Some(schema),
            Kind::Free | Kind::Text | Kind::Nothing => None,
        }
    }

    /// Whether values are wrapped where structured content is always an object.
    pub(crate) fn is_wrapped(&self) -> bool {
        self.schema().is_some_and(|schema| !schema::is_object(schema))
    }
}

/// What a tool has returned.
#[derive(Debug)]
pub struct Output(pub(crate) Returning);

#[derive(Debug)]
pub(crate) enum Returning {
    /// As it was made by hand.
    Result(CallToolResult),
    /// A value of the declared schema.
    Structured(Json),
    /// A whole answer.
    Outcome(Outcome),
}

/// Any value with a schema.
#[derive(Debug)]
pub struct Structured;
/// Content and results made by hand.
#[derive(Debug)]
pub struct ByHand;
/// A `Result` of something else.
#[derive(Debug)]
pub struct Fallible<Via>(std::marker::PhantomData<Via>);

impl<T: Serialize + JsonSchema + 'static> ToolOutput<Structured> for T {
    fn declared() -> OutputSchema {
        let own = TypeId::of::<T>();
        let is_text =
            [TypeId::of::<String>(), TypeId::of::<&'static str>(), TypeId::of::<Cow<'static, str>>()];
        OutputSchema(if is_text.contains(&own) {
            Kind::Text
        } else if own == TypeId::of::<()>() {
            Kind::Nothing
        } else {
            Kind::Structured(Arc::new(schema::of_output::<T>()))
        })
    }

    fn into_output(self, declared: &OutputSchema) -> Result<Output, ToolError> {
        let returning = match &declared.0 {
            Kind::Nothing => Returning::Result(CallToolResult::new(Vec::new())),
            Kind::Text => Returning::Result(CallToolResult::text(into_text(self))),
            Kind::Free | Kind::Structured(_) => {
                Returning::Structured(Json::encode(&self).map_err(ToolError::internal)?)
            }
        };
        Ok(Output(returning))
    }
}

/// The text of a value that is known to be one.
fn into_text<T: Any>(value: T) -> String {
    // An `Option` can be taken from behind a reference to `Any`, which saves a copy.
    let mut value = Some(value);
    let any: &mut dyn Any = &mut value;
    if let Some(text) = any.downcast_mut::<Option<String>>() {
        text.take().unwrap_or_default()
    } else if let Some(text) = any.downcast_mut::<Option<&'static str>>() {
        text.unwrap_or_default().to_owned()
    } else if let Some(text) = any.downcast_mut::<Option<Cow<'static, str>>>() {
        text.take().unwrap_or_default().into_owned()
    } else {
        String::new()
    }
}

macro_rules! by_hand {
    ($([$($generic:tt)*] $type:ty => |$value:ident| $output:expr;)*) => {$(
        impl<$($generic)*> ToolOutput<ByHand> for $type {
            fn declared() -> OutputSchema {
                OutputSchema(Kind::Free)
            }

            fn into_output(self, _: &OutputSchema) -> Result<Output, ToolError> {
                let $value = self;
                Ok(Output($output))
            }
        }
    )*};
}

by_hand! {
    []               Content             => |one| Returning::Result(CallToolResult::new([one]));
    []               Vec<Content>        => |content| Returning::Result(CallToolResult::new(content));
    [const N: usize] [Content; N]        => |content| Returning::Result(CallToolResult::new(content));
    []               CallToolResult      => |result| Returning::Result(result);
    []               InputRequiredResult => |asking| Returning::Outcome(Outcome::of(asking));
    []               Outcome             => |outcome| Returning::Outcome(outcome);
    []               Reply<CallToolResult> => |reply| Returning::Outcome(
        crate::kernel::handler::IntoReply::into_outcome(reply)
    );
}

impl<T, E, Via> ToolOutput<Fallible<Via>> for Result<T, E>
where
    T: ToolOutput<Via>,
    E: Into<ToolError> + 'static,
{
    fn declared() -> OutputSchema {
        T::declared()
    }

    fn into_output(self, declared: &OutputSchema) -> Result<Output, ToolError> {
        self.map_err(Into::into)?.into_output(declared)
    }
}

/// What a function with `#[tool]` returned: its error, if it can have one, is made a [`ToolError`].
///
/// The inherent method goes before that of [`Settle`], so the type decides and not how it is spelled.
#[derive(Debug)]
pub struct Returned<T>(pub T);

impl<T, E: Into<ToolError>> Returned<Result<T, E>> {
    /// The value or the failure.
    pub fn settle(self) -> Result<T, ToolError> {
        self.0.map_err(Into::into)
    }
}

/// For everything that is not a `Result`.
pub trait Settle {
    /// The type of the value.
    type Value;

    /// The value itself.
    fn settle(self) -> Self::Value;
}

impl<T> Settle for Returned<T> {
    type Value = T;

    fn settle(self) -> T {
        self.0
    }
}
