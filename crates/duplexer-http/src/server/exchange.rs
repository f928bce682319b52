//! One request being answered: the handler is polled here, by whoever waits for the response.
//!
//! If it ends without a notification the response is one JSON body. Otherwise this same exchange moves into the
//! response's body, and whoever reads that drives the handler on.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use duplexer_core::dispatch::{BoxFuture, Contained, Invocation};
use duplexer_core::error::McpError;
use duplexer_server::driver::PendingResponse;
use duplexer_types::error::ErrorObject;
use duplexer_types::jsonrpc::{self, RequestId};
use http::StatusCode;
use tokio::time::sleep;

use super::body::ResponseBody;
use super::hub::Admitted;
use super::outlet::Outlet;
use super::reply::{self, Reply};

/// What the handler's answer becomes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// A JSON body, unless there is something to tell before.
    Either,
    /// A JSON body.
    Json,
    /// A stream, unless it is refused right away.
    Stream,
}

/// Which status an error has: the eras differ.
pub(super) type StatusOf = fn(&ErrorObject) -> StatusCode;

/// A response message and the status it has as a body of its own.
pub(super) struct Answer {
    text: Vec<u8>,
    status: StatusCode,
    failed: bool,
    /// What the caller lacks, for the head of the response.
    challenge: Option<String>,
}

impl Answer {
    pub(super) fn text(&self) -> &[u8] {
        &self.text
    }

    /// The text, to be kept.
    pub(super) fn into_text(self) -> Bytes {
        self.text.into()
    }

    /// The answer as a body of its own.
    pub(super) fn into_reply(self) -> Reply {
        match self.challenge {
            None => reply::json(self.status, self.text),
            Some(challenge) => reply::challenged(self.text, &challenge),
        }
    }

    /// Whether it is a challenge to come back with more rights, which belongs into the head of a response.
    pub(super) fn is_challenge(&self) -> bool {
        self.challenge.is_some()
    }

    /// Whether it is an error.
    pub(super) fn has_failed(&self) -> bool {
        self.failed
    }

    pub(super) fn failure(id: &RequestId, error: &ErrorObject, status: StatusCode) -> Self {
        let mut text = Vec::with_capacity(128);
        jsonrpc::write_failure(&mut text, Some(id), error);
        Self { text, status, failed: true, challenge: None }
    }
}

/// A request under way.
pub(super) struct Exchange {
    work: Option<Contained<Answer>>,
    outlet: Arc<Outlet>,
    admitted: Admitted,
    failing: Failing,
}

/// What is needed to say that a request has failed.
#[derive(Clone)]
pub(super) struct Failing {
    pub(super) id: RequestId,
    pub(super) message: Arc<Invocation>,
    pub(super) status_of: StatusOf,
}

impl Failing {
    pub(super) fn answer(&self, error: &McpError) -> Answer {
        let told = error.to_wire(self.message.method());
        let mut answer = self.failure(&told, (self.status_of)(&told));
        if let McpError::Forbidden(challenge) = error {
            answer.challenge = Some(challenge.header.clone());
        }
        answer
    }

    pub(super) fn failure(&self, error: &ErrorObject, status: StatusCode) -> Answer {
        Answer::failure(&self.id, error, status)
    }

    /// The outcome as it is sent. Runs within the contained future: results write themselves with the author's code.
    pub(super) fn render(&self, outcome: Result<PendingResponse, McpError>) -> Answer {
        let error = match outcome {
            Ok(shaped) => {
                let mut text = Vec::with_capacity(512);
                match jsonrpc::write_success(&mut text, &self.id, &shaped) {
                    Ok(()) => return Answer { text, status: StatusCode::OK, failed: false, challenge: None },
                    Err(error) => McpError::internal(error),
                }
            }
            Err(error) => error,
        };
        self.answer(&error)
    }
}

/// How far the first phase has come.
enum Turn {
    Answered(Answer),
    Stream(Option<Answer>),
}

impl Exchange {
    /// A request and what serves it, which renders its outcome itself: one future holds less than one within another.
    pub(super) fn new(
        admitted: Admitted,
        outlet: Arc<Outlet>,
        failing: Failing,
        serve: impl FnOnce(Failing) -> BoxFuture<'static, Answer>,
    ) -> Self {
        let work = serve(failing.clone());
        Self { work: Some(Contained::of(work)), outlet, admitted, failing }
    }

    pub(super) fn outlet(&self) -> &Outlet {
        &self.outlet
    }

    pub(super) fn admitted(&self) -> &Admitted {
        &self.admitted
    }

    /// Drives the handler. After its end there is nothing to poll.
    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Answer> {
        let Some(work) = &mut self.work else { return Poll::Pending };
        let answer = match std::pin::Pin::new(work).poll(cx) {
            Poll::Pending => {
                // What the handler itself has told needs no waking: the queue is looked at right after this.
                self.outlet.register(cx.waker());
                return Poll::Pending;
            }
            Poll::Ready(Ok(answer)) => answer,
            Poll::Ready(Err(panicked)) => self.failing.answer(&panicked),
        };
        self.work = None;
        Poll::Ready(answer)
    }

    /// The answer to a request whose time is over.
    pub(super) fn cut_short(&mut self) -> Answer {
        self.work = None;
        let closed = ErrorObject::connection_closed();
        self.failing.failure(&closed, (self.failing.status_of)(&closed))
    }

    /// Serves the request to its end, for an answer that goes elsewhere.
    pub(super) async fn answer(mut self) -> Answer {
        match self.wait(Form::Json).await {
            Turn::Answered(answer) => answer,
            // Not in this form.
            Turn::Stream(answer) => answer.unwrap_or_else(|| self.cut_short()),
        }
    }

    /// Serves the request as far as its response's head, and beyond if there is no more.
    pub(super) async fn respond(mut self, form: Form) -> Reply {
        let first = poll_fn(|cx| Poll::Ready(self.turn(cx, form))).await;
        let turn = match first {
            Poll::Ready(turn) => turn,
            Poll::Pending => Box::pin(self.wait(form)).await,
        };
        match turn {
            Turn::Answered(answer) if form != Form::Stream || answer.failed => answer.into_reply(),
            Turn::Answered(answer) => self.stream(Some(answer)),
            Turn::Stream(answer) => self.stream(answer),
        }
    }

    fn stream(self, answer: Option<Answer>) -> Reply {
        reply::events(ResponseBody::stream(self, answer))
    }

    /// One poll of the handler, and whether that decides the form of the response.
    fn turn(&mut self, cx: &mut Context<'_>, form: Form) -> Poll<Turn> {
        match (self.poll(cx), form) {
            (Poll::Ready(answer), Form::Json) => Poll::Ready(Turn::Answered(answer)),
            (Poll::Ready(answer), _) if self.outlet.is_empty() => Poll::Ready(Turn::Answered(answer)),
            (Poll::Ready(answer), _) => Poll::Ready(Turn::Stream(Some(answer))),
            (Poll::Pending, Form::Either | Form::Stream) if !self.outlet.is_empty() => {
                Poll::Ready(Turn::Stream(None))
            }
            (Poll::Pending, _) => Poll::Pending,
        }
    }

    /// The handler takes its time: from here on there are timers to watch.
    async fn wait(&mut self, form: Form) -> Turn {
        let hub = Arc::clone(self.admitted.hub());
        let mut patience = pin!(sleep(hub.config.timing.patience));
        let mut cut = pin!(hub.cut.raised());
        poll_fn(|cx| {
            if let Poll::Ready(turn) = self.turn(cx, form) {
                return Poll::Ready(turn);
            }
            if cut.as_mut().poll(cx).is_ready() {
                return Poll::Ready(Turn::Answered(self.cut_short()));
            }
            if form != Form::Json && patience.as_mut().poll(cx).is_ready() {
                return Poll::Ready(Turn::Stream(None));
            }
            Poll::Pending
        })
        .await
    }
}

/// Whether it has ended or nobody waits for it any more: nothing told from now on reaches anybody.
impl Drop for Exchange {
    fn drop(&mut self) {
        // Usually the handler has ended and left nobody behind who could tell anything.
        if self.work.is_some() || Arc::strong_count(&self.outlet) > 1 {
            self.outlet.close();
        }
    }
}
