//! The handshake era over HTTP: sessions, revisions, streams.

use duplexer::types::error::ErrorCode;
use duplexer::types::headers;
use duplexer::types::methods::Method;
use duplexer::types::text::shown;
use duplexer::types::version::{Era, ProtocolVersion};
use reqwest::{Method as Verb, StatusCode};
use serde_json::{Value, json};

use super::super::messages::{self, NO_VERSION};
use super::super::report::Report;
use super::super::rules;
use super::wire::{Broken, Exchange, Reading, Reply, Wire};
use super::{Place, common, described, post};

/// A session that no server has.
const NO_SESSION: &str = "duplexer-doctor-no-such-session";

/// An open session.
pub(super) struct Session {
    pub(super) id: Option<String>,
    /// The revision that the server has chosen.
    version: String,
    pub(super) result: Value,
    /// Whether the response to the handshake lets pages of other origins read it.
    pub(super) allows_origins: bool,
    /// Whether such pages can read the session id.
    pub(super) exposes_id: bool,
}

impl Session {
    pub(super) fn new(reply: &Reply, result: Value) -> Self {
        let version = result.get("protocolVersion").and_then(Value::as_str);
        let version = version.unwrap_or(ProtocolVersion::LATEST_HANDSHAKE.as_str()).to_owned();
        let exposed = reply.header("access-control-expose-headers").unwrap_or_default();
        let exposes_id =
            exposed.split(',').any(|name| headers::SESSION_ID.is(name.trim()) || name.trim() == "*");
        Self {
            id: reply.header(headers::SESSION_ID.lower).map(str::to_owned),
            version,
            result,
            allows_origins: reply.header("access-control-allow-origin").is_some(),
            exposes_id,
        }
    }

    /// Returns the headers of a message of the session.
    pub(super) fn headers(&self) -> Vec<(&'static str, String)> {
        let mut all = vec![(headers::PROTOCOL_VERSION.lower, self.version.clone())];
        all.extend(self.id.clone().map(|id| (headers::SESSION_ID.lower, id)));
        all
    }
}

/// Checks an open session.
pub(super) async fn check(wire: &Wire, place: &Place, session: &Session, report: &mut Report) {
    let faults = messages::handshake_faults(&session.result);
    report.expect(rules::INITIALIZE, faults.is_empty(), || {
        format!("{}: {}", faults.join(", "), messages::brief(&session.result))
    });
    if let Some(id) = &session.id {
        let is_visible = !id.is_empty() && id.bytes().all(|byte| (0x21..=0x7e).contains(&byte));
        report.expect(rules::SESSION_ID, is_visible, || format!("the id {}", shown(&format!("{id:?}"))));
    }
    negotiation(wire, place, report).await;
    initialized(wire, place, session, report).await;
    requests(wire, place, session, report).await;
    sessions(wire, place, session, report).await;
    stream(wire, place, session, report).await;
}

/// An unknown revision is answered with another one.
async fn negotiation(wire: &Wire, place: &Place, report: &mut Report) {
    let id = json!("negotiation");
    let sent = wire.send(post(&place.url, &messages::initialize(&id, NO_VERSION), Vec::new())).await;
    let offered = sent.as_ref().ok().and_then(Reply::result).and_then(|result| result.get("protocolVersion"));
    let is_known =
        offered.and_then(Value::as_str).is_some_and(|text| text.parse::<ProtocolVersion>().is_ok());
    report.expect(rules::NEGOTIATION, is_known, || {
        format!("the handshake with the revision {NO_VERSION}: {}", described(&sent))
    });
    // The session is not needed.
    if let Ok(reply) = &sent
        && let Some(result) = reply.result()
    {
        let _ = wire.send(deletion(place, &Session::new(reply, result.clone()))).await;
    }
}

async fn initialized(wire: &Wire, place: &Place, session: &Session, report: &mut Report) {
    let sent = wire.send(post(&place.url, &messages::initialized(), session.headers())).await;
    let is_accepted = |reply: &Reply| reply.status == StatusCode::ACCEPTED && reply.text.trim().is_empty();
    report.expect(rules::NOTIFICATION_STATUS, sent.as_ref().is_ok_and(is_accepted), || {
        format!("the notification that the session is open: {}", described(&sent))
    });
}

async fn requests(wire: &Wire, place: &Place, session: &Session, report: &mut Report) {
    let ask = async |id: &Value, method: Option<Method>, report: &mut Report| {
        let body = messages::request(Era::Handshake, id, method, json!({}));
        let sent = wire.send(post(&place.url, &body, session.headers())).await;
        if let Ok(reply) = &sent {
            common(reply, id, report);
        }
        sent
    };
    let ping = ask(&json!("alive"), Some(Method::Ping), report).await;
    report
        .expect(rules::PING, ping.as_ref().is_ok_and(|reply| reply.result().is_some()), || described(&ping));
    let unknown = ask(&json!(7), None, report).await;
    let code = unknown.as_ref().ok().and_then(Reply::error_code);
    report.expect(rules::UNKNOWN_METHOD, code == Some(ErrorCode::METHOD_NOT_FOUND.0), || {
        format!("a request of an unknown method: {}", described(&unknown))
    });
    let mut garbage = post(&place.url, &Value::Null, session.headers());
    garbage.body = Some("{\"jsonrpc\": \"2.0\", ".to_owned());
    let sent = wire.send(garbage).await;
    report.expect(
        rules::PARSE_ERROR,
        sent.as_ref().is_ok_and(|reply| reply.status.is_client_error()),
        || format!("a body that is no JSON: {}", described(&sent)),
    );
    let is_answered =
        |sent: &Result<Reply, Broken>| sent.as_ref().is_ok_and(|reply| reply.result().is_some());
    let after = ask(&json!("after"), Some(Method::Ping), report).await;
    let survives = is_answered(&after) || !is_answered(&ping);
    report.expect(rules::SURVIVES_GARBAGE, survives, || {
        format!("a ping after a body that is no JSON: {}", described(&after))
    });
    let mut versions = session.headers();
    versions.retain(|(name, _)| *name != headers::PROTOCOL_VERSION.lower);
    versions.push((headers::PROTOCOL_VERSION.lower, NO_VERSION.to_owned()));
    let body = messages::request(Era::Handshake, &json!("version"), Some(Method::Ping), json!({}));
    let sent = wire.send(post(&place.url, &body, versions)).await;
    report.expect(
        rules::VERSION_HEADER,
        sent.as_ref().is_ok_and(|reply| reply.status.is_client_error()),
        || format!("`MCP-Protocol-Version: {NO_VERSION}`: {}", described(&sent)),
    );
}

/// Requests of an unknown session, and without the one that the server has opened.
async fn sessions(wire: &Wire, place: &Place, session: &Session, report: &mut Report) {
    if session.id.is_none() {
        return;
    }
    let body = messages::request(Era::Handshake, &json!("session"), Some(Method::Ping), json!({}));
    let version = (headers::PROTOCOL_VERSION.lower, session.version.clone());
    let unknown = vec![version.clone(), (headers::SESSION_ID.lower, NO_SESSION.to_owned())];
    let sent = wire.send(post(&place.url, &body, unknown)).await;
    let is_absent = sent.as_ref().is_ok_and(|reply| reply.status == StatusCode::NOT_FOUND);
    report.expect(rules::SESSION_UNKNOWN, is_absent, || {
        format!("a request with an invented session id: {}", described(&sent))
    });
    let sent = wire.send(post(&place.url, &body, vec![version])).await;
    let is_refused = sent.as_ref().is_ok_and(|reply| reply.status.is_client_error());
    report.expect(rules::SESSION_REQUIRED, is_refused, || {
        format!("a request without the session id: {}", described(&sent))
    });
}

async fn stream(wire: &Wire, place: &Place, session: &Session, report: &mut Report) {
    let mut all = session.headers();
    all.push(("accept", "text/event-stream".to_owned()));
    let url = place.url.clone();
    let get = Exchange { verb: Verb::GET, url, headers: all, body: None, reading: Reading::Head };
    let sent = wire.send(get).await;
    let is_sound = sent.as_ref().is_ok_and(|reply| {
        let is_stream = reply.media_type().as_deref() == Some("text/event-stream");
        reply.status == StatusCode::METHOD_NOT_ALLOWED || reply.status.is_success() && is_stream
    });
    report.expect(rules::GET_STREAM, is_sound, || {
        let media_type = sent.as_ref().ok().and_then(Reply::media_type).unwrap_or_default();
        format!("GET: {} {media_type}", described(&sent).replace(" without a body", ""))
    });
}

fn deletion(place: &Place, session: &Session) -> Exchange {
    let (url, headers) = (place.url.clone(), session.headers());
    Exchange { verb: Verb::DELETE, url, headers, body: None, reading: Reading::Answer }
}

/// Ends the session.
pub(super) async fn end(wire: &Wire, place: &Place, session: &Session, report: &mut Report) {
    if session.id.is_none() {
        return;
    }
    let sent = wire.send(deletion(place, session)).await;
    let is_ended = sent.as_ref().is_ok_and(|reply| reply.status.is_success());
    report.expect(rules::SESSION_END, is_ended, || format!("DELETE: {}", described(&sent)));
    if !is_ended {
        return;
    }
    let body = messages::request(Era::Handshake, &json!("ended"), Some(Method::Ping), json!({}));
    let sent = wire.send(post(&place.url, &body, session.headers())).await;
    let is_absent = sent.as_ref().is_ok_and(|reply| reply.status == StatusCode::NOT_FOUND);
    report.expect(rules::SESSION_UNKNOWN, is_absent, || {
        format!("a request of a session that was ended: {}", described(&sent))
    });
}
