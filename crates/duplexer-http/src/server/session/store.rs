//! Stores are somebody else's: they get a limited time, and their failures stay where they happen.

use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use duplexer_core::error::BoxError;
use tokio::time::timeout;

/// What a store gets for one operation. One that takes longer counts as broken.
const STORE_TIMEOUT: Duration = Duration::from_secs(5);

/// The store has failed or takes too long; the log says which.
#[derive(Clone, Copy, Debug)]
pub(in crate::server) struct StoreFailed;

/// What a store has to say, if it does so in time.
pub(super) async fn with_timeout<T, F>(operation: impl FnOnce() -> F) -> Result<T, StoreFailed>
where
    F: Future<Output = Result<T, BoxError>>,
{
    let contained = async {
        let panicked = || BoxError::from("it panicked");
        let mut operation = pin!(catch_unwind(AssertUnwindSafe(operation)).map_err(|_| panicked())?);
        poll_fn(|cx| {
            catch_unwind(AssertUnwindSafe(|| operation.as_mut().poll(cx)))
                .unwrap_or_else(|_| Poll::Ready(Err(panicked())))
        })
        .await
    };
    match timeout(STORE_TIMEOUT, contained).await {
        Ok(Ok(done)) => Ok(done),
        Ok(Err(error)) => {
            tracing::error!(%error, "a store has failed");
            Err(StoreFailed)
        }
        Err(_) => {
            tracing::error!("a store takes too long");
            Err(StoreFailed)
        }
    }
}
