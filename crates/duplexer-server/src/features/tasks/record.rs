//! The record of a task: everything that a node needs to report it, and to run it again after the loss of another node.
//!
//! Stores keep records and compare revisions. They know no state machine: [`change`](super::change) is the only place that
//! moves a task from one state to another.

use std::fmt;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use duplexer_core::run::RunId;
use duplexer_types::capabilities::ClientCapabilities;
use duplexer_types::error::ErrorObject;
use duplexer_types::json::Json;
use duplexer_types::jsonrpc::RequestId;
use duplexer_types::lifecycle::Implementation;
use duplexer_types::task::TaskStatus;
use serde::{Deserialize, Serialize};

use super::time::UnixMillis;
use crate::kernel::principal::Principal;

/// Identifier of a task: 191 random bits, written with a letter first.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct TaskId(String);

impl TaskId {
    /// Creates an identifier that cannot be guessed. Fails if the system has no randomness.
    pub(crate) fn random() -> Result<Self, getrandom::Error> {
        let mut bytes = [0; 24];
        getrandom::fill(&mut bytes)?;
        // The first of 64 digits is then a letter. A program takes a word that begins with `-` for an option.
        bytes[0] &= 0x7f;
        Ok(Self(URL_SAFE_NO_PAD.encode(bytes)))
    }

    /// Returns the identifier as clients know it.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl From<TaskId> for String {
    fn from(id: TaskId) -> Self {
        id.0
    }
}

impl From<&str> for TaskId {
    fn from(text: &str) -> Self {
        Self(text.to_owned())
    }
}

impl From<String> for TaskId {
    fn from(text: String) -> Self {
        Self(text)
    }
}

impl fmt::Display for TaskId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A task as a store keeps it. It contains arguments and results, so a store is to be protected like them; it contains no
/// tokens and no headers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct TaskRecord {
    /// Identifier of the task.
    pub id: TaskId,
    /// Number of changes. A store replaces a record only by one with the next revision.
    pub revision: u64,
    /// The principal that created the task; only an equal one can see it.
    pub owner: Option<TaskOwner>,
    /// The call that the task runs.
    pub call: TaskedCall,
    /// Times of the task.
    pub times: TaskTimes,
    /// State of the task.
    pub state: TaskState,
    /// The run that works on the task.
    pub lease: TaskLease,
}

/// Identity of a principal, with its scopes for a repeated run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct TaskOwner {
    /// The OAuth client.
    pub client_id: String,
    /// The issuer of its token.
    pub issuer: Option<String>,
    /// The user it acts for.
    pub subject: Option<String>,
    /// The scopes at creation.
    pub scopes: Vec<String>,
}

impl TaskOwner {
    pub(crate) fn of(principal: &Principal) -> Self {
        let (client_id, issuer, subject) = principal.identity();
        Self {
            client_id: client_id.to_owned(),
            issuer: issuer.map(Into::into),
            subject: subject.map(Into::into),
            scopes: principal.scopes.clone(),
        }
    }

    /// Returns what identifies the owner.
    pub fn identity(&self) -> (&str, Option<&str>, Option<&str>) {
        (&self.client_id, self.issuer.as_deref(), self.subject.as_deref())
    }

    /// Returns the principal for a repeated run: without the claims of the token, which no record contains.
    pub(crate) fn principal(&self) -> Principal {
        let mut principal = Principal::new(self.client_id.as_str());
        principal.issuer.clone_from(&self.issuer);
        principal.subject.clone_from(&self.subject);
        principal.scopes.clone_from(&self.scopes);
        principal
    }
}

/// The call that a task runs, and the client that made it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct TaskedCall {
    /// Name of the tool.
    pub tool: String,
    /// Arguments, a JSON object.
    pub arguments: Json,
    /// Revision of the protocol that the task was created in.
    pub version: String,
    /// Identity that the client declared.
    pub client_info: Option<Implementation>,
    /// Capabilities that the client declared.
    pub capabilities: Option<ClientCapabilities>,
    /// Progress token of the call. It stays valid for the task in 2025-11-25.
    pub progress_token: Option<RequestId>,
}

/// Times of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct TaskTimes {
    /// Creation.
    pub created: UnixMillis,
    /// Last change.
    pub updated: UnixMillis,
    /// End of the work.
    pub ended: Option<UnixMillis>,
    /// How long the task is kept after its end, in milliseconds.
    pub retention: u64,
}

impl TaskTimes {
    /// Returns when an ended task can be forgotten.
    pub fn forgotten(&self) -> Option<UnixMillis> {
        self.ended.map(|ended| ended.after(Duration::from_millis(self.retention)))
    }
}

/// State of a task.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct TaskState {
    /// Description of the status.
    pub message: Option<String>,
    /// All questions so far, answered ones too: a key is never used twice.
    pub questions: Vec<TaskQuestion>,
    /// Whether the client has cancelled the task.
    pub cancel_requested: bool,
    /// The outcome, once there is one.
    pub outcome: Option<TaskOutcome>,
}

/// A question of a task to its client.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct TaskQuestion {
    /// Key of the question in the protocol.
    pub key: String,
    /// Key that the author gave it.
    pub asked_as: String,
    /// The input request.
    pub request: Json,
    /// Digest of the request. It binds the answer to the question.
    pub digest: String,
    /// The answer, once there is one.
    pub answer: Option<Json>,
}

/// How a task ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum TaskOutcome {
    /// With a result of the tool.
    Result {
        /// The result, with all members that any revision defines.
        result: Json,
        /// Whether it reports a failure of the tool.
        is_error: bool,
    },
    /// With an error of the protocol.
    Error(ErrorObject),
    /// Cancelled.
    Cancelled,
}

/// The right of one run of a node to work on a task.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct TaskLease {
    /// The run. `None` if the work was handed over, or the task has ended.
    #[serde(with = "run_id")]
    pub run: Option<RunId>,
    /// Grows with every take-over. A change by an earlier epoch is refused.
    pub epoch: u64,
    /// End of the lease when it was last written; stores prolong all leases of a run at once. The deadline of work that was
    /// handed over.
    pub until: UnixMillis,
    /// Number of runs so far.
    pub attempt: u32,
    /// Whether the work can be run again from the start.
    pub resumable: bool,
    /// Whether the work was handed over: another program ends the task, until the deadline.
    pub handed_over: bool,
}

impl TaskRecord {
    /// Returns whether the task has ended.
    pub fn is_final(&self) -> bool {
        self.state.outcome.is_some()
    }

    /// Returns the questions without an answer. An ended task has none.
    pub fn open_questions(&self) -> impl Iterator<Item = &TaskQuestion> {
        let live = !self.is_final();
        self.state.questions.iter().filter(move |question| live && question.answer.is_none())
    }

    /// Returns the status in the envelope era.
    pub(crate) fn status(&self) -> TaskStatus {
        match &self.state.outcome {
            Some(TaskOutcome::Result { .. }) => TaskStatus::Completed,
            Some(TaskOutcome::Error(_)) => TaskStatus::Failed,
            Some(TaskOutcome::Cancelled) => TaskStatus::Cancelled,
            None if self.open_questions().next().is_some() => TaskStatus::InputRequired,
            None => TaskStatus::Working,
        }
    }

    /// Returns whether a principal created the task. A task without an owner belongs to requests without a principal.
    pub(crate) fn belongs_to(&self, principal: Option<&Principal>) -> bool {
        self.owner.as_ref().map(TaskOwner::identity) == principal.map(Principal::identity)
    }

    /// Returns roughly how many bytes a store keeps for the record. For stores.
    pub fn size(&self) -> usize {
        let result = match &self.state.outcome {
            Some(TaskOutcome::Result { result, .. }) => result.as_str().len(),
            Some(TaskOutcome::Error(error)) => error.data.as_ref().map_or(0, |data| data.as_str().len()),
            Some(TaskOutcome::Cancelled) | None => 0,
        };
        let text = |json: &Json| json.as_str().len();
        let questions = self.state.questions.iter();
        let asked: usize = questions.map(|it| text(&it.request) + it.answer.as_ref().map_or(0, text)).sum();
        result + asked + text(&self.call.arguments) + self.state.message.as_ref().map_or(0, String::len) + 512
    }
}

mod run_id {
    use super::RunId;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    #[expect(clippy::ref_option, reason = "the signature that serde calls")]
    pub(super) fn serialize<S: Serializer>(run: &Option<RunId>, serializer: S) -> Result<S::Ok, S::Error> {
        run.map(|run| run.to_string()).serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<RunId>, D::Error> {
        let text: Option<String> = Deserialize::deserialize(deserializer)?;
        text.map(|text| text.parse().map_err(serde::de::Error::custom)).transpose()
    }
}

#[cfg(test)]
mod tests {
    use super::TaskId;

    /// TSK-03: an id can be a word of a command line.
    #[test]
    fn an_id_begins_with_a_letter() {
        for _ in 0..2000 {
            let id = TaskId::random().unwrap();
            assert!(id.as_str().starts_with(|first: char| first.is_ascii_alphabetic()), "{id}");
            assert_eq!(id.as_str().len(), 32);
        }
    }
}
