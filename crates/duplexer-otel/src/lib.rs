//! OpenTelemetry for Duplexer: a middleware and a hook for traces of requests in both directions, and [`Metrics`].
//! Neither the dispatcher nor the kernel depends on it.
//!
//! Trace context and baggage are sent in `_meta`, in the W3C formats, in both directions: a handler runs as a child of
//! the caller's span, and a request of the handler to the peer becomes a child of the handler's span.
//!
//! ```
//! use std::sync::Arc;
//!
//! use duplexer_core::dispatch::DispatchOptions;
//! use duplexer_server::Server;
//! use duplexer_otel::{OtelHook, OtelMiddleware};
//!
//! // After `opentelemetry::global::set_tracer_provider`. The first middleware is the outermost one.
//! let server = Server::builder("traced", "1.0.0").middleware(OtelMiddleware::new()).build();
//! let options = DispatchOptions::default().hook(Arc::new(OtelHook::new()) as Arc<_>);
//! ```
//!
//! Without a tracer provider no span is recorded; the context of an incoming message is still propagated.

mod client;
mod metrics;
mod server;
mod span;
mod trace_context;

pub use client::OtelHook;
pub use metrics::Metrics;
#[cfg(feature = "prometheus")]
pub use metrics::{EndpointError, PrometheusEndpoint};
pub use server::OtelMiddleware;

#[cfg(test)]
mod tests;
