//! The inspector: a page in the browser that shows what a server offers, calls it, and shows every message of its sessions.
//!
//! [`Inspector`] holds sessions with the server and serves the page and its API: as a tower service, as a layer around
//! another service, or on a listener of its own. Views of MCP Apps get a second origin, which is a second port.
//!
//! The page controls the server under inspection. It is for the machine it runs on: peers that are not on the loopback
//! interface are refused, and requests need the token that is generated at each start.

mod api;
mod calls;
mod clock;
mod events;
mod files;
mod inspector;
mod loopback;
mod policy;
mod questions;
mod random;
mod reply;
mod sandbox;
mod serve;
mod service;
mod sessions;
mod state;
mod views;
mod wire;

pub use inspector::{Connecting, Inspector, InspectorBuilder, PageHandle, StartError, Target};
pub use service::{InspectorLayer, InspectorOr};
