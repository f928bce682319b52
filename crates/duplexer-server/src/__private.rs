//! Items that macro expansions refer to. Not public API.

pub use crate::catalog::tool::{Returned, Settle};
pub use duplexer_core::dispatch::BoxFuture;
pub use {schemars, serde};
