//! Calls of tools whose failure is an error, and whose result is a text or a value.

use duplexer_types::methods::ToolsCall;
use serde::de::DeserializeOwned;

use super::{Call, ClientError};

impl Call<ToolsCall> {
    /// Calls the tool and decodes its structured content.
    ///
    /// ```no_run
    /// # use duplexer_client::{Client, ClientError};
    /// # async fn example(client: Client) -> Result<(), ClientError> {
    /// use serde_json::json;
    ///
    /// let sum: i64 = client.call_tool("add", json!({"a": 1, "b": 2})).structured().await?;
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// Fails like awaiting the call, with [`ClientError::ToolFailed`] if the tool reports a failure, and with
    /// [`ClientError::Structured`] if there is no structured content or if it is not a `T`.
    pub async fn structured<T: DeserializeOwned>(self) -> Result<T, ClientError> {
        let result = self.await?.into_result()?;
        result.decode_structured().map_err(ClientError::Structured)
    }

    /// Calls the tool and returns the text blocks of its content, one below the other.
    ///
    /// # Errors
    ///
    /// Fails like awaiting the call, and with [`ClientError::ToolFailed`] if the tool reports a failure.
    pub async fn text(self) -> Result<String, ClientError> {
        Ok(self.await?.into_result()?.to_text())
    }
}
