//! Streamable HTTP for Duplexer servers.
//!
//! [`StreamableHttp`] is a tower service: mount it in an existing application, or let it serve a socket of its
//! own. It knows HTTP and which era a request belongs to; what requests mean is the business of `duplexer-core`.
//!
//! ```no_run
//! # async fn example(server: duplexer_server::Server) -> Result<(), Box<dyn std::error::Error>> {
//! use duplexer_http::StreamableHttp;
//! StreamableHttp::new(server).serve("127.0.0.1:3000").await?;
//! # Ok(()) }
//! ```

mod server;
mod session;

pub use server::{
    ConfigError, Cors, Handshake, HttpServer, InvalidName, Listener, PathService, ResponseBody,
    ResponseFuture, Responses, ServeError, ShutdownHandle, StreamTimedOut, StreamableHttp,
    StreamableHttpBuilder,
};
pub use session::{
    EventKind, EventStore, MemoryEventStore, MemorySessionStore, PrincipalKey, SaveOutcome, SessionRecord,
    SessionStore, StoredEvent, StreamId, StreamKey,
};
