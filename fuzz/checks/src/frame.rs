//! Frames: the verdict of the reference implementation, and the round trip of written frames.

use duplexer_types::error::ErrorObject;
use duplexer_types::json::Json;
use duplexer_types::jsonrpc::{self, Malformed, RawCall, RawFrame, RequestId};
use serde::Deserialize;
use serde_json::Value;

use crate::tree::{Found, Reading, Tree};

/// Reads `data` as a frame and as a batch, and compares with the reference implementation.
pub fn frame(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let ours = jsonrpc::read(text);
    match Tree::read(text) {
        Reading::NotJson => assert_eq!(ours, Err(Malformed::NotJson), "{text:?}"),
        // Ours continues in order to find the id, so it can still find that the rest is not JSON.
        Reading::Limited => {}
        Reading::Tree(tree) => {
            assert_eq!(summary(&ours), expected(&tree), "{text:?}");
            batch(text, &tree);
        }
    }
    if let Ok(frame) = ours {
        reads_back(&frame);
        if let RawFrame::Request { call, .. } | RawFrame::Notification(call) = &frame {
            decodes(call);
        }
    }
}

/// Params type with the kinds of members that params types have.
#[derive(Debug, PartialEq, Deserialize)]
struct Params {
    name: Option<String>,
    #[serde(default)]
    arguments: Option<Json>,
    progress: Option<f64>,
    #[serde(rename = "requestId")]
    request_id: Option<RequestId>,
}

/// Decoding from the frame equals decoding the same text with `serde_json`.
fn decodes(call: &RawCall<'_>) {
    let text = call.params.unwrap_or("{}");
    assert_eq!(call.decode::<Tree>().ok(), Tree::of(text), "{text:?}");
    assert_eq!(call.decode::<Params>().ok(), serde_json::from_str(text).ok(), "{text:?}");
}

/// Verdict without borrowed text, common to both implementations.
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

fn summary(read: &Result<RawFrame<'_>, Malformed>) -> Verdict {
    match read {
        Ok(RawFrame::Request { id, call }) => Verdict::Request(id.clone(), Call::of(call)),
        Ok(RawFrame::Notification(call)) => Verdict::Notification(Call::of(call)),
        Ok(RawFrame::Success { id, result }) => Verdict::Success(id.clone(), Tree::of(result)),
        Ok(RawFrame::Failure { id, error }) => Verdict::Failure(id.clone(), Tree::of(error)),
        Ok(RawFrame::Batch(_)) => Verdict::Batch,
        Err(Malformed::NotJson) => Verdict::NotJson,
        Err(Malformed::Invalid { id, .. }) => Verdict::Invalid(id.clone()),
        Err(Malformed::Unanswerable { .. }) => Verdict::Unanswerable,
    }
}

impl Call {
    fn of(call: &RawCall<'_>) -> Self {
        Self {
            method: call.method.clone().into_owned(),
            params: call.params.and_then(Tree::of),
            meta: call.meta.and_then(Tree::of),
        }
    }
}

/// The rules of a frame, over a tree.
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

/// Whether the version is right and no known member is repeated.
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

fn reads_back(frame: &RawFrame<'_>) {
    let mut out = Vec::new();
    let written = match frame {
        RawFrame::Request { id, call } => jsonrpc::write_request(&mut out, id, &call.method, call.params),
        RawFrame::Notification(call) => jsonrpc::write_notification(&mut out, &call.method, call.params),
        RawFrame::Success { id, result } => jsonrpc::write_success(&mut out, id, *result),
        RawFrame::Failure { id, error } => return failure_reads_back(id.as_ref(), error),
        RawFrame::Batch(_) => return,
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
        Ok(RawFrame::Failure { id: again, error }) => {
            assert_eq!(again.as_ref(), id);
            assert_eq!(serde_json::from_str::<ErrorObject>(error).ok(), Some(object));
        }
        other => assert!(other.is_err() && line.is_empty(), "{line:?} became {other:?}"),
    }
}
