//! Handlers without the types of their arguments and results, as the catalog stores and runs them.
//!
//! Tools, resources, prompts and completions share one trait. They differ in the input that they borrow from the
//! message and from the catalog entry.

use std::marker::PhantomData;
use std::sync::Arc;

use duplexer_core::dispatch::BoxFuture;
use duplexer_core::error::McpError;

use crate::kernel::context::{Context, StateMap};
use crate::kernel::outcome::Outcome;
use crate::registry::StateSlot;

/// What a handler is run for: one implementation per protocol method.
pub(crate) trait Operation: 'static {
    /// Input, borrowed while the call starts. The future owns what it needs.
    type Input<'a>;
    type Output: Send + 'static;
}

pub(crate) type HandlerFuture<T = Outcome> = BoxFuture<'static, Result<T, McpError>>;

/// A handler whose argument and result types are erased.
pub(crate) trait ErasedHandler<S, Op: Operation>: Send + Sync {
    fn run(&self, cx: Context<S>, input: Op::Input<'_>) -> HandlerFuture<Op::Output>;
}

/// A handler whose state type is erased as well.
pub(crate) type BoundHandler<Op> = Arc<dyn ErasedHandler<StateMap, Op>>;

/// The types that an erased handler does not show.
type Erased<A, Shape, Via> = fn() -> (A, Shape, Via);

/// A function together with the types that its erased form loses: arguments, shape, and kind of output.
pub(crate) struct Typed<H, A, Shape, Via = ()> {
    /// Shared with calls that start later, after a long check.
    pub(crate) handler: Arc<H>,
    types: PhantomData<Erased<A, Shape, Via>>,
}

impl<H, A, Shape, Via> Typed<H, A, Shape, Via> {
    pub(crate) fn new(handler: H) -> Self {
        Self { handler: Arc::new(handler), types: PhantomData }
    }
}

/// A function of the context alone, for items whose messages are passed on as they are.
pub(crate) struct Forwarded<F>(pub(crate) F);

impl<S, Op, F> ErasedHandler<S, Op> for Forwarded<F>
where
    Op: Operation<Output = Outcome>,
    F: Fn(Context<S>) -> HandlerFuture + Send + Sync,
{
    fn run(&self, cx: Context<S>, _: Op::Input<'_>) -> HandlerFuture {
        (self.0)(cx)
    }
}

/// A handler together with the slot that holds its state.
struct Bound<S, Op> {
    handler: Arc<dyn ErasedHandler<S, Op>>,
    slot: StateSlot<S>,
}

impl<S: Send + Sync + 'static, Op: Operation> ErasedHandler<StateMap, Op> for Bound<S, Op> {
    fn run(&self, cx: Context, input: Op::Input<'_>) -> HandlerFuture<Op::Output> {
        match self.slot.context(cx) {
            Ok(cx) => self.handler.run(cx, input),
            Err(error) => failed(error),
        }
    }
}

/// Erases the state type of a handler.
pub(crate) fn bind<S: Send + Sync + 'static, Op: Operation>(
    handler: Arc<dyn ErasedHandler<S, Op>>,
    slot: StateSlot<S>,
) -> BoundHandler<Op> {
    Arc::new(Bound { handler, slot })
}

/// Returns a future that is ready with an error.
pub(crate) fn failed<T: Send + 'static>(error: McpError) -> HandlerFuture<T> {
    Box::pin(std::future::ready(Err(error)))
}
