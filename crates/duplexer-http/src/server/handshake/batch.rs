//! Arrays of messages, in the one revision that has them: answered with an array, in the order of the requests.

use std::sync::Arc;

use bytestring::ByteString;
use duplexer_core::dispatch::BoxFuture;
use duplexer_types::jsonrpc::{self, Malformed};
use duplexer_types::methods::Method;
use http::StatusCode;
use tokio::sync::oneshot;
use tokio::task::JoinSet;

use super::stateless;
use crate::server::door::{self, Message, Visit};
use crate::server::exchange::Answer;
use crate::server::reply::{self, Refusal, Reply};
use crate::server::session::{self, Session};

/// How many messages an array may hold.
const MAX: usize = 1024;

/// Whose messages they are.
pub(super) enum Host {
    /// The client may leave: what it has asked for goes on.
    Session(Arc<Session>),
    /// The client that leaves takes its requests along.
    Nobody,
}

enum Work {
    Done(Vec<u8>),
    Running(BoxFuture<'static, Answer>),
}

pub(super) async fn serve(host: Host, visit: Visit, text: &ByteString) -> Result<Reply, Refusal> {
    let items = jsonrpc::batch(text).map_err(|_| Refusal::new(door::not_a_message(None)))?;
    if items.len() > MAX {
        let text = format!("a batch holds at most {MAX} messages");
        return Err(reply::refused(StatusCode::BAD_REQUEST, text).into());
    }
    let mut work = Vec::new();
    for item in items {
        work.extend(host.take(&visit, &text.slice_ref(item)).await);
    }
    let all = run(work);
    match host {
        Host::Nobody => Ok(respond(&all.await)),
        Host::Session(session) => {
            let (told, answers) = oneshot::channel();
            let Visit { admitted, .. } = visit;
            let hub = Arc::clone(admitted.hub());
            hub.see_to(async move {
                // The client may have gone.
                let _ = told.send(all.await);
                drop(admitted);
            });
            Ok(session.stamp(answers.await.map_or_else(|_| reply::broken(), |answers| respond(&answers))))
        }
    }
}

impl Host {
    /// Takes one message in; what is to be done for it, if it is to be answered.
    async fn take(&self, visit: &Visit, item: &ByteString) -> Option<Work> {
        match door::understand(item) {
            Ok(Message::Request(id, call)) if call.known() == Some(Method::Initialize) => {
                refuse(&Malformed::Invalid { id: Some(id), reason: "not allowed in a batch" })
            }
            Ok(Message::Request(id, call)) => Some(Work::Running(match self {
                Self::Session(session) => {
                    Box::pin(session::answer(Arc::clone(session), visit.another(), id, call))
                }
                Self::Nobody => Box::pin(stateless::answer(visit.another(), id, call)),
            })),
            Ok(Message::Notification(call)) => {
                match self {
                    Self::Session(session) => session::notification(session, visit.another(), call).await,
                    Self::Nobody => stateless::notification(visit.another(), call).await,
                }
                None
            }
            Ok(Message::Response(response)) => {
                if let Self::Session(session) = self {
                    session.settle(response);
                }
                None
            }
            Ok(Message::Batch(_)) => {
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

/// Runs everything side by side.
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
