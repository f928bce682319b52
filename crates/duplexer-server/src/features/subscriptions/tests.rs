//! Subscriptions on the wire, line by line, in both eras.

mod connection_listener;
mod feed;
mod listen;
pub(crate) mod wire;

use std::sync::Arc;
use std::sync::atomic::Ordering;

use duplexer_types::methods;
use duplexer_types::page::PaginatedParams;
use duplexer_types::prompt::ListPromptsResult;
use duplexer_types::resource::ListResourcesResult;
use duplexer_types::tool::{CallToolParams, CallToolResult, ListToolsResult};

use super::{
    BusMessage, Event, EventListener, MemoryBus, Position, Since, Subscription, SubscriptionBus,
    SubscriptionLimits,
};
use crate::builder::ServerBuilder;
use crate::kernel::context::Context;
use crate::registry::{RunningServer, Server};
use duplexer_core::dispatch::BoxFuture;
use duplexer_core::error::{McpError, StoreError};

/// A server with all three lists, and a tool that publishes their changes.
fn described() -> ServerBuilder<()> {
    Server::builder("test", "0")
        .on(methods::ToolsList, |_: PaginatedParams| async {
            Ok::<_, McpError>(ListToolsResult::new(Vec::new()))
        })
        .on(methods::PromptsList, |_: PaginatedParams| async {
            Ok::<_, McpError>(ListPromptsResult::new(Vec::new()))
        })
        .on(methods::ResourcesList, |_: PaginatedParams| async {
            Ok::<_, McpError>(ListResourcesResult::new(Vec::new()))
        })
        .on(methods::ToolsCall, |cx: Context<()>, _: CallToolParams| async move {
            // On the shared channel of an envelope-era stream these are dropped.
            cx.connection().tools_changed().await;
            cx.notify_tools_changed().await;
            cx.notify_prompts_changed().await;
            cx.notify_resources_changed().await;
            cx.notify_resource_updated("file:///a").await;
            Ok::<_, McpError>(CallToolResult::text("changed"))
        })
}

async fn running(bus: impl SubscriptionBus) -> RunningServer {
    described().subscriptions(bus).build().unwrap().start().await.unwrap()
}

async fn running_within(bus: impl SubscriptionBus, limits: SubscriptionLimits) -> RunningServer {
    described().subscriptions_within(bus, limits).build().unwrap().start().await.unwrap()
}

/// Returns the number of open streams.
fn open_streams(running: &RunningServer) -> usize {
    running.subscriptions().unwrap().streams.load(Ordering::Acquire)
}

/// Waits for an effect of other tasks, without a clock.
async fn until(condition: impl Fn() -> bool) {
    let coming = async {
        while !condition() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(wire::TIMEOUT, coming).await.expect("it does not come about");
}

/// Returns the number of listeners of a server.
fn listeners(running: &RunningServer) -> usize {
    running.subscriptions().unwrap().router.len().0
}

/// A bus with hooks: on subscribe and unsubscribe, and after the log was read.
#[derive(Clone)]
struct OddBus {
    inner: MemoryBus,
    on_subscribe: Arc<dyn Fn(&EventListener) + Send + Sync>,
    on_since: Arc<dyn Fn() + Send + Sync>,
    last: Arc<std::sync::Mutex<Option<EventListener>>>,
    on_unsubscribe: Arc<dyn Fn() + Send + Sync>,
}

impl OddBus {
    fn new(on_subscribe: impl Fn(&EventListener) + Send + Sync + 'static) -> Self {
        Self {
            inner: MemoryBus::new(),
            on_subscribe: Arc::new(on_subscribe),
            on_since: Arc::new(|| {}),
            last: Arc::default(),
            on_unsubscribe: Arc::new(|| {}),
        }
    }

    /// Delivers something that was never published.
    fn deliver(&self, message: BusMessage<'_>) {
        let listener = self.last.lock().unwrap().clone().unwrap();
        listener(message);
    }
}

impl SubscriptionBus for OddBus {
    fn publish(&self, event: Event) -> BoxFuture<'_, Result<Position, StoreError>> {
        self.inner.publish(event)
    }

    fn since(&self, position: Position, at_most: usize) -> BoxFuture<'_, Result<Since, StoreError>> {
        let page = self.inner.since(position, at_most);
        (self.on_since)();
        page
    }

    fn latest(&self) -> Position {
        self.inner.latest()
    }

    fn subscribe(&self, listener: EventListener) -> Subscription {
        (self.on_subscribe)(&listener);
        *self.last.lock().unwrap() = Some(Arc::clone(&listener));
        let (inner, odd) = (self.inner.subscribe(listener), Arc::clone(&self.on_unsubscribe));
        Subscription::new(move || {
            odd();
            drop(inner);
        })
    }
}
