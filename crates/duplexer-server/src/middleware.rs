//! Middleware: code around every message, requests and notifications alike.
//!
//! It may look, rewrite, answer by itself, or veto. The first registered is outermost. It also sees the opening
//! of a connection, methods nobody knows, and params that do not fit.

mod builtin;

use std::sync::Arc;

use crate::features::input_rounds::Attended;
use crate::kernel::context::{Context, StateMap};
use crate::kernel::outcome::Outcome;
use crate::kernel::runner;
use duplexer_core::dispatch::{BoxFuture, Invocation};
use duplexer_core::error::McpError;

pub use builtin::{ConcurrencyLimit, Logging, Timeout};

/// Code around every message. Any `async fn(Context, Invocation, Next) -> Result<Outcome, McpError>` is one.
pub trait Middleware: Send + Sync + 'static {
    /// Handles the message, by calling `next` or otherwise. What a notification returns is ignored.
    fn handle(
        &self,
        cx: Context,
        message: Invocation,
        next: Next,
    ) -> BoxFuture<'static, Result<Outcome, McpError>>;
}

impl<F, Fut> Middleware for F
where
    F: Fn(Context, Invocation, Next) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<Outcome, McpError>> + Send + 'static,
{
    fn handle(
        &self,
        cx: Context,
        message: Invocation,
        next: Next,
    ) -> BoxFuture<'static, Result<Outcome, McpError>> {
        Box::pin(self(cx, message, next))
    }
}

/// What lies further in: the next middleware, and in the end the handler.
#[derive(Debug)]
pub struct Next {
    depth: usize,
}

impl Next {
    pub(crate) fn outermost() -> Self {
        Self { depth: 0 }
    }

    /// Goes on with the message, which may be another than came in.
    pub fn run(
        self,
        cx: Context<StateMap>,
        message: Invocation,
    ) -> BoxFuture<'static, Result<Outcome, McpError>> {
        self.enter(cx.with_message(Arc::new(message))).boxed()
    }

    /// Goes on with the message of the context; only middleware gets one of its own.
    pub(crate) fn enter(self, cx: Context<StateMap>) -> Attended {
        let layer = cx.server().registry().middleware.get(self.depth).map(Arc::clone);
        match layer {
            Some(layer) => {
                let message = cx.message().clone();
                layer.handle(cx, message, Self { depth: self.depth + 1 }).into()
            }
            None => runner::innermost(cx),
        }
    }
}
