//! Typed requests and notifications to the client, on behalf of a message or outside a request. A request is refused
//! before it is sent if the revision does not have it or the client has not declared the capability.

use duplexer_types::elicitation::{ElicitParams, ElicitResult, ElicitationCompleteParams};
use duplexer_types::error::{ErrorCode, ErrorObject};
use duplexer_types::json::{Json, JsonObject};
use duplexer_types::jsonrpc::Body;
use duplexer_types::lifecycle::EmptyParams;
use duplexer_types::methods::{self, Direction, Method, Notification, Request};
use duplexer_types::resource::ResourceUpdatedParams;
use duplexer_types::roots::ListRootsResult;
use duplexer_types::sampling::{CreateMessageParams, CreateMessageResult};
use duplexer_types::version::{Era, ProtocolVersion};
use duplexer_types::wire::{self, WireObject};

use super::Context;
use super::sampling::check_sampling;
use crate::kernel::connection::{ClientCapability, Connection};
use duplexer_core::dispatch::{CallOptions, NotifyFuture, Outbound, OutboundRequest};
use duplexer_core::error::CallError;
use duplexer_core::transport::BackChannel;

/// Params that are written in the shape of a revision.
#[derive(Debug)]
pub struct TypedParams<'a, P>(pub &'a P, pub ProtocolVersion);

impl<P: WireObject> Body for TypedParams<'_, P> {
    fn write(&self, out: &mut Vec<u8>) -> Result<(), serde_json::Error> {
        wire::write_params(out, self.0, self.1, None)
    }
}

impl<S> Context<S> {
    /// Sends a request to the client on behalf of this request.
    ///
    /// # Errors
    ///
    /// Fails if there is no channel for requests to the client, if the client has not declared the capability, if the
    /// client answers with an error, and if its answer does not fit the method.
    pub async fn request<M: Request>(
        &self,
        params: &M::Params,
        options: CallOptions,
    ) -> Result<M::Result, CallError> {
        self.reaches(M::METHOD)?;
        check_declared(M::METHOD, declaration(M::METHOD), self.connection())?;
        self.scope().note_question();
        ask::<M>(&*self.scope().call.channel, self.protocol_version(), params, options).await
    }

    /// Fails unless there is a channel that carries requests to the client.
    fn reaches(&self, method: Method) -> Result<(), CallError> {
        let era = self.protocol_version().era();
        if era == Era::Envelope || self.transport().back_channel == BackChannel::Closed {
            return Err(CallError::NoBackChannel(method.name().into()));
        }
        Ok(())
    }

    /// Sends a notification to the client on behalf of this message.
    ///
    /// In the envelope era change notifications exist only on the streams of subscribers, so this drops them. A log
    /// message is dropped under the same conditions as those of [`Context::log`].
    pub fn notify<N: Notification>(&self, params: &N::Params) -> NotifyFuture {
        let is_dropped = self.protocol_version().era() == Era::Envelope && is_change(N::METHOD);
        if is_dropped || !self.passes_level::<N>(params) {
            return NotifyFuture::done();
        }
        notify::<N>(&*self.scope().call.channel, self.protocol_version(), params)
    }

    /// Samples the client's model with `sampling/createMessage`. Deprecated by the protocol as of 2026-07-28.
    ///
    /// # Errors
    ///
    /// Fails like [`Context::request`], and if tool results do not match the tool uses before them.
    pub async fn create_message(
        &self,
        params: &CreateMessageParams,
    ) -> Result<CreateMessageResult, CallError> {
        check_sampling(self.connection(), params)?;
        self.request::<methods::SamplingCreateMessage>(params, CallOptions::new()).await
    }

    /// Elicits input from the user with an `elicitation/create` request, which exists in the handshake era only. The
    /// answer is not checked against the form. [`Context::ask`] works in both eras.
    ///
    /// # Errors
    ///
    /// Fails like [`Context::request`]; in the envelope era always.
    pub async fn elicit_request(&self, params: &ElicitParams) -> Result<ElicitResult, CallError> {
        self.reaches(Method::ElicitationCreate)?;
        check_declared(Method::ElicitationCreate, Some(mode(params)), self.connection())?;
        self.request::<methods::ElicitationCreate>(params, CallOptions::new()).await
    }
}

/// Requests and notifications outside a request. Requests need a channel that carries them.
impl Connection {
    /// Sends a request to the client.
    ///
    /// # Errors
    ///
    /// Fails like [`Context::request`].
    pub async fn request<M: Request>(
        &self,
        params: &M::Params,
        options: CallOptions,
    ) -> Result<M::Result, CallError> {
        check_declared(M::METHOD, declaration(M::METHOD), self)?;
        ask::<M>(&**self.outbound(), self.version(), params, options).await
    }

    /// Sends a notification to the client. It is dropped where there is no channel. A log message is dropped under the
    /// same conditions as those of [`Connection::log`].
    pub fn notify<N: Notification>(&self, params: &N::Params) -> NotifyFuture {
        if !self.passes_level::<N>(params) {
            return NotifyFuture::done();
        }
        notify::<N>(&**self.outbound(), self.version(), params)
    }

    /// Sends `ping` and waits for the answer.
    ///
    /// # Errors
    ///
    /// Fails like [`Context::request`].
    pub async fn ping(&self) -> Result<(), CallError> {
        self.request::<methods::Ping>(&EmptyParams::new(), CallOptions::new()).await.map(|_| ())
    }

    /// Requests the roots of the client with `roots/list`. Deprecated by the protocol as of 2026-07-28.
    ///
    /// # Errors
    ///
    /// Fails like [`Context::request`].
    pub async fn list_roots(&self) -> Result<ListRootsResult, CallError> {
        self.request::<methods::RootsList>(&EmptyParams::new(), CallOptions::new()).await
    }

    /// Samples the client's model outside a request. Deprecated by the protocol as of 2026-07-28.
    ///
    /// # Errors
    ///
    /// Fails like [`Context::create_message`].
    pub async fn create_message(
        &self,
        params: &CreateMessageParams,
    ) -> Result<CreateMessageResult, CallError> {
        check_sampling(self, params)?;
        self.request::<methods::SamplingCreateMessage>(params, CallOptions::new()).await
    }

    /// Elicits input from the user outside a request.
    ///
    /// # Errors
    ///
    /// Fails like [`Context::request`].
    pub async fn elicit(&self, params: &ElicitParams) -> Result<ElicitResult, CallError> {
        check_declared(Method::ElicitationCreate, Some(mode(params)), self)?;
        self.request::<methods::ElicitationCreate>(params, CallOptions::new()).await
    }

    /// Notifies the client that the list of tools has changed.
    pub fn tools_changed(&self) -> NotifyFuture {
        self.notify::<methods::ToolsListChanged>(&EmptyParams::new())
    }

    /// Notifies the client that the list of prompts has changed.
    pub fn prompts_changed(&self) -> NotifyFuture {
        self.notify::<methods::PromptsListChanged>(&EmptyParams::new())
    }

    /// Notifies the client that the list of resources has changed.
    pub fn resources_changed(&self) -> NotifyFuture {
        self.notify::<methods::ResourcesListChanged>(&EmptyParams::new())
    }

    /// Notifies the client that a resource has changed.
    pub fn resource_updated(&self, uri: &str) -> NotifyFuture {
        self.notify::<methods::ResourcesUpdated>(&ResourceUpdatedParams::new(uri))
    }

    /// Notifies the client that an elicitation by URL is complete (2025-11-25).
    pub fn elicitation_complete(&self, id: &str) -> NotifyFuture {
        self.notify::<methods::ElicitationComplete>(&ElicitationCompleteParams::new(id))
    }
}

/// Returns whether a notification reports a change. In the envelope era those exist only on the streams of subscribers.
pub(crate) fn is_change(method: Method) -> bool {
    matches!(
        method,
        Method::ToolsListChanged
            | Method::PromptsListChanged
            | Method::ResourcesListChanged
            | Method::ResourcesUpdated
    )
}

/// Refuses a method that the revision does not have, then one whose capability the client has not declared. In the
/// envelope era no request reaches the client, so there is nothing to check.
fn check_declared(
    method: Method,
    needed: Option<ClientCapability>,
    connection: &Connection,
) -> Result<(), CallError> {
    let version = connection.version();
    if version.era() == Era::Envelope {
        return Ok(());
    }
    if !method.exists(Direction::ServerToClient, version) {
        let text = format!("Cannot send '{method}': revision {version} does not have it");
        return Err(CallError::Unsupported(ErrorObject::new(ErrorCode::METHOD_NOT_FOUND, text)));
    }
    match needed.filter(|needed| !connection.client().supports(needed)) {
        None => Ok(()),
        Some(missing) => {
            let text = format!("Client did not declare the capability required by '{method}'");
            Err(CallError::Unsupported(missing.missing(text)))
        }
    }
}

/// Returns the capability that a method requires.
fn declaration(method: Method) -> Option<ClientCapability> {
    match method {
        Method::RootsList => Some(ClientCapability::Roots),
        Method::SamplingCreateMessage => Some(ClientCapability::Sampling),
        Method::ElicitationCreate => Some(ClientCapability::Elicitation),
        _ => None,
    }
}

/// Returns the capability that this mode of elicitation requires.
fn mode(params: &ElicitParams) -> ClientCapability {
    match params {
        ElicitParams::Url(_) => ClientCapability::ElicitationUrl,
        _ => ClientCapability::ElicitationForm,
    }
}

async fn ask<M: Request>(
    outbound: &dyn Outbound,
    version: ProtocolVersion,
    params: &M::Params,
    options: CallOptions,
) -> Result<M::Result, CallError> {
    let mut text = Vec::new();
    wire::write_params(&mut text, params, version, None).map_err(CallError::Encode)?;
    let params = String::from_utf8_lossy(&text);
    let request =
        OutboundRequest::new(M::METHOD.name()).params(Json::parse(&params).map_err(CallError::Encode)?);
    let answer = outbound.request(request.meta(JsonObject::new()).options(options)).await?;
    serde_json::from_str(&answer).map_err(CallError::Unexpected)
}

/// Sends a notification, unless the revision does not have it.
pub(super) fn notify<N: Notification>(
    outbound: &dyn Outbound,
    version: ProtocolVersion,
    params: &N::Params,
) -> NotifyFuture {
    if !N::METHOD.exists(Direction::ServerToClient, version) {
        tracing::debug!(method = %N::METHOD, %version, "a notification this revision does not have is dropped");
        return NotifyFuture::done();
    }
    outbound.notify(N::METHOD.name(), Some(&TypedParams(params, version)))
}
