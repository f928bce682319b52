//! Proxies: a remote server as a local one, whatever revision it speaks.
//!
//! [`Remote`] is a server whose tools, resources, prompts and everything else are those of a session with another server.
//! Where both sides use the same revision, messages pass as text. Where the eras differ, `bridge` translates.
//! [`Gateway`] puts many remote servers behind one; a [`Part`] of another server offers a remote one among its own items.
//!
//! `forward` is a middleware that sees every message of a client; `link` holds the session on its behalf and opens it
//! again; `messages` takes what the server sends back to the right request of the right client.

mod backlog;
mod bridge;
mod connect;
mod failure;
mod forward;
mod gateway;
mod kept;
mod link;
mod messages;
mod part;
mod pool;
mod progress;
mod remote;
mod slots;
mod tool_headers;
mod translate;
mod upstream;

pub use connect::Connect;
pub use gateway::{BackendSettings, Gateway, GatewayHandle, Health};
pub use part::Part;
pub use remote::{Remote, Sessions};
