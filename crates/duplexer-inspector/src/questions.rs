//! Questions of the server to the person in front of the page: elicitation and sampling.

use std::collections::HashMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use duplexer_core::dispatch::lock;
use duplexer_core::error::McpError;
use duplexer_types::error::ErrorCode;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::sync::oneshot;

use crate::events::Events;

/// Maximum number of open questions.
const MAX_OPEN: usize = 64;

/// What the person answers: a result, or the text of an error.
pub(crate) type Answer = Result<Value, String>;

#[derive(Debug, Default)]
pub(crate) struct Questions {
    open: Mutex<HashMap<u64, oneshot::Sender<Answer>>>,
    asked: AtomicU64,
}

/// Which dialog the page shows.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Kind {
    Elicitation,
    Sampling,
}

impl Questions {
    /// Shows a question on the page and waits for the answer. If the future is dropped, the page closes the dialog.
    pub(crate) async fn ask<R: DeserializeOwned>(
        &self,
        events: &Events,
        session: &str,
        kind: Kind,
        params: &impl Serialize,
    ) -> Result<R, McpError> {
        let number = self.asked.fetch_add(1, Ordering::Relaxed) + 1;
        let (sender, answer) = oneshot::channel();
        {
            let mut open = lock(&self.open);
            if open.len() >= MAX_OPEN {
                return Err(refused("too many questions are open"));
            }
            open.insert(number, sender);
        }
        let _closed = Closed { questions: self, events, number };
        let kind = match kind {
            Kind::Elicitation => "elicitation",
            Kind::Sampling => "sampling",
        };
        events.add(&json!({
            "type": "question", "question": number, "session": session, "kind": kind,
            "params": serde_json::to_value(params).unwrap_or_default(),
        }));
        match answer.await {
            Ok(Ok(value)) => serde_json::from_value(value)
                .map_err(|error| refused(format!("the answer of the page cannot be read: {error}"))),
            Ok(Err(reason)) => Err(refused(reason)),
            Err(_) => Err(refused("the inspector has ended")),
        }
    }

    /// Answers a question. Returns whether it was open.
    pub(crate) fn answer(&self, number: u64, answer: Answer) -> bool {
        let open = lock(&self.open).remove(&number);
        open.is_some_and(|sender| sender.send(answer).is_ok())
    }
}

fn refused(reason: impl Into<String>) -> McpError {
    McpError::new(ErrorCode::INVALID_REQUEST, reason.into())
}

/// Tells the page that a question is not open any more.
struct Closed<'a> {
    questions: &'a Questions,
    events: &'a Events,
    number: u64,
}

impl Drop for Closed<'_> {
    fn drop(&mut self) {
        lock(&self.questions.open).remove(&self.number);
        self.events.add(&json!({"type": "answered", "question": self.number}));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn an_answer_reaches_the_question_and_only_once() {
        let (questions, events) = (Questions::default(), Events::default());
        let params = json!({"message": "Who?"});
        let asked = questions.ask::<Value>(&events, "auto", Kind::Elicitation, &params);
        let answered = async {
            let shown: Value = serde_json::from_str(&events.after(0).await).unwrap();
            assert_eq!(shown["events"][0]["params"]["message"], "Who?");
            assert!(questions.answer(1, Ok(json!({"action": "decline"}))));
            assert!(!questions.answer(1, Ok(json!({}))));
        };
        let (answer, ()) = tokio::join!(asked, answered);
        assert_eq!(answer.unwrap()["action"], "decline");
    }

    #[tokio::test]
    async fn a_dropped_question_is_closed_on_the_page() {
        let (questions, events) = (Questions::default(), Events::default());
        {
            let params = json!({});
            let mut asked = Box::pin(questions.ask::<Value>(&events, "auto", Kind::Sampling, &params));
            let waiting =
                std::future::poll_fn(|cx| std::task::Poll::Ready(asked.as_mut().poll(cx).is_pending()));
            assert!(waiting.await);
        }
        let shown: Value = serde_json::from_str(&events.after(1).await).unwrap();
        assert_eq!(shown["events"][0]["type"], "answered");
        assert!(!questions.answer(1, Ok(json!({}))));
    }
}
