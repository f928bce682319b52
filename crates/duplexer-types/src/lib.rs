//! The messages of the Model Context Protocol: every revision, both directions, no async, no I/O.
//!
//! The public types are independent of revisions. [`wire`] gives them the shape of a revision while they are
//! written, [`methods`] defines which method exists in which revision, [`jsonrpc`] reads and writes frames. Each page
//! of the specification is a module.

mod model;

#[cfg(test)]
mod arbitrary;

pub mod annotations;
pub mod app;
pub mod capabilities;
pub mod completion;
pub mod content;
pub mod elicitation;
pub mod error;
pub mod headers;
pub mod icon;
pub mod input;
pub mod json;
pub mod jsonrpc;
pub mod lifecycle;
pub mod logging;
pub mod meta;
pub mod methods;
pub mod page;
pub mod progress;
pub mod prompt;
pub mod resource;
pub mod roots;
pub mod sampling;
pub mod skill;
pub mod subscription;
pub mod task;
pub mod text;
pub mod tool;
pub mod version;
pub mod wire;
