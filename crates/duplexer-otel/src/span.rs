//! What spans of both kinds have in common: their tracer, their names, their failures, their end.

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

/// The longest text of a peer that goes into a name or an attribute, in bytes.
const LONGEST: usize = 256;

pub(crate) const METHOD: &str = "mcp.method.name";
pub(crate) const REQUEST_ID: &str = "jsonrpc.request.id";
const ERROR_TYPE: &str = "error.type";
const STATUS_CODE: &str = "rpc.response.status_code";
/// What the semantic conventions say where there is no better word.
const OTHER_ERROR: &str = "_OTHER";

/// The tracer of this library.
#[derive(Clone)]
pub(crate) struct Tracer(Arc<BoxedTracer>);

impl Tracer {
    pub(crate) fn global() -> Self {
        Self(Arc::new(global::tracer_with_scope(scope())))
    }

    pub(crate) fn of<P>(provider: &P) -> Self
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

impl fmt::Debug for Tracer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Tracer")
    }
}

fn scope() -> InstrumentationScope {
    InstrumentationScope::builder("duplexer").with_version(env!("CARGO_PKG_VERSION")).build()
}

/// A context whose span ends with this, however that comes: an answer, a refusal, or a dropped future.
///
/// Copies of the context may live on in tasks that a handler has started.
#[derive(Debug)]
pub(crate) struct Ending(pub(crate) Context);

impl Ending {
    /// The context of a span that has just been started under `parent`.
    pub(crate) fn new(parent: &Context, span: BoxedSpan) -> Self {
        Self(parent.with_span(span))
    }

    pub(crate) fn is_recording(&self) -> bool {
        self.0.span().is_recording()
    }

    /// The span ends in an error that has a place on the wire.
    pub(crate) fn refused(&self, error: &ErrorObject, answered: Answered) {
        let code = error.code.to_string();
        if answered == Answered::Yes {
            self.0.span().set_attribute(KeyValue::new(STATUS_CODE, code.clone()));
        }
        self.failed(code, short(&error.message).to_owned());
    }

    /// The span ends in an error that nobody outside is told about.
    pub(crate) fn broke(&self, error: &(dyn std::error::Error + 'static), text: String) {
        self.0.span().record_error(error);
        self.failed(OTHER_ERROR.to_owned(), text);
    }

    pub(crate) fn failed(&self, kind: String, text: String) {
        let span = self.0.span();
        span.set_attribute(KeyValue::new(ERROR_TYPE, kind));
        span.set_status(Status::error(text));
    }
}

impl Drop for Ending {
    fn drop(&mut self) {
        if std::thread::panicking() && self.is_recording() {
            self.failed("panic".to_owned(), "the handler panicked".to_owned());
        }
        self.0.span().end();
    }
}

/// Whether an error came, or goes, as an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Answered {
    Yes,
    No,
}

/// Names and describes a span: what is called, and the `name` in its params.
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
    let method = short(method);
    let named = params.and_then(|params| serde_json::from_str::<Named>(params).ok());
    let target = named.and_then(|named| named.name).map(|name| short(&name).to_owned());
    span.update_name(match &target {
        Some(target) => format!("{prefix}{method} {target}"),
        None => format!("{prefix}{method}"),
    });
    span.set_attribute(KeyValue::new(METHOD, method.to_owned()));
    target
}

/// As much of a peer's text as a trace should hold.
pub(crate) fn short(text: &str) -> &str {
    let end = (0..=LONGEST.min(text.len())).rev().find(|end| text.is_char_boundary(*end));
    text.get(..end.unwrap_or_default()).unwrap_or_default()
}
