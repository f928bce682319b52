//! One request: its method, its options, and the task that it can become.

use std::error::Error;
use std::sync::{Arc, Mutex};

use duplexer_client::{Client, ClientError, Started};
use duplexer_core::dispatch::{CallOptions, OutboundRequest, lock};
use duplexer_core::error::{BoxError, CallError};
use duplexer_types::json::{Json, JsonObject};
use duplexer_types::meta::key;
use duplexer_types::methods::{
    CompletionComplete, Method, Ping, PromptsGet, PromptsList, Request, ResourcesList, ResourcesRead,
    ResourcesTemplatesList, ServerDiscover, SkillsGet, TasksCancel, TasksGet, TasksList, ToolsCall,
    ToolsList,
};
use duplexer_types::task::{CreateTaskResult, TaskMetadata};
use duplexer_types::version::{Era, feature};
use duplexer_types::wire::{result_type, result_type_of};
use serde_json::{Value, json};

use super::{Done, NewCall, timed};
use crate::sessions::{Choice, Session, shown};
use crate::state::State;

/// Why a request failed, for the page.
pub(super) struct Failure {
    pub(super) ms: f64,
    pub(super) error: Value,
}

impl Failure {
    pub(super) fn text(message: &str) -> Self {
        Self { ms: 0.0, error: json!({"message": message}) }
    }

    fn of(error: &(dyn Error + 'static)) -> Self {
        let mut message = error.to_string();
        let mut cause = error.source();
        while let Some(next) = cause {
            let text = next.to_string();
            if !message.contains(&text) {
                message = format!("{message}: {text}");
            }
            cause = next.source();
        }
        Self { ms: 0.0, error: json!({"message": message}) }
    }
}

impl From<ClientError> for Failure {
    fn from(error: ClientError) -> Self {
        if let ClientError::Call(CallError::Rpc(refusal)) = &error {
            return Self { ms: 0.0, error: serde_json::to_value(refusal).unwrap_or_default() };
        }
        Self::of(&error)
    }
}

impl From<BoxError> for Failure {
    fn from(error: BoxError) -> Self {
        Self::of(&*error)
    }
}

/// Sends the request and returns its result. If it becomes a task, its id is stored in `created`, and the result is that
/// of the task.
pub(super) async fn perform(
    state: &Arc<State>,
    call: &NewCall,
    created: &Mutex<Option<String>>,
) -> Result<Done, Failure> {
    let session = state.sessions.open(state, call.session).await?;
    let (sent, ms) = timed(send(state, &session, call, created)).await;
    match sent {
        Ok(result) => Ok(Done { ms, result }),
        Err(failure) => Err(Failure { ms, ..failure }),
    }
}

/// Cancels a task that a request has become.
pub(super) async fn cancel_task(state: &Arc<State>, session: Choice, task: &str) -> Result<(), Failure> {
    let opened = state.sessions.open(state, session).await?;
    let cancelled = opened.client.task(task).cancel().await;
    tell_state(state, session, &opened.client, task).await;
    Ok(cancelled?)
}

/// Tells the page the state of a task that has ended: the last poll was before its end.
async fn tell_state(state: &State, session: Choice, client: &Client, task: &str) {
    match client.task(task).status().await {
        Ok(now) => {
            state.tell(&json!({"type": "task", "session": session.name(), "task": shown(&now.task)}));
        }
        Err(error) => tracing::debug!(%error, "the state of a task cannot be read"),
    }
}

async fn send(
    state: &Arc<State>,
    session: &Session,
    call: &NewCall,
    created: &Mutex<Option<String>>,
) -> Result<Json, Failure> {
    let client = &session.client;
    macro_rules! send_as {
        ($($row:ident)*) => {
            match Method::parse(&call.method) {
                Some(Method::ToolsCall) => tool(state, session, call, created).await,
                $(Some(Method::$row) => plain::<$row>(state, session, call).await,)*
                _ => {
                    let request = OutboundRequest::new(call.method.clone()).params(call.params.clone());
                    Ok(client.request_custom(request).await?)
                }
            }
        };
    }
    send_as!(
        CompletionComplete Ping PromptsGet PromptsList ResourcesList ResourcesRead ResourcesTemplatesList
        ServerDiscover SkillsGet TasksCancel TasksGet TasksList ToolsList
    )
}

async fn plain<M: Request + 'static>(
    state: &Arc<State>,
    session: &Session,
    call: &NewCall,
) -> Result<Json, Failure> {
    Ok(prepared::<M>(state, session, call, params::<M>(call)?).raw().await?)
}

fn params<M: Request>(call: &NewCall) -> Result<M::Params, Failure> {
    let misfit = |error| Failure::text(&format!("the params do not fit the method {}: {error}", M::METHOD));
    call.params.decode().map_err(misfit)
}

fn prepared<M: Request>(
    state: &Arc<State>,
    session: &Session,
    call: &NewCall,
    params: M::Params,
) -> duplexer_client::Call<M> {
    let mut options = CallOptions::new();
    if call.progress {
        let (state, name) = (Arc::clone(state), call.call.clone());
        options = options.on_progress(move |report| {
            state.tell(&json!({
                "type": "progress", "call": name, "progress": report.progress, "total": report.total,
                "message": report.message,
            }));
        });
    }
    let prepared = session.client.request::<M>(params).options(options).fresh();
    if session.client.era() == Era::Handshake {
        return prepared;
    }
    let level = Json::from(lock(&session.level).as_str());
    prepared.meta(JsonObject::new().with(key::LOG_LEVEL, level))
}

/// Calls a tool, and waits for the task if it becomes one.
async fn tool(
    state: &Arc<State>,
    session: &Session,
    call: &NewCall,
    created: &Mutex<Option<String>>,
) -> Result<Json, Failure> {
    let client = &session.client;
    let mut params = params::<ToolsCall>(call)?;
    let as_task = call.task && client.protocol_version().has(feature::TASK_EXPERIMENT);
    if as_task {
        // The page has the list of tools, and not this client, so the client does not ask for a task by itself.
        params.task.get_or_insert_with(TaskMetadata::new);
    }
    let prepared = prepared::<ToolsCall>(state, session, call, params);
    let task = if as_task {
        match prepared.started().await? {
            Started::Task(task) => task.id().to_owned(),
            Started::Done(result) => return Ok(Json::from(shown(&result))),
            _ => return Err(Failure::text("the call was answered in a way that is not known")),
        }
    } else {
        let result = prepared.raw().await?;
        match task_of(client, &result) {
            Some(task) => task,
            None => return Ok(result),
        }
    };
    *lock(created) = Some(task.clone());
    let session = call.session.name();
    state.tell(&json!({"type": "task-created", "call": call.call, "session": session, "task": task}));
    let ended = client.task(&*task).raw_result().await;
    *lock(created) = None;
    if client.era() == Era::Handshake {
        // There the result comes without the state.
        tell_state(state, call.session, client, &task).await;
    }
    Ok(ended?)
}

/// Returns the id of the task that a result of the envelope era announces.
fn task_of(client: &Client, result: &Json) -> Option<String> {
    if client.era() == Era::Handshake || *result_type_of(result.as_str()).ok()? != *result_type::TASK {
        return None;
    }
    result.decode::<CreateTaskResult>().ok().map(|created| created.task.task_id)
}
