//! The envelope era over HTTP: mirrored headers, revisions, statuses.

use duplexer::types::error::ErrorCode;
use duplexer::types::headers;
use duplexer::types::methods::Method;
use duplexer::types::version::{Era, ProtocolVersion};
use reqwest::StatusCode;
use serde_json::{Value, json};

use super::super::messages::{self, NO_VERSION};
use super::super::report::Report;
use super::super::rules::{self, Rule};
use super::wire::{Broken, Reply, Wire};
use super::{Place, common, described, envelope_post, post};

pub(super) async fn check(wire: &Wire, place: &Place, discovered: &Value, report: &mut Report) {
    let faults = messages::discovery_faults(discovered);
    report.expect(rules::DISCOVER, faults.is_empty(), || {
        format!("{}: {}", faults.join(", "), messages::brief(discovered))
    });
    report.expect(rules::RESULT_TYPE, discovered.get("resultType").is_some_and(Value::is_string), || {
        format!("the discovery: {}", messages::brief(discovered))
    });
    mirrored(wire, place, report).await;
    versions(wire, place, report).await;
    let id = json!(8);
    let sent = wire.send(envelope_post(&place.url, &id, None, json!({}))).await;
    if let Ok(reply) = &sent {
        common(reply, &id, report);
    }
    let code = sent.as_ref().ok().and_then(Reply::error_code);
    report.expect(rules::UNKNOWN_METHOD, code == Some(number(ErrorCode::METHOD_NOT_FOUND)), || {
        format!("a request of an unknown method: {}", described(&sent))
    });
    let is_absent = sent.as_ref().is_ok_and(|reply| reply.status == StatusCode::NOT_FOUND);
    report.expect(rules::UNKNOWN_METHOD_STATUS, is_absent, || {
        format!("a request of an unknown method: {}", described(&sent))
    });
}

fn number(code: ErrorCode) -> i64 {
    code.0
}

/// Headers that contradict the body.
async fn mirrored(wire: &Wire, place: &Place, report: &mut Report) {
    let mut other = envelope_post(&place.url, &json!("mirrored"), Some(Method::ServerDiscover), json!({}));
    other.headers.push((headers::METHOD.lower, Method::ToolsList.name().to_owned()));
    let sent = wire.send(other).await;
    refused(
        rules::HEADER_MISMATCH,
        ErrorCode::HEADER_MISMATCH,
        "Mcp-Method of another method",
        &sent,
        report,
    );
}

/// Requests of a revision that does not exist, and without their envelope.
async fn versions(wire: &Wire, place: &Place, report: &mut Report) {
    let discover = Some(Method::ServerDiscover);
    let mut body = messages::request(Era::Envelope, &json!("version"), discover, json!({}));
    body["params"]["_meta"] = messages::meta(NO_VERSION);
    let with = |version: &str| {
        vec![
            (headers::PROTOCOL_VERSION.lower, version.to_owned()),
            (headers::METHOD.lower, messages::name(discover).to_owned()),
        ]
    };
    let sent = wire.send(post(&place.url, &body, with(NO_VERSION))).await;
    let what = "a request of the revision 1900-01-01";
    refused(rules::UNSUPPORTED_VERSION, ErrorCode::UNSUPPORTED_PROTOCOL_VERSION, what, &sent, report);
    let response = sent.as_ref().ok().and_then(Reply::response);
    if let Some(error) = response.and_then(|response| response.get("error")) {
        let supported = error.get("data").and_then(|data| data.get("supported")).and_then(Value::as_array);
        report.expect(rules::UNSUPPORTED_VERSION, supported.is_some_and(|list| !list.is_empty()), || {
            format!("the refusal of a revision does not list the supported ones: {}", messages::brief(error))
        });
    }
    let body = messages::request(Era::Handshake, &json!("meta"), discover, json!({}));
    let sent = wire.send(post(&place.url, &body, with(ProtocolVersion::LATEST_ENVELOPE.as_str()))).await;
    refused(rules::META_REQUIRED, ErrorCode::INVALID_PARAMS, "a request without `_meta`", &sent, report);
}

/// Checks that a request was refused with status 400 and an error.
fn refused(
    rule: &'static Rule,
    code: ErrorCode,
    what: &str,
    sent: &Result<Reply, Broken>,
    report: &mut Report,
) {
    let is_refused = sent.as_ref().is_ok_and(|reply| {
        reply.status == StatusCode::BAD_REQUEST && reply.error_code() == Some(number(code))
    });
    report.expect(rule, is_refused, || format!("{what}: {}", described(sent)));
}
