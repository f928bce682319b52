//! The bridge between the eras: a client of one, a server of the other.
//!
//! What a handshake server asks its client becomes the questions of an input round (`questions`, `handshake_server`), and
//! back (`envelope_server`). Subscriptions become streams, and back (`listen`, `changes`). Tasks keep their ids (`tasks`).

pub(crate) mod changes;
pub(crate) mod envelope_server;
pub(crate) mod handshake_server;
pub(crate) mod listen;
pub(crate) mod questions;
pub(crate) mod tasks;
