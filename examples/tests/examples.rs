//! Drives every example as a process, over standard input and output or over HTTP.

#![allow(clippy::unwrap_used, reason = "helpers of tests fail like tests")]

#[path = "examples/clients.rs"]
mod clients;
#[cfg(target_os = "linux")]
#[path = "examples/cluster.rs"]
mod cluster;
#[path = "examples/first.rs"]
mod first;
#[path = "examples/http.rs"]
mod http;
#[path = "examples/sqlite.rs"]
mod sqlite;
#[path = "examples/stdio.rs"]
mod stdio;
#[path = "examples/support.rs"]
mod support;
