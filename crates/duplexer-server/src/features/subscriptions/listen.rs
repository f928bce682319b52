//! `subscriptions/listen`: a long-lived request that receives events until either side ends it. It subscribes to the
//! bus, then sends its acknowledgement, then the events. All of them carry the id of the request.

use std::sync::{Arc, Mutex};

use duplexer_types::error::ErrorCode;
use duplexer_types::json::{Json, JsonObject};
use duplexer_types::jsonrpc::{Body, RequestId};
use duplexer_types::meta::key;
use duplexer_types::methods::{self, Notification};
use duplexer_types::progress::CancelledParams;
use duplexer_types::subscription::{
    SubscriptionsAcknowledgedParams, SubscriptionsListenParams, SubscriptionsListenResult,
};
use duplexer_types::task::EXTENSION;
use tokio::sync::Notify;

use super::backlog::{Backlog, Pushed};
use super::bus::{BusMessage, Event, Position};
use super::filter::{AdvertisedEvents, EventFilter};
use super::notification::{ShapedParams, notification};
use super::router::{ChangeListener, RouteId};
use super::{StreamPermit, SubscriptionLimits, Subscriptions};
use crate::features::tasks::TaskId;
use crate::kernel::context::{Context, StateMap};
use crate::kernel::outcome::Outcome;
use duplexer_core::dispatch::{NotifyFuture, lock};
use duplexer_core::error::McpError;
use duplexer_core::transport::RequestStream;

/// Handles the request.
pub(super) async fn listen(cx: Context<StateMap>) -> Result<Outcome, McpError> {
    let requested = cx.params::<SubscriptionsListenParams>()?.notifications;
    let Some(id) = cx.request_id().cloned() else {
        return Err(McpError::new(ErrorCode::INVALID_REQUEST, "only a request can listen"));
    };
    let Some(service) = cx.server().subscriptions().map(Arc::clone) else {
        return Err(McpError::internal("a listener without a bus"));
    };
    let advertised =
        AdvertisedEvents::from_capabilities(&cx.server().server().capabilities(cx.protocol_version()));
    let tasks =
        admitted_tasks(&cx, requested.task_ids.as_deref().unwrap_or_default(), service.limits()).await?;
    let filter = EventFilter::new(&requested, advertised, service.limits())?.with_tasks(tasks);
    let acknowledged = filter.acknowledged(requested);
    let permit = service
        .acquire_stream()
        .ok_or_else(|| McpError::new(ErrorCode::INTERNAL_ERROR, "Subscription limit reached"))?;
    let stream = Arc::new(ListenStream::new(filter, permit, service.limits().backlog));
    let registration = Registration::new(&service, &stream);
    let sender = EventSender::new(&cx, &id)?;
    sender
        .notify::<methods::SubscriptionsAcknowledged>(&SubscriptionsAcknowledgedParams::new(acknowledged))
        .await;
    tokio::select! {
        biased;
        () = cx.cancellation().cancelled() => {}
        () = serve(&cx, &stream, &sender, registration) => conclude(&cx, &sender, id).await,
    }
    Ok(Outcome::of(SubscriptionsListenResult::new().meta(sender.meta)))
}

/// Returns the tasks that the caller may listen to: those that it created. Without tasks in the server there are none.
async fn admitted_tasks(
    cx: &Context<StateMap>,
    requested: &[String],
    limits: &SubscriptionLimits,
) -> Result<Vec<Arc<str>>, McpError> {
    let Some(engine) = cx.server().tasks().filter(|_| !requested.is_empty()) else { return Ok(Vec::new()) };
    cx.require_extension(EXTENSION)?;
    let bytes: usize = requested.iter().map(String::len).sum();
    if requested.len() > limits.uris || bytes > limits.uri_bytes {
        let text =
            format!("taskIds may hold at most {} ids of {} bytes together", limits.uris, limits.uri_bytes);
        return Err(McpError::new(ErrorCode::INVALID_PARAMS, text));
    }
    let mut admitted = Vec::new();
    for id in requested {
        let found = engine.find(&TaskId::from(id.as_str()), cx.principal()).await;
        if found.map_err(McpError::internal)?.is_some() {
            admitted.push(id.as_str().into());
        }
    }
    Ok(admitted)
}

/// Sends events until the stream is to end, then the events that still wait.
async fn serve(
    cx: &Context<StateMap>,
    stream: &ListenStream,
    sender: &EventSender<'_>,
    registration: Registration<'_>,
) {
    loop {
        tokio::select! {
            biased;
            () = cx.closing().cancelled() => break,
            () = registration.service.closing.cancelled() => break,
            event = stream.next() => match event {
                Some(event) => sender.send(&event).await,
                None => break,
            },
        }
    }
    drop(registration);
    while let Some(event) = stream.pop() {
        sender.send(&event).await;
    }
}

/// Reports the end of a stream that other requests share, because the client cannot see it otherwise. The result
/// follows.
async fn conclude(cx: &Context<StateMap>, sender: &EventSender<'_>, id: RequestId) {
    if cx.transport().request_stream == RequestStream::Shared {
        sender
            .notify::<methods::Cancelled>(&CancelledParams::for_request(id).reason("the server ends it"))
            .await;
    }
}

/// Sends notifications with the id of the listening request.
struct EventSender<'a> {
    cx: &'a Context<StateMap>,
    meta: JsonObject,
}

impl<'a> EventSender<'a> {
    fn new(cx: &'a Context<StateMap>, id: &RequestId) -> Result<Self, McpError> {
        let id = Json::encode(id).map_err(McpError::internal)?;
        Ok(Self { cx, meta: JsonObject::new().with(key::SUBSCRIPTION_ID, id) })
    }

    fn notify<N: Notification>(&self, params: &N::Params) -> NotifyFuture {
        let version = self.cx.protocol_version();
        self.cx.notify_raw(N::METHOD.name(), Some(&ShapedParams { params, version, meta: Some(&self.meta) }))
    }

    async fn send(&self, event: &Event) {
        if let Event::TaskChanged { id } = event {
            return self.send_task(id).await;
        }
        let version = self.cx.protocol_version();
        let send = |method: &str, params: &dyn Body| self.cx.notify_raw(method, Some(params));
        if let Some(sent) = notification(event, version, Some(&self.meta), send) {
            sent.await;
        }
    }

    /// Sends a task as it is now: of several changes that wait, the client gets the last.
    async fn send_task(&self, id: &str) {
        let Some(engine) = self.cx.server().tasks() else { return };
        match engine.find(&TaskId::from(id), self.cx.principal()).await {
            Ok(Some(record)) => {
                let task = engine.detailed(&record, record.id.clone(), self.cx.protocol_version().era());
                self.notify::<methods::Tasks>(&task).await;
            }
            Ok(None) => {}
            Err(error) => tracing::warn!(%error, "a listener misses the change of a task"),
        }
    }
}

/// Registers a stream with the server's listeners until it is dropped.
struct Registration<'a> {
    service: &'a Subscriptions,
    stream: &'a ListenStream,
    route: RouteId,
}

impl<'a> Registration<'a> {
    fn new(service: &'a Subscriptions, stream: &'a Arc<ListenStream>) -> Self {
        let listener = Arc::clone(stream) as Arc<dyn ChangeListener>;
        let route = service.router.add(Arc::downgrade(&listener), stream.filter.keys());
        Self { service, stream, route }
    }
}

impl Drop for Registration<'_> {
    fn drop(&mut self) {
        self.service.router.remove(self.route, self.stream.filter.keys());
    }
}

/// The state that the server's listeners and the request share.
struct ListenStream {
    filter: EventFilter,
    state: Mutex<StreamState>,
    changed: Notify,
}

struct StreamState {
    backlog: Backlog,
    /// Released as soon as the stream is to end. Without a permit no further event is queued.
    permit: Option<StreamPermit>,
}

impl ListenStream {
    fn new(filter: EventFilter, permit: StreamPermit, backlog: usize) -> Self {
        let state = StreamState { backlog: Backlog::new(backlog), permit: Some(permit) };
        Self { filter, state: Mutex::new(state), changed: Notify::new() }
    }

    /// Queues an event. A stream whose backlog is full ends after the events that wait already.
    fn offer(&self, event: &Event, position: Position) {
        if !self.filter.includes(event) {
            return;
        }
        let mut state = lock(&self.state);
        if state.permit.is_none() {
            return;
        }
        let freed = match state.backlog.push(event, position) {
            Pushed::Merged => return,
            Pushed::Taken => None,
            Pushed::Full => state.permit.take(),
        };
        drop(state);
        if freed.is_some() {
            tracing::warn!("a subscriber does not keep up and is ended");
        }
        self.changed.notify_one();
    }

    /// Queues everything that the client listens to, because events were missed.
    fn offer_everything(&self, position: Position) {
        let mut state = lock(&self.state);
        if state.permit.is_some() {
            state.backlog.replace(self.filter.events(), position);
            drop(state);
            self.changed.notify_one();
        }
    }

    fn pop(&self) -> Option<Event> {
        lock(&self.state).backlog.pop().map(|(event, _)| event)
    }

    /// Returns the next event; `None` when the stream has ended and all events are sent.
    async fn next(&self) -> Option<Event> {
        loop {
            {
                let mut state = lock(&self.state);
                let event = state.backlog.pop().map(|(event, _)| event);
                if event.is_some() || state.permit.is_none() {
                    return event;
                }
            }
            // `Notify` stores one permit for the single waiter, so no event is missed in between.
            self.changed.notified().await;
        }
    }
}

impl ChangeListener for ListenStream {
    fn hear(self: Arc<Self>, message: BusMessage<'_>) {
        match message {
            BusMessage::Event(event, position) => self.offer(event, position),
            BusMessage::Missed(position) => self.offer_everything(position),
        }
    }
}
