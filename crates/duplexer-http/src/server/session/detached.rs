//! Handlers that continue without the task that waited for them, and the end of those that no client reads.

use std::sync::Arc;
use std::task::Context;
use std::time::Duration;

use duplexer_core::dispatch::{BoxFuture, Cancellation};

use super::stream::Stream;
use crate::server::service_state::ServiceState;

/// Work that continues as a tracked task when it is dropped.
pub(super) struct DetachOnDrop {
    service: Arc<ServiceState>,
    future: Option<BoxFuture<'static, ()>>,
    /// Cancels a detached call that no client reads. `None` for a notification, or without a limit.
    watch: Option<AbandonedCall>,
}

impl DetachOnDrop {
    pub(super) fn new(
        service: Arc<ServiceState>,
        future: BoxFuture<'static, ()>,
        watch: Option<AbandonedCall>,
    ) -> Self {
        Self { service, future: Some(future), watch }
    }

    pub(super) fn service(&self) -> &Arc<ServiceState> {
        &self.service
    }

    pub(super) fn poll(&mut self, cx: &mut Context<'_>) {
        if let Some(future) = &mut self.future
            && future.as_mut().poll(cx).is_ready()
        {
            self.future = None;
        }
    }
}

impl Drop for DetachOnDrop {
    fn drop(&mut self) {
        let Some(future) = self.future.take() else { return };
        match self.watch.take() {
            Some(watch) => self.service.spawn_tracked(watch.run(future)),
            None => self.service.spawn_tracked(future),
        }
    }
}

/// Cancels a call whose stream has had no reader for too long.
pub(super) struct AbandonedCall {
    pub(super) stream: Arc<Stream>,
    pub(super) limit: Duration,
    pub(super) cancellation: Arc<Cancellation>,
}

impl AbandonedCall {
    async fn run(self, mut work: BoxFuture<'static, ()>) {
        tokio::select! {
            biased;
            () = &mut work => return,
            () = self.stream.abandoned(self.limit) => {}
        }
        tracing::debug!("a call that no client reads is cancelled");
        self.cancellation.cancel();
        work.await;
    }
}
