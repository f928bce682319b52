//! Spans around what a server is asked and told.

use std::borrow::Cow;

use duplexer_core::dispatch::{BoxFuture, Invocation};
use duplexer_core::error::McpError;
use duplexer_server::middleware::{Middleware, Next};
use duplexer_server::{Context, Outcome};
use duplexer_types::error::ErrorObject;
use duplexer_types::methods::Method;
use opentelemetry::baggage::BaggageExt as _;
use opentelemetry::context::FutureExt as _;
use opentelemetry::global::BoxedSpan;
use opentelemetry::trace::{Span as _, SpanKind, TracerProvider};
use opentelemetry::{Context as OtelContext, KeyValue};

use crate::span::{Answered, Ending, REQUEST_ID, Tracer, describe, short};
use crate::w3c;

/// Middleware that traces every request and notification. Add it first, so that it is outermost.
///
/// A span is called `tools/call echo` after its method and the `name` in its params. It is a child of the span that
/// the message names in `_meta`, or else of the current one, and it is current itself while the handler runs. A
/// sampler decides by the method; the rest is described only on spans that are recorded.
#[derive(Clone, Debug)]
pub struct OtelMiddleware {
    tracer: Tracer,
}

impl OtelMiddleware {
    /// Traces with the global provider as it is now: set that first.
    pub fn new() -> Self {
        Self { tracer: Tracer::global() }
    }

    /// Traces with this provider.
    pub fn with_provider<P>(provider: &P) -> Self
    where
        P: TracerProvider,
        P::Tracer: Send + Sync + 'static,
        <P::Tracer as opentelemetry::trace::Tracer>::Span: Send + Sync + 'static,
    {
        Self { tracer: Tracer::of(provider) }
    }
}

impl Default for OtelMiddleware {
    fn default() -> Self {
        Self::new()
    }
}

impl Middleware for OtelMiddleware {
    fn handle(
        &self,
        cx: Context,
        message: Invocation,
        next: Next,
    ) -> BoxFuture<'static, Result<Outcome, McpError>> {
        let parent = w3c::extract(OtelContext::current(), message.meta());
        let method = Method::parse(message.method());
        let name = match method {
            Some(method) => Cow::Borrowed(method.name()),
            None => Cow::Owned(short(message.method()).to_owned()),
        };
        let mut span = self.tracer.start(name, SpanKind::Server, &parent);
        if span.is_recording() {
            attributes(&mut span, method, &cx, &message);
        } else if !span.span_context().is_valid() && parent.baggage().is_empty() {
            // Nobody records, and there is nothing to pass on.
            return next.run(cx, message);
        }
        let ending = Ending::new(&parent, span);
        let context = ending.0.clone();
        let run = async move {
            let outcome = next.run(cx, message).await;
            if ending.is_recording() {
                conclude(&ending, method, &outcome);
            }
            outcome
        };
        Box::pin(run.with_context(context))
    }
}

fn attributes(span: &mut BoxedSpan, method: Option<Method>, cx: &Context, message: &Invocation) {
    let target = describe(span, "", message.method(), message.params());
    span.set_attribute(KeyValue::new("mcp.protocol.version", cx.protocol_version().as_str()));
    if let Some(id) = cx.request_id() {
        span.set_attribute(KeyValue::new(REQUEST_ID, short(&id.to_string()).to_owned()));
    }
    if method == Some(Method::ToolsCall) {
        span.set_attribute(KeyValue::new("gen_ai.operation.name", "execute_tool"));
    }
    let key = match method {
        Some(Method::ToolsCall) => "gen_ai.tool.name",
        Some(Method::PromptsGet) => "gen_ai.prompt.name",
        _ => return,
    };
    span.set_attributes(target.map(|target| KeyValue::new(key, target)));
}

fn conclude(ending: &Ending, method: Option<Method>, outcome: &Result<Outcome, McpError>) {
    match outcome {
        Ok(outcome) if method == Some(Method::ToolsCall) && outcome.is_error() => {
            ending.failed("tool_error".to_owned(), String::new());
        }
        Ok(_) => {}
        Err(McpError::Refused(error)) => ending.refused(error, Answered::Yes),
        Err(McpError::Forbidden(challenge)) => ending.refused(&challenge.error, Answered::Yes),
        Err(McpError::InvalidParams(_)) => ending.refused(&ErrorObject::invalid_params(), Answered::Yes),
        Err(McpError::Internal(cause)) => ending.broke(&**cause, "internal error".to_owned()),
        Err(error) => ending.broke(error, error.to_string()),
    }
}
