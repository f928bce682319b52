//! One request of a session. It is polled by whoever waits for its answer; when nobody does any more, or when the answer
//! has become a stream, it runs on as a task: a client that leaves has not cancelled anything.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use duplexer_core::dispatch::{
    Accepted, BoxFuture, CallContext, CatchUnwind, Disposition, Invocation, RejectReason,
};
use duplexer_core::server::ServerRunner;
use duplexer_core::transport::{BackChannel, TransportContext};
use duplexer_types::error::{ErrorCode, ErrorObject};
use duplexer_types::jsonrpc::RequestId;
use duplexer_types::version::feature;
use http::StatusCode;
use tokio::time::sleep;

use super::channel::{RequestChannel, Speaking};
use super::stream::{Stream, Turn};
use super::tail::{Reading, Tail};
use super::{Busy, NOT_FOUND, Session, hand_over};
use crate::server::body::ResponseBody;
use crate::server::config::Responses;
use crate::server::door::Visit;
use crate::server::exchange::{Answer, Failing};
use crate::server::hub::Hub;
use crate::server::reply::{self, Refusal, Reply};
use crate::server::sse::{self, EventId};

/// Serves a request that came by itself.
pub(in crate::server) async fn request(
    session: Arc<Session>,
    visit: Visit,
    id: RequestId,
    message: Invocation,
) -> Result<Reply, Refusal> {
    let hub = Arc::clone(visit.admitted.hub());
    let in_flight = InFlight::take(&session, &id).map_err(|reason| not_accepted(&id, reason).into_reply())?;
    if hub.config.responses == Responses::JsonOnly {
        let (work, reading) = prepare(&hub, in_flight, Stream::passing(), Speaking::No, visit, message);
        return Ok(session.stamp(respond(hub, work, reading, Form::Json).await));
    }
    let stream = session.new_stream(&hub);
    if stream.open().await.is_err() {
        return Err(reply::failed(&id).into());
    }
    session.list(&stream);
    let form = if stream.id().is_some() { Form::Stream } else { Form::Either };
    let (work, reading) = prepare(&hub, in_flight, stream, Speaking::Allowed, visit, message);
    Ok(session.stamp(respond(hub, work, reading, form).await))
}

/// Serves a request whose answer goes elsewhere, such as into an array of them.
pub(in crate::server) async fn answer(
    session: Arc<Session>,
    visit: Visit,
    id: RequestId,
    message: Invocation,
) -> Answer {
    let hub = Arc::clone(visit.admitted.hub());
    let in_flight = match InFlight::take(&session, &id) {
        Ok(in_flight) => in_flight,
        Err(reason) => return not_accepted(&id, reason),
    };
    let (work, reading) = prepare(&hub, in_flight, Stream::passing(), Speaking::No, visit, message);
    work.future.await;
    match reading.stream().turn() {
        Some(Turn::Answer(answer)) => answer,
        _ => Answer::failure(&id, &ErrorObject::internal(), StatusCode::OK),
    }
}

/// A request that is in flight until this is dropped.
struct InFlight {
    session: Arc<Session>,
    accepted: Accepted,
}

impl InFlight {
    fn take(session: &Arc<Session>, id: &RequestId) -> Result<Self, RejectReason> {
        let accepted = session.correlation.accept(id.clone())?;
        Ok(Self { session: Arc::clone(session), accepted })
    }
}

/// How a request is told that it was not taken in.
fn not_accepted(id: &RequestId, reason: RejectReason) -> Answer {
    match reason {
        RejectReason::InFlight => Answer::failure(id, &ErrorObject::id_in_flight(id), StatusCode::CONFLICT),
        // The session ended while the request was on its way to it.
        RejectReason::Closed => {
            let error = ErrorObject::new(ErrorCode::INVALID_REQUEST, NOT_FOUND);
            Answer::failure(id, &error, StatusCode::NOT_FOUND)
        }
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        self.session.correlation.finish(&self.accepted);
    }
}

/// What there is to do for a request. Dropped half-way it goes on as a task.
struct Work {
    future: BoxFuture<'static, ()>,
    busy: Arc<Busy>,
}

/// Makes the future that serves a request into its stream, and its first reader.
fn prepare(
    hub: &Arc<Hub>,
    in_flight: InFlight,
    stream: Arc<Stream>,
    speaking: Speaking,
    visit: Visit,
    message: Invocation,
) -> (Work, Reading) {
    let mut transport = visit.transport_context();
    if speaking == Speaking::Allowed {
        transport.back_channel = BackChannel::Open;
    }
    let Visit { admitted, running, caller, .. } = visit;
    let session = Arc::clone(&in_flight.session);
    let busy = session.busy(admitted);
    let (number, _) = stream.attach();
    let reading = Reading::new(Arc::clone(&stream), number);
    let runner = ServerRunner::new(running, Arc::clone(&session.connection)).on_behalf_of(caller.principal);
    let serving = Serving { hub: Arc::clone(hub), in_flight, stream, speaking };
    let held = Arc::clone(&busy);
    let future = Box::pin(async move {
        serving.run(runner, transport, message).await;
        drop(held);
    });
    (Work { future, busy }, reading)
}

struct Serving {
    hub: Arc<Hub>,
    in_flight: InFlight,
    stream: Arc<Stream>,
    speaking: Speaking,
}

/// How a handler's run ended.
enum Run {
    Ended(Answer),
    /// Called off, by the client or by the end of the session.
    CalledOff,
    /// The time of the service is over.
    Cut,
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
        let failing = Failing { id, message: Arc::clone(&message), status_of: |_| StatusCode::OK };
        let rendering = failing.clone();
        let request = runner.request(cx, message);
        let work = CatchUnwind::of(Box::pin(async move { rendering.render(request.await) }));
        let run = tokio::select! {
            biased;
            ended = work => Run::Ended(ended.unwrap_or_else(|panicked| failing.answer(&panicked))),
            () = accepted.cancellation().cancelled() => Run::CalledOff,
            () = self.hub.cut.cancelled() => Run::Cut,
        };
        // Who was challenged has changed nothing, and must not wait to be told.
        if !matches!(&run, Run::Ended(answer) if answer.is_challenge()) {
            hand_over::remember(&self.hub, session).await;
        }
        let owed = session.correlation.finish(accepted);
        self.stream.finish(match (run, owed) {
            (_, Disposition::Cancelled) => failing.failure(&cancelled(), StatusCode::OK),
            (Run::Ended(answer), Disposition::Respond) => answer,
            (Run::CalledOff, Disposition::Respond) => {
                failing.failure(&terminated(), StatusCode::INTERNAL_SERVER_ERROR)
            }
            (Run::Cut, Disposition::Respond) => {
                failing.failure(&ErrorObject::connection_closed(), StatusCode::OK)
            }
        });
    }
}

/// This wire ends with a response only, so that even what was cancelled has one.
fn cancelled() -> ErrorObject {
    ErrorObject::new(ErrorCode::REQUEST_CANCELLED, "Request cancelled")
}

fn terminated() -> ErrorObject {
    ErrorObject::new(ErrorCode::INTERNAL_ERROR, "Session terminated before the request completed")
}

/// What the answer becomes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    Json,
    /// A JSON body, unless there is something to tell before.
    Either,
    /// A stream from the start.
    Stream,
}

/// Polls the request here as long as somebody waits for its one answer.
struct Driven {
    hub: Arc<Hub>,
    work: Option<BoxFuture<'static, ()>>,
}

impl Driven {
    fn poll(&mut self, cx: &mut Context<'_>) {
        if let Some(work) = &mut self.work
            && work.as_mut().poll(cx).is_ready()
        {
            self.work = None;
        }
    }
}

impl Drop for Driven {
    fn drop(&mut self) {
        if let Some(work) = self.work.take() {
            self.hub.see_to(work);
        }
    }
}

async fn respond(hub: Arc<Hub>, work: Work, reading: Reading, form: Form) -> Reply {
    let Work { future, busy } = work;
    let mut driven = Driven { hub: Arc::clone(&hub), work: Some(future) };
    let first = poll_fn(|cx| {
        driven.poll(cx);
        Poll::Ready(reading.stream().turn())
    });
    let turn = match (first.await, form) {
        (Some(turn), _) => turn,
        // Even what is kept as a stream does not begin before rights have been looked at.
        (None, Form::Stream) => Turn::Stream,
        (None, Form::Json | Form::Either) => Box::pin(wait(&hub, &mut driven, &reading, form)).await,
    };
    if let Turn::Answer(answer) = turn {
        return answer.into_reply();
    }
    drop(driven);
    let before = opening(&hub, &busy.session, reading.stream());
    reply::events(ResponseBody::tail(Tail::new(&hub, reading, before, busy)))
}

/// The handler takes its time.
async fn wait(hub: &Hub, driven: &mut Driven, reading: &Reading, form: Form) -> Turn {
    let mut patience = pin!(sleep(hub.config.timing.patience));
    poll_fn(|cx| {
        // Before it is looked at, so that nothing told from elsewhere in between is missed.
        reading.stream().register(cx.waker());
        driven.poll(cx);
        if let Some(turn) = reading.stream().turn() {
            return Poll::Ready(turn);
        }
        if form == Form::Either && patience.as_mut().poll(cx).is_ready() {
            return Poll::Ready(Turn::Stream);
        }
        Poll::Pending
    })
    .await
}

/// Where to come back to, for clients that know what to do with that.
pub(super) fn opening(hub: &Hub, session: &Session, stream: &Stream) -> Vec<u8> {
    let mut before = Vec::new();
    if let (Some(stream), true) = (stream.id(), session.connection.version().has(feature::SSE_POLLING)) {
        sse::write_opening(&mut before, EventId { stream, sequence: 0 }, hub.config.sessions.retry);
    }
    before
}
