//! Streamable HTTP transport for the client of `duplexer-core`.
//!
//! `writer` sends every message as its own POST. `exchange` reads the response: one JSON body, which the caller polls for,
//! or an SSE stream, which `exchanges` reads in a task. In the handshake era `session` and `reconnect` add a session, the
//! standalone stream and stream resumption. Every HTTP request leaves through `endpoint`, where `authorization` adds
//! credentials and `observer` watches. `http_sse` is the transport of 2024-11-05. The crate knows HTTP, and of messages only which one opens a
//! session and which one ends a request.
//!
//! ```no_run
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! use duplexer_http_client::HttpTransport;
//! let transport = HttpTransport::new("http://127.0.0.1:3000/mcp")?;
//! # Ok(()) }
//! ```

mod authorization;
mod connection;
mod endpoint;
mod exchange;
mod exchanges;
mod failure;
mod http_sse;
mod observer;
mod reconnect;
mod session;
mod sse;
mod transport;
mod writer;

pub use authorization::{Authorization, OutgoingRequest, ResponseHead, Verdict};
pub use http_sse::HttpSseTransport;
pub use observer::HttpExchange;
pub use transport::{DEFAULT_LIMIT, HttpTransport, HttpTransportBuilder, InvalidEndpoint};
