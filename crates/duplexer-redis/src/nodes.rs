//! Messages between nodes: an inbox per run, which the run reads when it is woken, and at intervals.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use bytes::Bytes;
use duplexer_core::dispatch::BoxFuture;
use duplexer_core::error::{Chain, StoreError};
use duplexer_core::run::RunId;
use duplexer_http::{Health, NodeListener, NodeMessage, Nodes, Sent, SessionDigest};
use duplexer_types::jsonrpc::RequestId;
use redis::streams::StreamRangeReply;
use serde::{Deserialize, Serialize};
use tokio::time::timeout;

use crate::entry_id::EntryId;
use crate::lease;
use crate::link::{Link, Node};
use crate::scripts;
use crate::value::{self, millis};

const MAX_MESSAGES: usize = 10_000;
const MAX_BYTES: usize = 16 << 20;
/// Messages read at once.
const PAGE: usize = 256;
/// What is sealed.
const MESSAGE: &str = "message";
/// Expiry of an inbox in multiples of the lease.
const INBOX_LEASES: u32 = 6;

/// Label of a message in metrics that cannot be read.
pub(crate) const UNREADABLE: (&str, &str, &str) = ("received", "unknown", "unreadable");

/// Returns the labels of all messages in metrics: direction, kind, outcome.
pub(crate) fn message_labels() -> impl Iterator<Item = (&'static str, &'static str, &'static str)> {
    let kinds = ["response", "progress", "cancelled", "deleted", "posted"];
    let outcomes = [("sent", "queued"), ("sent", "gone"), ("sent", "full"), ("received", "read")];
    let of = move |(direction, outcome)| kinds.map(|kind| (direction, kind, outcome));
    outcomes.into_iter().flat_map(of).chain([UNREADABLE])
}

/// The nodes of one server.
#[derive(Clone)]
pub(crate) struct RedisNodes {
    pub(crate) node: Arc<Node>,
    pub(crate) inbox: Arc<Inbox>,
}

/// The receiver of this node's messages.
#[derive(Default)]
pub(crate) struct Inbox {
    listener: Mutex<Option<Weak<dyn NodeListener>>>,
}

impl Nodes for RedisNodes {
    fn run(&self) -> RunId {
        self.node.lease.run()
    }

    fn send<'a>(&'a self, to: RunId, message: &'a NodeMessage) -> BoxFuture<'a, Result<Sent, StoreError>> {
        Box::pin(async move {
            let keys = &self.node.keys;
            let mut call = scripts::SEND.call([keys.lease(to), keys.inbox(to), keys.inbox_bytes(to)]);
            let message = WireMessage::new(message)?;
            let text = value::json(&message)?.into_bytes();
            call.arg(self.node.sealed(&scope(to), MESSAGE, text)?).arg(MAX_MESSAGES).arg(MAX_BYTES);
            call.arg(millis(self.node.settings.lease * INBOX_LEASES)).arg(keys.run_channel(to));
            let outcome: String = self.node.connection.run(&call).await?;
            self.node.counters.messages_sent.increment();
            let (outcome, sent) = match outcome.as_str() {
                "queued" => ("queued", Ok(Sent::Queued)),
                "gone" => ("gone", Ok(Sent::Gone)),
                _ => ("full", Err(StoreError::Full)),
            };
            self.node.counters.messages.increment(("sent", message.kind(), outcome));
            sent
        })
    }

    fn receive(&self, listener: Weak<dyn NodeListener>) {
        *self.inbox.listener.lock().unwrap_or_else(PoisonError::into_inner) = Some(listener);
        self.node.wakes.inbox.notify_one();
    }

    fn is_alive(&self, run: RunId) -> BoxFuture<'_, Result<bool, StoreError>> {
        Box::pin(self.node.is_alive(run))
    }

    fn health(&self) -> Health {
        self.node.lease.health()
    }

    fn leave(&self) -> BoxFuture<'_, Result<(), StoreError>> {
        Box::pin(lease::end(&self.node))
    }
}

impl Inbox {
    fn listener(&self) -> Option<Arc<dyn NodeListener>> {
        self.listener.lock().unwrap_or_else(PoisonError::into_inner).as_ref()?.upgrade()
    }
}

/// Reads the inbox, for ever.
pub(crate) async fn read(link: Arc<Link>, inbox: Arc<Inbox>) {
    let mut reader = Reader { run: link.lease.run(), last: EntryId::default() };
    loop {
        let _ = timeout(link.settings.poll, link.wakes.inbox.notified()).await;
        // Without a listener the messages stay where they are.
        let Some(listener) = inbox.listener() else { continue };
        loop {
            match reader.read_page(&link, &*listener).await {
                Ok(PAGE) => {}
                Ok(_) => break,
                Err(error) => {
                    tracing::debug!(%error, "the inbox cannot be read");
                    break;
                }
            }
        }
    }
}

/// Where the inbox of a run was read to.
struct Reader {
    run: RunId,
    last: EntryId,
}

impl Reader {
    /// Delivers the messages that are there, up to a page. Returns their number.
    ///
    /// A message is removed after its delivery. A removal that fails is made up for by the next one, and does not deliver
    /// the message again, because reading begins after the last one that was delivered.
    async fn read_page(&mut self, link: &Link, listener: &dyn NodeListener) -> Result<usize, StoreError> {
        let run = link.lease.run();
        if run != self.run {
            *self = Self { run, last: EntryId::default() };
        }
        let inbox = link.keys.inbox(run);
        let mut command = redis::cmd("XRANGE");
        command.arg(&inbox).arg(format!("({}", self.last)).arg("+").arg("COUNT").arg(PAGE);
        let page: StreamRangeReply = link.connection.query(&command).await?;
        let mut bytes = 0;
        for entry in &page.ids {
            let stored: Vec<u8> = entry.get("m").unwrap_or_default();
            bytes += stored.len();
            self.last = entry.id.parse()?;
            link.counters.inbox_lag.store(self.last.age(), Ordering::Relaxed);
            deliver(link, listener, run, stored);
        }
        if !page.ids.is_empty() {
            let mut call = scripts::TAKEN.call([inbox, link.keys.inbox_bytes(run)]);
            call.text(self.last.next()).arg(bytes);
            link.connection.run::<()>(&call).await?;
        }
        Ok(page.ids.len())
    }
}

fn deliver(link: &Link, listener: &dyn NodeListener, run: RunId, stored: Vec<u8>) {
    let read = || {
        let text = link.opened(&scope(run), MESSAGE, stored)?;
        serde_json::from_slice::<WireMessage>(&text).map_err(value::unreadable)
    };
    match read() {
        Ok(message) => {
            link.counters.messages_received.increment();
            link.counters.messages.increment(("received", message.kind(), "read"));
            listener.receive(message.read());
        }
        Err(error) => {
            link.counters.messages.increment(UNREADABLE);
            tracing::warn!(error = %Chain(&error), "a message of another node cannot be read");
        }
    }
}

/// Returns what the messages to a run are sealed for.
fn scope(run: RunId) -> String {
    format!("inbox {run}")
}

/// A message as it is stored.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum WireMessage {
    Response { session: SessionDigest, message: String },
    Progress { session: SessionDigest, message: String },
    Cancelled { session: SessionDigest, request: RequestId },
    Deleted { session: SessionDigest },
    Posted { link: SessionDigest, message: String },
}

impl WireMessage {
    fn new(message: &NodeMessage) -> Result<Self, StoreError> {
        Ok(match message {
            NodeMessage::Response { session, message } => {
                Self::Response { session: *session, message: text(message)? }
            }
            NodeMessage::Progress { session, message } => {
                Self::Progress { session: *session, message: text(message)? }
            }
            NodeMessage::Cancelled { session, request } => {
                Self::Cancelled { session: *session, request: request.clone() }
            }
            NodeMessage::Deleted { session } => Self::Deleted { session: *session },
            NodeMessage::Posted { link, message } => Self::Posted { link: *link, message: text(message)? },
            other => return Err(StoreError::Failed(format!("unknown message {other:?}").into())),
        })
    }

    fn kind(&self) -> &'static str {
        match self {
            Self::Response { .. } => "response",
            Self::Progress { .. } => "progress",
            Self::Cancelled { .. } => "cancelled",
            Self::Deleted { .. } => "deleted",
            Self::Posted { .. } => "posted",
        }
    }

    fn read(self) -> NodeMessage {
        match self {
            Self::Response { session, message } => NodeMessage::Response { session, message: message.into() },
            Self::Progress { session, message } => NodeMessage::Progress { session, message: message.into() },
            Self::Cancelled { session, request } => NodeMessage::Cancelled { session, request },
            Self::Deleted { session } => NodeMessage::Deleted { session },
            Self::Posted { link, message } => NodeMessage::Posted { link, message: message.into() },
        }
    }
}

fn text(message: &Bytes) -> Result<String, StoreError> {
    String::from_utf8(message.to_vec()).map_err(|error| StoreError::Failed(error.into()))
}
