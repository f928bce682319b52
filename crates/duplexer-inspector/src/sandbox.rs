//! The second origin: the frame around a view, views, and reports of what their policy has blocked.

use http::{Method, Request, StatusCode};
use http_body_util::{BodyExt as _, Limited};
use hyper::body::Incoming;
use serde_json::{Value, json};

use crate::reply::{self, Reply};
use crate::state::State;
use crate::wire::begin;
use crate::{files, loopback, policy};

/// Maximum size of a report.
const MAX_REPORT: usize = 64 * 1024;
const HTML: &str = "text/html; charset=utf-8";

pub(crate) async fn handle(state: &State, request: Request<Incoming>) -> Reply {
    if let Some(refusal) = loopback::refusal(request.extensions(), request.headers(), request.uri()) {
        return refusal;
    }
    let path = request.uri().path().to_owned();
    let Some(name) = path.strip_prefix('/') else { return nothing() };
    match (request.method(), name.split_once('/')) {
        (&Method::GET, None) => match files::of_sandbox(name) {
            Some(file) => reply::file(file.media_type, file.text, &policy::of_sandbox()),
            None => nothing(),
        },
        (&Method::GET, Some(("view", view))) => match state.views.page(view) {
            Some((html, policy)) => reply::file(HTML, html, &policy),
            None => nothing(),
        },
        (&Method::POST, Some(("report", view))) => {
            let body = Limited::new(request.into_body(), MAX_REPORT).collect().await;
            if let Ok(body) = body
                && state.views.count_report(view)
            {
                report(state, view, &body.to_bytes());
            }
            reply::text(StatusCode::NO_CONTENT, "")
        }
        _ => nothing(),
    }
}

fn nothing() -> Reply {
    reply::text(StatusCode::NOT_FOUND, "There is nothing here.")
}

/// Tells the page what the policy of a view has blocked.
fn report(state: &State, view: &str, body: &[u8]) {
    let report: Value = serde_json::from_slice(body).unwrap_or_default();
    let about = report.get("csp-report").unwrap_or(&Value::Null);
    let member = |name: &str| about.get(name).and_then(Value::as_str).map(|text| begin(text, 500).to_owned());
    state.tell(&json!({
        "type": "blocked", "view": view, "uri": member("blocked-uri"),
        "directive": member("effective-directive").or_else(|| member("violated-directive")),
    }));
}
