//! Frames: comparison with the plain implementation, and round trips.

use duplexer_types::error::ErrorObject;
use duplexer_types::json::Json;
use duplexer_types::jsonrpc::{self, Frame, Invocation, Malformed, RequestId};
use serde::Deserialize;
use serde_json::Value;

use crate::tree::{Found, Reading, Tree};

/// Reads `data` as a frame and as a batch, and compares with the plain implementation.
pub fn frame(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let ours = jsonrpc::read(text);
    match Tree::read(text) {
        Reading::NotJson => assert_eq!(ours, Err(Malformed::NotJson), "{text:?}"),
        // The library reads on to find the id, so it can still detect that the rest is no JSON.
        Reading::TooDeep => {}
        Reading::Tree(tree) => {
            assert_eq!(summary(&ours), expected(&tree), "{text:?}");
            batch(text, &tree);
        }
    }
    if let Ok(frame) = ours {
        reads_back(&frame);
        if let Frame::Request { call, .. } | Frame::Notification(call) = &frame {
            decodes(call);
        }
    }
}

/// A params type with typical fields.
#[derive(Debug, PartialEq, Deserialize)]
struct Params {
    name: Option<String>,
    #[serde(default)]
    arguments: Option<Json>,
    progress: Option<f64>,
    #[serde(rename = "requestId")]
    request_id: Option<RequestId>,
}

/// Decoding from the frame gives the same as plain `serde_json`.
fn decodes(call: &Invocation<'_>) {
    let text = call.params.unwrap_or("{}");
    assert_eq!(call.decode::<Tree>().ok(), Tree::of(text), "{text:?}");
    assert_eq!(call.decode::<Params>().ok(), serde_json::from_str(text).ok(), "{text:?}");
}

/// Owned result that both implementations return.
#[derive(Debug, PartialEq)]
enum Verdict {
    NotJson,
    Request(RequestId, Call),
    Notification(Call),
    Success(RequestId, Option<Tree>),
    Failure(Option<RequestId>, Option<Tree>),
    Batch,
    Invalid(Option<RequestId>),
    Unanswerable,
}

#[derive(Debug, PartialEq)]
struct Call {
    method: String,
    params: Option<Tree>,
    meta: Option<Tree>,
}

fn summary(read: &Result<Frame<'_>, Malformed>) -> Verdict {
    match read {
        Ok(Frame::Request { id, call }) => Verdict::Request(id.clone(), Call::of(call)),
        Ok(Frame::Notification(call)) => Verdict::Notification(Call::of(call)),
        Ok(Frame::Success { id, result }) => Verdict::Success(id.clone(), Tree::of(result)),
        Ok(Frame::Failure { id, error }) => Verdict::Failure(id.clone(), Tree::of(error)),
        Ok(Frame::Batch(_)) => Verdict::Batch,
        Err(Malformed::NotJson) => Verdict::NotJson,
        Err(Malformed::Invalid { id, .. }) => Verdict::Invalid(id.clone()),
        Err(Malformed::Unanswerable { .. }) => Verdict::Unanswerable,
    }
}

impl Call {
    fn of(call: &Invocation<'_>) -> Self {
        Self {
            method: call.method.clone().into_owned(),
            params: call.params.and_then(Tree::of),
            meta: call.meta.and_then(Tree::of),
        }
    }
}

/// The rules of a frame, implemented over a tree.
fn expected(tree: &Tree) -> Verdict {
    match tree {
        Tree::Array(_) => return Verdict::Batch,
        Tree::Scalar(_) => return Verdict::Invalid(None),
        Tree::Object(_) => {}
    }
    let (has_id, id) = (tree.get("id").is_present(), tree.get("id").once().and_then(id));
    let method = tree.get("method");
    if !method.is_present() && !tree.get("result").is_present() && !tree.get("error").is_present() {
        return Verdict::Invalid(id);
    }
    if !method.is_present() {
        return response(tree, id).unwrap_or(Verdict::Unanswerable);
    }
    match (call(tree), id) {
        (Some(call), Some(id)) => Verdict::Request(id, call),
        (Some(call), None) if !has_id => Verdict::Notification(call),
        (_, id) if has_id => Verdict::Invalid(id),
        _ => Verdict::Unanswerable,
    }
}

fn call(tree: &Tree) -> Option<Call> {
    is_sound(tree).then_some(())?;
    let params = tree.get("params").once().filter(|params| !params.is_null());
    if params.is_some_and(|params| !params.is_object()) {
        return None;
    }
    Some(Call {
        method: tree.get("method").once()?.as_str()?.to_owned(),
        params: params.cloned(),
        meta: params.and_then(|params| params.get("_meta").once()).cloned(),
    })
}

fn response(tree: &Tree, id: Option<RequestId>) -> Option<Verdict> {
    is_sound(tree).then_some(())?;
    match (tree.get("error").once(), tree.get("result").once()) {
        (Some(error), _) => Some(Verdict::Failure(id, Some(error.clone()))),
        (None, Some(result)) => Some(Verdict::Success(id?, Some(result.clone()))),
        (None, None) => None,
    }
}

/// Checks the version, and that no known member is repeated.
fn is_sound(tree: &Tree) -> bool {
    let known = ["jsonrpc", "id", "method", "params", "result", "error"];
    let repeated = |found: Found<'_>| found == Found::Repeated;
    let meta = tree.get("params").once().map_or(Found::Absent, |params| params.get("_meta"));
    !known.into_iter().any(|name| repeated(tree.get(name)))
        && !repeated(meta)
        && tree.get("jsonrpc").once().and_then(Tree::as_str) == Some("2.0")
}

fn id(tree: &Tree) -> Option<RequestId> {
    match tree {
        Tree::Scalar(Value::String(text)) => Some(RequestId::from(text.as_str())),
        Tree::Scalar(Value::Number(number)) => {
            number.as_i64().map(RequestId::from).or_else(|| number.as_u64().map(RequestId::from))
        }
        _ => None,
    }
}

fn batch(text: &str, tree: &Tree) {
    let ours = jsonrpc::batch(text);
    match tree {
        Tree::Array(items) if !items.is_empty() => {
            let texts = ours.unwrap_or_default();
            let read: Vec<_> = texts.into_iter().filter_map(Tree::of).collect();
            assert_eq!(&read, items, "{text:?}");
        }
        _ => assert!(ours.is_err(), "{text:?}"),
    }
}

fn reads_back(frame: &Frame<'_>) {
    let mut out = Vec::new();
    let written = match frame {
        Frame::Request { id, call } => jsonrpc::write_request(&mut out, id, &call.method, call.params),
        Frame::Notification(call) => jsonrpc::write_notification(&mut out, &call.method, call.params),
        Frame::Success { id, result } => jsonrpc::write_success(&mut out, id, *result),
        Frame::Failure { id, error } => return failure_reads_back(id.as_ref(), error),
        Frame::Batch(_) => return,
    };
    assert!(written.is_ok());
    let line = String::from_utf8(out).unwrap_or_default();
    assert_eq!(jsonrpc::read(&line).as_ref(), Ok(frame), "{line:?}");
}

fn failure_reads_back(id: Option<&RequestId>, error: &str) {
    let Ok(object) = serde_json::from_str::<ErrorObject>(error) else { return };
    let mut out = Vec::new();
    jsonrpc::write_failure(&mut out, id, &object);
    let line = String::from_utf8(out).unwrap_or_default();
    match jsonrpc::read(&line) {
        Ok(Frame::Failure { id: again, error }) => {
            assert_eq!(again.as_ref(), id);
            assert_eq!(serde_json::from_str::<ErrorObject>(error).ok(), Some(object));
        }
        other => assert!(other.is_err() && line.is_empty(), "{line:?} became {other:?}"),
    }
}
