//! Notifications that wait for a client that reads slowly: in the order of the server, and before the response behind them.
//!
//! Most notifications are queued by the channel at once and never come here. The session must not wait for a client, so the
//! first one that its channel cannot queue starts a task, which sends the later ones of that channel one after the other.

use std::collections::{HashMap, VecDeque};
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Waker};

use duplexer_core::dispatch::{Latch, NotifyFuture, Outbound, lock};
use duplexer_types::jsonrpc::Body;
use tokio::task::JoinSet;

use crate::messages::Text;

/// Maximum number and bytes of notifications of one session that wait. Further ones are dropped.
const MAX_WAITING: usize = 4096;
const MAX_WAITING_BYTES: usize = 1024 * 1024;

/// The channels of one session whose clients read slowly.
#[derive(Default)]
pub(crate) struct Backlogs {
    /// How many there are, so that most notifications take no lock.
    channels: AtomicUsize,
    table: Mutex<Table>,
}

#[derive(Default)]
struct Table {
    /// By the address of the channel, which the task of the backlog keeps.
    backlogs: HashMap<usize, Backlog>,
    waiting: usize,
    bytes: usize,
    tasks: JoinSet<()>,
}

#[derive(Default)]
struct Backlog {
    waiting: VecDeque<Waiting>,
    dropped: usize,
}

enum Waiting {
    Notification(Notification),
    /// Set when everything before it has been sent.
    Mark(Arc<Latch>),
}

struct Notification {
    method: String,
    params: Option<String>,
}

impl Notification {
    /// `None` if the params cannot be written.
    fn new(method: &str, params: Option<&dyn Body>) -> Option<Self> {
        let text = |params: &dyn Body| {
            let mut text = Vec::new();
            params.write(&mut text).ok()?;
            String::from_utf8(text).ok()
        };
        let params = match params {
            Some(params) => Some(text(params)?),
            None => None,
        };
        Some(Self { method: method.to_owned(), params })
    }

    fn bytes(&self) -> usize {
        self.method.len() + self.params.as_ref().map_or(0, String::len)
    }
}

impl Table {
    fn add(&mut self, key: usize, notification: Notification) {
        let bytes = self.bytes + notification.bytes();
        let Some(backlog) = self.backlogs.get_mut(&key) else { return };
        if self.waiting == MAX_WAITING || bytes > MAX_WAITING_BYTES {
            if backlog.dropped == 0 {
                tracing::warn!("a client reads too slowly: notifications of the server are dropped");
            }
            backlog.dropped += 1;
            return;
        }
        backlog.waiting.push_back(Waiting::Notification(notification));
        self.waiting += 1;
        self.bytes = bytes;
    }

    /// Takes the next notification of a channel, and sets the marks before it.
    fn next(&mut self, key: usize) -> Option<Notification> {
        let backlog = self.backlogs.get_mut(&key)?;
        loop {
            match backlog.waiting.pop_front()? {
                Waiting::Mark(mark) => mark.set(),
                Waiting::Notification(next) => {
                    self.waiting -= 1;
                    self.bytes -= next.bytes();
                    return Some(next);
                }
            }
        }
    }

    /// Returns the mark behind what waits for a channel now.
    fn mark(&mut self, key: usize) -> Option<Arc<Latch>> {
        let waiting = &mut self.backlogs.get_mut(&key)?.waiting;
        if let Some(Waiting::Mark(mark)) = waiting.back() {
            return Some(Arc::clone(mark));
        }
        let mark = Arc::new(Latch::new());
        waiting.push_back(Waiting::Mark(Arc::clone(&mark)));
        Some(mark)
    }
}

impl Backlogs {
    /// Sends a notification without waiting: now, or behind those that wait for the same channel.
    pub(crate) fn send(
        self: &Arc<Self>,
        channel: &Arc<dyn Outbound>,
        method: &str,
        params: Option<&dyn Body>,
    ) {
        if self.wait() {
            let mut table = lock(&self.table);
            let key = key(channel);
            if table.backlogs.contains_key(&key) {
                if let Some(notification) = Notification::new(method, params) {
                    table.add(key, notification);
                } else {
                    tracing::warn!(method, "a notification could not be written and is dropped");
                }
                return;
            }
        }
        let mut sending = channel.notify(method, params);
        if Pin::new(&mut sending).poll(&mut Context::from_waker(Waker::noop())).is_pending() {
            self.start(channel, sending);
        }
    }

    /// Returns whether notifications wait for any channel.
    pub(crate) fn wait(&self) -> bool {
        self.channels.load(Ordering::Acquire) > 0
    }

    /// Waits until all notifications that wait for this channel now have been sent.
    pub(crate) async fn sent(&self, channel: &Arc<dyn Outbound>) {
        let mark = lock(&self.table).mark(key(channel));
        if let Some(mark) = mark {
            mark.wait().await;
        }
    }

    /// Starts the task that sends what waits for this channel, beginning with `first`.
    fn start(self: &Arc<Self>, channel: &Arc<dyn Outbound>, first: NotifyFuture) {
        let mut table = lock(&self.table);
        while table.tasks.try_join_next().is_some() {}
        let key = key(channel);
        if table.backlogs.contains_key(&key) {
            // Another stream of the same session has just started it. Streams have no order among each other.
            table.tasks.spawn(first);
            return;
        }
        table.backlogs.insert(key, Backlog::default());
        self.channels.fetch_add(1, Ordering::Release);
        let (backlogs, channel) = (Arc::downgrade(self), Arc::clone(channel));
        table.tasks.spawn(async move {
            let mut sending = first;
            loop {
                sending.await;
                let Some(backlogs) = backlogs.upgrade() else { return };
                let Some(next) = backlogs.next(key) else { return };
                let params = next.params.as_deref().map(Text);
                sending = channel.notify(&next.method, params.as_ref().map(|params| params as _));
            }
        });
    }

    /// Takes the next notification of a channel, or ends its backlog.
    fn next(&self, key: usize) -> Option<Notification> {
        let mut table = lock(&self.table);
        let next = table.next(key);
        if next.is_none()
            && let Some(Backlog { dropped, .. }) = table.backlogs.remove(&key)
        {
            self.channels.fetch_sub(1, Ordering::Release);
            drop(table);
            if dropped > 0 {
                tracing::warn!(
                    dropped,
                    "a client that was too slow reads again: notifications of the server were dropped"
                );
            }
        }
        next
    }
}

/// Returns what tells a channel from all others that exist at the same time.
fn key(channel: &Arc<dyn Outbound>) -> usize {
    Arc::as_ptr(channel).addr()
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use bytestring::ByteString;
    use duplexer_core::dispatch::{BoxFuture, OutboundRequest};
    use duplexer_core::error::CallError;
    use tokio::sync::Semaphore;

    use super::*;

    /// A channel that takes as many notifications as its client reads.
    struct Slow {
        capacity: Semaphore,
        taken: Mutex<Vec<String>>,
    }

    impl Slow {
        fn new(capacity: usize) -> (Arc<Self>, Arc<dyn Outbound>) {
            let slow = Arc::new(Self { capacity: Semaphore::new(capacity), taken: Mutex::default() });
            (Arc::clone(&slow), Arc::new(SlowChannel(slow)))
        }

        fn taken(&self) -> Vec<String> {
            lock(&self.taken).clone()
        }
    }

    struct SlowChannel(Arc<Slow>);

    impl Outbound for SlowChannel {
        fn request(&self, request: OutboundRequest) -> BoxFuture<'_, Result<ByteString, CallError>> {
            Box::pin(std::future::ready(Err(CallError::NoBackChannel(request.method))))
        }

        fn notify(&self, method: &str, params: Option<&dyn Body>) -> NotifyFuture {
            let slow = Arc::clone(&self.0);
            let notification = Notification::new(method, params).unwrap();
            let text = format!("{} {}", notification.method, notification.params.unwrap_or_default());
            NotifyFuture::waiting(async move {
                slow.capacity.acquire().await.unwrap().forget();
                lock(&slow.taken).push(text);
            })
        }
    }

    #[tokio::test]
    async fn notifications_wait_for_a_slow_client_in_their_order() {
        let backlogs = Arc::new(Backlogs::default());
        let (client, channel) = Slow::new(2);
        let expected: Vec<String> = (0..1000).map(|step| format!("step {step}")).collect();
        for step in 0..1000 {
            backlogs.send(&channel, "step", Some(&Text(&step.to_string())));
        }
        assert_eq!(client.taken().len(), 2);
        // Capacity is free again, but others wait: a later one must not overtake them.
        client.capacity.add_permits(1);
        backlogs.send(&channel, "last", None);
        client.capacity.add_permits(1000);
        backlogs.sent(&channel).await;
        let taken = client.taken();
        assert_eq!(taken[..1000], expected);
        assert_eq!(taken[1000..], ["last ".to_owned()]);
        assert!(!backlogs.wait());
    }

    /// Other requests of the same client can have as many notifications as they like.
    #[tokio::test]
    async fn a_response_waits_for_no_notification_behind_it() {
        let backlogs = Arc::new(Backlogs::default());
        let (client, channel) = Slow::new(0);
        backlogs.send(&channel, "first", None);
        backlogs.send(&channel, "second", None);
        let mut response = Box::pin(backlogs.sent(&channel));
        let mut cx = Context::from_waker(Waker::noop());
        assert!(response.as_mut().poll(&mut cx).is_pending());
        backlogs.send(&channel, "third", None);
        client.capacity.add_permits(2);
        response.await;
        assert_eq!(client.taken(), ["first ", "second "]);
    }

    #[tokio::test]
    async fn a_client_that_never_reads_costs_a_limited_amount_and_delays_no_other() {
        let backlogs = Arc::new(Backlogs::default());
        let (stuck, to_stuck) = Slow::new(0);
        let (quick, to_quick) = Slow::new(10);
        for _ in 0..2 * MAX_WAITING {
            backlogs.send(&to_stuck, "step", None);
        }
        backlogs.send(&to_quick, "step", None);
        backlogs.sent(&to_quick).await;
        assert_eq!(quick.taken().len(), 1);
        assert_eq!(lock(&backlogs.table).waiting, MAX_WAITING);
        stuck.capacity.add_permits(2 * MAX_WAITING);
        backlogs.sent(&to_stuck).await;
        // One more had been given to the channel.
        assert_eq!(stuck.taken().len(), MAX_WAITING + 1);
    }

    #[tokio::test]
    async fn large_notifications_that_wait_are_limited_by_their_bytes() {
        let backlogs = Arc::new(Backlogs::default());
        let (client, channel) = Slow::new(0);
        let large = "x".repeat(MAX_WAITING_BYTES / 4);
        for _ in 0..10 {
            backlogs.send(&channel, "large", Some(&Text(&large)));
        }
        client.capacity.add_permits(10);
        backlogs.sent(&channel).await;
        assert_eq!(client.taken().len(), 4);
        let table = lock(&backlogs.table);
        assert_eq!((table.waiting, table.bytes), (0, 0));
    }
}
