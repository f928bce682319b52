//! The stores of one node, and its tasks: each a thread of the model.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};

use shuttle::sync::{Condvar, Mutex};
use shuttle::thread;

use crate::sync::lock;

/// Returns a number in place of random bits: the model repeats no batch.
pub fn random() -> Option<u128> {
    Some(7)
}

/// Polls only when it is woken: the checker's own executor polls more often, which hides a missed wake-up.
pub fn block_on<F: Future>(future: F) -> F::Output {
    let woken = Arc::new(Woken::default());
    let waker = Waker::from(Arc::clone(&woken));
    let mut future = pin!(future);
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut Context::from_waker(&waker)) {
            return output;
        }
        let mut flag = lock(&woken.flag);
        while !std::mem::take(&mut *flag) {
            flag = woken.raised.wait(flag).unwrap();
        }
    }
}

#[derive(Default)]
struct Woken {
    flag: Mutex<bool>,
    raised: Condvar,
}

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        *lock(&self.flag) = true;
        self.raised.notify_one();
    }
}

pub mod store {
    use std::time::Duration;

    pub fn jittered(pause: Duration) -> Duration {
        pause
    }
}

pub mod stores {
    use duplexer_core::error::StoreError;
    use duplexer_core::run::RunId;

    use super::*;
    use crate::session::{
        Appended, Attach, Attached, Batch, Concluded, EventStore as _, MemoryEventStore, Page, StreamKey,
        Wake,
    };

    /// The stores of one node. Every operation is preceded and followed by whatever the other threads do.
    pub struct Stores {
        pub events: Arc<MemoryEventStore>,
        pub run: RunId,
        /// Set if other nodes use the stores.
        pub shared: Option<()>,
    }

    impl Stores {
        pub fn run(&self) -> RunId {
            self.run
        }

        pub fn shared(&self) -> Option<&()> {
            self.shared.as_ref()
        }

        pub fn spawn(&self, work: impl Future<Output = ()> + Send + 'static) {
            drop(thread::spawn(move || block_on(work)));
        }

        pub async fn append(&self, key: &StreamKey, batch: Batch<'_>) -> Result<Appended, StoreError> {
            around(self.events.append(key, batch)).await
        }

        pub async fn read(
            &self,
            key: &StreamKey,
            after: u64,
            most: usize,
        ) -> Result<Option<Page>, StoreError> {
            around(self.events.read(key, after, most)).await
        }

        pub async fn attach(&self, key: &StreamKey, attach: Attach) -> Result<Attached, StoreError> {
            around(self.events.attach(key, attach)).await
        }

        pub async fn detach(&self, key: &StreamKey, reader: u64, received: u64) {
            let _ = around(self.events.detach(key, reader, received)).await;
        }

        pub async fn conclude(
            &self,
            key: &StreamKey,
            writer: RunId,
            last: &bytes::Bytes,
        ) -> Result<Concluded, StoreError> {
            around(self.events.conclude(key, writer, last)).await
        }

        pub fn watch(&self, key: &StreamKey) -> Wake {
            self.events.watch(key)
        }

        pub async fn is_alive(&self, _: RunId) -> bool {
            true
        }
    }

    async fn around<T>(operation: impl Future<Output = T>) -> T {
        thread::yield_now();
        let outcome = operation.await;
        thread::yield_now();
        outcome
    }
}
