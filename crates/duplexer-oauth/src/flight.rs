//! One operation at a time: callers that come while it runs wait for its result.

use std::future::Future;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::error::OAuthError;

type Outcome = Result<(), OAuthError>;

/// Place for one operation.
#[derive(Debug, Default)]
pub(crate) struct SingleFlight(Mutex<Weak<Flight>>);

/// An operation that runs in a task of its own.
#[derive(Debug)]
struct Flight {
    outcome: watch::Receiver<Option<Outcome>>,
    /// Aborts the task when the last caller is dropped. Empty if the task must run to its end.
    _task: JoinSet<()>,
}

/// Owner of tasks that run to their end, whether their callers wait or not.
#[derive(Debug, Default)]
pub(crate) struct Tasks(Mutex<JoinSet<()>>);

impl SingleFlight {
    /// Joins the operation that runs, or starts one. It is cancelled when the last caller is dropped.
    pub(crate) async fn cancellable<F>(&self, start: impl FnOnce() -> F) -> Outcome
    where
        F: Future<Output = Outcome> + Send + 'static,
    {
        self.join(|report| {
            let mut own = JoinSet::new();
            own.spawn(report.of(start()));
            own
        })
        .await
    }

    /// Joins the operation that runs, or starts one that runs to its end: it can spend what must not be lost.
    pub(crate) async fn completed<F>(&self, tasks: &Tasks, start: impl FnOnce() -> F) -> Outcome
    where
        F: Future<Output = Outcome> + Send + 'static,
    {
        self.join(|report| {
            let mut running = tasks.0.lock().unwrap_or_else(PoisonError::into_inner);
            while running.try_join_next().is_some() {}
            running.spawn(report.of(start()));
            JoinSet::new()
        })
        .await
    }

    async fn join(&self, start: impl FnOnce(Report) -> JoinSet<()>) -> Outcome {
        let flight = {
            let mut slot = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(flight) = slot.upgrade().filter(|flight| flight.outcome.borrow().is_none()) {
                flight
            } else {
                let (send, outcome) = watch::channel(None);
                let flight = Arc::new(Flight { outcome, _task: start(Report(send)) });
                *slot = Arc::downgrade(&flight);
                flight
            }
        };
        let mut outcome = flight.outcome.clone();
        let ended = match outcome.wait_for(Option::is_some).await {
            Ok(outcome) => outcome.clone(),
            Err(_) => None,
        };
        ended.unwrap_or_else(|| {
            Err(OAuthError::Config("a login ended with a panic, which is in the log".into()))
        })
    }
}

struct Report(watch::Sender<Option<Outcome>>);

impl Report {
    async fn of(self, operation: impl Future<Output = Outcome>) {
        let outcome = operation.await;
        self.0.send_replace(Some(outcome));
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use tokio::sync::Notify;

    use super::*;

    /// OAC-94: concurrent callers share one operation and its failure; the next one starts another.
    #[tokio::test]
    async fn concurrent_callers_share_an_operation() {
        let (flight, starts, go) = (SingleFlight::default(), AtomicUsize::new(0), Arc::new(Notify::new()));
        let call = || {
            flight.cancellable(|| {
                starts.fetch_add(1, Ordering::SeqCst);
                let go = Arc::clone(&go);
                async move {
                    go.notified().await;
                    Err(OAuthError::LoginDenied)
                }
            })
        };
        let release = async { go.notify_one() };
        let (one, two, three, ()) = tokio::join!(call(), call(), call(), release);
        for outcome in [one, two, three] {
            assert!(matches!(outcome, Err(OAuthError::LoginDenied)));
        }
        assert_eq!(starts.load(Ordering::SeqCst), 1);
        go.notify_one();
        assert!(call().await.is_err());
        assert_eq!(starts.load(Ordering::SeqCst), 2);
    }

    struct OnDrop(Arc<Notify>);

    impl Drop for OnDrop {
        fn drop(&mut self) {
            self.0.notify_one();
        }
    }

    /// OAC-94: the caller that started it can leave; the operation ends when the last one does.
    #[tokio::test]
    async fn an_operation_lives_as_long_as_a_caller_waits() {
        let (flight, go, dropped) =
            (Arc::new(SingleFlight::default()), Arc::new(Notify::new()), Arc::new(Notify::new()));
        let start = || {
            let (go, guard) = (Arc::clone(&go), OnDrop(Arc::clone(&dropped)));
            async move {
                go.notified().await;
                drop(guard);
                Ok(())
            }
        };
        let mut first = Box::pin(flight.cancellable(start));
        assert!(futures_now(&mut first).await.is_none());
        let mut second = Box::pin(flight.cancellable(|| async { Err(OAuthError::LoginDenied) }));
        assert!(futures_now(&mut second).await.is_none());
        drop(first);
        go.notify_one();
        assert!(second.await.is_ok());
        dropped.notified().await;
        // Without a caller the operation is dropped before its end.
        let mut alone = Box::pin(flight.cancellable(start));
        assert!(futures_now(&mut alone).await.is_none());
        drop(alone);
        dropped.notified().await;
    }

    /// OAC-48: a refresh that has been sent is stored, also if its caller leaves.
    #[tokio::test]
    async fn an_operation_that_must_complete_outlives_its_callers() {
        let (flight, tasks, go, done) =
            (SingleFlight::default(), Tasks::default(), Arc::new(Notify::new()), Arc::new(Notify::new()));
        let start = || {
            let (go, done) = (Arc::clone(&go), Arc::clone(&done));
            async move {
                go.notified().await;
                done.notify_one();
                Ok(())
            }
        };
        let mut caller = Box::pin(flight.completed(&tasks, start));
        assert!(futures_now(&mut caller).await.is_none());
        drop(caller);
        go.notify_one();
        done.notified().await;
    }

    /// Polls once.
    async fn futures_now<F: Future + Unpin>(future: &mut F) -> Option<F::Output> {
        std::future::poll_fn(|cx| {
            std::task::Poll::Ready(match std::pin::Pin::new(&mut *future).poll(cx) {
                std::task::Poll::Ready(output) => Some(output),
                std::task::Poll::Pending => None,
            })
        })
        .await
    }
}
