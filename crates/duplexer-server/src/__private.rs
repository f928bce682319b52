//! Items that expanded macros refer to. Not part of the public API.

pub use crate::catalog::tool::{PassThrough, Returned};
pub use {schemars, serde};
