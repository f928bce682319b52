//! The mutex of this crate. `tests/model` compiles the writers and readers of streams against another one, whose
//! scheduler explores interleavings.

use std::sync::PoisonError;

pub(crate) use std::sync::{Mutex, MutexGuard};

/// Locks a mutex. A poisoned lock is safe to use, because every change under a lock is one step.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
