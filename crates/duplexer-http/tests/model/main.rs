//! The writer and the reader of a kept stream under a scheduler that explores interleavings: no wake-up is lost.
//!
//! The files under test are the library's own, compiled a second time against the model checker's mutex. What surrounds
//! them is replaced below: the stores without their guard, and short names for what a model needs no more of. The clock
//! is paused, so that no reader recovers by polling: one that misses a wake-up waits indefinitely, which the
//! checker reports as a deadlock. Operations of tokio's `Notify` count as one step.
#![allow(
    dead_code,
    unreachable_pub,
    unused_imports,
    clippy::unwrap_used,
    clippy::unnecessary_wraps,
    clippy::unused_async,
    clippy::unused_self,
    reason = "a test, which uses parts of the included files, and replaces others with their signatures"
)]

/// The mutex that the included files use.
mod sync {
    pub(crate) use shuttle::sync::{Mutex, MutexGuard};

    pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
        mutex.lock().unwrap()
    }
}

#[path = "../../src/session"]
mod session {
    mod event_store;
    mod memory_events;

    pub use event_store::*;
    pub use memory_events::{EventLimits, MemoryEventStore};

    /// Where a request runs. The store of sessions, which learns when a request has ended, is not part of the model.
    pub struct Placement {
        pub run: duplexer_core::run::RunId,
        pub stream: Option<StreamId>,
    }
}

#[path = "../../src/server"]
mod server {
    pub mod session {
        pub mod stream {
            mod follow;
            mod kept;
            mod vacancy;

            // Inside, because the parts of a stream are visible to nothing else.
            #[path = "../../../../tests/model/checks.rs"]
            mod checks;
        }

        #[path = "../../../tests/model/surroundings.rs"]
        mod surroundings;

        pub use surroundings::{random, store, stores};
    }

    #[path = "../../tests/model/service.rs"]
    mod service;

    pub use service::{event_queue, response, rpc_response, sse};

    pub mod service_state {
        pub mod stream_watch;

        pub use super::service::ServiceState;
    }
}
