//! Checks of the fuzz targets: each function takes any bytes and panics if the code is wrong.
//!
//! The readers of `duplexer-types` are compared with a reference implementation over a tree of values. Where the two
//! differ by design (repeated members, nesting) the check says so. Request states go through a server.

mod challenge;
mod frame;
mod front_matter;
mod header;
mod meta;
mod request_state;
mod tree;

pub use challenge::challenge;
pub use frame::frame;
pub use front_matter::front_matter;
pub use header::{header_value, param_headers};
pub use meta::meta;
pub use request_state::request_state;

/// Check of one fuzz target.
pub type Check = fn(&[u8]);

/// All checks, by the name of the fuzz target and of the corpus folder.
pub const TARGETS: [(&str, Check); 7] = [
    ("challenge", challenge),
    ("frame", frame),
    ("front_matter", front_matter),
    ("meta", meta),
    ("header_value", header_value),
    ("param_headers", param_headers),
    ("request_state", request_state),
];
