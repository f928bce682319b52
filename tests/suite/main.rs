//! The interaction suite: the behaviour of a server, frame by frame, over every transport and in both eras.
//!
//! Each test cites the ids of the behaviours it shows; `coverage` compares the citations with the manifest.

mod asking;
mod attack;
mod authoring;
mod cancelling;
mod client;
mod connection;
mod coverage;
mod eras;
mod frames;
mod http;
mod matrix;
mod middleware;
mod notifications;
mod offering;
mod opening;
mod refusals;
mod remembering;
mod results;
mod stdio;
mod wire;

/// The newest revision of the handshake era.
const HANDSHAKE: &str = "2025-11-25";
/// The newest revision of the envelope era.
const ENVELOPE: &str = "2026-07-28";
