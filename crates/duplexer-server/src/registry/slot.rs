//! State slots: identify the lifespan that a handler receives its state from.

use std::any::Any;
use std::marker::PhantomData;
use std::sync::atomic::{AtomicU64, Ordering};

use duplexer_core::error::McpError;

use crate::kernel::context::{Context, StateMap};

/// Identifies a lifespan. Ids are unique within a process, so that registrations stay valid when servers are merged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SlotId(u64);

impl SlotId {
    pub(crate) const NONE: Self = Self(0);

    pub(crate) fn fresh() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        Self(NEXT.fetch_add(1, Ordering::Relaxed))
    }
}

/// A slot with the type of its state. Handlers registered with it receive contexts of that state.
pub(crate) struct StateSlot<S> {
    id: SlotId,
    state: PhantomData<fn() -> S>,
}

impl<S: Any + Send + Sync> StateSlot<S> {
    pub(crate) fn new(id: SlotId) -> Self {
        Self { id, state: PhantomData }
    }

    /// Returns the id of the lifespan.
    pub(crate) fn id(self) -> SlotId {
        self.id
    }

    /// Returns the context with this state.
    pub(crate) fn context(self, cx: Context<StateMap>) -> Result<Context<S>, McpError> {
        cx.typed(self.id).ok_or_else(|| McpError::internal("a handler's state is of another type"))
    }
}

impl<S> Clone for StateSlot<S> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<S> Copy for StateSlot<S> {}

impl<S> std::fmt::Debug for StateSlot<S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("StateSlot").field(&self.id).finish()
    }
}
