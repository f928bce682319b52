//! One request with its options, and what may come back.

use std::any::type_name;
use std::fmt;
use std::time::Duration;

use bytestring::ByteString;
use duplexer_types::input::InputRequiredResult;
use duplexer_types::json::{Json, JsonObject};
use duplexer_types::methods::{Method, Request};
use duplexer_types::page::PaginatedParams;
use duplexer_types::wire::{result_type, result_type_of};

use super::input::{self, Retry};
use super::session::{merged, read};
use super::{Client, ClientError};
use duplexer_core::dispatch::{BoxFuture, CallOptions, Progress};
use duplexer_core::error::{BoxError, CallError};

/// A request that is sent when it is awaited.
///
/// Dropping the future tells the server to stop; so does the end of its timeout.
#[must_use = "a request is sent when it is awaited"]
pub struct Call<M: Request> {
    client: Client,
    params: M::Params,
    meta: JsonObject,
    options: CallOptions,
}

/// What a request is answered with.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum CallResponse<R> {
    /// The result.
    Complete(R),
    /// The server needs something first; the same request is to be sent again with it.
    InputRequired(InputRequiredResult),
}

/// Looks at final results before they are given out: whether a tool's result fits its schema, for example.
pub trait ResultValidator: Send + Sync + 'static {
    /// Refuses a result, or lets it pass.
    fn validate<'a>(&'a self, call: CompletedCall<'a>) -> BoxFuture<'a, Result<(), BoxError>>;
}

/// A request and its final result, as they were said.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct CompletedCall<'a> {
    /// The session, for asking what is missing.
    pub client: &'a Client,
    /// What was asked.
    pub method: Method,
    /// With what: the JSON text of an object.
    pub params: &'a str,
    /// The JSON text of the result.
    pub result: &'a str,
}

impl<M: Request> Call<M> {
    pub(super) fn new(client: Client, params: M::Params) -> Self {
        Self { client, params, meta: JsonObject::new(), options: CallOptions::default() }
    }

    /// With these options; earlier ones are forgotten.
    pub fn options(mut self, options: CallOptions) -> Self {
        self.options = options;
        self
    }

    /// Waits at most this long for the answer.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.options = self.options.timeout(timeout);
        self
    }

    /// Calls `callback` for every progress notification.
    pub fn on_progress(mut self, callback: impl Fn(Progress) + Send + Sync + 'static) -> Self {
        self.options = self.options.on_progress(callback);
        self
    }

    /// With these members in `_meta`, beside those that every request of the session carries.
    pub fn meta(mut self, meta: JsonObject) -> Self {
        self.meta = meta;
        self
    }

    /// Sends the request once and gives out what comes back, be it the result or a request for input.
    pub async fn once(self) -> Result<CallResponse<M::Result>, ClientError> {
        match self.round(&Retry::default()).await? {
            CallResponse::Complete(text) => Ok(CallResponse::Complete(self.read(&text)?)),
            CallResponse::InputRequired(asked) => Ok(CallResponse::InputRequired(asked)),
        }
    }

    /// The result as it came, with all that this library does not know. Questions on the way are answered.
    pub async fn raw(mut self) -> Result<Json, ClientError> {
        let text = self.finish().await?;
        Json::parse(&text).map_err(|error| CallError::Unexpected(error).into())
    }

    fn read(&self, text: &str) -> Result<M::Result, CallError> {
        read(text, self.client.0.session.result_revision)
    }

    async fn round(&self, retry: &Retry) -> Result<CallResponse<ByteString>, ClientError> {
        let client = &self.client;
        client.check_available(M::METHOD)?;
        let session = &client.0.session;
        let mut request = session.envelope.attach::<M>(&self.params, self.meta.clone())?;
        request.params = retry.add_to(request.params)?;
        let headers = std::mem::replace(&mut request.options, self.options.clone()).headers;
        request.options.headers = merged(headers, std::mem::take(&mut request.options.headers));
        request.options.timeout = self.options.timeout.or(client.0.timeout);
        let sent = client.0.validator.as_ref().and(request.params.clone());
        let text = client.0.peer.request(request).await?;
        if session.result_revision.is_none() {
            match &*result_type_of(&text).map_err(CallError::Unexpected)? {
                result_type::COMPLETE => {}
                result_type::INPUT_REQUIRED if M::METHOD.asks_for_input() => {
                    let asked = serde_json::from_str(&text).map_err(CallError::Unexpected)?;
                    return Ok(CallResponse::InputRequired(asked));
                }
                other => {
                    let result_type = other.to_owned();
                    return Err(ClientError::ResultType { method: M::METHOD, result_type });
                }
            }
        }
        if let Some(validator) = &client.0.validator {
            // What cannot be read is no result that could be checked.
            self.read(&text)?;
            let params = sent.as_ref().map_or("{}", Json::as_str);
            let call = CompletedCall { client, method: M::METHOD, params, result: &text };
            validator.validate(call).await.map_err(ClientError::Validation)?;
        }
        Ok(CallResponse::Complete(text))
    }

    /// Round after round, until there is a result: what the server asks for, the callbacks answer.
    async fn finish(&mut self) -> Result<ByteString, ClientError> {
        let mut retry = Retry::default();
        for round in 0..=input::ROUNDS {
            match self.round(&retry).await? {
                CallResponse::Complete(text) => return Ok(text),
                CallResponse::InputRequired(_) if round == input::ROUNDS => break,
                CallResponse::InputRequired(asked) => {
                    let version = self.client.0.session.version;
                    retry = input::answer(&self.client.0.callbacks, asked, round, version).await?;
                }
            }
            // Every round is a request of its own.
            self.options.id = None;
        }
        Err(ClientError::TooManyRounds { method: M::METHOD, rounds: input::ROUNDS })
    }
}

impl<M: Request<Params = PaginatedParams>> Call<M> {
    /// The page that begins here. The empty string is a cursor like any other.
    pub fn cursor(mut self, cursor: impl Into<String>) -> Self {
        self.params = self.params.cursor(cursor);
        self
    }
}

impl<M: Request + 'static> IntoFuture for Call<M> {
    type Output = Result<M::Result, ClientError>;
    type IntoFuture = BoxFuture<'static, Self::Output>;

    fn into_future(mut self) -> Self::IntoFuture {
        Box::pin(async move {
            let text = self.finish().await?;
            Ok(self.read(&text)?)
        })
    }
}

impl<M: Request> fmt::Debug for Call<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct(type_name::<Self>()).field("method", &M::METHOD).finish_non_exhaustive()
    }
}
