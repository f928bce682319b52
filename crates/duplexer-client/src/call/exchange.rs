//! One request of any method until its result: rounds, cache and retries. It knows params and results as text, so it is
//! compiled once, not once per method.

use bytestring::ByteString;
use duplexer_types::error::{ErrorCode, ErrorObject};
use duplexer_types::json::{Json, JsonObject};
use duplexer_types::methods::Method;
use duplexer_types::version::ProtocolVersion;
use duplexer_types::wire::{result_type, result_type_of};
use serde::ser::Error as _;

use super::{CallResponse, Validator};
use crate::cache::CacheMode;
use crate::input::{self, Retry};
use crate::params::Params;
use crate::session::merge_headers;
use crate::{Client, ClientError};
use duplexer_core::dispatch::{CallOptions, OutboundRequest};
use duplexer_core::error::CallError;

/// Checks that a result can be decoded. The second argument is the newest revision whose members are kept.
pub(super) type Check = fn(&str, Option<ProtocolVersion>) -> Result<(), CallError>;

/// A request without its params.
pub(super) struct Exchange {
    pub(super) client: Client,
    pub(super) method: Method,
    pub(super) check: Check,
    pub(super) meta: JsonObject,
    pub(super) options: CallOptions,
    pub(super) cache: CacheMode,
    /// Why the params could not be built. Reported when the call is awaited.
    pub(super) fault: Option<serde_json::Error>,
}

impl Exchange {
    pub(super) fn new(client: Client, method: Method, check: Check) -> Self {
        let (meta, options) = (JsonObject::new(), CallOptions::default());
        Self { client, method, check, meta, options, cache: CacheMode::default(), fault: None }
    }

    /// Sends the request once.
    pub(super) async fn round(
        &self,
        params: &dyn Params,
        retry: &Retry,
    ) -> Result<CallResponse<ByteString>, ClientError> {
        let client = &self.client;
        let request = self.outbound(params, retry)?;
        let text_of_params = match &client.0.validator {
            Some(Validator::Custom(_)) => request.params.clone(),
            _ => None,
        };
        let text = match client.send(request).await {
            Err(CallError::Rpc(refusal)) if self.can_correct_headers(&refusal) => {
                // Without the new annotations the refusal is final.
                if client.refresh_tool_headers().await.is_err() {
                    return Err(CallError::Rpc(refusal).into());
                }
                client.send(self.outbound(params, retry)?).await?
            }
            outcome => outcome?,
        };
        if client.0.session.result_revision.is_none() {
            match &*result_type_of(&text).map_err(CallError::Unexpected)? {
                result_type::COMPLETE => {}
                result_type::INPUT_REQUIRED if self.method.asks_for_input() => {
                    let required = serde_json::from_str(&text).map_err(CallError::Unexpected)?;
                    return Ok(CallResponse::InputRequired(required));
                }
                other => {
                    let (method, result_type) = (self.method, other.to_owned());
                    let result = Json::parse(&text).map_err(CallError::Unexpected)?;
                    return Err(ClientError::ResultType { method, result_type, result });
                }
            }
        }
        // The creation of a task is not the result of the call.
        if !client.asks_for_task(params)
            && let Some(validation) = self.validation(params, text_of_params.as_ref(), &text)?
        {
            validation.await.map_err(ClientError::Validation)?;
        }
        Ok(CallResponse::Complete(text))
    }

    /// Returns whether a call of a tool was refused because the annotations of its headers have changed.
    fn can_correct_headers(&self, refusal: &ErrorObject) -> bool {
        self.method == Method::ToolsCall
            && refusal.code == ErrorCode::HEADER_MISMATCH
            && self.client.0.session.result_revision.is_none()
    }

    /// Builds the request of one round.
    fn outbound(&self, params: &dyn Params, retry: &Retry) -> Result<OutboundRequest, ClientError> {
        let client = &self.client;
        if let Some(fault) = &self.fault {
            return Err(CallError::Encode(serde_json::Error::custom(fault)).into());
        }
        client.check_available(self.method)?;
        let mut request = client.0.session.envelope.attach(self.method, params, self.meta.clone())?;
        request.params = retry.add_to(request.params)?;
        let mut headers = std::mem::replace(&mut request.options, self.options.clone()).headers;
        headers.extend(client.param_headers(params));
        request.options.headers = merge_headers(headers, std::mem::take(&mut request.options.headers));
        client.0.timeouts.apply(&mut request.options);
        Ok(request)
    }

    /// Returns the result of the cache or of the server.
    pub(super) async fn finish(&mut self, params: &dyn Params) -> Result<ByteString, ClientError> {
        if !self.method.is_cacheable() || self.is_uncacheable() {
            return Ok(self.rounds(params).await?.0);
        }
        let client = self.client.clone();
        let lookup = client.0.resources.cache.lookup(self.method, params, client.0.session.version);
        let Some(lookup) = lookup else { return Ok(self.rounds(params).await?.0) };
        if self.cache == CacheMode::Use
            && let Some(text) = lookup.hit()
        {
            return Ok(text);
        }
        let (text, round) = self.rounds(params).await?;
        // A result that depends on input is for this request only.
        if round == 0 {
            lookup.store(&text);
        }
        Ok(text)
    }

    /// Headers and metadata of the caller can change the result, for example through another authorization.
    fn is_uncacheable(&self) -> bool {
        self.cache == CacheMode::Bypass || !self.options.headers.is_empty() || !self.meta.is_empty()
    }

    /// Sends the request in rounds until there is a result, and returns it with the number of its round. The callbacks
    /// answer the input requests between them.
    async fn rounds(&mut self, params: &dyn Params) -> Result<(ByteString, u32), ClientError> {
        let mut retry = Retry::default();
        let max_rounds = self.client.0.callbacks.input_rounds;
        for round in 0..=max_rounds {
            match self.round(params, &retry).await? {
                CallResponse::Complete(text) => return Ok((text, round)),
                CallResponse::InputRequired(_) if round == max_rounds => break,
                CallResponse::InputRequired(required) => {
                    let version = self.client.0.session.version;
                    retry = input::respond(&self.client.0.callbacks, required, round, version).await?;
                }
            }
            // Every round is a request with its own id.
            self.options.id = None;
        }
        Err(ClientError::TooManyRounds { method: self.method, rounds: max_rounds })
    }
}
