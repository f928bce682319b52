//! Return types of tools, and how they become results.

use std::any::{Any, TypeId};
use std::borrow::Cow;
use std::marker::PhantomData;
use std::sync::{Arc, LazyLock};

use duplexer_types::content::Content;
use duplexer_types::input::InputRequiredResult;
use duplexer_types::json::Json;
use duplexer_types::tool::CallToolResult;
use schemars::JsonSchema;
use serde::Serialize;

use super::error::ToolError;
use crate::catalog::function::Seal;
use crate::kernel::handler::{IntoReply, Reply};
use crate::kernel::outcome::Outcome;
use crate::schema::{self, GeneratedOutput};

/// Return types of a tool.
///
/// - Any `Serialize + JsonSchema` value: structured content with an output schema, and the same JSON as text. Where a
///   revision requires an object there, other values are wrapped as `{"result": ..}`.
/// - Text (`String`, `&'static str`, `Cow<'static, str>`): text content without a schema. `()`: no content.
/// - [`WithText`]: structured content with an output schema, and a text of your own.
/// - [`Content`], `Vec<Content>`, `[Content; N]`: that content.
/// - [`CallToolResult`], or an [`InputRequiredResult`] or [`Reply`] for complete control over the response.
/// - `Result<T, E>` of any of these, where `E` converts into a [`ToolError`].
///
/// `Via` distinguishes the kinds and is always inferred. The one exception is a `Result` whose error is itself a
/// `JsonSchema`, such as `Result<T, String>`: use [`ToolError`] as the error. (`#[tool]` accepts it as well.)
///
/// The trait is sealed: it cannot be implemented outside this crate.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be the result of a tool",
    label = "not a result",
    note = "a tool returns something that implements `Serialize` and `JsonSchema`, or text, or `Content`, or `CallToolResult`",
    note = "it may return `Result<T, E>` of these, where `E: Into<ToolError>`; for an error type of your own write `impl From<MyError> for ToolError`",
    note = "an error type of another crate cannot have that `impl` (the orphan rule): return `Result<T, ToolError>` and write `.or_show()?`, `.or_show_text(\"..\")?` or `.or_hide()?` (`ResultExt` of the prelude)"
)]
pub trait ToolOutput<Via>: Sized + 'static {
    #[doc(hidden)]
    fn schema() -> OutputSchema;

    #[doc(hidden)]
    fn into_output(self, schema: &OutputSchema, seal: Seal) -> Result<Output, ToolError>;
}

/// What a return type declares about a tool's output.
#[derive(Clone, Debug)]
pub struct OutputSchema(Kind);

#[derive(Clone, Debug)]
enum Kind {
    Unspecified,
    Text,
    Nothing,
    /// Derived on first need.
    Structured(Arc<LazyLock<GeneratedOutput>>),
}

impl OutputSchema {
    pub(super) fn unspecified() -> Self {
        Self(Kind::Unspecified)
    }

    /// Returns the JSON Schema of structured output.
    pub(super) fn structured(&self) -> Option<&GeneratedOutput> {
        match &self.0 {
            Kind::Structured(schema) => Some(schema),
            Kind::Unspecified | Kind::Text | Kind::Nothing => None,
        }
    }

    /// Returns whether values are wrapped for revisions whose structured content is always an object.
    pub(super) fn is_wrapped(&self) -> bool {
        self.structured().is_some_and(|schema| schema.wrapped.is_some())
    }
}

/// A value with a text for the model: structured content with an output schema, and that text instead of the JSON.
///
/// ```
/// # use duplexer_server::tool::{Tool, WithText};
/// let tool: Tool<()> = Tool::new("primes", || async { WithText::new("Three small primes.", [2, 3, 5]) });
/// # let _ = tool;
/// ```
#[derive(Clone, Debug)]
pub struct WithText<T> {
    text: String,
    value: T,
}

impl<T> WithText<T> {
    /// Creates an output from a text and a value.
    pub fn new(text: impl Into<String>, value: T) -> Self {
        Self { text: text.into(), value }
    }
}

/// Output of a tool before it is shaped for a revision.
#[derive(Debug)]
pub struct Output(pub(super) Returning);

#[derive(Debug)]
pub(super) enum Returning {
    /// A result that the function built itself.
    Result(CallToolResult),
    /// A value of the declared schema, and a text for the model. Without one the text is the JSON.
    Structured(Json, Option<String>),
    /// A complete outcome.
    Outcome(Outcome),
}

/// Kind of outputs: values with a schema.
#[derive(Debug)]
pub struct Structured;
/// Kind of outputs: content and results that the function builds itself.
#[derive(Debug)]
pub struct Manual;
/// Kind of outputs: a `Result` of another kind.
#[derive(Debug)]
pub struct Fallible<Via>(PhantomData<Via>);

impl<T: Serialize + JsonSchema + 'static> ToolOutput<Structured> for T {
    fn schema() -> OutputSchema {
        let own = TypeId::of::<T>();
        let text_types =
            [TypeId::of::<String>(), TypeId::of::<&'static str>(), TypeId::of::<Cow<'static, str>>()];
        OutputSchema(if text_types.contains(&own) {
            Kind::Text
        } else if own == TypeId::of::<()>() {
            Kind::Nothing
        } else {
            Kind::Structured(Arc::new(LazyLock::new(schema::of_output::<T>)))
        })
    }

    fn into_output(self, schema: &OutputSchema, _: Seal) -> Result<Output, ToolError> {
        let returning = match &schema.0 {
            Kind::Nothing => Returning::Result(CallToolResult::new(Vec::new())),
            Kind::Text => Returning::Result(CallToolResult::text(into_text(self))),
            Kind::Unspecified | Kind::Structured(_) => {
                Returning::Structured(Json::encode(&self).map_err(ToolError::internal)?, None)
            }
        };
        Ok(Output(returning))
    }
}

/// Converts a value that is known to be a text type.
fn into_text<T: Any>(value: T) -> String {
    // An `Option` can be taken through `&mut dyn Any`, which avoids a copy of the text.
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

macro_rules! manual {
    ($([$($generic:tt)*] $type:ty => |$value:ident| $output:expr;)*) => {$(
        impl<$($generic)*> ToolOutput<Manual> for $type {
            fn schema() -> OutputSchema {
                OutputSchema::unspecified()
            }

            fn into_output(self, _: &OutputSchema, _: Seal) -> Result<Output, ToolError> {
                let $value = self;
                Ok(Output($output))
            }
        }
    )*};
}

manual! {
    []               Content               => |one| Returning::Result(CallToolResult::new([one]));
    []               Vec<Content>          => |content| Returning::Result(CallToolResult::new(content));
    [const N: usize] [Content; N]          => |content| Returning::Result(CallToolResult::new(content));
    []               CallToolResult        => |result| Returning::Result(result);
    []               InputRequiredResult   => |required| Returning::Outcome(Outcome::of(required));
    []               Outcome               => |outcome| Returning::Outcome(outcome);
    []               Reply<CallToolResult> => |reply| Returning::Outcome(reply.into_outcome());
}

impl<T: Serialize + JsonSchema + 'static> ToolOutput<Manual> for WithText<T> {
    fn schema() -> OutputSchema {
        OutputSchema(Kind::Structured(Arc::new(LazyLock::new(schema::of_output::<T>))))
    }

    fn into_output(self, _: &OutputSchema, _: Seal) -> Result<Output, ToolError> {
        let value = Json::encode(&self.value).map_err(ToolError::internal)?;
        Ok(Output(Returning::Structured(value, Some(self.text))))
    }
}

impl<T, E, Via> ToolOutput<Fallible<Via>> for Result<T, E>
where
    T: ToolOutput<Via>,
    E: Into<ToolError> + 'static,
{
    fn schema() -> OutputSchema {
        T::schema()
    }

    fn into_output(self, schema: &OutputSchema, seal: Seal) -> Result<Output, ToolError> {
        self.map_err(Into::into)?.into_output(schema, seal)
    }
}

/// Return value of a function with `#[tool]`. The error of a `Result` is converted into a [`ToolError`].
///
/// The inherent method takes precedence over that of [`PassThrough`], so the type decides and not its spelling.
#[derive(Debug)]
pub struct Returned<T>(pub T);

impl<T, E: Into<ToolError>> Returned<Result<T, E>> {
    /// Converts the error.
    ///
    /// # Errors
    ///
    /// Fails if the wrapped result is an error.
    pub fn output(self) -> Result<T, ToolError> {
        self.0.map_err(Into::into)
    }
}

/// The counterpart of [`Returned::output`] for all types but `Result`.
pub trait PassThrough {
    /// Type of the value.
    type Value;

    /// Returns the value unchanged.
    fn output(self) -> Self::Value;
}

impl<T> PassThrough for Returned<T> {
    type Value = T;

    fn output(self) -> T {
        self.0
    }
}
