//! The end of a connection, in bounded time. Every accepted request is answered.

use std::sync::Arc;
use std::task::Waker;
use std::time::Duration;

use duplexer_types::jsonrpc;
use tokio::time::timeout;

use super::Connection;
use super::shared::{Call, Shared};
use crate::dispatch::call_table::LockedCalls;
use crate::dispatch::{Inbound, lock};

/// Maximum time to write the last responses.
const LAST_RESPONSES_TIMEOUT: Duration = Duration::from_secs(1);

impl<I: Inbound> Connection<I> {
    /// Gives accepted requests time to end, then answers the rest with an error.
    pub(super) async fn drain(&self) {
        let shared = &self.shared;
        let stops = shared.stop.count();
        shared.close_to_callers();
        shared.closing.cancel();
        shared.outbox.flush();
        self.tasks.close();
        let drained = timeout(shared.options.limits.drain, async {
            tokio::select! {
                () = self.tasks.wait() => {}
                () = shared.stop.beyond(stops) => {}
            }
        });
        // Either way the rest is aborted; the difference is only whether there is a rest.
        let _ = drained.await;
        let rest = shared.abort_all();
        let aborted = timeout(LAST_RESPONSES_TIMEOUT, async {
            let (mut frame, cut_off) = (Vec::new(), self.inbound.cut_off());
            for call in rest {
                frame.clear();
                jsonrpc::write_failure(&mut frame, Some(&call.id), &cut_off);
                shared.outbox.send(&frame, None).await;
            }
            shared.outbox.flush();
            // Handlers of cancelled requests can still run. They are aborted with the others.
            self.tasks.wait().await;
        });
        if aborted.await.is_err() {
            tracing::warn!(
                "handlers that neither end nor await are left behind at the end of the connection"
            );
        }
    }
}

/// Writes what is left and ends the direction, within the time for the last responses.
pub(super) async fn close_outbox(shared: &Shared) {
    match timeout(LAST_RESPONSES_TIMEOUT, shared.outbox.finish()).await {
        Ok(Ok(())) => {}
        Ok(Err(error)) => tracing::debug!(%error, "the write side did not close orderly"),
        Err(_) => tracing::debug!("the peer does not read: what was left for it is dropped"),
    }
    shared.outbox.close();
}

/// Aborts every handler when a run is dropped instead of ended.
pub(super) struct AbortOnDrop(pub(super) Arc<Shared>);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.close_to_callers();
        self.0.closing.cancel();
        self.0.abort_all();
        self.0.outbox.close();
    }
}

impl Shared {
    /// Fails our own calls and ends reading: the peer's responses are no longer read. Idle workers end.
    fn close_to_callers(&self) {
        self.close_outgoing();
        let mut table = lock(&self.table);
        let reader = table.workers.close_reader();
        let idle = table.workers.activate_idle();
        drop(table);
        drop(reader);
        idle.for_each(Waker::wake);
    }

    /// Aborts every handler and returns the calls that are still to be answered.
    fn abort_all(&self) -> Vec<Arc<Call>> {
        let mut table = lock(&self.table);
        let queued = table.capacity.clear_queue();
        let rest: Vec<_> = table.calls.incoming.drain().into_iter().map(|(_, call)| call).collect();
        drop(table);
        drop(queued);
        for call in &rest {
            call.interrupt();
        }
        self.abort.set();
        rest
    }
}
