//! Asking the client and telling it things, typed, on behalf of a message or beside any.

use duplexer_types::elicitation::{ElicitParams, ElicitResult, ElicitationCompleteParams};
use duplexer_types::error::{ErrorCode, ErrorObject};
use duplexer_types::json::{Json, JsonObject};
use duplexer_types::jsonrpc::{Body, RequestId};
use duplexer_types::lifecycle::EmptyParams;
use duplexer_types::logging::{LoggingLevel, LoggingMessageParams};
use duplexer_types::methods::{self, Direction, Method, Notification, Request};
use duplexer_types::progress::ProgressParams;
use duplexer_types::resource::ResourceUpdatedParams;
use duplexer_types::roots::ListRootsResult;
use duplexer_types::sampling::{CreateMessageParams, CreateMessageResult, SamplingContent, SamplingMessage};
use duplexer_types::version::{Era, ProtocolVersion};
use duplexer_types::wire::{self, WireObject};

use super::Context;
use crate::kernel::connection::{ClientCapability, Connection};
use duplexer_core::dispatch::{CallOptions, Outbound, OutboundRequest, Sending};
use duplexer_core::error::CallError;
use duplexer_core::transport::BackChannel;

/// Params in the shape of a revision.
#[derive(Debug)]
pub struct TypedParams<'a, P>(pub &'a P, pub ProtocolVersion);

impl<P: WireObject> Body for TypedParams<'_, P> {
    fn write(&self, out: &mut Vec<u8>) -> Result<(), serde_json::Error> {
        wire::write_params(out, self.0, self.1, None)
    }
}

/// Progress is frequent: it is written without building its params first.
pub(super) struct ProgressReport<'a> {
    pub(super) token: &'a RequestId,
    pub(super) progress: f64,
    pub(super) total: Option<f64>,
    pub(super) message: Option<&'a str>,
    pub(super) version: ProtocolVersion,
}

impl Body for ProgressReport<'_> {
    fn write(&self, out: &mut Vec<u8>) -> Result<(), serde_json::Error> {
        let mut params = ProgressParams::new(self.token.clone(), self.progress);
        params.total = self.total;
        params.message = self.message.map(Into::into);
        TypedParams(&params, self.version).write(out)
    }
}

impl<S> Context<S> {
    /// Asks the client something on behalf of this request, if it has declared that it can be asked that.
    pub async fn request<M: Request>(
        &self,
        params: &M::Params,
        options: CallOptions,
    ) -> Result<M::Result, CallError> {
        self.reaches(M::METHOD)?;
        check_declared(M::METHOD, declaration(M::METHOD), self.connection())?;
        ask::<M>(&*self.scope().call.channel, self.protocol_version(), params, options).await
    }

    /// Whether there is a way to the client on which it can be asked something.
    fn reaches(&self, method: Method) -> Result<(), CallError> {
        let era = self.protocol_version().era();
        if era == Era::Envelope || self.transport().back_channel == BackChannel::Closed {
            return Err(CallError::NoBackChannel(method.name().into()));
        }
        Ok(())
    }

    /// Tells the client something on behalf of this message.
    ///
    /// In the envelope era changes reach whoever has subscribed to them, and nobody through this.
    pub fn notify<N: Notification>(&self, params: &N::Params) -> Sending {
        if self.protocol_version().era() == Era::Envelope && is_change(N::METHOD) {
            return Sending::done();
        }
        tell::<N>(&*self.scope().call.channel, self.protocol_version(), params)
    }

    /// Uses the client's model. Deprecated by the protocol as of 2026-07-28.
    pub async fn create_message(
        &self,
        params: &CreateMessageParams,
    ) -> Result<CreateMessageResult, CallError> {
        check_sampling(self.connection(), params)?;
        self.request::<methods::SamplingCreateMessage>(params, CallOptions::new()).await
    }

    /// Asks the user, with a form or by a URL, where that is a request to the client: in the handshake era. The answer is not
    /// checked against the form. See [`Context::ask`] for a way that works in both eras.
    pub async fn elicit_request(&self, params: &ElicitParams) -> Result<ElicitResult, CallError> {
        self.reaches(Method::ElicitationCreate)?;
        check_declared(Method::ElicitationCreate, Some(mode(params)), self.connection())?;
        self.request::<methods::ElicitationCreate>(params, CallOptions::new()).await
    }

    /// Logs to the client, where it wants that. Deprecated by the protocol as of 2026-07-28.
    ///
    /// In the handshake era from the level it has set; in the envelope era only if this very request asks for
    /// it, from the level it names.
    pub fn log(&self, level: LoggingLevel, logger: Option<&str>, data: impl Into<Json>) -> Sending {
        let wanted = match self.protocol_version().era() {
            Era::Handshake => level as u8 >= self.connection().log_level(),
            Era::Envelope => {
                self.request_id().is_some() && self.requested_level().is_some_and(|from| level >= from)
            }
        };
        if !wanted {
            return Sending::done();
        }
        let mut params = LoggingMessageParams::new(level, data);
        params.logger = logger.map(Into::into);
        self.notify::<methods::Message>(&params)
    }

    /// A level nobody knows is no wish for messages.
    fn requested_level(&self) -> Option<LoggingLevel> {
        self.meta().log_level.and_then(|level| serde_json::from_str(level).ok())
    }
}

/// What can be asked and told beside any request. Requests need a channel that carries them.
impl Connection {
    /// Asks the client something that it has declared it can be asked.
    pub async fn request<M: Request>(
        &self,
        params: &M::Params,
        options: CallOptions,
    ) -> Result<M::Result, CallError> {
        check_declared(M::METHOD, declaration(M::METHOD), self)?;
        ask::<M>(&**self.outbound(), self.version(), params, options).await
    }

    /// Tells the client something; never fails.
    pub fn notify<N: Notification>(&self, params: &N::Params) -> Sending {
        tell::<N>(&**self.outbound(), self.version(), params)
    }

    /// Whether the client is there.
    pub async fn ping(&self) -> Result<(), CallError> {
        self.request::<methods::Ping>(&EmptyParams::new(), CallOptions::new()).await.map(|_| ())
    }

    /// Where the client suggests to work. Deprecated by the protocol as of 2026-07-28.
    pub async fn list_roots(&self) -> Result<ListRootsResult, CallError> {
        self.request::<methods::RootsList>(&EmptyParams::new(), CallOptions::new()).await
    }

    /// Uses the client's model beside any request. Deprecated by the protocol as of 2026-07-28.
    pub async fn create_message(
        &self,
        params: &CreateMessageParams,
    ) -> Result<CreateMessageResult, CallError> {
        check_sampling(self, params)?;
        self.request::<methods::SamplingCreateMessage>(params, CallOptions::new()).await
    }

    /// Asks the user beside any request.
    pub async fn elicit(&self, params: &ElicitParams) -> Result<ElicitResult, CallError> {
        check_declared(Method::ElicitationCreate, Some(mode(params)), self)?;
        self.request::<methods::ElicitationCreate>(params, CallOptions::new()).await
    }

    /// The list of tools has changed.
    pub fn tools_changed(&self) -> Sending {
        self.notify::<methods::ToolsListChanged>(&EmptyParams::new())
    }

    /// The list of prompts has changed.
    pub fn prompts_changed(&self) -> Sending {
        self.notify::<methods::PromptsListChanged>(&EmptyParams::new())
    }

    /// The list of resources has changed.
    pub fn resources_changed(&self) -> Sending {
        self.notify::<methods::ResourcesListChanged>(&EmptyParams::new())
    }

    /// A resource has changed.
    pub fn resource_updated(&self, uri: &str) -> Sending {
        self.notify::<methods::ResourcesUpdated>(&ResourceUpdatedParams::new(uri))
    }

    /// What the user was sent to a URL for is done (2025-11-25).
    pub fn elicitation_complete(&self, id: &str) -> Sending {
        self.notify::<methods::ElicitationComplete>(&ElicitationCompleteParams::new(id))
    }

    /// Logs beside any request: reaches only clients of the handshake era, from the level they have set.
    pub fn log(&self, level: LoggingLevel, logger: Option<&str>, data: impl Into<Json>) -> Sending {
        if self.era() == Era::Envelope || (level as u8) < self.log_level() {
            return Sending::done();
        }
        let mut params = LoggingMessageParams::new(level, data);
        params.logger = logger.map(Into::into);
        self.notify::<methods::Message>(&params)
    }
}

/// Whether a notification tells of a change: in the envelope era those exist only on the streams of subscribers.
pub(crate) fn is_change(method: Method) -> bool {
    matches!(
        method,
        Method::ToolsListChanged
            | Method::PromptsListChanged
            | Method::ResourcesListChanged
            | Method::ResourcesUpdated
    )
}

/// Refuses what the revision does not have, then what the client has not declared. In the envelope era nothing gets as far as
/// the client, so there is nothing to look at.
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
        return Err(CallError::Refused(ErrorObject::new(ErrorCode::METHOD_NOT_FOUND, text)));
    }
    match needed.filter(|needed| !connection.client().supports(needed)) {
        None => Ok(()),
        Some(missing) => {
            let text = format!("Client did not declare the capability required by '{method}'");
            Err(CallError::Refused(missing.missing(text)))
        }
    }
}

/// What a client must have declared to be asked at all.
fn declaration(method: Method) -> Option<ClientCapability> {
    match method {
        Method::RootsList => Some(ClientCapability::Roots),
        Method::SamplingCreateMessage => Some(ClientCapability::Sampling),
        Method::ElicitationCreate => Some(ClientCapability::Elicitation),
        _ => None,
    }
}

/// What it must have declared to be asked in this way.
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

/// What a revision does not have is not said in it.
fn tell<N: Notification>(outbound: &dyn Outbound, version: ProtocolVersion, params: &N::Params) -> Sending {
    if !N::METHOD.exists(Direction::ServerToClient, version) {
        tracing::debug!(method = %N::METHOD, %version, "a notification this revision does not have is dropped");
        return Sending::done();
    }
    outbound.notify(N::METHOD.name(), Some(&TypedParams(params, version)))
}

/// Tools only for clients that can use them, and tool results where they answer a tool use.
fn check_sampling(connection: &Connection, params: &CreateMessageParams) -> Result<(), CallError> {
    let refuse =
        |text: &'static str| Err(CallError::Refused(ErrorObject::new(ErrorCode::INVALID_PARAMS, text)));
    let wants_tools = params.tools.is_some() || params.tool_choice.is_some();
    if wants_tools && !connection.client().supports(&ClientCapability::SamplingTools) {
        return refuse("Client does not support sampling tools capability");
    }
    match check_tool_results(&params.messages) {
        Ok(()) => Ok(()),
        Err(text) => refuse(text),
    }
}

/// Looks at the last message and the one before it.
fn check_tool_results(messages: &[SamplingMessage]) -> Result<(), &'static str> {
    let Some((last, earlier)) = messages.split_last() else { return Ok(()) };
    let answered = ids(last, |block| match block {
        SamplingContent::ToolResult(result) => Some(&result.tool_use_id),
        _ => None,
    });
    let used = earlier.last().map(|previous| {
        ids(previous, |block| match block {
            SamplingContent::ToolUse(tool) => Some(&tool.id),
            _ => None,
        })
    });
    if answered.is_empty() {
        let unanswered = used.is_some_and(|used| !used.is_empty());
        return if unanswered { Err("every tool use must be answered with a tool result") } else { Ok(()) };
    }
    if answered.len() != last.content.0.len() {
        return Err("a message with tool results must hold nothing else");
    }
    match used {
        None => Err("tool results need a previous message with tool uses"),
        Some(used) if used.is_empty() => Err("tool results do not follow a message with tool uses"),
        Some(used) if used != answered => {
            Err("tool results do not match the tool uses of the previous message")
        }
        Some(_) => Ok(()),
    }
}

fn ids<'a>(
    message: &'a SamplingMessage,
    id: impl Fn(&'a SamplingContent) -> Option<&'a String>,
) -> Vec<&'a String> {
    let mut ids: Vec<_> = message.content.0.iter().filter_map(id).collect();
    ids.sort_unstable();
    ids
}

#[cfg(test)]
mod tests {
    use duplexer_types::sampling::{Blocks, ToolResultContent, ToolUseContent};

    use super::*;

    fn tool_use(id: &str) -> SamplingContent {
        SamplingContent::ToolUse(ToolUseContent::new(id, "tool", Json::object()))
    }

    fn tool_result(id: &str) -> SamplingContent {
        SamplingContent::ToolResult(ToolResultContent::new(id, Vec::new()))
    }

    /// CONN-13, P-SAM-2: tool results stand alone, behind the uses they answer, one for each.
    #[test]
    fn tool_results_answer_the_tool_uses_before_them() {
        let check = |messages: Vec<SamplingMessage>, ok: bool| {
            assert_eq!(check_tool_results(&messages).is_ok(), ok, "{messages:?}");
        };
        let text = || SamplingMessage::user("hello");
        let uses =
            |ids: &[&str]| SamplingMessage::assistant(Blocks(ids.iter().map(|id| tool_use(id)).collect()));
        let results =
            |ids: &[&str]| SamplingMessage::user(Blocks(ids.iter().map(|id| tool_result(id)).collect()));
        check(vec![], true);
        check(vec![text()], true);
        check(vec![text(), uses(&["a", "b"]), results(&["b", "a"])], true);
        check(vec![results(&["a"])], false);
        check(vec![text(), results(&["a"])], false);
        check(vec![uses(&["a", "b"]), results(&["a"])], false);
        check(vec![uses(&["a"]), results(&["b"])], false);
        check(vec![uses(&["a"]), text()], false);
        check(
            vec![
                uses(&["a"]),
                SamplingMessage::user(Blocks(vec![tool_result("a"), SamplingContent::text("x")])),
            ],
            false,
        );
    }
}
