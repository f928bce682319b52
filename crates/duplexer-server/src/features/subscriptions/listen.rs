//! `subscriptions/listen`: one standing request, told what it asked for until either side ends it.
//!
//! It is subscribed before it says so, says so before anything else, and says everything under the id of its request.

use std::sync::{Arc, Mutex};

use duplexer_types::error::ErrorCode;
use duplexer_types::json::{Json, JsonObject};
use duplexer_types::jsonrpc::{Body, RequestId};
use duplexer_types::lifecycle::EmptyParams;
use duplexer_types::meta::key;
use duplexer_types::methods::{self, Notification};
use duplexer_types::progress::CancelledParams;
use duplexer_types::resource::ResourceUpdatedParams;
use duplexer_types::subscription::{
    SubscriptionsAcknowledgedParams, SubscriptionsListenParams, SubscriptionsListenResult,
};
use duplexer_types::version::ProtocolVersion;
use duplexer_types::wire::{self, WireObject};
use tokio::sync::Notify;

use super::backlog::{Backlog, Pushed};
use super::bus::{Event, Listener, Subscription};
use super::filter::{Promised, Wanted};
use super::{Place, Subscriptions};
use crate::kernel::context::{Context, StateMap};
use crate::kernel::outcome::Outcome;
use duplexer_core::dispatch::{Sending, lock};
use duplexer_core::error::McpError;
use duplexer_core::transport::RequestStream;

/// Handles the request.
pub(super) async fn listen(cx: Context<StateMap>) -> Result<Outcome, McpError> {
    let asked = cx.params::<SubscriptionsListenParams>()?.notifications;
    let Some(id) = cx.request_id().cloned() else {
        return Err(McpError::new(ErrorCode::INVALID_REQUEST, "only a request can listen"));
    };
    let Some(service) = cx.server().subscriptions().map(Arc::clone) else {
        return Err(McpError::internal("a listener without a bus"));
    };
    let promised = Promised::by(&cx.server().server().capabilities(cx.protocol_version()));
    let wanted = Wanted::of(&asked, promised, service.limits())?;
    let honoured = wanted.honoured(asked);
    let place = service
        .take_place()
        .ok_or_else(|| McpError::new(ErrorCode::INTERNAL_ERROR, "Subscription limit reached"))?;
    let stream = Arc::new(Stream::new(wanted, place, service.limits().backlog));
    let subscription = service.plan.bus.subscribe(stream.listener());
    let teller = Teller::new(&cx, &id)?;
    teller.tell::<methods::SubscriptionsAcknowledged>(&SubscriptionsAcknowledgedParams::new(honoured)).await;
    tokio::select! {
        biased;
        () = cx.cancellation().raised() => {}
        () = serve(&cx, &service, &stream, &teller, subscription) => conclude(&cx, &teller, id).await,
    }
    Ok(Outcome::of(SubscriptionsListenResult::new().meta(teller.meta)))
}

/// Tells events until the stream is to end, and then what still waits.
async fn serve(
    cx: &Context<StateMap>,
    service: &Subscriptions,
    stream: &Stream,
    teller: &Teller<'_>,
    subscription: Subscription,
) {
    loop {
        tokio::select! {
            biased;
            () = cx.closing().raised() => break,
            () = service.closing.raised() => break,
            event = stream.next() => match event {
                Some(event) => teller.event(&event).await,
                None => break,
            },
        }
    }
    drop(subscription);
    while let Some(event) = stream.pop() {
        teller.event(&event).await;
    }
}

/// Where requests share a stream its end cannot be seen, so it is told. The result follows, as the last word.
async fn conclude(cx: &Context<StateMap>, teller: &Teller<'_>, id: RequestId) {
    if cx.transport().request_stream == RequestStream::Shared {
        teller
            .tell::<methods::Cancelled>(&CancelledParams::for_request(id).reason("the server ends it"))
            .await;
    }
}

/// Says things under the id of the listening request.
struct Teller<'a> {
    cx: &'a Context<StateMap>,
    meta: JsonObject,
}

impl<'a> Teller<'a> {
    fn new(cx: &'a Context<StateMap>, id: &RequestId) -> Result<Self, McpError> {
        let id = Json::encode(id).map_err(McpError::internal)?;
        Ok(Self { cx, meta: JsonObject::new().with(key::SUBSCRIPTION_ID, id) })
    }

    fn tell<N: Notification>(&self, params: &N::Params) -> Sending {
        let version = self.cx.protocol_version();
        self.cx.notify_raw(N::METHOD.name(), Some(&Tagged { params, version, meta: &self.meta }))
    }

    async fn event(&self, event: &Event) {
        let nothing = EmptyParams::new();
        match event {
            Event::ToolsChanged => self.tell::<methods::ToolsListChanged>(&nothing),
            Event::PromptsChanged => self.tell::<methods::PromptsListChanged>(&nothing),
            Event::ResourcesChanged => self.tell::<methods::ResourcesListChanged>(&nothing),
            Event::ResourceUpdated { uri } => {
                self.tell::<methods::ResourcesUpdated>(&ResourceUpdatedParams::new(&**uri))
            }
        }
        .await;
    }
}

/// Params with the name of the subscription in their `_meta`.
struct Tagged<'a, P> {
    params: &'a P,
    version: ProtocolVersion,
    meta: &'a JsonObject,
}

impl<P: WireObject> Body for Tagged<'_, P> {
    fn write(&self, out: &mut Vec<u8>) -> Result<(), serde_json::Error> {
        wire::write_params(out, self.params, self.version, Some(self.meta))
    }
}

/// What the bus and the request share.
struct Stream {
    wanted: Wanted,
    state: Mutex<State>,
    changed: Notify,
}

struct State {
    backlog: Backlog,
    /// Given up as soon as the stream is to end: gone means that nothing more is taken in.
    place: Option<Place>,
}

impl Stream {
    fn new(wanted: Wanted, place: Place, room: usize) -> Self {
        let state = State { backlog: Backlog::new(room), place: Some(place) };
        Self { wanted, state: Mutex::new(state), changed: Notify::new() }
    }

    /// What the bus gets. It keeps nothing alive: a bus that forgets to let go of it does no harm.
    fn listener(self: &Arc<Self>) -> Listener {
        let stream = Arc::downgrade(self);
        Arc::new(move |event| {
            if let Some(stream) = stream.upgrade() {
                stream.offer(event);
            }
        })
    }

    /// Takes an event in. A stream without room for it ends, after what waits already.
    fn offer(&self, event: &Event) {
        if !self.wanted.includes(event) {
            return;
        }
        let mut state = lock(&self.state);
        if state.place.is_none() {
            return;
        }
        let freed = match state.backlog.push(event) {
            Pushed::Merged => return,
            Pushed::Taken => None,
            Pushed::Full => state.place.take(),
        };
        drop(state);
        if freed.is_some() {
            tracing::warn!("a subscriber does not keep up and is ended");
        }
        self.changed.notify_one();
    }

    fn pop(&self) -> Option<Event> {
        lock(&self.state).backlog.pop()
    }

    /// The next event; `None` when the stream has ended and all is told.
    async fn next(&self) -> Option<Event> {
        loop {
            {
                let mut state = lock(&self.state);
                let event = state.backlog.pop();
                if event.is_some() || state.place.is_none() {
                    return event;
                }
            }
            // One waits and a notice is kept for it, so none is missed in between.
            self.changed.notified().await;
        }
    }
}
