//! Calls user-provided stores with a timeout and panic isolation.

use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use duplexer_core::error::{Chain, StoreError};
use tokio::time::timeout;

/// Time for one operation of a store. An operation that takes longer counts as failed.
const STORE_TIMEOUT: Duration = Duration::from_secs(5);

/// Runs an operation of a store.
pub(super) async fn with_timeout<T, F>(operation: impl FnOnce() -> F) -> Result<T, StoreError>
where
    F: Future<Output = Result<T, StoreError>>,
{
    let contained = async {
        let panicked = || StoreError::Failed("it panicked".into());
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
            tracing::error!(error = %Chain(&error), "a store has failed");
            Err(error)
        }
        Err(_) => {
            tracing::error!("a store takes too long");
            Err(StoreError::Unavailable("it takes too long".into()))
        }
    }
}
