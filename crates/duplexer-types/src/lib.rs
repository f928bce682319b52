//! The messages of the Model Context Protocol: every revision, both directions, no async, no I/O.
//!
//! The public types are free of versions. [`wire`] gives them the shape of a revision while they are
//! written; `methods` says which method exists where; [`jsonrpc`] reads and writes frames.

mod model;

pub mod error;
pub mod headers;
pub mod json;
pub mod jsonrpc;
pub mod meta;
pub mod version;
pub mod wire;
