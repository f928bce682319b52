//! Batches, in the one revision that has them. The response is an array in the order of the requests.
//!
//! A few requests run at a time, and the responses have a budget of bytes: a short batch can ask for large results.

use std::sync::Arc;

use bytes::Bytes;
use bytestring::ByteString;
use duplexer_core::dispatch::{BoxFuture, Frame, Message};
use duplexer_types::error::{ErrorCode, ErrorObject};
use duplexer_types::jsonrpc::{self, Malformed, RequestId};
use duplexer_types::methods::Method;
use http::StatusCode;
use tokio::sync::oneshot;
use tokio::task::{JoinError, JoinSet};
use tokio::time::sleep;

use super::stateless;
use crate::server::reply::{self, Rejection, Reply};
use crate::server::request::RequestContext;
use crate::server::route;
use crate::server::rpc_response::RpcResponse;
use crate::server::service_state::BeyondLimit;
use crate::server::session::{self, Session};

/// Maximum number of messages in a batch.
const MAX_MESSAGES: usize = 1024;

/// Owner of the messages.
pub(super) enum Host {
    /// Requests go on when the client disconnects.
    Session(Arc<Session>),
    /// Requests are dropped when the client disconnects.
    Stateless,
}

enum Work {
    Done(Vec<u8>),
    Request(RequestId, Message),
}

/// Serves a batch.
pub(super) async fn serve(
    host: Host,
    context: RequestContext,
    text: &ByteString,
) -> Result<Reply, Rejection> {
    let items = jsonrpc::batch(text).map_err(|_| Rejection::new(route::not_a_message(None)))?;
    if items.len() > MAX_MESSAGES {
        let text = format!("a batch holds at most {MAX_MESSAGES} messages");
        return Err(reply::invalid_request(StatusCode::BAD_REQUEST, text).into());
    }
    let mut work = Vec::new();
    for item in items {
        work.extend(host.take(&context, &text.slice_ref(item)).await);
    }
    let Host::Session(session) = &host else {
        return Ok(respond(Batch::new(host, context).run(work).await));
    };
    let session = Arc::clone(session);
    let service = Arc::clone(context.service());
    let (mut sender, answers) = oneshot::channel();
    service.spawn_tracked(async move {
        let limit = context.service().config.sessions.calls.abandoned;
        // Calls that still run after the limit are detached and have no reader, so they are cancelled in turn.
        let abandoned = async {
            sender.closed().await;
            match limit {
                Some(limit) => sleep(limit).await,
                None => std::future::pending().await,
            }
        };
        let all = tokio::select! {
            all = Batch::new(host, context).run(work) => all,
            () = abandoned => return,
        };
        // The client can have disconnected.
        let _ = sender.send(all);
    });
    Ok(session.stamp(answers.await.map_or_else(|_| reply::internal_error_without_id(), respond)))
}

impl Host {
    /// Accepts one message. Returns the work for its response, if it has one.
    async fn take(&self, context: &RequestContext, item: &ByteString) -> Option<Work> {
        match Frame::parse(item) {
            Ok(Frame::Request(id, call)) if call.known() == Some(Method::Initialize) => {
                refuse(&Malformed::Invalid { id: Some(id), reason: "not allowed in a batch" })
            }
            Ok(Frame::Request(id, call)) => Some(Work::Request(id, call)),
            Ok(Frame::Notification(call)) => {
                self.notification(context, call).await;
                None
            }
            Ok(Frame::Response(id, result)) => {
                if let Self::Session(session) = self {
                    // A batch has no answer to say that the store has failed.
                    let _ = session.settle(&id, result).await;
                }
                None
            }
            Ok(Frame::ErrorWithoutId) => {
                Session::log_error_without_id();
                None
            }
            Ok(Frame::Batch(_)) => {
                refuse(&Malformed::Invalid { id: None, reason: "a batch does not hold batches" })
            }
            Err(malformed) => refuse(&malformed),
        }
    }

    /// Handles a notification. It has no response, so one beyond a limit is dropped.
    async fn notification(&self, context: &RequestContext, call: Message) {
        // Without sessions one runs at a time. A session has a limit of its own.
        let Some(context) = context.for_batch_item(BeyondLimit::Allowed) else { return };
        match self {
            Self::Session(session) => {
                let _ = session::notification(session, context, call).await;
            }
            Self::Stateless => stateless::notification(context, call).await,
        }
    }

    fn request(
        &self,
        context: RequestContext,
        id: RequestId,
        call: Message,
    ) -> BoxFuture<'static, RpcResponse> {
        match self {
            Self::Session(session) => {
                Box::pin(session::request_in_batch(Arc::clone(session), context, id, call))
            }
            Self::Stateless => Box::pin(stateless::request_in_batch(context, id, call)),
        }
    }
}

fn refuse(malformed: &Malformed) -> Option<Work> {
    let (id, error) = malformed.answer()?;
    let mut text = Vec::new();
    jsonrpc::write_failure(&mut text, id, &error);
    Some(Work::Done(text))
}

/// A batch whose requests run.
struct Batch {
    host: Host,
    context: RequestContext,
    running: JoinSet<(usize, RequestId, Bytes)>,
    answers: Vec<Bytes>,
    /// Bytes that further responses can have.
    budget: usize,
}

impl Batch {
    fn new(host: Host, context: RequestContext) -> Self {
        let budget = context.service().config.limits.batch_bytes;
        Self { host, context, running: JoinSet::new(), answers: Vec::new(), budget }
    }

    /// Runs all requests, a few at a time, and returns the responses in their order.
    async fn run(mut self, work: Vec<Work>) -> Vec<Bytes> {
        for work in work {
            match work {
                Work::Done(text) => self.answers.push(text.into()),
                Work::Request(id, call) => self.start(id, call).await,
            }
        }
        while let Some(ended) = self.running.join_next().await {
            self.complete(ended);
        }
        self.answers
    }

    /// Starts a request once there is a slot and a permit for it.
    async fn start(&mut self, id: RequestId, call: Message) {
        let context = loop {
            let is_full = self.running.len() >= self.context.service().config.limits.batch_requests;
            // The permit of the batch itself counts as the permit of its only running request.
            let beyond = if self.running.is_empty() { BeyondLimit::Allowed } else { BeyondLimit::Refused };
            if !is_full && let Some(context) = self.context.for_batch_item(beyond) {
                break context;
            }
            if let Some(ended) = self.running.join_next().await {
                self.complete(ended);
            }
        };
        let index = self.answers.len();
        if self.budget == 0 {
            self.answers.push(too_large(&id));
            return;
        }
        self.answers.push(Bytes::new());
        let response = self.host.request(context, id.clone(), call);
        self.running.spawn(async move { (index, id, response.await.into_text()) });
    }

    fn complete(&mut self, ended: Result<(usize, RequestId, Bytes), JoinError>) {
        let Ok((index, id, text)) = ended else { return };
        let Some(place) = self.answers.get_mut(index) else { return };
        if let Some(left) = self.budget.checked_sub(text.len()) {
            self.budget = left;
            *place = text;
        } else {
            self.budget = 0;
            *place = too_large(&id);
        }
    }
}

fn too_large(id: &RequestId) -> Bytes {
    let error =
        ErrorObject::new(ErrorCode::INTERNAL_ERROR, "The responses to the batch are too large together");
    RpcResponse::failure(id, &error, StatusCode::OK).into_text()
}

/// Joins the responses. Each is freed once it is copied.
fn respond(answers: Vec<Bytes>) -> Reply {
    if answers.is_empty() {
        return reply::empty(StatusCode::ACCEPTED);
    }
    let mut text = Vec::with_capacity(answers.iter().map(|answer| answer.len() + 1).sum::<usize>() + 1);
    for answer in answers {
        text.push(if text.is_empty() { b'[' } else { b',' });
        text.extend_from_slice(&answer);
    }
    text.push(b']');
    reply::json(StatusCode::OK, text)
}
