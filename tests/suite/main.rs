//! The interaction suite: the behaviour of a server, frame by frame, over every transport and in both eras.
//!
//! Each test cites the ids of the behaviours it shows; `coverage` compares the citations with the manifest.

mod attack;
mod cancellation;
mod catalog;
mod client;
mod connection;
mod coverage;
mod eras;
mod errors;
mod frames;
mod handshake;
mod http;
mod matrix;
mod metrics;
mod middleware;
mod notifications;
mod public_api;
mod redis;
mod results;
mod scale;
mod server_requests;
mod stdio;
mod subscriptions;
mod tasks;
mod wire;

/// The newest revision of the handshake era.
const HANDSHAKE: &str = "2025-11-25";
/// The newest revision of the envelope era.
const ENVELOPE: &str = "2026-07-28";
