//! The client side of streamable HTTP: a transport for `duplexer-core`'s client.
//!
//! Every request is a POST of its own; its answer is one JSON body or a stream of events. In the envelope era giving up
//! a request is ending its POST. Knows HTTP, and of messages no more than whether they want an answer.
//!
//! ```no_run
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! use duplexer_http_client::HttpTransport;
//! let transport = HttpTransport::new("http://127.0.0.1:3000/mcp")?;
//! # Ok(()) }
//! ```

mod exchange;
mod stream;
mod transport;

pub use exchange::DEFAULT_LIMIT;
pub use transport::{HttpTransport, InvalidEndpoint};
