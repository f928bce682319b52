//! The library's own files in the modules they expect, on top of the model checker's primitives.

pub(crate) mod sync {
    pub(crate) use shuttle::sync::atomic::{AtomicBool, AtomicU64, Ordering};
    pub(crate) use shuttle::sync::{Mutex, MutexGuard};
    pub(crate) use shuttle::thread::{self, Thread};
    pub(crate) use shuttle::thread_local;

    pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
        mutex.lock().unwrap()
    }
}

#[path = "../../src/dispatch/delivery.rs"]
pub(crate) mod delivery;
#[path = "../../src/dispatch/in_flight.rs"]
pub(crate) mod in_flight;
#[path = "../../src/dispatch/outbox.rs"]
pub(crate) mod outbox;
#[path = "../../src/dispatch/jsonrpc/watchdog.rs"]
pub(crate) mod watchdog;
