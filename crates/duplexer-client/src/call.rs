//! One request with its options, and its response.

mod later;

#[cfg(feature = "schema")]
use std::any::Any;
use std::any::type_name;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bytestring::ByteString;
use duplexer_types::error::{ErrorCode, ErrorObject};
use duplexer_types::input::InputRequiredResult;
use duplexer_types::json::{Json, JsonObject};
use duplexer_types::methods::{Method, Request};
use duplexer_types::page::PaginatedParams;
#[cfg(feature = "schema")]
use duplexer_types::tool::CallToolParams;
use duplexer_types::wire::{result_type, result_type_of};
use serde::ser::Error as _;

use super::cache::CacheMode;
use super::extension::ClaimedResult;
use super::input::{self, Retry};
#[cfg(feature = "schema")]
use super::output_schemas::OutputSchemas;
use super::session::{decode_result, merge_headers};
use super::tasks::Wish;
use super::{Client, ClientError};
use duplexer_core::dispatch::{BoxFuture, CallOptions, OutboundRequest, Progress};
use duplexer_core::error::{BoxError, CallError};

/// Request that is sent when it is awaited.
///
/// Dropping the future cancels the request at the server; so does the timeout. If the server requests input, the
/// client's callbacks answer and the request is sent again, up to ten times
/// ([`ClientBuilder::max_input_rounds`](super::ClientBuilder::max_input_rounds)).
///
/// # Errors
///
/// Awaiting fails with the reasons of [`ClientError`].
///
/// ```
/// use std::time::Duration;
/// use serde_json::json;
///
/// # use duplexer::client::prelude::*;
/// # /// Indexes.
/// # #[duplexer::tool]
/// # async fn index(path: String) -> String { path }
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), BoxError> {
/// # let server = duplexer::Server::builder("indexer", "1.0.0").tool(index).build()?.in_process();
/// # let client = Client::builder("my-agent", "1.0").connect(server).await?;
/// let result = client
///     .call_tool("index", json!({"path": "/work"}))
///     .timeout(Duration::from_secs(60))
///     .on_progress(|report| println!("{}", report.progress))
///     .await?;
/// # assert_eq!(result.to_text(), "/work");
/// # Ok(())
/// # }
/// ```
#[must_use = "a request is sent when it is awaited"]
pub struct Call<M: Request> {
    client: Client,
    params: M::Params,
    meta: JsonObject,
    options: CallOptions,
    cache: CacheMode,
    /// Why the params could not be built. Reported when the call is awaited.
    fault: Option<serde_json::Error>,
}

/// Response to one round of a request.
///
/// ```
/// use duplexer::client::{CallResponse, prelude::*};
/// use duplexer::{Server, Tool};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), duplexer::BoxError> {
/// let server = Server::builder("greeter", "1.0.0").tool(Tool::new("hello", || async { "Hello!" })).build()?;
/// let client = Client::builder("my-agent", "1.0").connect(server.in_process()).await?;
/// match client.call_tool("hello", ()).once().await? {
///     CallResponse::Complete(result) => assert_eq!(result.to_text(), "Hello!"),
///     CallResponse::InputRequired(questions) => println!("the server asks: {questions:?}"),
///     _ => {}
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum CallResponse<R> {
    /// The result.
    Complete(R),
    /// The server requests input. The same request is to be sent again with the responses.
    InputRequired(InputRequiredResult),
}

/// Validator of final results, for example of a tool's result against its output schema.
///
/// Set it with [`ClientBuilder::result_validator`](super::ClientBuilder::result_validator).
///
/// ```
/// use duplexer::client::{Client, CompletedCall, ResultValidator};
/// use duplexer::dispatch::BoxFuture;
/// use duplexer::BoxError;
///
/// /// Refuses results that are too long for a model.
/// struct AtMost(usize);
///
/// impl ResultValidator for AtMost {
///     fn validate<'a>(&'a self, call: CompletedCall<'a>) -> BoxFuture<'a, Result<(), BoxError>> {
///         let fits = call.result.len() <= self.0;
///         Box::pin(async move { if fits { Ok(()) } else { Err("the result is too long".into()) } })
///     }
/// }
///
/// let client = Client::builder("my-agent", "1.0").result_validator(AtMost(100_000));
/// ```
pub trait ResultValidator: Send + Sync + 'static {
    /// Accepts a result or rejects it with a reason. The call then fails with [`ClientError::Validation`].
    fn validate<'a>(&'a self, call: CompletedCall<'a>) -> BoxFuture<'a, Result<(), BoxError>>;
}

/// What validates the results of a session.
pub(super) enum Validator {
    Custom(Arc<dyn ResultValidator>),
    #[cfg(feature = "schema")]
    OutputSchemas(OutputSchemas),
}

/// Request and its final result, verbatim.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct CompletedCall<'a> {
    /// The session, for further requests such as `tools/list`.
    pub client: &'a Client,
    /// Method of the request.
    pub method: Method,
    /// Parameters of the request: the JSON text of an object.
    pub params: &'a str,
    /// JSON text of the result.
    pub result: &'a str,
}

/// The validation of one result.
type Validation<'a> = BoxFuture<'a, Result<(), BoxError>>;

impl<M: Request> Call<M> {
    pub(super) fn new(client: Client, params: M::Params) -> Self {
        let (meta, options) = (JsonObject::new(), CallOptions::default());
        Self { client, params, meta, options, cache: CacheMode::default(), fault: None }
    }

    pub(super) fn fault(mut self, fault: serde_json::Error) -> Self {
        self.fault = Some(fault);
        self
    }

    pub(super) fn cache(mut self, mode: CacheMode) -> Self {
        self.cache = mode;
        self
    }

    /// Replaces all options of the call.
    pub fn options(mut self, options: CallOptions) -> Self {
        self.options = options;
        self
    }

    /// Sets the maximum time without progress, of each round. Default: the timeout of the client.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.options = self.options.idle_timeout(timeout);
        self
    }

    /// Sets the maximum time of each round, whatever progress it reports.
    pub fn total_timeout(mut self, timeout: Duration) -> Self {
        self.options = self.options.timeout(timeout);
        self
    }

    /// Waits for the response indefinitely.
    pub fn no_timeout(self) -> Self {
        self.timeout(Duration::MAX).total_timeout(Duration::MAX)
    }

    /// Requests progress notifications and sets their callback.
    pub fn on_progress(mut self, callback: impl Fn(Progress) + Send + Sync + 'static) -> Self {
        self.options = self.options.on_progress(callback);
        self
    }

    /// Adds a header to the request, for transports with headers. Headers of the protocol cannot be replaced.
    pub fn header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.options.headers.push((name.into(), value.into()));
        self
    }

    /// Requests the result from the server even if the [cache](super::Cache) has a fresh one, and stores it there.
    pub fn fresh(mut self) -> Self {
        self.cache = CacheMode::Refresh;
        self
    }

    /// Requests the result from the server and neither reads nor changes the [cache](super::Cache).
    pub fn uncached(mut self) -> Self {
        self.cache = CacheMode::Bypass;
        self
    }

    /// Sets members of `_meta` beyond those that every request of the session carries.
    pub fn meta(mut self, meta: JsonObject) -> Self {
        self.meta = meta;
        self
    }

    /// Sends the request once and returns the result or the server's request for input.
    ///
    /// # Errors
    ///
    /// Fails like awaiting the call, except for failures of callbacks.
    pub async fn once(self) -> Result<CallResponse<M::Result>, ClientError> {
        match self.round(&Retry::default()).await? {
            CallResponse::Complete(text) => Ok(CallResponse::Complete(self.decode(&text)?)),
            CallResponse::InputRequired(required) => Ok(CallResponse::InputRequired(required)),
        }
    }

    /// Sends the request and returns the result verbatim, with members that this library does not know. Input requests
    /// are answered by the callbacks. A result whose `resultType` an extension defines, such as `task`, is returned too.
    ///
    /// # Errors
    ///
    /// Fails like awaiting the call, except that the result is not decoded and can be of any type.
    pub async fn raw(mut self) -> Result<Json, ClientError> {
        match self.finish().await {
            Ok(text) => Json::parse(&text).map_err(|error| CallError::Unexpected(error).into()),
            Err(ClientError::ResultType { result, .. }) => Ok(result),
            Err(error) => Err(error),
        }
    }

    fn decode(&self, text: &str) -> Result<M::Result, CallError> {
        let mut result = decode_result(text, self.client.0.session.result_revision)?;
        self.client.learn_tools(&self.params, &mut result);
        Ok(result)
    }

    /// Sends the request and returns the result with the size of its text.
    pub(super) async fn sized(mut self) -> Result<(M::Result, usize), ClientError> {
        let as_task = self.ask_for_task(Wish::Result);
        let text = match self.finish().await {
            Ok(text) if as_task => self.awaited_task(&text).await?,
            Err(ClientError::ResultType { method, result_type, result }) => {
                let claimed = ClaimedResult { client: &self.client, method, result_type, result };
                self.claimed(claimed).await?
            }
            outcome => outcome?,
        };
        Ok((self.decode(&text)?, text.len()))
    }

    /// Sends the request once.
    async fn round(&self, retry: &Retry) -> Result<CallResponse<ByteString>, ClientError> {
        let client = &self.client;
        let request = self.outbound(retry)?;
        let params = match &client.0.validator {
            Some(Validator::Custom(_)) => request.params.clone(),
            _ => None,
        };
        let text = match client.send(request).await {
            Err(CallError::Rpc(refusal)) if self.can_correct_headers(&refusal) => {
                // Without the new annotations the refusal is final.
                if client.refresh_tool_headers().await.is_err() {
                    return Err(CallError::Rpc(refusal).into());
                }
                client.send(self.outbound(retry)?).await?
            }
            outcome => outcome?,
        };
        if client.0.session.result_revision.is_none() {
            match &*result_type_of(&text).map_err(CallError::Unexpected)? {
                result_type::COMPLETE => {}
                result_type::INPUT_REQUIRED if M::METHOD.asks_for_input() => {
                    let required = serde_json::from_str(&text).map_err(CallError::Unexpected)?;
                    return Ok(CallResponse::InputRequired(required));
                }
                other => {
                    let (method, result_type) = (M::METHOD, other.to_owned());
                    let result = Json::parse(&text).map_err(CallError::Unexpected)?;
                    return Err(ClientError::ResultType { method, result_type, result });
                }
            }
        }
        // The creation of a task is not the result of the call.
        if !self.asks_for_task()
            && let Some(validation) = self.validation(params.as_ref(), &text)?
        {
            validation.await.map_err(ClientError::Validation)?;
        }
        Ok(CallResponse::Complete(text))
    }

    /// Returns the validation of a final result, if there is one. Validators get only results that can be decoded.
    fn validation<'a>(
        &'a self,
        params: Option<&'a Json>,
        result: &'a str,
    ) -> Result<Option<Validation<'a>>, CallError> {
        let (client, method) = (&self.client, M::METHOD);
        Ok(match &client.0.validator {
            None => None,
            Some(Validator::Custom(validator)) => {
                self.decode(result)?;
                let params = params.map_or("{}", Json::as_str);
                Some(validator.validate(CompletedCall { client, method, params, result }))
            }
            #[cfg(feature = "schema")]
            Some(Validator::OutputSchemas(schemas)) => {
                let call = (&self.params as &dyn Any).downcast_ref::<CallToolParams>();
                let tool = call.map(|call| &*call.name);
                if !schemas.concern(method, tool) {
                    return Ok(None);
                }
                self.decode(result)?;
                Some(Box::pin(schemas.validate(client, tool, result)))
            }
        })
    }

    /// Returns whether a call of a tool was refused because the annotations of its headers have changed.
    fn can_correct_headers(&self, refusal: &ErrorObject) -> bool {
        M::METHOD == Method::ToolsCall
            && refusal.code == ErrorCode::HEADER_MISMATCH
            && self.client.0.session.result_revision.is_none()
    }

    /// Builds the request of one round.
    fn outbound(&self, retry: &Retry) -> Result<OutboundRequest, ClientError> {
        let client = &self.client;
        if let Some(fault) = &self.fault {
            return Err(CallError::Encode(serde_json::Error::custom(fault)).into());
        }
        client.check_available(M::METHOD)?;
        let mut request = client.0.session.envelope.attach::<M>(&self.params, self.meta.clone())?;
        request.params = retry.add_to(request.params)?;
        let mut headers = std::mem::replace(&mut request.options, self.options.clone()).headers;
        headers.extend(client.param_headers(&self.params));
        request.options.headers = merge_headers(headers, std::mem::take(&mut request.options.headers));
        client.0.timeouts.apply(&mut request.options);
        Ok(request)
    }

    /// Returns the result of the cache or of the server.
    pub(super) async fn finish(&mut self) -> Result<ByteString, ClientError> {
        if !M::METHOD.is_cacheable() || self.is_uncacheable() {
            return Ok(self.rounds().await?.0);
        }
        let client = self.client.clone();
        let lookup = client.0.resources.cache.lookup::<M>(&self.params, client.0.session.version);
        let Some(lookup) = lookup else { return Ok(self.rounds().await?.0) };
        if self.cache == CacheMode::Use
            && let Some(text) = lookup.hit()
        {
            return Ok(text);
        }
        let (text, round) = self.rounds().await?;
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
    async fn rounds(&mut self) -> Result<(ByteString, u32), ClientError> {
        let mut retry = Retry::default();
        let max_rounds = self.client.0.callbacks.input_rounds;
        for round in 0..=max_rounds {
            match self.round(&retry).await? {
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
        Err(ClientError::TooManyRounds { method: M::METHOD, rounds: max_rounds })
    }
}

impl<M: Request<Params = PaginatedParams>> Call<M> {
    /// Selects the page that starts at this cursor. The empty string is a valid cursor.
    pub fn cursor(mut self, cursor: impl Into<String>) -> Self {
        self.params = self.params.cursor(cursor);
        self
    }
}

impl<M: Request + 'static> IntoFuture for Call<M> {
    type Output = Result<M::Result, ClientError>;
    type IntoFuture = BoxFuture<'static, Self::Output>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move { Ok(self.sized().await?.0) })
    }
}

impl<M: Request> fmt::Debug for Call<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct(type_name::<Self>()).field("method", &M::METHOD).finish_non_exhaustive()
    }
}
