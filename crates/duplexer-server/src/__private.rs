//! What the macros expand to. Nothing here is for use by hand.

pub use crate::catalog::tool::{Returned, Settle};
pub use duplexer_core::dispatch::BoxFuture;
pub use {schemars, serde};
