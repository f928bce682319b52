//! One request with its options, and its response.

mod exchange;
mod later;
mod validation;

use std::any::type_name;
use std::fmt;
use std::time::Duration;

use bytestring::ByteString;
use duplexer_types::input::InputRequiredResult;
use duplexer_types::json::{Json, JsonObject};
use duplexer_types::methods::Request;
use duplexer_types::page::PaginatedParams;

use self::exchange::{Check, Exchange};
use super::cache::CacheMode;
use super::input::Retry;
use super::session::decode_result;
use super::tasks::Wish;
use super::{Client, ClientError};
use duplexer_core::dispatch::{BoxFuture, CallOptions, Progress};
use duplexer_core::error::CallError;

pub(super) use self::validation::Validator;
pub use self::validation::{CompletedCall, ResultValidator};

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
    exchange: Exchange,
    params: M::Params,
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

impl<M: Request> Call<M> {
    pub(super) fn new(client: Client, params: M::Params) -> Self {
        let check: Check = |text, revision| decode_result::<M::Result>(text, revision).map(drop);
        Self { exchange: Exchange::new(client, M::METHOD, check), params }
    }

    pub(super) fn fault(mut self, fault: serde_json::Error) -> Self {
        self.exchange.fault = Some(fault);
        self
    }

    pub(super) fn cache(mut self, mode: CacheMode) -> Self {
        self.exchange.cache = mode;
        self
    }

    /// Replaces all options of the call.
    pub fn options(mut self, options: CallOptions) -> Self {
        self.exchange.options = options;
        self
    }

    /// Sets the maximum time without progress, of each round. Default: the timeout of the client.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.exchange.options = self.exchange.options.idle_timeout(timeout);
        self
    }

    /// Sets the maximum time of each round, whatever progress it reports.
    pub fn total_timeout(mut self, timeout: Duration) -> Self {
        self.exchange.options = self.exchange.options.timeout(timeout);
        self
    }

    /// Waits for the response indefinitely.
    pub fn no_timeout(self) -> Self {
        self.timeout(Duration::MAX).total_timeout(Duration::MAX)
    }

    /// Requests progress notifications and sets their callback.
    pub fn on_progress(mut self, callback: impl Fn(Progress) + Send + Sync + 'static) -> Self {
        self.exchange.options = self.exchange.options.on_progress(callback);
        self
    }

    /// Adds a header to the request, for transports with headers. Headers of the protocol cannot be replaced.
    pub fn header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.exchange.options.headers.push((name.into(), value.into()));
        self
    }

    /// Requests the result from the server even if the [cache](super::Cache) has a fresh one, and stores it there.
    pub fn fresh(mut self) -> Self {
        self.exchange.cache = CacheMode::Refresh;
        self
    }

    /// Requests the result from the server and neither reads nor changes the [cache](super::Cache).
    pub fn uncached(mut self) -> Self {
        self.exchange.cache = CacheMode::Bypass;
        self
    }

    /// Sets members of `_meta` beyond those that every request of the session carries.
    pub fn meta(mut self, meta: JsonObject) -> Self {
        self.exchange.meta = meta;
        self
    }

    /// Sends the request once and returns the result or the server's request for input.
    ///
    /// # Errors
    ///
    /// Fails like awaiting the call, except for failures of callbacks.
    pub async fn once(self) -> Result<CallResponse<M::Result>, ClientError> {
        match self.exchange.round(&self.params, &Retry::default()).await? {
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
        let client = &self.exchange.client;
        let mut result = decode_result(text, client.0.session.result_revision)?;
        client.learn_tools(&self.params, &mut result);
        Ok(result)
    }

    /// Sends the request and returns the result with the size of its text.
    pub(super) async fn sized(mut self) -> Result<(M::Result, usize), ClientError> {
        let as_task = self.ask_for_task(Wish::Result);
        let text = self.exchange.complete(&self.params, as_task).await?;
        Ok((self.decode(&text)?, text.len()))
    }

    /// Sends the request in rounds and returns the result, which can be the creation of a task.
    pub(super) async fn finish(&mut self) -> Result<ByteString, ClientError> {
        self.exchange.finish(&self.params).await
    }

    /// Asks for a task where the revision lets the client ask, and returns whether the call does.
    pub(super) fn ask_for_task(&mut self, wish: Wish) -> bool {
        self.exchange.client.ask_for_task(&mut self.params, wish)
    }

    pub(super) fn client(&self) -> &Client {
        &self.exchange.client
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
