//! Whether there is a server at a URL, and what it speaks: redirects, slashes, wrong paths.

use duplexer::types::methods::Method;
use duplexer::types::text::shown;
use duplexer::types::version::ProtocolVersion;
use reqwest::{Method as Verb, StatusCode};
use serde_json::json;
use url::Url;

use super::super::messages::{self, identity};
use super::super::report::Report;
use super::super::rules;
use super::handshake::Session;
use super::wire::{Broken, Exchange, Reading, Reply, Wire};
use super::{ACCEPT, Place, common, described, envelope_post, login, post};

/// Paths that are tried if there is nothing at the given one.
const USUAL_PATHS: [&str; 3] = ["/mcp", "/mcp/", "/"];

/// Finds out what a server speaks. Returns `None` if nothing more can be checked.
pub(super) async fn find(wire: &Wire, url: Url, report: &mut Report) -> Option<Place> {
    let first = wire.send(discovery(&url)).await;
    match &first {
        Err(broken @ (Broken::Unreachable(_) | Broken::Late(_))) => {
            report.find(rules::REACHABLE, format!("POST {url}: {}", broken.describe()));
            return None;
        }
        Err(Broken::Interrupted(_) | Broken::TooLarge) => report.pass(rules::REACHABLE),
        Ok(reply) => {
            report.pass(rules::REACHABLE);
            if reply.status == StatusCode::UNAUTHORIZED {
                return guarded(wire, &url, reply, report).await;
            }
        }
    }
    let (url, first) = redirected(wire, url, first, report).await?;
    if wire.has_token() {
        login::check_open(wire, &url, report).await;
    }
    let place = speak(wire, url, first, report).await;
    if place.session.is_none() && place.discovered.is_none() {
        return None;
    }
    report.pass(rules::ENDPOINT);
    report.pass(rules::ERA);
    Some(place)
}

fn discovery(url: &Url) -> Exchange {
    envelope_post(url, &json!("discover"), Some(Method::ServerDiscover), json!({}))
}

fn opening(url: &Url) -> Exchange {
    post(
        url,
        &messages::initialize(&json!("opening"), ProtocolVersion::LATEST_HANDSHAKE.as_str()),
        Vec::new(),
    )
}

/// The server requires a login that the user has not given, or refuses the one that was given.
async fn guarded(wire: &Wire, url: &Url, reply: &Reply, report: &mut Report) -> Option<Place> {
    login::check(url, reply, report).await;
    let what = if wire.has_token() { "the given token was refused" } else { "the server requires a login" };
    report.find(
        rules::NOT_CHECKED,
        format!("{what} ({}), so that nothing behind it was checked", reply.status),
    );
    None
}

/// Follows one redirect within the origin, so that the rest can be checked.
async fn redirected(
    wire: &Wire,
    url: Url,
    first: Result<Reply, Broken>,
    report: &mut Report,
) -> Option<(Url, Result<Reply, Broken>)> {
    let Ok(reply) = &first else { return Some((url, first)) };
    if !reply.status.is_redirection() {
        report.pass(rules::REDIRECT);
        return Some((url, first));
    }
    let to = reply.header("location").and_then(|location| url.join(location).ok());
    report.find(rules::REDIRECT, format!("POST {url}: {}", reply.describe()));
    let target = to.filter(|to| to.origin() == url.origin())?;
    let again = wire.send(discovery(&target)).await;
    match &again {
        Ok(reply) if reply.status.is_redirection() => None,
        _ => Some((target, again)),
    }
}

async fn speak(wire: &Wire, url: Url, first: Result<Reply, Broken>, report: &mut Report) -> Place {
    let discovered = first.as_ref().ok().and_then(Reply::result).cloned();
    if let Ok(reply) = first.as_ref()
        && discovered.is_some()
    {
        common(reply, &json!("discover"), report);
    }
    let opened = wire.send(opening(&url)).await;
    let session = opened.as_ref().ok().and_then(|reply| {
        let result = reply.result()?.clone();
        common(reply, &json!("opening"), report);
        Some(Session::new(reply, result))
    });
    let info = discovered
        .as_ref()
        .and_then(|result| result.get("_meta")?.get(duplexer::types::meta::key::SERVER_INFO));
    let info = info.or_else(|| session.as_ref().and_then(|session| session.result.get("serverInfo")));
    report.server = identity(info);
    match (&discovered, &session) {
        (None, None) => nothing(wire, &url, &first, &opened, report).await,
        (Some(_), None) => {
            report.find(rules::HANDSHAKE_ERA, format!("the handshake: {}", described(&opened)));
        }
        (None, Some(_)) => {
            report.pass(rules::HANDSHAKE_ERA);
            report.find(rules::ENVELOPE_ERA, format!("the discovery: {}", described(&first)));
        }
        (Some(_), Some(_)) => {
            report.pass(rules::HANDSHAKE_ERA);
            report.pass(rules::ENVELOPE_ERA);
        }
    }
    Place { url, session, discovered }
}

/// No era is spoken here: says what there is instead, and where there may be more.
async fn nothing(
    wire: &Wire,
    url: &Url,
    first: &Result<Reply, Broken>,
    opened: &Result<Reply, Broken>,
    report: &mut Report,
) {
    let is_absent = |sent: &Result<Reply, Broken>| {
        sent.as_ref()
            .is_ok_and(|reply| matches!(reply.status.as_u16(), 404 | 405) && reply.response().is_none())
    };
    if !is_absent(opened) {
        let what = format!("the handshake: {}; the discovery: {}", described(opened), described(first));
        report.find(rules::ERA, what);
        return;
    }
    let mut seen = format!("POST {url}: {}", described(opened));
    if let Some(other) = elsewhere(wire, url).await {
        seen = format!("{seen}; there is a server at {other}");
    } else if is_http_sse(wire, url).await {
        seen.push_str("; GET opens a stream as in HTTP+SSE of 2024-11-05, which new hosts do not use");
    }
    report.find(rules::ENDPOINT, seen);
}

/// Returns a usual path of the same origin where a server answers.
async fn elsewhere(wire: &Wire, url: &Url) -> Option<Url> {
    let mut candidates = vec![slashed(url)];
    candidates.extend(USUAL_PATHS.iter().map(|path| {
        let mut other = url.clone();
        other.set_path(path);
        other
    }));
    for other in candidates.into_iter().filter(|other| other != url) {
        let sent = wire.send(opening(&other)).await;
        if sent.is_ok_and(|reply| reply.result().is_some() || reply.status == StatusCode::UNAUTHORIZED) {
            return Some(other);
        }
    }
    None
}

async fn is_http_sse(wire: &Wire, url: &Url) -> bool {
    let headers = vec![("accept", "text/event-stream".to_owned())];
    let get = Exchange { verb: Verb::GET, url: url.clone(), headers, body: None, reading: Reading::Head };
    let sent = wire.send(get).await;
    sent.is_ok_and(|reply| {
        reply.status.is_success() && reply.media_type().as_deref() == Some("text/event-stream")
    })
}

/// Returns the URL with a slash at its end, or without the one that it has.
fn slashed(url: &Url) -> Url {
    let path = match url.path().strip_suffix('/') {
        Some(path) => path.to_owned(),
        None => format!("{}/", url.path()),
    };
    let mut other = url.clone();
    other.set_path(&path);
    other
}

/// Checks the URL with and without a slash at its end.
pub(super) async fn slash(wire: &Wire, place: &Place, report: &mut Report) {
    let other = slashed(&place.url);
    if other == place.url {
        return;
    }
    let mut exchange = place.harmless();
    exchange.url = other.clone();
    exchange.headers.push(("accept", ACCEPT.to_owned()));
    let sent = wire.send(exchange).await;
    let is_served = sent.as_ref().is_ok_and(|reply| reply.result().is_some());
    report.expect(rules::TRAILING_SLASH, is_served, || {
        format!("POST {}: {}", shown(other.as_str()), described(&sent))
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slash_is_added_or_removed() {
        let check = |url: &str, expected: &str| {
            assert_eq!(slashed(&Url::parse(url).unwrap()).as_str(), expected);
        };
        check("http://a/mcp", "http://a/mcp/");
        check("http://a/mcp/?b", "http://a/mcp?b");
        check("http://a", "http://a/");
    }
}
