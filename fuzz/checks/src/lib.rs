//! What the fuzz targets check: each function takes any bytes and panics where the code is wrong.
//!
//! The readers of `duplexer-types` are compared with a second, plain route over a tree of values. Where
//! the two may differ by design (repeated members, nesting) the check says so. Request states go through a server.

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

/// Every check under the name of its fuzz target and of its folder in the corpus.
pub const TARGETS: [(&str, Check); 5] = [
    ("frame", frame),
    ("meta", meta),
    ("header_value", header_value),
    ("param_headers", param_headers),
    ("request_state", request_state),
];
