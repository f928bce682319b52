//! The reader of a kept stream, at whichever node: replays what the client has missed, then follows the stream.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use bytestring::ByteString;
use duplexer_core::dispatch::BoxFuture;
use duplexer_core::error::{Chain, StoreError};
use duplexer_server::subscriptions::{ChangeFeed, Changes};
use duplexer_types::error::{ErrorCode, ErrorObject};
use duplexer_types::json::Json;
use duplexer_types::jsonrpc::{self, RequestId};
use tokio::time::{Instant, sleep};

use super::kept::{Kept, LocalEvents};
use crate::server::service_state::ServiceState;
use crate::server::service_state::stream_watch::{LastRead, WatchedStream};
use crate::server::session::random;
use crate::server::session::stores::Stores;
use crate::server::sse::{self, EventId};
use crate::session::{Appended, Batch, EventKind, Numbering, Page, StoredEvent, StreamKey};

/// Maximum number of events that are read from the store at once.
const PAGE: usize = 256;
/// Interval at which a reader looks for events of other nodes, because a wake-up can be lost.
const POLL: Duration = Duration::from_secs(1);
/// Silence after which a reader asks whether the run of the writer is alive.
const SILENCE: Duration = Duration::from_secs(2);

/// One reader of a kept stream. Dropping it detaches the reader.
pub(in crate::server::session) struct FollowHandle {
    stores: Arc<Stores>,
    key: StreamKey,
    number: u64,
    /// Number of the last event that the client was sent.
    received: AtomicU64,
    /// The writer, if it is at this node.
    writer: Option<Arc<Kept>>,
    last_read: LastRead,
    timed_out: AtomicBool,
}

impl FollowHandle {
    /// Creates the handle of the reader with this number, which has received events up to a number.
    pub(in crate::server::session) fn new(
        stores: &Arc<Stores>,
        key: StreamKey,
        number: u64,
        received: u64,
        writer: Option<Arc<Kept>>,
    ) -> Arc<Self> {
        if let Some(writer) = &writer {
            writer.attach(number);
        }
        Arc::new(Self {
            stores: Arc::clone(stores),
            key,
            number,
            received: AtomicU64::new(received),
            writer,
            last_read: LastRead::now(),
            timed_out: AtomicBool::new(false),
        })
    }

    /// Creates the handle of the first reader of a request's stream, which was attached when the stream was opened.
    pub(in crate::server::session) fn first(writer: &Arc<Kept>) -> Arc<Self> {
        Self::new(writer.stores(), writer.key().clone(), 1, 0, Some(Arc::clone(writer)))
    }

    pub(in crate::server::session) fn is_timed_out(&self) -> bool {
        self.timed_out.load(Ordering::Acquire)
    }
}

impl WatchedStream for FollowHandle {
    fn last_read(&self) -> &LastRead {
        &self.last_read
    }

    fn time_out(&self) {
        self.timed_out.store(true, Ordering::Release);
        if let Some(writer) = &self.writer {
            writer.detach(self.number);
        }
    }
}

impl Drop for FollowHandle {
    fn drop(&mut self) {
        if let Some(writer) = &self.writer {
            writer.detach(self.number);
        }
        let (stores, key, number) = (Arc::clone(&self.stores), self.key.clone(), self.number);
        let received = self.received.load(Ordering::Relaxed);
        self.stores.spawn(async move { stores.detach(&key, number, received).await });
    }
}

/// Reads a kept stream.
pub(in crate::server::session) struct Follower {
    handle: Arc<FollowHandle>,
    service: Arc<ServiceState>,
    /// Number of the last event that was returned.
    after: u64,
    /// Time of the last event.
    active: Instant,
    /// Changes that the client is to hear of, if this is the reader of messages outside a request at one of several nodes.
    changes: Option<ChangeFeed>,
    end: End,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    No,
    /// The last event was returned.
    Reached,
}

/// The next events of a reader, and the reader itself; no events at its end.
pub(in crate::server::session) type NextEvents = BoxFuture<'static, (Follower, Option<Vec<u8>>)>;

impl Follower {
    pub(in crate::server::session) fn new(handle: Arc<FollowHandle>, service: Arc<ServiceState>) -> Self {
        let after = handle.received.load(Ordering::Relaxed);
        Self { handle, service, after, active: Instant::now(), changes: None, end: End::No }
    }

    /// Writes changes to the stream while it is read.
    pub(in crate::server::session) fn with_changes(mut self, changes: Option<ChangeFeed>) -> Self {
        self.changes = changes;
        self
    }

    pub(in crate::server::session) fn handle(&self) -> &Arc<FollowHandle> {
        &self.handle
    }

    /// Returns a future of the next events.
    pub(in crate::server::session) fn next(mut self) -> NextEvents {
        Box::pin(async move {
            let events = self.read().await;
            (self, events)
        })
    }

    async fn read(&mut self) -> Option<Vec<u8>> {
        let handle = Arc::clone(&self.handle);
        let mut look = Look::AsNeeded;
        while self.end == End::No {
            // Registered before the look, so that no change between it and the wait is missed.
            let changed = handle.writer.as_ref().map(|writer| writer.changed().notified());
            let local = handle.writer.as_ref().map(|writer| writer.next(handle.number, self.after));
            let is_writing = local == Some(LocalEvents::Writing);
            let has_all = is_writing || (local == Some(LocalEvents::UpToDate) && look == Look::AsNeeded);
            match local {
                Some(LocalEvents::Events(first, events)) => return Some(self.encode(first, &events)),
                Some(LocalEvents::Over) => return None,
                _ => {}
            }
            // What a batch on its way to the store leads to, the writer tells, also that the stream is gone.
            let wake = (!is_writing).then(|| handle.stores.watch(&handle.key));
            let page = if has_all { None } else { Some(self.page().await.ok()??) };
            if let Some(page) = page {
                if page.reader.is_none_or(|reader| reader.number != handle.number) {
                    tracing::debug!("the reader of a stream was replaced");
                    return None;
                }
                if !page.events.is_empty() {
                    return Some(self.deliver(&page));
                }
                if page.ended {
                    return None;
                }
                if self.conclude_lost(&page).await {
                    continue;
                }
            }
            let is_shared = handle.stores.shared().is_some();
            tokio::select! {
                biased;
                () = self.service.closing.cancelled(), if is_shared => return Some(self.let_go().await),
                // Before the writer, because it says more: another run may have written, or replaced this reader.
                () = if_any(wake) => look = Look::Always,
                () = if_any(changed) => look = Look::AsNeeded,
                next = next_changes(&mut self.changes) => {
                    write_changes(&handle, next).await.ok()?;
                    look = Look::Always;
                }
                () = sleep(POLL), if is_shared && !is_writing => look = Look::Always,
            }
        }
        None
    }

    async fn page(&self) -> Result<Option<Page>, StoreError> {
        let FollowHandle { stores, key, writer, .. } = &*self.handle;
        let at_most = writer.as_ref().map_or(PAGE, |writer| writer.until_leaving(self.after).min(PAGE));
        stores.read(key, self.after, at_most).await
    }

    fn deliver(&mut self, page: &Page) -> Vec<u8> {
        if page.first > self.after + 1 {
            let missing = page.first - self.after - 1;
            tracing::warn!(missing, "a client resumes a stream whose oldest events are gone");
        }
        let events = self.encode(page.first, &page.events);
        if page.ended {
            self.end = End::Reached;
        }
        events
    }

    fn encode(&mut self, first: u64, events: &[StoredEvent]) -> Vec<u8> {
        let mut text = Vec::new();
        for (sequence, event) in (first..).zip(events) {
            let id = EventId { stream: self.handle.key.stream, sequence };
            sse::write(&mut text, Some(id), &event.data);
            self.after = sequence;
        }
        self.active = Instant::now();
        self.handle.received.store(self.after, Ordering::Relaxed);
        text
    }

    /// Ends a stream whose writer's run is gone. Returns whether it did, or found that another node has.
    async fn conclude_lost(&self, page: &Page) -> bool {
        let FollowHandle { stores, key, .. } = &*self.handle;
        let (Some(writer), Some(request)) = (page.writer, &page.request) else { return false };
        if self.active.elapsed() < SILENCE || stores.is_alive(writer).await {
            return false;
        }
        tracing::warn!(%writer, "a node is gone, so a request that it served has failed");
        stores.conclude(key, writer, &node_lost(request)).await.is_ok()
    }

    /// Returns the hint after which the client continues at another node, where it finds the stream without a reader.
    async fn let_go(&mut self) -> Vec<u8> {
        self.end = End::Reached;
        self.handle.stores.detach(&self.handle.key, self.handle.number, self.after).await;
        let mut text = Vec::new();
        let id = EventId { stream: self.handle.key.stream, sequence: self.after };
        sse::write_priming(&mut text, id, self.service.config.sessions.retry);
        text
    }
}

/// Waits for a future, or forever where there is none.
async fn if_any(future: Option<impl Future<Output = ()>>) {
    match future {
        Some(future) => future.await,
        None => std::future::pending().await,
    }
}

/// Waits for changes, also while they cannot be read.
async fn next_changes(feed: &mut Option<ChangeFeed>) -> Changes {
    let Some(feed) = feed else { return std::future::pending().await };
    loop {
        match feed.next().await {
            Ok(changes) => return changes,
            Err(error) => tracing::warn!(error = %Chain(&error), "changes cannot be read"),
        }
        sleep(POLL).await;
    }
}

/// Stores changes as events. The store skips those that another node has written.
async fn write_changes(handle: &FollowHandle, changes: Changes) -> Result<(), StoreError> {
    let Changes { notifications, position, .. } = changes;
    let event = |text: ByteString| StoredEvent::new(text.into_bytes(), EventKind::Notification);
    let events: Vec<_> = notifications.into_iter().map(event).collect();
    let numbering = Numbering::Next { token: random().unwrap_or_default(), position };
    let batch = Batch::new(handle.stores.run(), numbering, &events);
    if handle.stores.append(&handle.key, batch).await? == Appended::Full {
        let dropped = events.len();
        tracing::warn!(dropped, "a stream is full, so notifications of changes are dropped");
    }
    Ok(())
}

/// Whether a reader reads the store although the writer at this node has nothing for it: another run may have replaced
/// it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Look {
    AsNeeded,
    Always,
}

/// Returns the response to a request whose node has died.
pub(in crate::server::session) fn node_lost(request: &RequestId) -> Bytes {
    let text = "The node that served the request is gone; the request may have been executed";
    let mut error = ErrorObject::new(ErrorCode::INTERNAL_ERROR, text);
    error.data = Json::parse(r#"{"reason":"node_lost"}"#).ok();
    let mut out = Vec::new();
    jsonrpc::write_failure(&mut out, Some(request), &error);
    out.into()
}
