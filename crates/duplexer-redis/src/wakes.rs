//! Wake-ups: local readers that wait for a stream, and the connection on which other nodes wake this one.

use std::collections::HashMap;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use redis::Client;
use redis::aio::{PubSubSink, PubSubStream};
use tokio::sync::Notify;
use tokio::time::{sleep, timeout};

use crate::address::Address;
use crate::keys::WakeName;
use crate::link::Link;

/// Interval of checking that the connection for wake-ups still works.
const PING: Duration = Duration::from_secs(5);
/// Time for connecting, subscribing, and answering a ping.
const TIMEOUT: Duration = Duration::from_secs(2);
const RECONNECT_DELAY: Duration = Duration::from_millis(250);
/// Smallest number of entries at which the table of waiting tasks is swept.
const MIN_SWEEP: usize = 64;
/// Message on the channel of a run that has something in its inbox.
const INBOX: &[u8] = b"i";

/// The tasks of this node that wait for a wake-up.
#[derive(Debug, Default)]
pub(crate) struct Wakes {
    streams: Mutex<Streams>,
    pub(crate) inbox: Notify,
    pub(crate) changes: Notify,
    /// Notified after a reconnection: the store can have lost the lease.
    pub(crate) lease: Notify,
}

/// Streams that tasks wait for, by name.
#[derive(Debug, Default)]
struct Streams {
    waiting: HashMap<WakeName, Weak<Notify>>,
    /// Number of entries at which those without a waiting task are removed.
    sweep_at: usize,
}

impl Wakes {
    /// Returns what is notified when the stream may have changed.
    pub(crate) fn watch(&self, stream: WakeName) -> Arc<Notify> {
        let mut streams = self.streams();
        if let Some(notify) = streams.waiting.get(&stream).and_then(Weak::upgrade) {
            return notify;
        }
        if streams.waiting.len() >= streams.sweep_at {
            streams.waiting.retain(|_, notify| notify.strong_count() > 0);
            // At twice the size, so that the cost of a sweep is spread over as many insertions.
            streams.sweep_at = (streams.waiting.len() * 2).max(MIN_SWEEP);
        }
        let notify = Arc::new(Notify::new());
        streams.waiting.insert(stream, Arc::downgrade(&notify));
        notify
    }

    pub(crate) fn wake(&self, stream: WakeName) {
        let notify = self.streams().waiting.get(&stream).and_then(Weak::upgrade);
        if let Some(notify) = notify {
            notify.notify_waiters();
        }
    }

    /// Wakes all waiting tasks, after a time in which wake-ups can have been lost.
    fn wake_all(&self) {
        let all: Vec<_> = self.streams().waiting.values().filter_map(Weak::upgrade).collect();
        for notify in all {
            notify.notify_waiters();
        }
        self.inbox.notify_one();
        self.changes.notify_one();
        self.lease.notify_one();
    }

    fn streams(&self) -> MutexGuard<'_, Streams> {
        self.streams.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Listens for wake-ups of other nodes, for ever. A lost connection is opened again.
pub(crate) async fn listen(link: Arc<Link>, address: Address) {
    for attempt in 0.. {
        let lost = match timeout(TIMEOUT, address.client(attempt)).await {
            Ok(Ok(client)) => listen_once(&link, &client).await,
            _ => "the store cannot be found",
        };
        tracing::debug!(reason = lost, "the connection for wake-ups is opened again");
        sleep(RECONNECT_DELAY).await;
    }
}

/// Listens on one connection. Returns why it was lost.
async fn listen_once(link: &Link, client: &Client) -> &'static str {
    let mut runs = link.lease.runs();
    let channel = link.keys.run_channel(*runs.borrow_and_update());
    let Ok(Ok((mut sink, mut stream))) = timeout(TIMEOUT, subscribe(link, client, &channel)).await else {
        return "it cannot be opened";
    };
    link.wakes.wake_all();
    loop {
        tokio::select! {
            message = next(&mut stream) => match message {
                Some(message) => deliver(link, &channel, &message),
                None => return "it was closed",
            },
            // The run has changed: its channel has another name.
            changed = runs.changed() => return if changed.is_ok() { "the node has another run" } else { "the node ends" },
            () = sleep(PING) => {
                if !matches!(timeout(TIMEOUT, sink.ping::<redis::Value>()).await, Ok(Ok(_))) {
                    return "it does not answer";
                }
            }
        }
    }
}

async fn subscribe(
    link: &Link,
    client: &Client,
    channel: &str,
) -> redis::RedisResult<(PubSubSink, PubSubStream)> {
    let (mut sink, stream) = client.get_async_pubsub().await?.split();
    sink.subscribe(channel).await?;
    sink.subscribe(link.keys.changes_channel()).await?;
    Ok((sink, stream))
}

fn deliver(link: &Link, run_channel: &str, message: &redis::Msg) {
    if message.get_channel_name() != run_channel {
        link.wakes.changes.notify_one();
    } else if message.get_payload_bytes() == INBOX {
        link.wakes.inbox.notify_one();
    } else if let Some(stream) = WakeName::read(message.get_payload_bytes()) {
        link.wakes.wake(stream);
    }
}

async fn next(stream: &mut PubSubStream) -> Option<redis::Msg> {
    std::future::poll_fn(|cx| futures_core::Stream::poll_next(Pin::new(&mut *stream), cx)).await
}
