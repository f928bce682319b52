//! Spans of requests to the peer.

use duplexer_core::dispatch::{OutboundHook, OutboundSpan};
use duplexer_core::error::CallError;
use duplexer_types::json::JsonObject;
use duplexer_types::jsonrpc::RequestId;
use opentelemetry::trace::{Span as _, SpanKind};
use opentelemetry::{Context, KeyValue};

use crate::span::{REQUEST_ID, Responded, SpanGuard, Tracer, constructors, describe, truncated};
use crate::trace_context;

/// Hook that traces every request to the peer. Pass it to a dispatcher in `DispatchOptions::hook`.
///
/// A span is named `MCP send tools/call echo`. It is a child of the current span, and its context is sent to the peer in
/// `_meta`. Without a current span every request starts a trace.
///
/// ```
/// use std::sync::Arc;
///
/// use duplexer_core::dispatch::DispatchOptions;
/// use duplexer_otel::OtelHook;
///
/// let options = DispatchOptions::default().hook(Arc::new(OtelHook::new()) as Arc<_>);
/// ```
#[derive(Clone, Debug)]
pub struct OtelHook {
    tracer: Tracer,
}

constructors!(OtelHook);

const PREFIX: &str = "MCP send ";

impl OutboundHook for OtelHook {
    fn begin(
        &self,
        id: &RequestId,
        method: &str,
        params: Option<&str>,
        meta: &mut JsonObject,
    ) -> Box<dyn OutboundSpan> {
        let parent = Context::current();
        let mut span = self.tracer.start(format!("{PREFIX}{}", truncated(method)), SpanKind::Client, &parent);
        if span.is_recording() {
            describe(&mut span, PREFIX, method, params);
            span.set_attribute(KeyValue::new(REQUEST_ID, truncated(&id.to_string()).to_owned()));
        }
        let guard = SpanGuard::new(&parent, span);
        trace_context::inject(&guard.0, meta);
        Box::new(guard)
    }
}

impl OutboundSpan for SpanGuard {
    fn end(self: Box<Self>, outcome: Result<&str, &CallError>) {
        let Err(error) = outcome else { return };
        if !self.is_recording() {
            return;
        }
        match (error, error.as_error_object()) {
            // The end of the connection is not an error of this request.
            (CallError::Closed, _) => {}
            (CallError::Rpc(error), _) => self.rpc_error(error, Responded::Yes),
            (_, Some(error)) => self.rpc_error(&error, Responded::No),
            (error, None) => self.internal_error(error, error.to_string()),
        }
    }
}
