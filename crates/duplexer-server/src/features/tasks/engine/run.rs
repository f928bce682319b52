//! Running a task: the pending future of a call in an owned task, until it ends, is cancelled, or another run has it.

use std::sync::Arc;
use std::time::Duration;

use duplexer_core::dispatch::{BoxFuture, CatchUnwind};
use duplexer_core::error::{McpError, StoreError};
use duplexer_types::methods::Method;
use tokio::time::{Instant, sleep};

use super::create::Created;
use super::{Engine, Unchanged};
use crate::features::tasks::call::TaskCall;
use crate::features::tasks::change::{Author, Change, lost};
use crate::features::tasks::limits::MESSAGE_INTERVAL;
use crate::features::tasks::record::{TaskId, TaskOutcome, TaskRecord};
use crate::features::tasks::{too_long, view};
use crate::kernel::outcome::Outcome;

/// The future of a call.
pub(crate) type Work = BoxFuture<'static, Result<Outcome, McpError>>;

/// Why the work of a task is over.
enum Ended {
    With(TaskOutcome),
    /// Another program ends the task.
    HandedOver,
    /// Another run has the task, or it has ended already.
    Lost,
    /// The server stops.
    Stopped,
}

/// What a run learns about its task from the record.
enum News {
    Cancelled,
    Lost,
}

/// Returns how work has ended by itself.
fn ended(call: &TaskCall, outcome: Result<Result<Outcome, McpError>, McpError>) -> Ended {
    if call.is_handed_over() && outcome.is_ok() {
        return Ended::HandedOver;
    }
    Ended::With(view::outcome(outcome.and_then(|outcome| outcome), Method::ToolsCall.name()))
}

impl Engine {
    /// Runs the work of a task in a task of its own.
    pub(crate) fn spawn(self: &Arc<Self>, created: Created, call: Arc<TaskCall>, work: Work) {
        let record = created.start();
        let engine = Arc::clone(self);
        let span = tracing::info_span!("task", id = %record.id, tool = record.call.tool);
        span.follows_from(tracing::Span::current());
        self.work.tracker.spawn(tracing::Instrument::instrument(
            async move {
                engine.drive(&record, &call, work).await;
                engine.release();
            },
            span,
        ));
    }

    async fn drive(self: &Arc<Self>, record: &TaskRecord, call: &TaskCall, work: Work) {
        let (id, is_resumable) = (&record.id, record.lease.resumable);
        let author = Author::Run(self.run, record.lease.epoch);
        let ended = self.work_on(id, author, call, CatchUnwind::of(work)).await;
        call.release_slot();
        let end = |outcome| Change::End { outcome, message: call.take_message() };
        match ended {
            Ended::With(outcome) => self.finish(id, author, end(outcome)).await,
            Ended::Stopped if is_resumable => {
                self.finish(id, author, Change::Release).await;
                // Another server on this store continues it at once.
                self.plan.hub.upkeep_at(self.clock.now());
            }
            Ended::Stopped => self.finish(id, author, end(lost("The server was stopped"))).await,
            Ended::HandedOver | Ended::Lost => {}
        }
    }

    async fn work_on(
        self: &Arc<Self>,
        id: &TaskId,
        author: Author,
        call: &TaskCall,
        mut work: CatchUnwind<Result<Outcome, McpError>>,
    ) -> Ended {
        let mut news = std::pin::pin!(self.news(id, author));
        tokio::select! {
            biased;
            () = call.acquire_slot() => {}
            news = &mut news => return match news {
                News::Cancelled => Ended::With(TaskOutcome::Cancelled),
                News::Lost => Ended::Lost,
            },
            () = self.work.stopping.cancelled() => return Ended::Stopped,
        }
        tokio::select! {
            biased;
            outcome = &mut work => ended(call, outcome),
            news = news => self.cancelled(call, work, news).await,
            limit = call.timed_out() => {
                Ended::With(view::tool_error(&too_long(limit)))
            }
            () = self.work.stopping.cancelled() => Ended::Stopped,
            () = self.write_messages(id, author, call) => Ended::Lost,
        }
    }

    /// Ends cancelled work: at once, or after the time that its tool gives it.
    async fn cancelled(
        &self,
        call: &TaskCall,
        mut work: CatchUnwind<Result<Outcome, McpError>>,
        news: News,
    ) -> Ended {
        call.cancel();
        let ended = match call.cancel_grace() {
            None => None,
            Some(grace) => tokio::select! {
                biased;
                outcome = &mut work => Some(ended(call, outcome)),
                () = sleep(grace) => None,
                () = self.work.stopping.cancelled() => None,
            },
        };
        match (news, ended) {
            (News::Lost, _) => Ended::Lost,
            // What a blocking function still returns comes too late.
            (News::Cancelled, Some(ended)) if !call.is_blocking() => ended,
            (News::Cancelled, _) => Ended::With(TaskOutcome::Cancelled),
        }
    }

    /// Waits until the record says that the work is to end.
    async fn news(&self, id: &TaskId, author: Author) -> News {
        let watch = self.plan.hub.watch(id);
        loop {
            let mut changed = std::pin::pin!(watch.notified());
            changed.as_mut().enable();
            match self.get(id).await {
                Ok(None) => return News::Lost,
                Ok(Some(record)) => {
                    let holds = Author::Run(self.run, record.lease.epoch) == author
                        && (record.lease.run == Some(self.run) || record.lease.handed_over);
                    if record.is_final() || !holds {
                        return News::Lost;
                    }
                    if record.state.cancel_requested {
                        return News::Cancelled;
                    }
                }
                Err(error) => tracing::warn!(%error, task = %id, "the store cannot be read"),
            }
            changed.await;
        }
    }

    /// Stores status texts, at most one per interval. Never ends.
    async fn write_messages(&self, id: &TaskId, author: Author, call: &TaskCall) {
        loop {
            call.message_changed().await;
            if let Some(text) = call.take_message()
                && let Err(error) = self.update(id, author, &Change::Message(text)).await
            {
                tracing::debug!(?error, task = %id, "a status text is not stored");
            }
            sleep(MESSAGE_INTERVAL).await;
        }
    }

    /// Stores the end of a task. A store that fails is tried again, because the lease of the run is prolonged as long as it
    /// works on any task, so that no other run would end this one. Only a server that stops gives up: its lease ends.
    pub(super) async fn finish(&self, id: &TaskId, author: Author, mut change: Change) {
        let start = Instant::now();
        let mut delay = Duration::from_millis(50);
        loop {
            match self.update(id, author, &change).await {
                Ok(record) => {
                    if let Some(forgotten) = record.times.forgotten() {
                        self.upkeep_at(forgotten);
                        tracing::debug!(task = %id, status = %record.status(), "a task has ended");
                    }
                    return;
                }
                Err(Unchanged::Unknown | Unchanged::Refused(_)) => {
                    tracing::debug!(task = %id, "the end of a task comes too late");
                    return;
                }
                Err(Unchanged::Store(error))
                    if self.work.stopping.is_cancelled() && start.elapsed() > self.plan.settings.lease =>
                {
                    tracing::error!(%error, task = %id, "the end of a task could not be stored");
                    return;
                }
                Err(Unchanged::Store(error)) => {
                    tracing::warn!(%error, task = %id, "the end of a task is not stored yet");
                    if matches!(error, StoreError::Full) {
                        shorten(&mut change);
                    }
                    sleep(delay).await;
                    delay = (delay * 2).min(self.renewal());
                }
            }
        }
    }
}

/// Replaces a result that does not fit into the store by a tool error that says so.
fn shorten(change: &mut Change) {
    if let Change::End { outcome: outcome @ TaskOutcome::Result { .. }, .. } = change {
        *outcome =
            view::tool_error("The result cannot be kept: the tasks of this server are at their limit.");
    }
}
