//! The primitives of the hand-made synchronisation, under one name each.
//!
//! The files that use them are also compiled against a model checker's twins of these; see `tests/model/`.

pub(crate) use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
pub(crate) use std::sync::{Mutex, MutexGuard, PoisonError};
pub(crate) use std::thread::{self, Thread};
pub(crate) use std::thread_local;

/// A panic while a lock is held cannot leave the data behind it inconsistent: every change is one step.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
