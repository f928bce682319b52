//! Spans around what is asked of the peer.

use duplexer_core::dispatch::{OutboundHook, OutboundSpan};
use duplexer_core::error::CallError;
use duplexer_types::json::JsonObject;
use duplexer_types::jsonrpc::RequestId;
use opentelemetry::trace::{Span as _, SpanKind, TracerProvider};
use opentelemetry::{Context, KeyValue};

use crate::span::{Answered, Ending, REQUEST_ID, Tracer, describe, short};
use crate::w3c;

/// A hook that traces every request to the peer. Give it to a dispatcher in `DispatchOptions::hook`.
///
/// A span is called `MCP send tools/call echo`; it is a child of the current one, and the peer is told about it in
/// `_meta`. With a provider but without a current span every request begins a trace of its own.
#[derive(Clone, Debug)]
pub struct OtelHook {
    tracer: Tracer,
}

impl OtelHook {
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

impl Default for OtelHook {
    fn default() -> Self {
        Self::new()
    }
}

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
        let mut span = self.tracer.start(format!("{PREFIX}{}", short(method)), SpanKind::Client, &parent);
        if span.is_recording() {
            describe(&mut span, PREFIX, method, params);
            span.set_attribute(KeyValue::new(REQUEST_ID, short(&id.to_string()).to_owned()));
        }
        let ending = Ending::new(&parent, span);
        w3c::inject(&ending.0, meta);
        Box::new(ending)
    }
}

impl OutboundSpan for Ending {
    fn end(self: Box<Self>, outcome: Result<&str, &CallError>) {
        let Err(error) = outcome else { return };
        if !self.is_recording() {
            return;
        }
        match (error, error.as_error_object()) {
            // The connection's end is not this request's failure.
            (CallError::Closed, _) => {}
            (CallError::Peer(error), _) => self.refused(error, Answered::Yes),
            (_, Some(error)) => self.refused(&error, Answered::No),
            (error, None) => self.broke(error, error.to_string()),
        }
    }
}
