//! Wake-ups: local readers that wait for a stream, and the connection on which other nodes wake this one.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use redis::Client;
use redis::aio::{PubSubSink, PubSubStream};
use tokio::sync::{Notify, watch};
use tokio::time::{sleep, timeout};

use crate::link::Link;

/// Interval of checking that the connection for wake-ups still works.
const PING: Duration = Duration::from_secs(5);
/// Time for connecting, subscribing, and answering a ping.
const TIMEOUT: Duration = Duration::from_secs(2);
const RECONNECT_DELAY: Duration = Duration::from_millis(250);
/// Message on the channel of a run that has something in its inbox.
const INBOX: &[u8] = b"i";

/// Those who wait for a wake-up at this node.
#[derive(Debug, Default)]
pub(crate) struct Wakes {
    streams: Mutex<HashMap<String, Weak<Notify>>>,
    pub(crate) inbox: Notify,
    pub(crate) changes: Notify,
}

impl Wakes {
    /// Returns what is notified when the stream may have changed.
    pub(crate) fn watch(&self, stream: String) -> Arc<Notify> {
        let mut streams = self.streams();
        if let Some(notify) = streams.get(&stream).and_then(Weak::upgrade) {
            return notify;
        }
        // The entries of readers that are gone are removed when the table doubles.
        if streams.len().is_power_of_two() {
            streams.retain(|_, notify| notify.strong_count() > 0);
        }
        let notify = Arc::new(Notify::new());
        streams.insert(stream, Arc::downgrade(&notify));
        notify
    }

    pub(crate) fn wake(&self, stream: &str) {
        let notify = self.streams().get(stream).and_then(Weak::upgrade);
        if let Some(notify) = notify {
            notify.notify_waiters();
        }
    }

    /// Wakes everybody, after a time in which wake-ups can have been lost.
    fn wake_all(&self) {
        let all: Vec<_> = self.streams().values().filter_map(Weak::upgrade).collect();
        for notify in all {
            notify.notify_waiters();
        }
        self.inbox.notify_one();
        self.changes.notify_one();
    }

    fn streams(&self) -> MutexGuard<'_, HashMap<String, Weak<Notify>>> {
        self.streams.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Listens for wake-ups of other nodes, for ever. A lost connection is opened again.
pub(crate) async fn listen(link: Arc<Link>, client: Client) {
    loop {
        let lost = listen_once(&link, &client).await;
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
    } else if let Ok(stream) = std::str::from_utf8(message.get_payload_bytes()) {
        link.wakes.wake(stream);
    }
}

async fn next(stream: &mut PubSubStream) -> Option<redis::Msg> {
    use std::pin::Pin;
    std::future::poll_fn(|cx| futures_core::Stream::poll_next(Pin::new(&mut *stream), cx)).await
}

/// Sends the run of this node to those who depend on it.
pub(crate) type Runs = watch::Receiver<duplexer_core::run::RunId>;
