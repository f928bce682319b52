//! Requests and notifications of a session.
//!
//! A handler is polled by the task that waits for its response. When the client leaves, or when the response has become a
//! stream, the handler continues as a tracked task: a client that disconnects has not cancelled anything.

use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Context, Poll};

use duplexer_core::dispatch::{
    Accepted, BoxFuture, CallContext, Cancellation, CatchUnwind, Disposition, Message, RejectReason,
};
use duplexer_core::transport::BackChannel;
use duplexer_server::driver::{ServerRunner, serve_on};
use duplexer_types::error::{ErrorCode, ErrorObject};
use duplexer_types::jsonrpc::RequestId;
use duplexer_types::version::feature;
use http::{HeaderMap, StatusCode};

use super::admission::{AdmittedCall, SharedCall};
use super::channel::{NotificationChannel, RequestChannel, StreamUse};
use super::detached::{AbandonedCall, DetachOnDrop};
use super::sse_body::{Reader, SseBody};
use super::stream::Stream;
use super::{ActivityGuard, NOT_FOUND, Session, admission};
use crate::server::body::ResponseBody;
use crate::server::reply::{self, Rejection, Reply};
use crate::server::request::{AdmittedRequest, RequestContext};
use crate::server::request_headers::{self, RequestHeaders};
use crate::server::response::{ResponseMode, ResponseSource, ResponseStart, complete, respond};
use crate::server::rpc_response::{ErrorResponder, RpcResponse};
use crate::server::service_state::ServiceState;
use crate::server::sse::{self, EventId};

/// Accepts a request that is the body of its POST, where nothing is stored. The mode is that of its response.
pub(in crate::server) fn local_call(
    session: Arc<Session>,
    context: RequestContext,
    id: &RequestId,
    message: Message,
) -> Result<(SessionCall, ResponseMode), Rejection> {
    let in_flight = InFlight::take(session, id, None).map_err(|refused| refused.reply(id))?;
    let mode = context.service().config.responses.into();
    Ok((SessionCall::new(in_flight, Stream::ephemeral(), mode, context, message), mode))
}

/// Serves a request that is the body of its POST.
pub(in crate::server) async fn request(
    session: Arc<Session>,
    context: RequestContext,
    admitted: AdmittedCall,
    message: Message,
) -> Result<Reply, Rejection> {
    let AdmittedCall { id, stream, shared } = admitted;
    let mode = context.service().config.responses.into();
    let in_flight =
        InFlight::take(Arc::clone(&session), &id, shared).map_err(|refused| refused.reply(&id))?;
    let stream = if mode == ResponseMode::Json { Stream::ephemeral() } else { session.new_stream(stream) };
    if let Some(kept) = stream.as_kept() {
        let opened = Box::pin(kept.stores().open(kept.key(), &id)).await;
        opened.map_err(|error| reply::store_failed(Some(&id), &error))?;
    }
    session.register_stream(&stream);
    let mode = if stream.id().is_some() { ResponseMode::Stream } else { mode };
    Ok(SessionCall::new(in_flight, stream, mode, context, message).respond(mode).await)
}

/// Serves a request that is part of a batch.
pub(in crate::server) async fn request_in_batch(
    session: Arc<Session>,
    context: RequestContext,
    id: RequestId,
    message: Message,
) -> RpcResponse {
    let shared = match admission::admit_in_batch(&context, &session, &id).await {
        Ok(shared) => shared,
        Err(reason) => return reason.response(&id),
    };
    match InFlight::take(session, &id, shared) {
        Ok(in_flight) => {
            let call = SessionCall::new(in_flight, Stream::ephemeral(), ResponseMode::Json, context, message);
            complete(call, &id).await
        }
        Err(refused) => refused.response(&id),
    }
}

/// A request that is in flight until this is dropped.
struct InFlight {
    session: Arc<Session>,
    accepted: Accepted,
    /// The request in the shared stores.
    shared: Option<SharedCall>,
}

impl InFlight {
    fn take(session: Arc<Session>, id: &RequestId, shared: Option<SharedCall>) -> Result<Self, Refused> {
        if !session.counts.calls.add(session.limits.in_flight) {
            return Err(Refused::TooMany);
        }
        match session.correlation.accept(id.clone()) {
            Ok(accepted) => Ok(Self { session, accepted, shared }),
            Err(reason) => {
                session.counts.calls.remove();
                Err(Refused::Table(reason))
            }
        }
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        self.session.correlation.finish(&self.accepted);
        self.session.counts.calls.remove();
    }
}

/// Error text at the limit of calls in flight of one session.
pub(super) const TOO_MANY_CALLS: &str = "Too many calls in flight in this session";

/// Reason why a request is not accepted.
enum Refused {
    /// The limit of calls in flight is reached.
    TooMany,
    /// The call table has not accepted it.
    Table(RejectReason),
}

impl Refused {
    fn reply(&self, id: &RequestId) -> Reply {
        match self {
            Self::TooMany => reply::unavailable(Some(id), TOO_MANY_CALLS),
            Self::Table(_) => self.response(id).into_reply(),
        }
    }

    fn response(&self, id: &RequestId) -> RpcResponse {
        let (error, status) = match self {
            Self::TooMany => {
                (ErrorObject::new(ErrorCode::INTERNAL_ERROR, TOO_MANY_CALLS), StatusCode::SERVICE_UNAVAILABLE)
            }
            Self::Table(RejectReason::InFlight) => (ErrorObject::id_in_flight(id), StatusCode::CONFLICT),
            // The session ended while the request was on its way to it.
            Self::Table(RejectReason::Closed) => {
                (ErrorObject::new(ErrorCode::INVALID_REQUEST, NOT_FOUND), StatusCode::NOT_FOUND)
            }
        };
        RpcResponse::failure(id, &error, status)
    }
}

/// A request of a session and the first reader of its stream.
pub(in crate::server) struct SessionCall {
    work: DetachOnDrop,
    stream: Arc<Stream>,
    reader: Reader,
    activity: Arc<ActivityGuard>,
    headers: Arc<RequestHeaders>,
}

impl SessionCall {
    fn new(
        in_flight: InFlight,
        stream: Arc<Stream>,
        mode: ResponseMode,
        context: RequestContext,
        message: Message,
    ) -> Self {
        let mut transport = context.transport();
        let stream_use = if mode == ResponseMode::Json { StreamUse::ResponseOnly } else { StreamUse::Events };
        if stream_use == StreamUse::Events {
            transport.back_channel = BackChannel::Open;
        }
        let RequestContext { running, request: AdmittedRequest { permit, caller, headers, .. } } = context;
        let service = Arc::clone(permit.service());
        let session = Arc::clone(&in_flight.session);
        let activity = session.begin_activity(permit);
        let reader = Reader::first(&stream);
        let cancellation = Arc::clone(in_flight.accepted.cancellation());
        stream.set_cancellation(&cancellation);
        let channel = RequestChannel {
            service: Arc::clone(&service),
            session: Arc::clone(&session),
            stream: Arc::clone(&stream),
            cancellation: Arc::clone(&cancellation),
            stream_use,
        };
        let id = in_flight.accepted.id().clone();
        let cx = CallContext::new(Some(id.clone()), Arc::new(transport), Arc::new(channel));
        let message = Arc::new(message);
        let errors = ErrorResponder { id, message: Arc::clone(&message), status_of: |_| StatusCode::OK };
        let rendering = errors.clone();
        let runner =
            ServerRunner::new(running, Arc::clone(&session.connection)).on_behalf_of(caller.principal);
        let request = runner.request(cx, message);
        let work = CatchUnwind::of(Box::pin(async move { rendering.render(request.await) }));
        let watch = session.limits.abandoned.map(|limit| AbandonedCall {
            stream: Arc::clone(&stream),
            limit,
            cancellation,
        });
        let serving = Serving {
            service: Arc::clone(&service),
            in_flight,
            stream: Arc::clone(&stream),
            errors,
            _activity: Arc::clone(&activity),
        };
        let future = Box::pin(serving.run(work));
        Self { work: DetachOnDrop::new(service, future, watch), stream, reader, activity, headers }
    }

    /// Waits for the response. It names the session.
    pub(in crate::server) async fn respond(self, mode: ResponseMode) -> Reply {
        let session = Arc::clone(&self.activity.session);
        session.stamp(respond(self, mode).await)
    }
}

impl ResponseSource for SessionCall {
    fn service(&self) -> &Arc<ServiceState> {
        self.work.service()
    }

    /// The mode has no effect: it follows from the kind of the stream.
    fn poll_start(&mut self, cx: &mut Context<'_>, _: ResponseMode) -> Poll<ResponseStart> {
        self.work.poll(cx);
        self.stream.poll_start(cx)
    }

    /// The call itself watches for the abort, because it can outlive the wait for its response.
    fn abort(&mut self) -> Option<RpcResponse> {
        None
    }

    fn into_body(self) -> ResponseBody {
        let Self { work, stream, reader, activity, .. } = self;
        let service = Arc::clone(work.service());
        drop(work);
        let prefix = priming_event(&service, &activity.session, &stream);
        ResponseBody::session(SseBody::new(&service, reader, prefix, activity))
    }

    fn into_headers(self) -> HeaderMap {
        let Self { work, headers, .. } = self;
        // The handler has ended, and with it everything else that had the headers.
        drop(work);
        request_headers::reusable(Some(headers))
    }
}

/// The server side of a request: runs the handler and ends the stream with the response.
struct Serving {
    service: Arc<ServiceState>,
    in_flight: InFlight,
    stream: Arc<Stream>,
    errors: ErrorResponder,
    /// Ends last.
    _activity: Arc<ActivityGuard>,
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
    async fn run(mut self, work: CatchUnwind<RpcResponse>) {
        let Self { in_flight: InFlight { session, accepted, .. }, errors, .. } = &self;
        let run = tokio::select! {
            biased;
            finished = work => Run::Finished(finished.unwrap_or_else(|panicked| errors.response(&panicked))),
            () = accepted.cancellation().cancelled() => Run::Cancelled,
            () = self.service.abort.cancelled() => Run::Aborted,
        };
        // A caller that was refused has changed nothing, and must not wait for the store.
        let is_refusal = matches!(&run, Run::Finished(response) if response.is_refusal());
        // What the request has changed is stored before its response is sent.
        let run = if !is_refusal && admission::update(session).await.is_err() {
            Run::Finished(errors.failure(&not_stored(), StatusCode::OK))
        } else {
            run
        };
        let owed = session.correlation.finish(accepted);
        let response = match (run, owed) {
            (_, Disposition::Cancelled) => errors.failure(&cancelled(), StatusCode::OK),
            (Run::Finished(response), Disposition::Respond) => response,
            (Run::Cancelled, Disposition::Respond) if self.stream.is_abandoned() => {
                errors.failure(&abandoned(), StatusCode::OK)
            }
            (Run::Cancelled, Disposition::Respond) => {
                errors.failure(&terminated(), StatusCode::INTERNAL_SERVER_ERROR)
            }
            (Run::Aborted, Disposition::Respond) => {
                errors.failure(&ErrorObject::shutting_down(), StatusCode::OK)
            }
        };
        self.stream.finish(response);
        if let (Some(shared), Some(_)) = (self.in_flight.shared.take(), self.stream.id()) {
            shared.ends_with_stream();
        }
    }
}

/// Over HTTP only a response ends a stream, so even a cancelled request has one.
fn cancelled() -> ErrorObject {
    ErrorObject::new(ErrorCode::REQUEST_CANCELLED, "Request cancelled")
}

fn abandoned() -> ErrorObject {
    ErrorObject::new(ErrorCode::REQUEST_CANCELLED, "Request cancelled: no client has read its stream")
}

fn not_stored() -> ErrorObject {
    ErrorObject::new(ErrorCode::INTERNAL_ERROR, "What the request has changed could not be stored")
}

fn terminated() -> ErrorObject {
    ErrorObject::new(ErrorCode::INTERNAL_ERROR, "Session terminated before the request completed")
}

/// Returns the priming event, which tells the client where to resume. Empty for clients that do not support it.
fn priming_event(service: &ServiceState, session: &Session, stream: &Stream) -> Vec<u8> {
    let mut prefix = Vec::new();
    if let (Some(stream), true) = (stream.id(), session.connection.version().has(feature::SSE_POLLING)) {
        sse::write_priming(&mut prefix, EventId { stream, sequence: 0 }, service.config.sessions.retry);
    }
    prefix
}

/// Handles a notification: observes it in the order of arrival, then runs its handler. A handler that is pending after its
/// first poll continues as a tracked task, because no response waits for it.
pub(in crate::server) async fn notification(
    session: &Arc<Session>,
    context: RequestContext,
    message: Message,
) -> Result<(), Rejection> {
    session.observe(&message).await.map_err(|error| reply::store_failed(None, &error))?;
    let slot = NotificationSlot::take(session)
        .ok_or_else(|| reply::unavailable(None, "Too many notifications in progress in this session"))?;
    let mut transport = context.transport();
    transport.back_channel = BackChannel::Open;
    let RequestContext { running, request: AdmittedRequest { permit, caller, .. } } = context;
    let service = Arc::clone(permit.service());
    let activity = session.begin_activity(permit);
    let channel = NotificationChannel {
        service: Arc::clone(&service),
        session: Arc::clone(session),
        never: Cancellation::new(),
    };
    let cx = CallContext::new(None, Arc::new(transport), Arc::new(channel));
    let observed = Arc::clone(session);
    let (session, state) = (Arc::clone(session), Arc::clone(&service));
    let handled = async move {
        let served = async {
            serve_on(&running, &session.connection, caller.principal, cx, message).await;
            let _ = admission::update(&session).await;
        };
        tokio::select! {
            biased;
            () = served => {}
            () = state.abort.cancelled() => {}
        }
        drop((activity, slot));
    };
    let future: BoxFuture<'static, ()> = Box::pin(async move {
        if let Err(error) = CatchUnwind::of(Box::pin(handled)).await {
            tracing::error!(%error, "a notification's handler failed");
        }
    });
    let mut work = DetachOnDrop::new(service, future, None);
    poll_fn(|cx| {
        work.poll(cx);
        Poll::Ready(())
    })
    .await;
    // The confirmation of a handshake counts at every node once it is answered.
    admission::update(&observed).await.map_err(|error| reply::store_failed(None, &error).into())
}

/// A notification whose handler runs, until this is dropped.
struct NotificationSlot(Arc<Session>);

impl NotificationSlot {
    fn take(session: &Arc<Session>) -> Option<Self> {
        session.counts.notifications.add(session.limits.in_flight).then(|| Self(Arc::clone(session)))
    }
}

impl Drop for NotificationSlot {
    fn drop(&mut self) {
        self.0.counts.notifications.remove();
    }
}
