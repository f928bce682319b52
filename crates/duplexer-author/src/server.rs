//! What the builder of a server learns from this crate.

use std::any::Any;

use duplexer_core::server::ServerBuilder;

use crate::catalog::CatalogPart;
use crate::tool::{Bound, IntoTool};

/// Registers tools, resources and prompts while a server is described.
///
/// Handlers get the state that was given last: `.state(..)` and `.lifespan(..)` go before what uses them.
pub trait ServerExt<S>: Sized {
    /// Offers a tool. A name that is taken or cannot be used fails the build.
    #[must_use]
    fn tool(self, tool: impl IntoTool<S>) -> Self;

    /// Lists at most this many things at once. Without it every list is one page.
    #[must_use]
    fn page_size(self, size: usize) -> Self;
}

impl<S: Any + Send + Sync> ServerExt<S> for ServerBuilder<S> {
    fn tool(mut self, tool: impl IntoTool<S>) -> Self {
        let tool = tool.into_tool();
        let run = Box::new(Bound { run: tool.run, slot: self.state_slot() });
        self.part::<CatalogPart>().tool(tool.draft, run);
        self
    }

    fn page_size(mut self, size: usize) -> Self {
        self.part::<CatalogPart>().page_size = Some(size);
        self
    }
}
