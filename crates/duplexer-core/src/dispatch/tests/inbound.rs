//! An [`Inbound`] whose handlers a test defines method by method.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use duplexer_types::jsonrpc::Body;

use crate::dispatch::{Batches, BoxFuture, CallContext, Inbound, Message, NotificationRoute, Schedule, lock};
use crate::error::McpError;

/// The result of a test handler.
pub(crate) enum Reply {
    /// This JSON text.
    Text(String),
    /// A value that cannot be serialized.
    FailsToWrite,
    /// A value that panics while it is serialized.
    PanicsOnWrite,
    /// A value that panics when it is dropped.
    PanicsOnDrop(PanicOnDrop),
}

impl Reply {
    pub(crate) fn of(value: &serde_json::Value) -> Self {
        Self::Text(value.to_string())
    }
}

/// Panics when dropped.
pub(crate) struct PanicOnDrop;

impl Drop for PanicOnDrop {
    fn drop(&mut self) {
        panic!("secret: dropped");
    }
}

impl Body for Reply {
    fn write(&self, out: &mut Vec<u8>) -> Result<(), serde_json::Error> {
        out.extend_from_slice(b"{\"half\":");
        match self {
            Self::Text(text) => {
                out.truncate(out.len() - 8);
                text.as_str().write(out)
            }
            Self::FailsToWrite => Err(serde::ser::Error::custom("secret: unwritable")),
            Self::PanicsOnWrite => panic!("secret: panicking"),
            Self::PanicsOnDrop(_) => {
                out.extend_from_slice(b"1}");
                Ok(())
            }
        }
    }
}

type RequestFn =
    Box<dyn Fn(CallContext, Message) -> BoxFuture<'static, Result<Reply, McpError>> + Send + Sync>;
type NotificationFn = Box<dyn Fn(CallContext, Message) -> BoxFuture<'static, ()> + Send + Sync>;
type OnReadFn = Box<dyn Fn(&Message) -> NotificationRoute + Send + Sync>;

#[derive(Default)]
pub(crate) struct TestInbound {
    requests: HashMap<&'static str, RequestFn>,
    schedules: HashMap<&'static str, Schedule>,
    notification: Option<NotificationFn>,
    on_notification_read: Option<OnReadFn>,
    batches: Mutex<Option<Batches>>,
}

impl TestInbound {
    /// Creates a handler set that answers `echo` with its params and no other method.
    pub(crate) fn new() -> Self {
        Self::default()
            .on("echo", |_, call| async move { Ok(Reply::Text(call.params().unwrap_or("{}").to_owned())) })
    }

    pub(crate) fn on<F>(
        mut self,
        method: &'static str,
        handler: impl Fn(CallContext, Message) -> F + Send + Sync + 'static,
    ) -> Self
    where
        F: Future<Output = Result<Reply, McpError>> + Send + 'static,
    {
        self.requests.insert(method, Box::new(move |cx, call| Box::pin(handler(cx, call))));
        self
    }

    pub(crate) fn schedule(mut self, method: &'static str, schedule: Schedule) -> Self {
        self.schedules.insert(method, schedule);
        self
    }

    pub(crate) fn on_notification<F>(
        mut self,
        handler: impl Fn(CallContext, Message) -> F + Send + Sync + 'static,
    ) -> Self
    where
        F: Future<Output = ()> + Send + 'static,
    {
        self.notification = Some(Box::new(move |cx, call| Box::pin(handler(cx, call))));
        self
    }

    pub(crate) fn on_read(
        mut self,
        on_notification_read: impl Fn(&Message) -> NotificationRoute + Send + Sync + 'static,
    ) -> Self {
        self.on_notification_read = Some(Box::new(on_notification_read));
        self
    }

    pub(crate) fn batches(self, batches: Batches) -> Self {
        *lock(&self.batches) = Some(batches);
        self
    }
}

impl Inbound for TestInbound {
    type Reply = Reply;

    async fn request(self: &Arc<Self>, cx: CallContext, call: Arc<Message>) -> Result<Reply, McpError> {
        match self.requests.get(call.method()) {
            Some(handler) => handler(cx, Arc::unwrap_or_clone(call)).await,
            None => Err(duplexer_types::error::ErrorObject::method_not_found(call.method()).into()),
        }
    }

    async fn notification(self: &Arc<Self>, cx: CallContext, call: Arc<Message>) {
        if let Some(handler) = &self.notification {
            handler(cx, Arc::unwrap_or_clone(call)).await;
        }
    }

    fn schedule(&self, call: &Message) -> Schedule {
        assert_ne!(call.method(), "panicking-schedule", "secret: schedule");
        self.schedules.get(call.method()).copied().unwrap_or(Schedule::Concurrent)
    }

    fn on_notification_read(&self, call: &Message) -> NotificationRoute {
        self.on_notification_read
            .as_ref()
            .map_or(NotificationRoute::Forward, |on_notification_read| on_notification_read(call))
    }

    fn batches(&self) -> Batches {
        lock(&self.batches).unwrap_or(Batches::Refused)
    }
}
