//! Requests of the page to the server: each runs in a task of its own, and its outcome waits until the page takes it.

mod request;

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex};

use duplexer_core::dispatch::{Cancellation, lock};
use duplexer_types::json::Json;
use serde::Deserialize;
use serde_json::json;
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::clock::milliseconds;
use crate::sessions::Choice;
use crate::state::State;

use self::request::Failure;

/// Maximum number of requests in flight.
const MAX_RUNNING: usize = 256;
/// Maximum number of outcomes that wait for the page, and of bytes of them.
const MAX_OUTCOMES: usize = 256;
const MAX_BYTES: usize = 64 * 1024 * 1024;

/// A request of the page.
#[derive(Debug, Deserialize)]
pub(crate) struct NewCall {
    /// Name that the page has given to the request.
    call: String,
    session: Choice,
    method: String,
    #[serde(default = "Json::object")]
    params: Json,
    /// Whether the page shows progress.
    #[serde(default)]
    progress: bool,
    /// Whether a tool is to be run as a task, where the server leaves that to the client.
    #[serde(default)]
    task: bool,
}

#[derive(Default)]
pub(crate) struct Calls {
    running: Mutex<HashMap<String, Arc<Cancellation>>>,
    outcomes: Mutex<VecDeque<(String, String)>>,
    tasks: Mutex<JoinSet<()>>,
}

impl Calls {
    /// Starts a request. Fails if too many are in flight, or if its name is taken.
    pub(crate) fn start(&self, state: &Arc<State>, call: NewCall) -> Result<(), &'static str> {
        let cancelled = Arc::new(Cancellation::new());
        {
            let mut running = lock(&self.running);
            if running.len() >= MAX_RUNNING {
                return Err("too many requests are in flight");
            }
            if running.contains_key(&call.call) {
                return Err("this request is in flight already");
            }
            running.insert(call.call.clone(), Arc::clone(&cancelled));
        }
        let state = Arc::clone(state);
        let mut tasks = lock(&self.tasks);
        while tasks.try_join_next().is_some() {}
        tasks.spawn(async move { run(&state, call, &cancelled).await });
        Ok(())
    }

    /// Cancels a request. Returns whether it was in flight.
    pub(crate) fn cancel(&self, call: &str) -> bool {
        let cancelled = lock(&self.running).get(call).map(Arc::clone);
        cancelled.inspect(|cancelled| cancelled.cancel()).is_some()
    }

    /// Takes the outcome of a request.
    pub(crate) fn outcome(&self, call: &str) -> Option<String> {
        let mut outcomes = lock(&self.outcomes);
        let index = outcomes.iter().position(|(name, _)| name == call)?;
        outcomes.remove(index).map(|(_, outcome)| outcome)
    }

    fn finish(&self, call: &str, outcome: String) {
        lock(&self.running).remove(call);
        let mut outcomes = lock(&self.outcomes);
        outcomes.push_back((call.to_owned(), outcome));
        let mut bytes: usize = outcomes.iter().map(|(_, outcome)| outcome.len()).sum();
        while outcomes.len() > MAX_OUTCOMES || bytes > MAX_BYTES && outcomes.len() > 1 {
            bytes -= outcomes.pop_front().map_or(0, |(_, outcome)| outcome.len());
        }
    }
}

/// Performs a request, unless it is cancelled before its end.
async fn run(state: &Arc<State>, call: NewCall, cancelled: &Cancellation) {
    let name = call.call.clone();
    let created = Mutex::new(None);
    let mut ended = {
        let performed = request::perform(state, &call, &created);
        tokio::select! {
            biased;
            () = cancelled.cancelled() => Err(Failure::text("cancelled")),
            ended = performed => ended,
        }
    };
    let task = lock(&created).take();
    if let (true, Some(task)) = (cancelled.is_cancelled(), task) {
        // The request has been answered; what runs is the task.
        let answered = request::cancel_task(state, call.session, &task).await;
        ended = Err(answered.err().unwrap_or_else(|| Failure::text("the task was cancelled")));
    }
    let outcome = match &ended {
        Ok(done) => format!(r#"{{"ok":true,"ms":{},"result":{}}}"#, done.ms, done.result.as_str()),
        Err(failure) => json!({"ok": false, "ms": failure.ms, "error": failure.error}).to_string(),
    };
    let size = outcome.len();
    state.calls.finish(&name, outcome);
    state.tell(&json!({"type": "done", "call": name, "ok": ended.is_ok(), "size": size}));
}

/// The result of a request, and how long it took.
struct Done {
    ms: f64,
    result: Json,
}

/// Runs a future and measures it.
async fn timed<T>(work: impl Future<Output = T>) -> (T, f64) {
    let begun = Instant::now();
    let outcome = work.await;
    (outcome, milliseconds(begun, Instant::now()))
}
