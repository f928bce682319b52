//! What a server sends by itself: to the request of the client that it belongs to, or to the client's connection.
//!
//! On a stream a server does not say which request a message belongs to. All requests of a session are of one client, so
//! the latest one is as good as any; where clients share a session, only a single request in flight is certain.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, Weak};

use bytestring::ByteString;
use duplexer_client::{Change, Relay};
use duplexer_core::dispatch::{BoxFuture, Channel, Message, Outbound, OutboundRequest, lock};
use duplexer_core::error::{CallError, McpError};
use duplexer_server::{Connection, Context};
use duplexer_types::error::ErrorCode;
use duplexer_types::json::Json;
use duplexer_types::jsonrpc::{Body, RequestId};
use duplexer_types::logging::LoggingLevel;
use duplexer_types::methods::Method;
use serde::Deserialize;

use crate::backlog::Backlogs;
use crate::bridge::listen;
use crate::bridge::questions::{Question, Questions, Unanswered};
use crate::bridge::tasks::Followed;
use crate::failure;
use crate::remote::Sessions;
use crate::slots::Slots;

/// The messages of one session with the server.
pub(crate) struct Messages {
    sessions: Sessions,
    connections: Arc<Connections>,
    calls: Mutex<Slots<Call>>,
    next: AtomicU64,
    /// Streams of changes by the id of their request to the server.
    listeners: Mutex<HashMap<RequestId, Listener>>,
    /// Tasks of a handshake server whose client is of the envelope era.
    followed: Arc<Followed>,
    /// What clients that read slowly have not taken yet.
    backlogs: Arc<Backlogs>,
}

/// A request of the client that the server works on.
#[derive(Clone)]
pub(crate) struct Call {
    pub(crate) channel: Arc<dyn Outbound>,
    /// Whether requests of the server can be sent on the channel.
    pub(crate) back_channel: bool,
    /// Minimum level of log messages that the client has requested with it.
    pub(crate) level: Option<LoggingLevel>,
    /// Where questions of the server go, if the client cannot be sent requests. Boxed: it is rare, and entries are moved.
    pub(crate) questions: Option<Box<Questions>>,
}

/// Returns the channel to the client of a request.
pub(crate) fn channel_of(cx: &Context) -> Arc<dyn Outbound> {
    Arc::<dyn Channel>::clone(cx.channel())
}

/// A `subscriptions/listen` request of the client.
#[derive(Clone)]
pub(crate) struct Listener {
    pub(crate) channel: Arc<dyn Outbound>,
    /// The client's id of it.
    pub(crate) id: Json,
}

/// Connections of clients that use a session.
#[derive(Default)]
pub(crate) struct Connections(Mutex<Vec<Weak<Connection>>>);

impl Connections {
    pub(crate) fn add(&self, connection: &Arc<Connection>) {
        let mut connections = lock(&self.0);
        connections.retain(|connection| connection.strong_count() > 0);
        connections.push(Arc::downgrade(connection));
    }

    pub(crate) fn all(&self) -> Vec<Arc<Connection>> {
        lock(&self.0).iter().filter_map(Weak::upgrade).collect()
    }

    /// Reports a change to all clients.
    pub(crate) async fn report(&self, change: &Change) {
        for connection in self.all() {
            match change {
                Change::Tools => connection.tools_changed().await,
                Change::Prompts => connection.prompts_changed().await,
                Change::Resources => connection.resources_changed().await,
                Change::Resource(uri) => connection.resource_updated(uri).await,
                _ => {}
            }
        }
    }
}

/// A request in the table. Dropping it removes it.
pub(crate) struct CallEntry {
    messages: Arc<Messages>,
    slot: usize,
}

impl CallEntry {
    /// Replaces the request: the client has sent it again.
    pub(crate) fn replace(&self, call: Call) {
        lock(&self.messages.calls).replace(self.slot, call);
    }
}

impl Drop for CallEntry {
    fn drop(&mut self) {
        let removed = lock(&self.messages.calls).remove(self.slot);
        drop(removed);
    }
}

/// A stream of changes in the table. Dropping it removes it.
pub(crate) struct ListenerEntry {
    messages: Arc<Messages>,
    id: RequestId,
}

impl Drop for ListenerEntry {
    fn drop(&mut self) {
        lock(&self.messages.listeners).remove(&self.id);
    }
}

impl Messages {
    pub(crate) fn new(sessions: Sessions, connections: Arc<Connections>) -> Self {
        Self {
            sessions,
            connections,
            calls: Mutex::default(),
            next: AtomicU64::new(0),
            listeners: Mutex::default(),
            followed: Arc::default(),
            backlogs: Arc::default(),
        }
    }

    /// Registers a request while the server works on it.
    pub(crate) fn enter(self: &Arc<Self>, call: Call) -> CallEntry {
        let slot = lock(&self.calls).add(call);
        CallEntry { messages: Arc::clone(self), slot }
    }

    /// Registers a stream of changes. Returns the id to send its request with.
    pub(crate) fn listen(self: &Arc<Self>, listener: Listener) -> (RequestId, ListenerEntry) {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let id = RequestId::from(format!("proxy-listen-{number}").as_str());
        lock(&self.listeners).insert(id.clone(), listener);
        (id.clone(), ListenerEntry { messages: Arc::clone(self), id })
    }

    /// Returns the tasks that clients of the envelope era follow.
    pub(crate) fn followed(&self) -> &Arc<Followed> {
        &self.followed
    }

    /// Returns whether no request of a client is in flight, and no task runs.
    pub(crate) fn is_idle(&self) -> bool {
        lock(&self.calls).len() == 0 && lock(&self.listeners).is_empty() && self.followed.is_idle()
    }

    /// Returns the latest request that `accepts`.
    fn latest(&self, accepts: impl Fn(&Call) -> bool) -> Option<Call> {
        let calls = lock(&self.calls);
        if self.sessions == Sessions::Shared && calls.len() > 1 {
            return None;
        }
        calls.latest(accepts).cloned()
    }

    /// Returns the way to clients that read slowly.
    pub(crate) fn backlogs(&self) -> &Arc<Backlogs> {
        &self.backlogs
    }

    /// Sends a notification from the connection's own task, which must not wait.
    fn send(&self, channel: &Arc<dyn Outbound>, message: &Message) {
        let params = message.params().map(Text);
        self.backlogs.send(channel, message.method(), params.as_ref().map(|params| params as _));
    }

    fn log(&self, message: &Message) {
        #[derive(Deserialize)]
        struct Logged {
            level: LoggingLevel,
        }
        let Ok(Logged { level }) = message.decode() else { return };
        match self.latest(|call| call.level.is_some_and(|lowest| lowest <= level)) {
            Some(call) => self.send(&call.channel, message),
            None if self.sessions == Sessions::PerClient => self.send_to_clients(message),
            None => tracing::debug!("a log message of a shared session belongs to no client"),
        }
    }

    fn send_to_clients(&self, message: &Message) {
        for connection in self.connections.all() {
            self.send(connection.outbound(), message);
        }
    }

    /// Passes a change to the stream that it names, or to the connections of all clients.
    fn change(&self, message: &Message) {
        let Some(id) = listen::subscription_id(message) else { return self.send_to_clients(message) };
        let listener = {
            let listeners = lock(&self.listeners);
            listeners.get(&id).or_else(|| listeners.get(&id.twin()?)).cloned()
        };
        if let Some(listener) = listener
            && let Some(params) = listen::with_subscription_id(message.params(), &listener.id)
        {
            self.backlogs.send(&listener.channel, message.method(), Some(&params));
        }
    }

    /// Returns where a request of the server can be answered.
    fn target(&self, message: &Message) -> Result<Target, McpError> {
        if let Some(questions) = self.followed.questions_of(message) {
            return Ok(Target::Questions(Box::new(questions)));
        }
        if self.sessions == Sessions::Shared {
            let text = "this session is shared by several clients: none of them can be asked";
            return Err(McpError::new(ErrorCode::INVALID_REQUEST, text));
        }
        match self.latest(|call| call.questions.is_some() || call.back_channel) {
            Some(Call { questions: Some(questions), .. }) => Ok(Target::Questions(questions)),
            Some(call) => Ok(Target::Call(call.channel)),
            None => match self.connections.all().pop() {
                Some(connection) => Ok(Target::Connection(connection)),
                None => Err(McpError::new(
                    ErrorCode::INVALID_REQUEST,
                    "no request of the client is in flight, so it cannot be asked",
                )),
            },
        }
    }
}

enum Target {
    Call(Arc<dyn Outbound>),
    Connection(Arc<Connection>),
    Questions(Box<Questions>),
}

/// Returns a request of the server as a request to the client.
fn outbound(message: &Message) -> Result<OutboundRequest, McpError> {
    let mut request = OutboundRequest::new(message.method().to_owned());
    request.params = message.params().map(Json::parse).transpose().map_err(McpError::internal)?;
    Ok(request)
}

fn answer(response: Result<ByteString, CallError>) -> Result<Json, McpError> {
    Json::parse(&response.map_err(failure::of_call)?).map_err(McpError::internal)
}

/// Asks the client through a request of its own. The response that creates a task can be read together with the task's first
/// question: the question then goes to the call, which ends without answering it, and is asked again for the task.
async fn ask(questions: Questions, followed: &Followed, message: &Message) -> Result<Json, McpError> {
    let unanswered = match questions.ask(Question::of(message)?).await {
        Ok(answer) => return Ok(answer),
        Err(unanswered) => unanswered,
    };
    match (unanswered, followed.questions_of(message)) {
        (Unanswered::Refused | Unanswered::Ended, Some(of_task)) => {
            Ok(of_task.ask(Question::of(message)?).await?)
        }
        (unanswered, _) => Err(unanswered.into()),
    }
}

impl Relay for Messages {
    fn request(&self, message: Arc<Message>) -> BoxFuture<'static, Result<Json, McpError>> {
        let target = self.target(&message);
        let followed = Arc::clone(&self.followed);
        Box::pin(async move {
            match target? {
                Target::Questions(questions) => ask(*questions, &followed, &message).await,
                Target::Call(channel) => answer(channel.request(outbound(&message)?).await),
                Target::Connection(connection) => {
                    answer(connection.outbound().request(outbound(&message)?).await)
                }
            }
        })
    }

    fn notification(&self, message: &Message) {
        if message.known() == Some(Method::ToolsListChanged) {
            self.followed.tools_changed();
        }
        match message.known() {
            Some(Method::LoggingMessage) => self.log(message),
            Some(
                Method::ToolsListChanged
                | Method::PromptsListChanged
                | Method::ResourcesListChanged
                | Method::ResourcesUpdated
                | Method::SubscriptionsAcknowledged
                | Method::Tasks,
            ) => self.change(message),
            _ => match self.latest(|_| true) {
                Some(call) => self.send(&call.channel, message),
                None => self.send_to_clients(message),
            },
        }
    }
}

/// Params as they arrived.
pub(crate) struct Text<'a>(pub(crate) &'a str);

impl Body for Text<'_> {
    fn write(&self, out: &mut Vec<u8>) -> Result<(), serde_json::Error> {
        out.extend_from_slice(self.0.as_bytes());
        Ok(())
    }
}
