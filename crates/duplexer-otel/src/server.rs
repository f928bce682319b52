//! Spans of requests and notifications to a server.

use std::borrow::Cow;

use duplexer_core::dispatch::{BoxFuture, Message};
use duplexer_core::error::McpError;
use duplexer_server::middleware::{Middleware, Next};
use duplexer_server::{Context, Outcome};
use duplexer_types::error::ErrorObject;
use duplexer_types::methods::Method;
use opentelemetry::baggage::BaggageExt as _;
use opentelemetry::context::FutureExt as _;
use opentelemetry::global::BoxedSpan;
use opentelemetry::trace::{Span as _, SpanKind};
use opentelemetry::{Context as OtelContext, KeyValue};

use crate::span::{REQUEST_ID, Responded, SpanGuard, Tracer, constructors, describe, truncated};
use crate::trace_context;

/// Middleware that traces every request and notification. Add it first, so that it is outermost.
///
/// A span is named `tools/call echo`, after the method and the `name` in the params. It is a child of the span in the
/// `_meta` of the message, or else of the current span, and it is the current span while the handler runs. The sampler
/// sees the method; further attributes are set only on spans that are recorded.
///
/// ```
/// use duplexer_otel::OtelMiddleware;
/// use duplexer_server::Server;
///
/// let server = Server::builder("traced", "1.0.0").middleware(OtelMiddleware::new()).build()?;
/// # Ok::<_, duplexer_server::BuildError>(())
/// ```
#[derive(Clone, Debug)]
pub struct OtelMiddleware {
    tracer: Tracer,
}

constructors!(OtelMiddleware);

impl Middleware for OtelMiddleware {
    fn handle(
        &self,
        cx: Context,
        message: Message,
        next: Next,
    ) -> BoxFuture<'static, Result<Outcome, McpError>> {
        let parent = trace_context::extract(OtelContext::current(), message.meta());
        let method = message.known();
        let name = match method {
            Some(method) => Cow::Borrowed(method.name()),
            None => Cow::Owned(truncated(message.method()).to_owned()),
        };
        let mut span = self.tracer.start(name, SpanKind::Server, &parent);
        if span.is_recording() {
            attributes(&mut span, method, &cx, &message);
        } else if !span.span_context().is_valid() && parent.baggage().is_empty() {
            // No span is recorded, and there is no context to propagate.
            return next.run(cx, message);
        }
        let guard = SpanGuard::new(&parent, span);
        let context = guard.0.clone();
        let run = async move {
            let outcome = next.run(cx, message).await;
            if guard.is_recording() {
                record_outcome(&guard, method, &outcome);
            }
            outcome
        };
        Box::pin(run.with_context(context))
    }
}

fn attributes(span: &mut BoxedSpan, method: Option<Method>, cx: &Context, message: &Message) {
    let target = describe(span, "", message.method(), message.params());
    span.set_attribute(KeyValue::new("mcp.protocol.version", cx.protocol_version().as_str()));
    if let Some(id) = cx.request_id() {
        span.set_attribute(KeyValue::new(REQUEST_ID, truncated(&id.to_string()).to_owned()));
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

fn record_outcome(guard: &SpanGuard, method: Option<Method>, outcome: &Result<Outcome, McpError>) {
    match outcome {
        Ok(outcome) if method == Some(Method::ToolsCall) && outcome.is_error() => {
            guard.failed("tool_error".to_owned(), String::new());
        }
        Ok(_) => {}
        Err(McpError::Rpc(error)) => guard.rpc_error(error, Responded::Yes),
        Err(McpError::Forbidden(challenge)) => guard.rpc_error(&challenge.error, Responded::Yes),
        Err(McpError::Busy(busy)) => guard.rpc_error(&busy.error, Responded::Yes),
        Err(McpError::InvalidParams(_)) => guard.rpc_error(&ErrorObject::invalid_params(), Responded::Yes),
        Err(McpError::Internal(cause)) => guard.internal_error(&**cause, "internal error".to_owned()),
        Err(error) => guard.internal_error(error, error.to_string()),
    }
}
