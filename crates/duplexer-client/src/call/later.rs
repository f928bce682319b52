//! Results that come after the answer to a call: of tasks, and of types that an extension defines.

use bytestring::ByteString;
use duplexer_types::json::JsonObject;

use super::exchange::Exchange;
use crate::ClientError;
use crate::extension::ClaimedResult;
use crate::params::Params;
use crate::tasks;
use duplexer_core::error::CallError;

impl Exchange {
    /// Sends the request and returns its final result, even if that comes later. With `as_task` the params ask for a task.
    pub(super) async fn complete(
        &mut self,
        params: &dyn Params,
        as_task: bool,
    ) -> Result<ByteString, ClientError> {
        match self.finish(params).await {
            Ok(text) if as_task => self.awaited_task(params, &text).await,
            Err(ClientError::ResultType { method, result_type, result }) => {
                let claimed = ClaimedResult { client: &self.client, method, result_type, result };
                self.claimed(params, claimed).await
            }
            outcome => outcome,
        }
    }

    /// Waits for the task that a call of 2025-11-25 has asked for.
    async fn awaited_task(&self, params: &dyn Params, text: &str) -> Result<ByteString, ClientError> {
        let Some(created) = tasks::created(text)? else {
            // The server answers directly, because it does not have tasks.
            self.validate_own(params, text).await?;
            return Ok(text.into());
        };
        let options = self.client.0.callbacks.tasks.clone().unwrap_or_default();
        let text = ByteString::from(tasks::finish(&self.client, created, &options).await?.as_str());
        self.validate_own(params, &text).await?;
        Ok(text)
    }

    /// Has the extension that claims a result finish it.
    async fn claimed(
        &self,
        params: &dyn Params,
        claimed: ClaimedResult<'_>,
    ) -> Result<ByteString, ClientError> {
        let version = self.client.0.session.version;
        let mut active = self.client.0.callbacks.extensions.iter().filter(|it| it.window().contains(version));
        let Some(extension) = active.find(|it| it.claims(claimed.method, &claimed.result_type)) else {
            return Err(claimed.unfinished());
        };
        let text = ByteString::from(extension.finish(claimed).await?.as_str());
        self.validate_own(params, &text).await?;
        Ok(text)
    }

    /// Gives a result that came later to the validator, with the params of the call.
    async fn validate_own(&self, params: &dyn Params, text: &str) -> Result<(), ClientError> {
        let version = self.client.0.session.version;
        let text_of_params = params.encode(version, &JsonObject::new()).map_err(CallError::Encode)?;
        match self.validation(params, Some(&text_of_params), text)? {
            Some(validation) => validation.await.map_err(ClientError::Validation),
            None => Ok(()),
        }
    }
}
