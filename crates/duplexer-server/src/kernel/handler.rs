//! Handlers: plain async functions. Their types end here; the kernel sees an [`Entry`].

use std::any::Any;
use std::marker::PhantomData;
use std::sync::Arc;

use duplexer_types::input::InputRequiredResult;
use duplexer_types::wire::ResultBody;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::kernel::context::{Context, StateMap};
use crate::kernel::outcome::Outcome;
use crate::registry::SlotId;
use duplexer_core::dispatch::BoxFuture;
use duplexer_core::error::McpError;

/// A handler of `Params`, with or without a context in front.
///
/// Implemented for `async fn(Params) -> Result<R, E>` and `async fn(Context<S>, Params) -> Result<R, E>`.
/// `Shape` only tells the two apart.
pub trait Handler<S, Params, Shape>: Send + Sync + 'static {
    /// What the function returns when all is well.
    type Output;

    /// Calls the function.
    fn call(
        &self,
        cx: Context<S>,
        params: Params,
    ) -> impl Future<Output = Result<Self::Output, McpError>> + Send + 'static;
}

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

/// What a handler of a spec method may return: its result, or a [`Reply`] of another kind.
pub trait IntoReply<R> {
    /// The result on its way to the wire.
    fn into_outcome(self) -> Outcome;
}

impl<R: ResultBody> IntoReply<R> for R {
    fn into_outcome(self) -> Outcome {
        Outcome::of(self)
    }
}

/// A result, or one of the other ways to answer.
#[derive(Debug)]
#[non_exhaustive]
pub enum Reply<R> {
    /// The method's result.
    Complete(R),
    /// Input is needed first (envelope era, and only where the method allows it).
    InputRequired(InputRequiredResult),
    /// Anything else, such as a result that an extension defines.
    Other(Outcome),
}

impl<R: ResultBody> IntoReply<R> for Reply<R> {
    fn into_outcome(self) -> Outcome {
        match self {
            Self::Complete(result) => Outcome::of(result),
            Self::InputRequired(result) => Outcome::of(result),
            Self::Other(outcome) => outcome,
        }
    }
}

/// A registered handler, as the kernel sees it.
pub(crate) trait Entry: Send + Sync {
    /// Decodes the params and calls the handler. For spec methods the decode is the validation.
    fn call(&self, cx: Context<StateMap>) -> BoxFuture<'static, Result<Outcome, McpError>>;
}

/// A handler that reads its params itself.
pub(crate) struct RawEntry<F>(pub(crate) F);

impl<F> Entry for RawEntry<F>
where
    F: Fn(Context<StateMap>) -> BoxFuture<'static, Result<Outcome, McpError>> + Send + Sync + 'static,
{
    fn call(&self, cx: Context<StateMap>) -> BoxFuture<'static, Result<Outcome, McpError>> {
        (self.0)(cx)
    }
}

/// Where a handler finds its state: which lifespan slot it was registered under.
pub(crate) struct Bound<H, S, P, Shape, Out> {
    handler: Arc<H>,
    slot: SlotId,
    types: Types<S, P, Shape, Out>,
}

type Types<S, P, Shape, Out> = PhantomData<fn() -> (S, P, Shape, Out)>;

impl<H, S, P, Shape, Out> Bound<H, S, P, Shape, Out> {
    pub(crate) fn new(handler: H, slot: SlotId) -> Self {
        Self { handler: Arc::new(handler), slot, types: PhantomData }
    }
}

/// The result of a spec method.
pub(crate) struct Spec<R>(PhantomData<R>);
/// The result of a custom method: whatever serialises as an object.
pub(crate) struct Custom;
/// A notification has no result.
pub(crate) struct Nothing;

impl<H, S, P, Shape, R> Entry for Bound<H, S, P, Shape, Spec<R>>
where
    H: Handler<S, P, Shape>,
    H::Output: IntoReply<R> + Send,
    S: Any + Send + Sync,
    P: DeserializeOwned + Send + 'static,
    R: ResultBody,
    Shape: 'static,
{
    fn call(&self, cx: Context<StateMap>) -> BoxFuture<'static, Result<Outcome, McpError>> {
        match self.prepare(cx) {
            Ok((cx, params)) => {
                let call = self.handler.call(cx, params);
                Box::pin(async move { call.await.map(IntoReply::into_outcome) })
            }
            Err(error) => Box::pin(std::future::ready(Err(error))),
        }
    }
}

impl<H, S, P, Shape> Entry for Bound<H, S, P, Shape, Custom>
where
    H: Handler<S, P, Shape>,
    H::Output: Serialize + Send,
    S: Any + Send + Sync,
    P: DeserializeOwned + Send + 'static,
    Shape: 'static,
{
    fn call(&self, cx: Context<StateMap>) -> BoxFuture<'static, Result<Outcome, McpError>> {
        match self.prepare(cx) {
            Ok((cx, params)) => {
                let call = self.handler.call(cx, params);
                Box::pin(async move { Outcome::custom(&call.await?) })
            }
            Err(error) => Box::pin(std::future::ready(Err(error))),
        }
    }
}

impl<H, S, P, Shape> Entry for Bound<H, S, P, Shape, Nothing>
where
    H: Handler<S, P, Shape, Output = ()>,
    S: Any + Send + Sync,
    P: DeserializeOwned + Send + 'static,
    Shape: 'static,
{
    fn call(&self, cx: Context<StateMap>) -> BoxFuture<'static, Result<Outcome, McpError>> {
        match self.prepare(cx) {
            Ok((cx, params)) => {
                let call = self.handler.call(cx, params);
                Box::pin(async move { call.await.map(|()| Outcome::empty()) })
            }
            Err(error) => Box::pin(std::future::ready(Err(error))),
        }
    }
}

impl<H, S: Any + Send + Sync, P: DeserializeOwned, Shape, Out> Bound<H, S, P, Shape, Out> {
    fn prepare(&self, cx: Context<StateMap>) -> Result<(Context<S>, P), McpError> {
        let params = cx.params()?;
        let cx =
            cx.typed(self.slot).ok_or_else(|| McpError::internal("a handler's state is of another type"))?;
        Ok((cx, params))
    }
}
