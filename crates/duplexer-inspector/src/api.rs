//! The API of the page. Every request of it has the token.

use std::sync::Arc;

use duplexer_core::dispatch::lock;
use duplexer_core::error::BoxError;
use duplexer_types::logging::LoggingLevel;
use http::{Method, StatusCode};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::calls::NewCall;
use crate::reply::{self, Reply};
use crate::service::ApiRequest;
use crate::sessions::Choice;
use crate::state::State;
use crate::views::NewView;

/// Maximum number of roots.
const MAX_ROOTS: usize = 100;

#[derive(Deserialize)]
struct OfSession {
    session: Choice,
}

#[derive(Deserialize)]
struct OfCall {
    call: String,
}

#[derive(Deserialize)]
struct OfResource {
    session: Choice,
    uri: String,
}

#[derive(Deserialize)]
struct Level {
    session: Choice,
    level: String,
}

#[derive(Deserialize)]
struct Answer {
    question: u64,
    result: Option<Value>,
    error: Option<String>,
}

#[derive(Deserialize)]
struct Roots {
    roots: Vec<String>,
}

/// Why a request of the page fails.
struct Refusal(StatusCode, String);

impl Refusal {
    fn bad(reason: impl Into<String>) -> Self {
        Self(StatusCode::BAD_REQUEST, reason.into())
    }
}

/// A failure of the server under inspection is an answer of this API like any other: a browser reports every other status as
/// an error of the page.
impl From<BoxError> for Refusal {
    fn from(error: BoxError) -> Self {
        let mut text = error.to_string();
        let mut cause = error.source();
        while let Some(next) = cause {
            let more = next.to_string();
            if !text.contains(&more) {
                text = format!("{text}: {more}");
            }
            cause = next.source();
        }
        Self(StatusCode::OK, text)
    }
}

pub(crate) async fn handle(state: &Arc<State>, request: ApiRequest) -> Reply {
    let answered = match request.method {
        Method::GET => get(state, &request).await,
        Method::POST => Box::pin(post(state, &request)).await,
        _ => Err(Refusal(StatusCode::METHOD_NOT_ALLOWED, "GET and POST only".to_owned())),
    };
    answered.unwrap_or_else(|Refusal(status, reason)| reply::error(status, &reason))
}

async fn get(state: &Arc<State>, request: &ApiRequest) -> Result<Reply, Refusal> {
    let value = |name: &str| {
        let pairs = request.query.split('&').filter_map(|pair| pair.split_once('='));
        pairs.clone().find(|(key, _)| *key == name).map(|(_, value)| value)
    };
    let number = |name: &str| value(name).and_then(|text| text.parse::<u64>().ok());
    match request.name.as_str() {
        "info" => Ok(reply::json(&json!({
            "version": env!("CARGO_PKG_VERSION"), "target": state.settings.target.to_json(),
            "sandbox": state.settings.sandbox,
        }))),
        "events" => {
            let after = number("after").ok_or_else(|| Refusal::bad("`after` is not a number"))?;
            Ok(reply::json_text(state.page.events.after(after).await))
        }
        "result" => {
            let call = value("call").unwrap_or_default();
            let gone =
                || Refusal(StatusCode::NOT_FOUND, "there is no result of this request any more".to_owned());
            state.calls.outcome(call).map(reply::json_text).ok_or_else(gone)
        }
        "frame" => {
            let frame = number("n").and_then(|number| state.page.wire.text(number));
            let gone = || Refusal(StatusCode::NOT_FOUND, "this message is not kept any more".to_owned());
            frame.map(|text| reply::text(StatusCode::OK, text)).ok_or_else(gone)
        }
        "transcript" => {
            let (session, target) = (value("session").unwrap_or("auto"), &state.settings.target);
            let text = state.page.wire.transcript(session, target.transport(), &target.to_string());
            Ok(reply::text(StatusCode::OK, text))
        }
        _ => Err(unknown()),
    }
}

async fn post(state: &Arc<State>, request: &ApiRequest) -> Result<Reply, Refusal> {
    let sessions = &state.sessions;
    match request.name.as_str() {
        "session" => {
            let OfSession { session } = body(request)?;
            let opened = sessions.open(state, session).await?;
            return Ok(reply::json(&opened.described(session)));
        }
        "close" => {
            let OfSession { session } = body(request)?;
            sessions.close(session).await;
        }
        "call" => {
            let call: NewCall = body(request)?;
            let busy = |reason: &str| Refusal(StatusCode::TOO_MANY_REQUESTS, reason.to_owned());
            state.calls.start(state, call).map_err(busy)?;
        }
        "cancel" => {
            let OfCall { call } = body(request)?;
            return Ok(reply::json(&json!({"cancelled": state.calls.cancel(&call)})));
        }
        "answer" => return answer(state, body(request)?),
        "watch" => {
            let OfResource { session, uri } = body(request)?;
            let opened = sessions.open(state, session).await?;
            opened.watches.resource(state, session, &opened.client, uri).await?;
        }
        "unwatch" => {
            let OfResource { session, uri } = body(request)?;
            sessions.open(state, session).await?.watches.forget(&uri);
        }
        "level" => {
            let Level { session, level } = body(request)?;
            let known = LoggingLevel::ALL.into_iter().find(|known| known.as_str() == level);
            let level = known.ok_or_else(|| Refusal::bad("there is no such level"))?;
            sessions.open(state, session).await?.set_level(level).await?;
        }
        "roots" => set_roots(state, body(request)?)?,
        "view" => return view(state, body(request)?),
        _ => return Err(unknown()),
    }
    Ok(reply::json(&json!({})))
}

fn unknown() -> Refusal {
    Refusal(StatusCode::NOT_FOUND, "the API has no such request".to_owned())
}

fn body<T: DeserializeOwned>(request: &ApiRequest) -> Result<T, Refusal> {
    serde_json::from_slice(&request.body).map_err(|error| Refusal::bad(error.to_string()))
}

/// Answers a question, which can have been closed meanwhile.
fn answer(state: &State, answer: Answer) -> Result<Reply, Refusal> {
    let Answer { question, result, error } = answer;
    let answer = match (result, error) {
        (Some(result), None) => Ok(result),
        (None, Some(error)) => Err(error),
        _ => return Err(Refusal::bad("an answer has either a result or an error")),
    };
    Ok(reply::json(&json!({"open": state.page.questions.answer(question, answer)})))
}

fn set_roots(state: &State, Roots { roots }: Roots) -> Result<(), Refusal> {
    if roots.len() > MAX_ROOTS || roots.iter().any(|root| !root.starts_with("file://")) {
        return Err(Refusal::bad(format!("roots are at most {MAX_ROOTS} URIs that begin with file://")));
    }
    *lock(&state.page.roots) = roots;
    Ok(())
}

/// Stores a view for the second origin.
fn view(state: &State, view: NewView) -> Result<Reply, Refusal> {
    let added = state.views.add(view);
    let (name, policy) =
        added.map_err(|error| Refusal(StatusCode::INTERNAL_SERVER_ERROR, error.to_string()))?;
    Ok(reply::json(&json!({"view": name, "policy": policy.text, "ignored": policy.ignored})))
}
