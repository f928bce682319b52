//! The server: a registry of handlers, a kernel that runs them for one connection, and drivers around it.
//!
//! Nothing here reads bytes or knows a transport. The registry is immutable, the kernel names no method, and the era of
//! a connection is decided by the drivers, once.

pub(crate) mod connection;
pub(crate) mod context;
pub(crate) mod envelope;
pub(crate) mod handler;
pub(crate) mod input;
pub(crate) mod lifecycle;
pub(crate) mod middleware;
pub(crate) mod outcome;
pub(crate) mod principal;
pub(crate) mod questions;
pub(crate) mod registry;
pub(crate) mod request_state;
pub(crate) mod runner;
pub(crate) mod serve;
pub(crate) mod subscriptions;

pub use connection::{Caller, ClientFacts, Connection, Negotiated, Remembered, Requirement};
pub use context::{Context, ReadError, States, TypedParams};
pub use envelope::{HeaderLookup, check_param_headers, classify, is_enveloped};
pub use handler::{Handler, IntoReply, Reply};
pub use lifecycle::negotiate;
pub use middleware::{ConcurrencyLimit, Logging, Middleware, Next, Timeout};
pub use outcome::Outcome;
pub use principal::Principal;
pub use registry::{
    BuildError, InitializeOverride, Installer, Merged, NotificationOptions, Part, Running, Server,
    ServerBuilder, SlotId, StartError, StateSlot, ToolHeaders,
};
pub use request_state::{Instances, KeyRing, RequestState, RequestStateCodec, RequestStateError};
pub use runner::{ServerRunner, Shaped};
pub use serve::{
    StdioError, StreamServer, run_stdio, run_stdio_with, serve, serve_connection, serve_dispatcher,
    serve_envelope, serve_handshake, serve_on, serve_one, serve_stdio, serve_stdio_with,
};
pub use subscriptions::{Event, Listener, MemoryBus, Subscription, SubscriptionBus, SubscriptionLimits};
