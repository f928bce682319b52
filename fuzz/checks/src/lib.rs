//! The checks of the fuzz targets: each function takes any bytes and panics on a defect.
//!
//! The readers of `duplexer-types` are compared with a plain implementation over a tree of values. The checks state where
//! the two differ by design (repeated members, nesting). Request states go through a server.

mod frame;
mod header;
mod meta;
mod request_state;
mod tree;

pub use frame::frame;
pub use header::{header_value, param_headers};
pub use meta::meta;
pub use request_state::request_state;

/// A check.
pub type Check = fn(&[u8]);

/// All checks, by the name of their fuzz target and corpus folder.
pub const TARGETS: [(&str, Check); 5] = [
    ("frame", frame),
    ("meta", meta),
    ("header_value", header_value),
    ("param_headers", param_headers),
    ("request_state", request_state),
];
