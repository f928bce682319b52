//! The seam to a store that several nodes share.

use super::SharedStores;

/// A store that several nodes share, such as `duplexer_redis::Shared`.
pub trait ScaleOut {
    /// Returns the stores of this node.
    fn stores(&self) -> SharedStores;
}

impl ScaleOut for SharedStores {
    fn stores(&self) -> SharedStores {
        self.clone()
    }
}
