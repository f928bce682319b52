//! The client side of streamable HTTP: a transport for `duplexer-core`'s client.
//!
//! Every message is a POST of its own (`writer`); the answer to a request is one JSON body or a stream of events
//! (`exchange`). The handshake era adds a session and a stream of the server's own, and streams can be taken up again
//! (`session`, `reconnect`). Knows HTTP, and of messages no more than what opens a session and what ends a request.
//!
//! ```no_run
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! use duplexer_http_client::HttpTransport;
//! let transport = HttpTransport::new("http://127.0.0.1:3000/mcp")?;
//! # Ok(()) }
//! ```

mod exchange;
mod link;
mod reconnect;
mod session;
mod stream;
mod transport;
mod writer;

pub use transport::{DEFAULT_LIMIT, HttpTransport, InvalidEndpoint};
