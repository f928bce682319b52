//! Results that come after the answer to a call: of tasks, and of types that an extension defines.

use bytestring::ByteString;
use duplexer_types::json::Json;
use duplexer_types::methods::Request;
use duplexer_types::wire::{ForRevision, Shape};

use super::Call;
use crate::extension::ClaimedResult;
use crate::tasks;
use crate::{Client, ClientError};
use duplexer_core::error::CallError;

impl<M: Request> Call<M> {
    /// Waits for the task that a call of 2025-11-25 has asked for.
    pub(super) async fn awaited_task(&self, text: &str) -> Result<ByteString, ClientError> {
        let Some(created) = tasks::created(text)? else {
            // The server answers directly, because it does not have tasks.
            self.validate_own(text).await?;
            return Ok(text.into());
        };
        let options = self.client.0.callbacks.tasks.clone().unwrap_or_default();
        let text = ByteString::from(tasks::finish(&self.client, created, &options).await?.as_str());
        self.validate_own(&text).await?;
        Ok(text)
    }

    pub(crate) fn client(&self) -> &Client {
        &self.client
    }

    pub(crate) fn params(&self) -> &M::Params {
        &self.params
    }

    pub(crate) fn params_mut(&mut self) -> &mut M::Params {
        &mut self.params
    }

    /// Has the extension that claims a result finish it.
    pub(super) async fn claimed(&self, claimed: ClaimedResult<'_>) -> Result<ByteString, ClientError> {
        let version = self.client.0.session.version;
        let mut active = self.client.0.callbacks.extensions.iter().filter(|it| it.window().contains(version));
        let Some(extension) = active.find(|it| it.claims(claimed.method, &claimed.result_type)) else {
            return Err(claimed.unfinished());
        };
        let text = ByteString::from(extension.finish(claimed).await?.as_str());
        self.validate_own(&text).await?;
        Ok(text)
    }

    /// Gives a result that came later to the validator, with the params of the call.
    async fn validate_own(&self, text: &str) -> Result<(), ClientError> {
        let shape = Shape::new(self.client.0.session.version);
        let params = Json::encode(&ForRevision(&self.params, shape)).map_err(CallError::Encode)?;
        match self.validation(Some(&params), text)? {
            Some(validation) => validation.await.map_err(ClientError::Validation),
            None => Ok(()),
        }
    }
}
