//! Tokens of a function of the application (OAC-59).

use std::future::Future;
use std::sync::Arc;

use duplexer_core::dispatch::BoxFuture;
use duplexer_core::error::BoxError;
use duplexer_oauth_base::Secret;

type Function = dyn Fn() -> BoxFuture<'static, Result<Secret, BoxError>> + Send + Sync;

/// Function that gives a bearer token whenever one is needed.
#[derive(Clone)]
pub(crate) struct TokenFunction(Arc<Function>);

impl TokenFunction {
    pub(crate) fn new<F, R>(function: F) -> Self
    where
        F: Fn() -> R + Send + Sync + 'static,
        R: Future<Output = Result<Secret, BoxError>> + Send + 'static,
    {
        Self(Arc::new(move || Box::pin(function())))
    }

    pub(crate) async fn token(&self) -> Result<Secret, BoxError> {
        (self.0)().await
    }
}
