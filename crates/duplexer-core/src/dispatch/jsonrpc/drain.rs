//! The end of a connection, in bounded time: nothing accepted is left without an answer.

use std::sync::Arc;
use std::time::Duration;

use duplexer_types::error::ErrorObject;
use duplexer_types::jsonrpc;
use tokio::time::timeout;

use super::Connection;
use super::shared::{Call, Phase, Shared};
use crate::dispatch::{Inbound, lock};
use crate::error::CallError;

/// How long answers of the last resort may take to be written.
const LAST_ANSWERS: Duration = Duration::from_secs(1);

impl<I: Inbound> Connection<I> {
    /// Lets accepted requests end for a while, then answers the rest with an error.
    pub(super) async fn drain(&self) {
        let shared = &self.shared;
        let stops = shared.stop.count();
        shared.close_to_callers();
        shared.closing.raise();
        shared.outbox.flush();
        self.tasks.close();
        let drained = timeout(shared.options.limits.drain, async {
            tokio::select! {
                () = self.tasks.wait() => {}
                () = shared.stop.beyond(stops) => {}
            }
        });
        // Either way the rest is cut; the difference is only whether there is a rest.
        let _ = drained.await;
        let rest = shared.interrupt_all();
        let cut = timeout(LAST_ANSWERS, async {
            let mut frame = Vec::new();
            for call in rest {
                frame.clear();
                jsonrpc::write_failure(&mut frame, Some(&call.id), &ErrorObject::connection_closed());
                shared.outbox.send(&frame, None).await;
            }
            shared.outbox.flush();
            // Those whose request was called off may still run and are interrupted with the others.
            self.tasks.wait().await;
        });
        if cut.await.is_err() {
            tracing::warn!(
                "handlers that neither end nor await are left behind at the end of the connection"
            );
        }
    }
}

/// Writes what is left and ends the direction, within the time of the last answers.
pub(super) async fn close_outbox(shared: &Shared) {
    match timeout(LAST_ANSWERS, shared.outbox.finish()).await {
        Ok(Ok(())) => {}
        Ok(Err(error)) => tracing::debug!(%error, "the write side did not close in order"),
        Err(_) => tracing::debug!("the peer does not read: what was left for it is dropped"),
    }
    shared.outbox.close();
}

/// Interrupts every handler when a run is dropped instead of ended.
pub(super) struct InterruptOnDrop(pub(super) Arc<Shared>);

impl Drop for InterruptOnDrop {
    fn drop(&mut self) {
        self.0.close_to_callers();
        self.0.closing.raise();
        self.0.interrupt_all();
        self.0.outbox.close();
    }
}

impl Shared {
    /// Nobody will read the peer's answers any more.
    fn close_to_callers(&self) {
        let mut table = lock(&self.table);
        table.phase = Phase::Closed;
        let waiting = table.outgoing.drain();
        let reader = table.workers.close_reader();
        drop(table);
        drop(reader);
        for waiter in waiting {
            waiter.settle(Err(CallError::Closed));
        }
    }

    /// Interrupts every handler and gives out the calls that are owed an answer.
    fn interrupt_all(&self) -> Vec<Arc<Call>> {
        let mut table = lock(&self.table);
        let parked = std::mem::take(&mut table.parked);
        let rest: Vec<_> = table.incoming.drain().into_iter().map(|(_, call)| call).collect();
        table.load.parked_bytes = 0;
        drop(table);
        drop(parked);
        for call in &rest {
            call.cancellation.raise();
        }
        self.abort.raise();
        rest
    }
}
