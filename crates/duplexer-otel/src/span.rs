//! Shared parts of server and client spans: tracer, name, attributes, error status and end.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use duplexer_types::error::ErrorObject;
use opentelemetry::global::{self, BoxedSpan, BoxedTracer};
use opentelemetry::trace::{
    Span as _, SpanBuilder, SpanKind, Status, TraceContextExt as _, Tracer as _, TracerProvider,
};
use opentelemetry::{Context, InstrumentationScope, KeyValue};
use serde::Deserialize;

/// Maximum length of a peer's text in a span name or attribute, in bytes.
const MAX_TEXT: usize = 256;

pub(crate) const METHOD: &str = "mcp.method.name";
pub(crate) const REQUEST_ID: &str = "jsonrpc.request.id";
const ERROR_TYPE: &str = "error.type";
const STATUS_CODE: &str = "rpc.response.status_code";
/// Fallback value of `error.type` in the semantic conventions.
const OTHER_ERROR: &str = "_OTHER";

/// Tracer with the instrumentation scope of this library.
#[derive(Clone)]
pub(crate) struct Tracer(Arc<BoxedTracer>);

impl Tracer {
    pub(crate) fn global() -> Self {
        Self(Arc::new(global::tracer_with_scope(scope())))
    }

    pub(crate) fn new<P>(provider: &P) -> Self
    where
        P: TracerProvider,
        P::Tracer: Send + Sync + 'static,
        <P::Tracer as opentelemetry::trace::Tracer>::Span: Send + Sync + 'static,
    {
        Self(Arc::new(BoxedTracer::new(Box::new(provider.tracer_with_scope(scope())))))
    }

    pub(crate) fn start(
        &self,
        name: impl Into<Cow<'static, str>>,
        kind: SpanKind,
        parent: &Context,
    ) -> BoxedSpan {
        self.0.build_with_context(SpanBuilder::from_name(name).with_kind(kind), parent)
    }
}

/// The constructors of a type with a single field `tracer`.
macro_rules! constructors {
    ($type:ident) => {
        impl $type {
            /// Traces with the global tracer provider. Set that provider first: it is read here, once.
            pub fn new() -> Self {
                Self { tracer: $crate::span::Tracer::global() }
            }

            /// Traces with this tracer provider.
            pub fn with_provider<P>(provider: &P) -> Self
            where
                P: opentelemetry::trace::TracerProvider,
                P::Tracer: Send + Sync + 'static,
                <P::Tracer as opentelemetry::trace::Tracer>::Span: Send + Sync + 'static,
            {
                Self { tracer: $crate::span::Tracer::new(provider) }
            }
        }

        impl Default for $type {
            fn default() -> Self {
                Self::new()
            }
        }
    };
}
pub(crate) use constructors;

impl fmt::Debug for Tracer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Tracer")
    }
}

pub(crate) fn scope() -> InstrumentationScope {
    InstrumentationScope::builder("duplexer").with_version(env!("CARGO_PKG_VERSION")).build()
}

/// Ends the span of a context when it is dropped: after a result, after an error, or with a dropped future.
///
/// Clones of the context can outlive it in tasks that a handler has spawned.
#[derive(Debug)]
pub(crate) struct SpanGuard(pub(crate) Context);

impl SpanGuard {
    /// Creates the context of a span that was started as a child of `parent`.
    pub(crate) fn new(parent: &Context, span: BoxedSpan) -> Self {
        Self(parent.with_span(span))
    }

    pub(crate) fn is_recording(&self) -> bool {
        self.0.span().is_recording()
    }

    /// Records a JSON-RPC error.
    pub(crate) fn rpc_error(&self, error: &ErrorObject, responded: Responded) {
        let code = error.code.to_string();
        if responded == Responded::Yes {
            self.0.span().set_attribute(KeyValue::new(STATUS_CODE, code.clone()));
        }
        self.failed(code, truncated(&error.message).to_owned());
    }

    /// Records an error that is not sent to the peer.
    pub(crate) fn internal_error(&self, error: &(dyn std::error::Error + 'static), text: String) {
        self.0.span().record_error(error);
        self.failed(OTHER_ERROR.to_owned(), text);
    }

    pub(crate) fn failed(&self, kind: String, text: String) {
        let span = self.0.span();
        span.set_attribute(KeyValue::new(ERROR_TYPE, kind));
        span.set_status(Status::error(text));
    }
}

impl Drop for SpanGuard {
    fn drop(&mut self) {
        if std::thread::panicking() && self.is_recording() {
            self.failed("panic".to_owned(), "the handler panicked".to_owned());
        }
        self.0.span().end();
    }
}

/// Whether an error was received or sent as a JSON-RPC response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Responded {
    Yes,
    No,
}

/// Sets name and method of a span. Returns the `name` in the params, which is part of the span name.
pub(crate) fn describe(
    span: &mut BoxedSpan,
    prefix: &str,
    method: &str,
    params: Option<&str>,
) -> Option<String> {
    #[derive(Deserialize)]
    struct Named {
        name: Option<String>,
    }
    let method = truncated(method);
    let named = params.and_then(|params| serde_json::from_str::<Named>(params).ok());
    let target = named.and_then(|named| named.name).map(|name| truncated(&name).to_owned());
    span.update_name(match &target {
        Some(target) => format!("{prefix}{method} {target}"),
        None => format!("{prefix}{method}"),
    });
    span.set_attribute(KeyValue::new(METHOD, method.to_owned()));
    target
}

/// Truncates a text of the peer to [`MAX_TEXT`].
pub(crate) fn truncated(text: &str) -> &str {
    let end = (0..=MAX_TEXT.min(text.len())).rev().find(|end| text.is_char_boundary(*end));
    text.get(..end.unwrap_or_default()).unwrap_or_default()
}
