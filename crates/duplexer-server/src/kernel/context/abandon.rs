//! Marks a call whose future is dropped, for the function that still runs on a thread.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::{Context, Scope};

/// Marks a call as [cancelled](Context::is_cancelled) when it is dropped before the call has ended.
pub(crate) struct AbandonOnDrop(Option<Arc<Scope>>);

impl AbandonOnDrop {
    pub(crate) fn new<S>(cx: &Context<S>) -> Self {
        Self(Some(Arc::clone(&cx.scope)))
    }

    pub(crate) fn ended(mut self) {
        self.0 = None;
    }
}

impl Drop for AbandonOnDrop {
    fn drop(&mut self) {
        if let Some(scope) = &self.0 {
            scope.abandoned.store(true, Ordering::Relaxed);
        }
    }
}
