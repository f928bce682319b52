//! Batches, in the one revision that has them. The response is an array in the order of the requests.

use std::sync::Arc;

use bytestring::ByteString;
use duplexer_core::dispatch::BoxFuture;
use duplexer_types::jsonrpc::{self, Malformed};
use duplexer_types::methods::Method;
use http::StatusCode;
use tokio::sync::oneshot;
use tokio::task::JoinSet;

use super::stateless;
use crate::server::reply::{self, Rejection, Reply};
use crate::server::request::RequestContext;
use crate::server::route;
use crate::server::rpc_response::RpcResponse;
use crate::server::session::{self, Session};
use duplexer_core::dispatch::Frame;

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
    Running(BoxFuture<'static, RpcResponse>),
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
    let all = run(work);
    match host {
        Host::Stateless => Ok(respond(&all.await)),
        Host::Session(session) => {
            let (sender, answers) = oneshot::channel();
            let permit = context.request.permit;
            let service = Arc::clone(permit.service());
            service.spawn_tracked(async move {
                // The client can have disconnected.
                let _ = sender.send(all.await);
                drop(permit);
            });
            Ok(session.stamp(
                answers
                    .await
                    .map_or_else(|_| reply::internal_error_without_id(), |answers| respond(&answers)),
            ))
        }
    }
}

impl Host {
    /// Accepts one message. Returns the work for its response, if it has one.
    async fn take(&self, context: &RequestContext, item: &ByteString) -> Option<Work> {
        match Frame::parse(item) {
            Ok(Frame::Request(id, call)) if call.known() == Some(Method::Initialize) => {
                refuse(&Malformed::Invalid { id: Some(id), reason: "not allowed in a batch" })
            }
            Ok(Frame::Request(id, call)) => Some(Work::Running(match self {
                Self::Session(session) => Box::pin(session::request_in_batch(
                    Arc::clone(session),
                    context.for_batch_item(),
                    id,
                    call,
                )),
                Self::Stateless => Box::pin(stateless::request_in_batch(context.for_batch_item(), id, call)),
            })),
            Ok(Frame::Notification(call)) => {
                match self {
                    Self::Session(session) => {
                        // A notification has no response, so one beyond the limit is dropped.
                        let _ = session::notification(session, context.for_batch_item(), call).await;
                    }
                    Self::Stateless => stateless::notification(context.for_batch_item(), call).await,
                }
                None
            }
            Ok(Frame::Response(id, result)) => {
                if let Self::Session(session) = self {
                    session.settle(&id, result);
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
}

fn refuse(malformed: &Malformed) -> Option<Work> {
    let (id, error) = malformed.answer()?;
    let mut text = Vec::new();
    jsonrpc::write_failure(&mut text, id, &error);
    Some(Work::Done(text))
}

/// Runs all requests concurrently.
async fn run(work: Vec<Work>) -> Vec<Vec<u8>> {
    let mut answers = Vec::new();
    let mut running = JoinSet::new();
    for (index, work) in work.into_iter().enumerate() {
        answers.push(match work {
            Work::Done(text) => text,
            Work::Running(work) => {
                running.spawn(async move { (index, work.await) });
                Vec::new()
            }
        });
    }
    while let Some(ended) = running.join_next().await {
        if let Ok((index, answer)) = ended
            && let Some(place) = answers.get_mut(index)
        {
            *place = answer.text().to_vec();
        }
    }
    answers
}

fn respond(answers: &[Vec<u8>]) -> Reply {
    if answers.is_empty() {
        return reply::empty(StatusCode::ACCEPTED);
    }
    let mut text = vec![b'['];
    text.extend(answers.join(&b','));
    text.push(b']');
    reply::json(StatusCode::OK, text)
}
