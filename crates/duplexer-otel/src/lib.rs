//! OpenTelemetry traces for Duplexer: one middleware for what is asked of a server, one hook for what is asked of the
//! peer. Neither the dispatcher nor the kernel knows of it.
//!
//! Trace context and baggage travel in `_meta`, in the W3C's formats, in both directions: a handler runs as a child of
//! the caller's span, and what it asks of the peer becomes a child of its own.
//!
//! ```no_run
//! use std::sync::Arc;
//!
//! use duplexer_core::dispatch::DispatchOptions;
//! use duplexer_server::Server;
//! use duplexer_otel::{OtelHook, OtelMiddleware};
//!
//! // After `opentelemetry::global::set_tracer_provider`. First, so that it is outermost.
//! let server = Server::builder("traced").middleware(OtelMiddleware::new()).build();
//! let mut options = DispatchOptions::default();
//! options.hook = Some(Arc::new(OtelHook::new()));
//! ```
//!
//! Without a tracer provider nothing is recorded and nothing described; a context that came with a message is still
//! passed on.

mod client;
mod server;
mod span;
mod w3c;

pub use client::OtelHook;
pub use server::OtelMiddleware;

#[cfg(test)]
mod tests;
