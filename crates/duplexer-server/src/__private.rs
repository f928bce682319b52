//! Items that expanded macros and the crates of this project refer to. Not part of the public API.

pub use crate::catalog::tool::{PassThrough, Returned};
pub use {schemars, serde};

/// Safe access to files below a directory.
pub mod files {
    pub use crate::catalog::path::{escape, is_hidden, resolve};
    pub use crate::catalog::resource::files::{mime_type, open_below};
}
