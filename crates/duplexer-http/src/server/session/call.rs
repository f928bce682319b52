//! Requests and notifications of a session.
//!
//! A handler is polled by the task that waits for its response. When the client leaves, or when the response has become a
//! stream, the handler continues as a tracked task: a client that disconnects has not cancelled anything.

use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Context, Poll};

use duplexer_core::dispatch::{
    Accepted, BoxFuture, CallContext, Cancellation, Contained, Invocation, NotAccepted, Owed,
};
use duplexer_core::server::{ServerRunner, serve_on};
use duplexer_core::transport::{BackChannel, TransportContext};
use duplexer_types::error::{ErrorCode, ErrorObject};
use duplexer_types::jsonrpc::RequestId;
use duplexer_types::version::feature;
use http::StatusCode;

use super::channel::{NotificationChannel, RequestChannel, Speaking};
use super::stream::Stream;
use super::tail::{Reading, Tail};
use super::{Busy, NOT_FOUND, Session, hand_over};
use crate::server::body::ResponseBody;
use crate::server::config::Responses;
use crate::server::door::Visit;
use crate::server::hub::Hub;
use crate::server::reply::{self, Refusal, Reply};
use crate::server::response::{ResponseMode, ResponseSource, ResponseStart, complete, respond};
use crate::server::rpc_response::{ErrorResponder, RpcResponse};
use crate::server::sse::{self, EventId};

/// Serves a request that is the body of its POST.
pub(in crate::server) async fn request(
    session: Arc<Session>,
    visit: Visit,
    id: RequestId,
    message: Invocation,
) -> Result<Reply, Refusal> {
    let hub = Arc::clone(visit.admitted.hub());
    let in_flight = InFlight::take(&session, &id).map_err(|reason| not_accepted(&id, reason).into_reply())?;
    let (call, mode) = if hub.config.responses == Responses::JsonOnly {
        let call = SessionCall::new(in_flight, Stream::ephemeral(), Speaking::No, visit, message);
        (call, ResponseMode::Json)
    } else {
        let stream = session.new_stream(&hub);
        if stream.open().await.is_err() {
            return Err(reply::failed(&id).into());
        }
        session.list(&stream);
        let mode = if stream.id().is_some() { ResponseMode::Stream } else { ResponseMode::Either };
        (SessionCall::new(in_flight, stream, Speaking::Allowed, visit, message), mode)
    };
    Ok(session.stamp(respond(call, mode).await))
}

/// Serves a request that is part of a batch.
pub(in crate::server) async fn answer(
    session: Arc<Session>,
    visit: Visit,
    id: RequestId,
    message: Invocation,
) -> RpcResponse {
    match InFlight::take(&session, &id) {
        Ok(in_flight) => {
            let call = SessionCall::new(in_flight, Stream::ephemeral(), Speaking::No, visit, message);
            complete(call, &id).await
        }
        Err(reason) => not_accepted(&id, reason),
    }
}

/// A request that is in flight until this is dropped.
struct InFlight {
    session: Arc<Session>,
    accepted: Accepted,
}

impl InFlight {
    fn take(session: &Arc<Session>, id: &RequestId) -> Result<Self, NotAccepted> {
        let accepted = session.correlation.accept(id.clone())?;
        Ok(Self { session: Arc::clone(session), accepted })
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        self.session.correlation.finish(&self.accepted);
    }
}

/// Returns the response to a request that was not accepted.
fn not_accepted(id: &RequestId, reason: NotAccepted) -> RpcResponse {
    match reason {
        NotAccepted::InFlight => {
            RpcResponse::failure(id, &ErrorObject::id_in_flight(id), StatusCode::CONFLICT)
        }
        // The session ended while the request was on its way to it.
        NotAccepted::Closed => {
            let error = ErrorObject::new(ErrorCode::INVALID_REQUEST, NOT_FOUND);
            RpcResponse::failure(id, &error, StatusCode::NOT_FOUND)
        }
    }
}

/// A request of a session and the first reader of its stream.
struct SessionCall {
    work: DetachOnDrop,
    reading: Reading,
    busy: Arc<Busy>,
}

impl SessionCall {
    fn new(
        in_flight: InFlight,
        stream: Arc<Stream>,
        speaking: Speaking,
        visit: Visit,
        message: Invocation,
    ) -> Self {
        let mut transport = visit.transport_context();
        if speaking == Speaking::Allowed {
            transport.back_channel = BackChannel::Open;
        }
        let Visit { admitted, running, caller, .. } = visit;
        let hub = Arc::clone(admitted.hub());
        let session = Arc::clone(&in_flight.session);
        let busy = session.busy(admitted);
        let reading = Reading::new(Arc::clone(&stream), stream.attach().number);
        let runner =
            ServerRunner::new(running, Arc::clone(&session.connection)).on_behalf_of(caller.principal);
        let serving = Serving { hub: Arc::clone(&hub), in_flight, stream, speaking };
        let held = Arc::clone(&busy);
        let future = Box::pin(async move {
            serving.run(runner, transport, message).await;
            drop(held);
        });
        Self { work: DetachOnDrop { hub, future: Some(future) }, reading, busy }
    }
}

impl ResponseSource for SessionCall {
    fn service(&self) -> &Arc<Hub> {
        &self.work.hub
    }

    /// The mode has no effect: it follows from the kind of the stream.
    fn poll_start(&mut self, cx: &mut Context<'_>, _: ResponseMode) -> Poll<ResponseStart> {
        self.work.poll(cx);
        self.reading.stream().poll_start(cx)
    }

    /// The call itself watches for the abort, because it can outlive the wait for its response.
    fn abort(&mut self) -> Option<RpcResponse> {
        None
    }

    fn into_body(self) -> ResponseBody {
        let Self { work, reading, busy } = self;
        let hub = Arc::clone(&work.hub);
        drop(work);
        let before = opening(&hub, &busy.session, reading.stream());
        ResponseBody::tail(Tail::new(&hub, reading, before, busy))
    }
}

/// Work that continues as a tracked task when it is dropped.
struct DetachOnDrop {
    hub: Arc<Hub>,
    future: Option<BoxFuture<'static, ()>>,
}

impl DetachOnDrop {
    fn poll(&mut self, cx: &mut Context<'_>) {
        if let Some(future) = &mut self.future
            && future.as_mut().poll(cx).is_ready()
        {
            self.future = None;
        }
    }
}

impl Drop for DetachOnDrop {
    fn drop(&mut self) {
        if let Some(future) = self.future.take() {
            self.hub.see_to(future);
        }
    }
}

/// The server side of a request: runs the handler and ends the stream with the response.
struct Serving {
    hub: Arc<Hub>,
    in_flight: InFlight,
    stream: Arc<Stream>,
    speaking: Speaking,
}

/// How a handler ended.
enum Run {
    Finished(RpcResponse),
    /// By the client, or by the end of the session.
    Cancelled,
    /// The shutdown grace has ended.
    Aborted,
}

impl Serving {
    async fn run(self, runner: ServerRunner, transport: TransportContext, message: Invocation) {
        let InFlight { session, accepted } = &self.in_flight;
        let channel = RequestChannel {
            hub: Arc::clone(&self.hub),
            session: Arc::clone(session),
            stream: Arc::clone(&self.stream),
            cancellation: Arc::clone(accepted.cancellation()),
            speaking: self.speaking,
        };
        let id = accepted.id().clone();
        let cx = CallContext::new(Some(id.clone()), Arc::new(transport), Arc::new(channel));
        let message = Arc::new(message);
        let errors = ErrorResponder { id, message: Arc::clone(&message), status_of: |_| StatusCode::OK };
        let rendering = errors.clone();
        let request = runner.request(cx, message);
        let work = Contained::of(Box::pin(async move { rendering.render(request.await) }));
        let run = tokio::select! {
            biased;
            finished = work => Run::Finished(finished.unwrap_or_else(|panicked| errors.response(&panicked))),
            () = accepted.cancellation().raised() => Run::Cancelled,
            () = self.hub.cut.raised() => Run::Aborted,
        };
        // A challenged caller has changed nothing, and must not wait for the store.
        if !matches!(&run, Run::Finished(response) if response.is_challenge()) {
            hand_over::remember(&self.hub, session).await;
        }
        let owed = session.correlation.finish(accepted);
        self.stream.finish(match (run, owed) {
            (_, Owed::Nothing) => errors.failure(&cancelled(), StatusCode::OK),
            (Run::Finished(response), Owed::Answer) => response,
            (Run::Cancelled, Owed::Answer) => {
                errors.failure(&terminated(), StatusCode::INTERNAL_SERVER_ERROR)
            }
            (Run::Aborted, Owed::Answer) => errors.failure(&ErrorObject::connection_closed(), StatusCode::OK),
        });
    }
}

/// Over HTTP only a response ends a stream, so even a cancelled request has one.
fn cancelled() -> ErrorObject {
    ErrorObject::new(ErrorCode::REQUEST_CANCELLED, "Request cancelled")
}

fn terminated() -> ErrorObject {
    ErrorObject::new(ErrorCode::INTERNAL_ERROR, "Session terminated before the request completed")
}

/// Returns the priming event, which tells the client where to resume. Empty for clients that do not support it.
pub(super) fn opening(hub: &Hub, session: &Session, stream: &Stream) -> Vec<u8> {
    let mut before = Vec::new();
    if let (Some(stream), true) = (stream.id(), session.connection.version().has(feature::SSE_POLLING)) {
        sse::write_opening(&mut before, EventId { stream, sequence: 0 }, hub.config.sessions.retry);
    }
    before
}

/// Handles a notification: observes it in the order of arrival, then runs its handler. A handler that is pending after its
/// first poll continues as a tracked task, because no response waits for it.
pub(in crate::server) async fn notification(session: &Arc<Session>, visit: Visit, message: Invocation) {
    session.correlation.observe(&message);
    let mut transport = visit.transport_context();
    transport.back_channel = BackChannel::Open;
    let Visit { admitted, running, caller, .. } = visit;
    let hub = Arc::clone(admitted.hub());
    let busy = session.busy(admitted);
    let channel = NotificationChannel {
        hub: Arc::clone(&hub),
        session: Arc::clone(session),
        never: Cancellation::new(),
    };
    let cx = CallContext::new(None, Arc::new(transport), Arc::new(channel));
    let (session, state) = (Arc::clone(session), Arc::clone(&hub));
    let handled = async move {
        let served = async {
            serve_on(&running, &session.connection, caller.principal, cx, message).await;
            hand_over::remember(&state, &session).await;
        };
        tokio::select! {
            biased;
            () = served => {}
            () = state.cut.raised() => {}
        }
        drop(busy);
    };
    let future: BoxFuture<'static, ()> = Box::pin(async move {
        if let Err(error) = Contained::of(Box::pin(handled)).await {
            tracing::error!(%error, "a notification's handler failed");
        }
    });
    let mut work = DetachOnDrop { hub, future: Some(future) };
    poll_fn(|cx| {
        work.poll(cx);
        Poll::Ready(())
    })
    .await;
}
