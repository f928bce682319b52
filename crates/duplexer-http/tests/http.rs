//! The service over real sockets.
#![allow(clippy::too_many_lines, reason = "a table is as long as its cases")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

#[path = "http/support.rs"]
mod support;

#[path = "http/batches.rs"]
mod batches;
#[path = "http/envelope.rs"]
mod envelope;
#[path = "http/handshake.rs"]
mod handshake;
#[path = "http/hostile.rs"]
mod hostile;
#[path = "http/http_sse.rs"]
mod http_sse;
#[path = "http/layers.rs"]
mod layers;
#[path = "http/life.rs"]
mod life;
#[path = "http/limits.rs"]
mod limits;
#[path = "http/mounted.rs"]
mod mounted;
#[path = "http/operations.rs"]
mod operations;
#[path = "http/resume.rs"]
mod resume;
#[path = "http/scale_out.rs"]
mod scale_out;
#[path = "http/security.rs"]
mod security;
#[path = "http/session_table.rs"]
mod session_table;
#[path = "http/sessions.rs"]
mod sessions;
#[path = "http/streams.rs"]
mod streams;
