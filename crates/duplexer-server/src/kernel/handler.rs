//! Handlers: plain async functions. Their types are erased here; the kernel sees an [`Entry`].

use std::any::Any;
use std::marker::PhantomData;
use std::sync::Arc;

use duplexer_types::error::ErrorCode;
use duplexer_types::input::InputRequiredResult;
use duplexer_types::json::{Json, JsonObject};
use duplexer_types::wire::ResultBody;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::kernel::context::{Context, StateMap};
use crate::kernel::outcome::Outcome;
use crate::registry::SlotId;
use crate::schema::arguments::ArgumentSchema;
use crate::schema::validate;
use duplexer_core::dispatch::BoxFuture;
use duplexer_core::error::McpError;

mod sealed {
    pub trait Handler<Shape> {}
    pub trait IntoReply<R> {}
}

/// An async function that handles `Params`, with or without a context as its first parameter.
///
/// Implemented for `async fn(Params) -> Result<R, E>` and `async fn(Context<S>, Params) -> Result<R, E>`.
/// `Shape` distinguishes the two. The trait is sealed: other types cannot implement it.
///
/// ```
/// use duplexer::{Context, McpError, Server};
/// use serde_json::Value;
///
/// async fn plain(params: Value) -> Result<Value, McpError> {
///     Ok(params)
/// }
///
/// async fn with_context(cx: Context<()>, params: Value) -> Result<Value, McpError> {
///     let _ = cx.principal();
///     Ok(params)
/// }
///
/// let server = Server::builder("echo", "1.0.0")
///     .on_custom("com.example/plain", plain)
///     .on_custom("com.example/with_context", with_context)
///     .build()?;
/// # Ok::<_, duplexer::BuildError>(())
/// ```
pub trait Handler<S, Params, Shape>: sealed::Handler<Shape> + Send + Sync + 'static {
    /// The success value of the function.
    type Output;

    /// Calls the function.
    ///
    /// # Errors
    ///
    /// Returns the function's error.
    fn call(
        &self,
        cx: Context<S>,
        params: Params,
    ) -> impl Future<Output = Result<Self::Output, McpError>> + Send + 'static;
}

impl<P, F, Fut> sealed::Handler<fn(P)> for F where F: Fn(P) -> Fut {}

impl<S, P, F, Fut, T, E> Handler<S, P, fn(P)> for F
where
    F: Fn(P) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<T, E>> + Send + 'static,
    E: Into<McpError>,
    T: 'static,
    E: 'static,
{
    type Output = T;

    fn call(&self, _: Context<S>, params: P) -> impl Future<Output = Result<T, McpError>> + Send + 'static {
        let call = self(params);
        async move { call.await.map_err(Into::into) }
    }
}

impl<S, P, F, Fut> sealed::Handler<fn(Context<S>, P)> for F where F: Fn(Context<S>, P) -> Fut {}

impl<S, P, F, Fut, T, E> Handler<S, P, fn(Context<S>, P)> for F
where
    F: Fn(Context<S>, P) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<T, E>> + Send + 'static,
    E: Into<McpError>,
    T: 'static,
    E: 'static,
{
    type Output = T;

    fn call(&self, cx: Context<S>, params: P) -> impl Future<Output = Result<T, McpError>> + Send + 'static {
        let call = self(cx, params);
        async move { call.await.map_err(Into::into) }
    }
}

/// Return type of a handler of a spec method: the result itself, or a [`Reply`] of another kind.
///
/// The trait is sealed: other types cannot implement it.
pub trait IntoReply<R>: sealed::IntoReply<R> {
    /// Converts the value into an outcome.
    fn into_outcome(self) -> Outcome;
}

impl<R: ResultBody> sealed::IntoReply<R> for R {}

impl<R: ResultBody> IntoReply<R> for R {
    fn into_outcome(self) -> Outcome {
        Outcome::of(self)
    }
}

/// A result, or one of the other kinds of response.
///
/// ```
/// use duplexer::server::Reply;
/// use duplexer::types::methods;
/// use duplexer::types::tool::{CallToolParams, CallToolResult};
/// use duplexer::{McpError, Server};
///
/// async fn call(params: CallToolParams) -> Result<Reply<CallToolResult>, McpError> {
///     Ok(Reply::Complete(CallToolResult::text(params.name)))
/// }
///
/// let server = Server::builder("echo", "1.0.0").on(methods::ToolsCall, call).build()?;
/// # Ok::<_, duplexer::BuildError>(())
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub enum Reply<R> {
    /// The method's result.
    Complete(R),
    /// A request for input (envelope era, and only where the method allows it).
    InputRequired(InputRequiredResult),
    /// Any other outcome, such as a result that an extension defines.
    Other(Outcome),
}

impl<R: ResultBody> sealed::IntoReply<R> for Reply<R> {}

impl<R: ResultBody> IntoReply<R> for Reply<R> {
    fn into_outcome(self) -> Outcome {
        match self {
            Self::Complete(result) => Outcome::of(result),
            Self::InputRequired(result) => Outcome::of(result),
            Self::Other(outcome) => outcome,
        }
    }
}

/// A registered handler with its types erased.
pub(crate) trait Entry: Send + Sync {
    /// Decodes the params and calls the handler. For spec methods decoding is the validation.
    fn call(&self, cx: Context<StateMap>) -> BoxFuture<'static, Result<Outcome, McpError>>;
}

/// A handler that decodes its params itself.
pub(crate) struct RawEntry<F>(pub(crate) F);

impl<F> Entry for RawEntry<F>
where
    F: Fn(Context<StateMap>) -> BoxFuture<'static, Result<Outcome, McpError>> + Send + Sync + 'static,
{
    fn call(&self, cx: Context<StateMap>) -> BoxFuture<'static, Result<Outcome, McpError>> {
        (self.0)(cx)
    }
}

/// A typed handler with the lifespan slot of its state.
pub(crate) struct Bound<H, S, P, Shape, Out> {
    handler: Arc<H>,
    slot: SlotId,
    /// The schema of the params of a custom method, so that an error lists every fault.
    schema: Option<ArgumentSchema>,
    types: Types<S, P, Shape, Out>,
}

type Types<S, P, Shape, Out> = PhantomData<fn() -> (S, P, Shape, Out)>;

impl<H, S, P, Shape, Out> Bound<H, S, P, Shape, Out> {
    pub(crate) fn new(handler: H, slot: SlotId) -> Self {
        Self { handler: Arc::new(handler), slot, schema: None, types: PhantomData }
    }

    /// Lists every fault of params that do not follow this schema.
    pub(crate) fn with_schema(self, schema: ArgumentSchema) -> Self {
        Self { schema: Some(schema), ..self }
    }
}

/// Converts the output of a handler into an [`Outcome`]. The implementing type only selects the conversion.
pub(crate) trait ConvertOutput<T>: 'static {
    fn convert(output: T) -> Result<Outcome, McpError>;
}

/// Converts the result of a spec method.
pub(crate) struct Spec<R>(PhantomData<R>);

impl<R: ResultBody, T: IntoReply<R>> ConvertOutput<T> for Spec<R> {
    fn convert(output: T) -> Result<Outcome, McpError> {
        Ok(output.into_outcome())
    }
}

/// Converts the result of a custom method, which must serialise as an object.
pub(crate) struct Custom;

impl<T: Serialize> ConvertOutput<T> for Custom {
    fn convert(output: T) -> Result<Outcome, McpError> {
        Outcome::custom(&output)
    }
}

/// Converts the end of a notification, which has no result.
pub(crate) struct Nothing;

impl ConvertOutput<()> for Nothing {
    fn convert((): ()) -> Result<Outcome, McpError> {
        Ok(Outcome::empty())
    }
}

impl<H, S, P, Shape, Out> Entry for Bound<H, S, P, Shape, Out>
where
    H: Handler<S, P, Shape>,
    S: Any + Send + Sync,
    P: DeserializeOwned + Send + 'static,
    Shape: 'static,
    Out: ConvertOutput<H::Output>,
{
    fn call(&self, cx: Context<StateMap>) -> BoxFuture<'static, Result<Outcome, McpError>> {
        match self.prepare(cx) {
            Ok((cx, params)) => {
                let call = self.handler.call(cx, params);
                Box::pin(async move { Out::convert(call.await?) })
            }
            Err(error) => fail(error),
        }
    }
}

/// Returns a future that is ready with this error.
pub(crate) fn fail<T: Send + 'static>(error: McpError) -> BoxFuture<'static, Result<T, McpError>> {
    Box::pin(std::future::ready(Err(error)))
}

/// Decodes params, or returns -32602 with every violation of their schema.
fn checked<P: DeserializeOwned>(cx: &Context, schema: &ArgumentSchema) -> Result<P, McpError> {
    match cx.params() {
        Ok(params) if !schema.validates_always() => return Ok(params),
        _ => {}
    }
    // Without `_meta`, which is not part of the schema.
    let params: JsonObject = cx.params()?;
    schema.decode(Json::from(params).as_str()).map_err(|violations| {
        let text = validate::report("The params do not fit this method:", &violations);
        McpError::new(ErrorCode::INVALID_PARAMS, text)
    })
}

impl<H, S: Any + Send + Sync, P: DeserializeOwned, Shape, Out> Bound<H, S, P, Shape, Out> {
    fn prepare(&self, cx: Context<StateMap>) -> Result<(Context<S>, P), McpError> {
        let params = match &self.schema {
            Some(schema) => checked(&cx, schema)?,
            None => cx.params()?,
        };
        let cx =
            cx.typed(self.slot).ok_or_else(|| McpError::internal("a handler's state is of another type"))?;
        Ok((cx, params))
    }
}
