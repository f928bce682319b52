//! Streamable HTTP for Duplexer servers.
//!
//! [`StreamableHttp`] is a tower service: mount it in an existing application, or serve it on a listener of its
//! own. It handles HTTP and chooses the era of a request; `duplexer-core` handles the requests themselves.
//!
//! ```no_run
//! # async fn example(server: duplexer_server::Server) -> Result<(), Box<dyn std::error::Error>> {
//! use duplexer_http::StreamableHttp;
//! StreamableHttp::new(server).serve("127.0.0.1:3000").await?;
//! # Ok(()) }
//! ```

mod server;
mod session;
mod sync;

pub use server::{
    Cors, Handshake, HttpConfigError, HttpServer, InvalidName, Listener, PathService, Readiness,
    ResponseBody, ResponseFuture, Responses, ServeError, ServerCard, ShutdownHandle, StoreReadiness,
    StreamTimedOut, StreamableHttp, StreamableHttpBuilder,
};
pub use session::{
    Admission, Admitted, Appended, Attach, Attached, Batch, Change, Concluded, Created, EventKind,
    EventLimits, EventStore, Health, MAX_REQUESTS_IN_FLIGHT, MemoryCluster, MemoryEventStore,
    MemorySessionStore, NewRequest, NodeListener, NodeMessage, Nodes, Numbering, Page, Placement,
    PrincipalKey, Revision, Sent, SessionDigest, SessionRecord, SessionStore, SharedStores, StoredEvent,
    StreamId, StreamKey, StreamReader, Takeover, Wake,
};
