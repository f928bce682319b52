//! Tasks of a handshake server that clients of the envelope era follow: which tools run as tasks, and the questions that
//! the server asks while they run.
//!
//! A server of 2025-11-25 asks with requests on any stream, most of all on that of `tasks/result`. So that request is kept
//! open for every task, and what arrives meanwhile waits until the client reads the task.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use duplexer_core::dispatch::{Message, lock};
use duplexer_core::error::McpError;
use duplexer_server::ClientProfile;
use duplexer_types::input::{InputRequest, InputResponse};
use duplexer_types::json::{Json, JsonObject};
use duplexer_types::meta::key;
use duplexer_types::tool::{ListToolsResult, TaskSupport};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinSet;

use super::fits;
use crate::bridge::questions::{Asked, Questions};

/// Maximum number of tools that are known to run as tasks.
const MAX_TOOLS: usize = 10_000;
/// Maximum number of tasks whose questions are taken at once.
const MAX_TASKS: usize = 256;
/// The member of a tool that says whether it runs as a task. A list without it is not decoded.
const MEMBER: &str = "taskSupport";

/// The tasks of one session with a handshake server.
#[derive(Default)]
pub(crate) struct Followed {
    tools: Mutex<HashMap<String, TaskSupport>>,
    /// Whether the whole list of tools was requested.
    is_listed: AtomicBool,
    tasks: Mutex<HashMap<String, Arc<Following>>>,
    /// One request for the result of each task. Dropping it ends them.
    waiting: Mutex<JoinSet<()>>,
}

/// What ended the request for the result of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    OfTask,
    OfSession,
}

/// Questions of one task.
struct Following {
    questions: Questions,
    received: Mutex<Received>,
}

struct Received {
    asked: mpsc::Receiver<Asked>,
    open: Vec<Open>,
    /// Number of questions so far. A key is never used twice.
    count: u32,
}

/// A question without an answer.
struct Open {
    key: String,
    request: InputRequest,
    answer: oneshot::Sender<Json>,
}

impl Received {
    /// Takes what has arrived, and drops what the server has withdrawn.
    fn update(&mut self) {
        while let Ok(Asked { request, answer }) = self.asked.try_recv() {
            self.count += 1;
            self.open.push(Open { key: format!("question-{}", self.count), request, answer });
        }
        self.open.retain(|question| !question.answer.is_closed());
    }
}

impl Followed {
    /// Learns from the result of `tools/list` which tools run as tasks.
    pub(crate) fn learn(&self, result: &str) {
        if !result.contains(MEMBER) {
            return;
        }
        let Ok(page) = serde_json::from_str::<ListToolsResult>(result) else { return };
        let mut tools = lock(&self.tools);
        for tool in page.tools {
            match tool.execution.and_then(|execution| execution.task_support) {
                Some(support @ (TaskSupport::Optional | TaskSupport::Required))
                    if tools.len() < MAX_TOOLS =>
                {
                    tools.insert(tool.name, support);
                }
                _ => drop(tools.remove(&tool.name)),
            }
        }
    }

    /// Returns whether the list of tools is to be requested, and marks it as requested.
    pub(super) fn begin_listing(&self) -> bool {
        !self.is_listed.swap(true, Ordering::AcqRel)
    }

    /// Has the list requested again: tools have changed.
    pub(crate) fn tools_changed(&self) {
        self.is_listed.store(false, Ordering::Release);
    }

    /// Returns whether calls of a tool can, or must, be tasks.
    pub(super) fn support(&self, tool: &str) -> Option<TaskSupport> {
        lock(&self.tools).get(tool).cloned()
    }

    /// Takes the questions of a task from now on, until `result` says that it has ended. If the session ends before, its
    /// questions are not refused: the task goes on, and asks the next session. Questions of more tasks than the limit are
    /// refused.
    pub(super) fn follow(
        self: &Arc<Self>,
        id: &str,
        client: ClientProfile,
        result: impl Future<Output = End> + Send + 'static,
    ) {
        {
            let mut tasks = lock(&self.tasks);
            if tasks.contains_key(id) || tasks.len() >= MAX_TASKS {
                return;
            }
            let (questions, asked) = Questions::new(client);
            let received = Mutex::new(Received { asked, open: Vec::new(), count: 0 });
            tasks.insert(id.to_owned(), Arc::new(Following { questions, received }));
        }
        let (followed, id) = (Arc::downgrade(self), id.to_owned());
        let mut waiting = lock(&self.waiting);
        while waiting.try_join_next().is_some() {}
        waiting.spawn(async move {
            if result.await == End::OfTask
                && let Some(followed) = followed.upgrade()
            {
                lock(&followed.tasks).remove(&id);
            }
        });
    }

    /// Returns whether no task runs.
    pub(crate) fn is_idle(&self) -> bool {
        lock(&self.tasks).is_empty()
    }

    /// Returns where a question of the server goes, if it belongs to a task.
    pub(crate) fn questions_of(&self, message: &Message) -> Option<Questions> {
        let meta = message.meta().filter(|meta| meta.contains(key::RELATED_TASK))?;
        let meta: JsonObject = serde_json::from_str(meta).ok()?;
        let related: JsonObject = meta.get(key::RELATED_TASK)?.decode().ok()?;
        let id: String = related.get("taskId")?.decode().ok()?;
        lock(&self.tasks).get(&id).map(|task| task.questions.clone())
    }

    fn task(&self, id: &str) -> Option<Arc<Following>> {
        lock(&self.tasks).get(id).map(Arc::clone)
    }

    /// Returns the questions of a task without an answer.
    pub(super) fn open(&self, id: &str) -> JsonObject<InputRequest> {
        let Some(task) = self.task(id) else { return JsonObject::new() };
        let mut received = lock(&task.received);
        received.update();
        received.open.iter().map(|question| (question.key.clone(), question.request.clone())).collect()
    }

    /// Answers questions. Answers to other keys, and those of the wrong kind, are ignored.
    pub(super) fn answer(&self, id: &str, answers: &JsonObject<InputResponse>) -> Result<(), McpError> {
        let Some(task) = self.task(id) else { return Ok(()) };
        let mut received = lock(&task.received);
        received.update();
        for question in std::mem::take(&mut received.open) {
            match answers.get(&question.key).filter(|answer| fits(&question.request, answer)) {
                // The server may have withdrawn it.
                Some(answer) => {
                    drop(question.answer.send(Json::encode(answer).map_err(McpError::internal)?));
                }
                None => received.open.push(question),
            }
        }
        Ok(())
    }
}
