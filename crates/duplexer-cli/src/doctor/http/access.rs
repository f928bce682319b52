//! Who can reach a server over HTTP: Host, Origin, CORS and media types.

use duplexer_oauth_base::address::is_loopback;
use reqwest::Method as Verb;

use super::super::report::Report;
use super::super::rules;
use super::wire::{Exchange, Reading, Reply, Wire};
use super::{Place, described};

/// A host that no server of this machine has.
const FOREIGN_HOST: &str = "rebound.example";
/// The origin of a page that has nothing to do with the server.
const FOREIGN_ORIGIN: &str = "http://rebound.example";

pub(super) async fn check(wire: &Wire, place: &Place, report: &mut Report) {
    let is_local = place.url.host().is_some_and(|host| is_loopback(&host));
    let with = |headers: &[(&'static str, &str)]| {
        let mut exchange = place.harmless();
        exchange.headers.extend(headers.iter().map(|(name, value)| (*name, (*value).to_owned())));
        exchange
    };
    let accepts = async |headers: &[(&'static str, &str)]| {
        wire.send(with(headers)).await.is_ok_and(|reply| reply.result().is_some())
    };
    let origin = accepts(&[("origin", FOREIGN_ORIGIN)]).await;
    let host = is_local && accepts(&[("host", FOREIGN_HOST)]).await;
    let both = host && origin && accepts(&[("host", FOREIGN_HOST), ("origin", FOREIGN_ORIGIN)]).await;
    if is_local {
        report.expect(rules::REBINDING, !both, || {
            format!("a request with `Host: {FOREIGN_HOST}` and `Origin: {FOREIGN_ORIGIN}` was served")
        });
        report.expect(rules::HOST, !host || both, || {
            format!("a request with `Host: {FOREIGN_HOST}` was served")
        });
    }
    report.expect(rules::ORIGIN, !origin || both, || {
        format!("a request with `Origin: {FOREIGN_ORIGIN}` was served")
    });
    let plain = accepts(&[("content-type", "text/plain")]).await;
    let simple =
        plain && origin && accepts(&[("content-type", "text/plain"), ("origin", FOREIGN_ORIGIN)]).await;
    report.expect(rules::SIMPLE_POST, !simple, || {
        format!("a body of text/plain with `Origin: {FOREIGN_ORIGIN}` was served")
    });
    report.expect(rules::MEDIA_TYPE, !plain || simple, || "a body of text/plain was served".to_owned());
    // Some servers accept parameters and no upper case: two rules, so that each finding names its cause.
    let spellings = [
        (rules::MEDIA_TYPE_PARAMETERS, "application/json; charset=utf-8"),
        (rules::MEDIA_TYPE_CASE, "Application/JSON"),
    ];
    for (rule, spelling) in spellings {
        let sent = wire.send(with(&[("content-type", spelling)])).await;
        let is_served = sent.as_ref().is_ok_and(|reply| reply.result().is_some());
        report.expect(rule, is_served, || format!("`Content-Type: {spelling}`: {}", described(&sent)));
    }
    cors(wire, place, report).await;
}

/// Checks what pages of other origins may do. A server without CORS allows nothing.
async fn cors(wire: &Wire, place: &Place, report: &mut Report) {
    let headers = vec![
        ("origin", FOREIGN_ORIGIN.to_owned()),
        ("access-control-request-method", "POST".to_owned()),
        ("access-control-request-headers", "authorization, content-type".to_owned()),
    ];
    let url = place.url.clone();
    let preflight = Exchange { verb: Verb::OPTIONS, url, headers, body: None, reading: Reading::Head };
    let Ok(preflight) = wire.send(preflight).await else { return };
    let allows = |reply: &Reply| {
        reply
            .header("access-control-allow-origin")
            .is_some_and(|origin| origin == "*" || origin == FOREIGN_ORIGIN)
    };
    let credentials = allows(&preflight)
        && preflight.header("access-control-allow-credentials").is_some_and(|value| value.trim() == "true");
    report.expect(rules::CORS_CREDENTIALS, !credentials, || {
        format!("a preflight with `Origin: {FOREIGN_ORIGIN}` is answered with Access-Control-Allow-Credentials: true")
    });
    let Some(session) = place.session.as_ref().filter(|session| session.id.is_some()) else { return };
    if session.allows_origins {
        report.expect(rules::CORS_EXPOSED, session.exposes_id, || {
            "the handshake has Access-Control-Allow-Origin, and Mcp-Session-Id is not exposed".to_owned()
        });
    }
}
