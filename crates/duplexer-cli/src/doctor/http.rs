//! Checks of a server at a URL.

mod access;
mod envelope;
mod handshake;
mod login;
mod place;
mod wire;

use std::time::Duration;

use duplexer::types::headers;
use duplexer::types::methods::Method;
use duplexer::types::version::{Era, ProtocolVersion};
use reqwest::Method as Verb;
use serde_json::{Value, json};
use url::Url;

use super::messages::{self, Answer};
use super::offers::{self, Channel};
use super::report::Report;
use super::{latency, rules};
use crate::failure::Failure;
use handshake::Session;
use wire::{Broken, Exchange, Reading, Reply, Wire};

/// What a request accepts.
const ACCEPT: &str = "application/json, text/event-stream";
const JSON: &str = "application/json";

/// A server that has been reached, and what it speaks.
struct Place {
    url: Url,
    /// The session of the handshake era.
    session: Option<Session>,
    /// The result of the discovery.
    discovered: Option<Value>,
}

/// Checks a server, with the headers of the user.
pub(super) async fn check(
    url: &str,
    user_headers: &[(String, String)],
    limit: Duration,
    report: &mut Report,
) -> Result<(), Failure> {
    let wire = Wire::new(user_headers, limit)?;
    let url = Url::parse(url).map_err(|error| Failure::usage(format!("`{url}` is not a URL: {error}")))?;
    let Some(place) = place::find(&wire, url, report).await else { return Ok(()) };
    place::slash(&wire, &place, report).await;
    access::check(&wire, &place, report).await;
    if let Some(session) = &place.session {
        handshake::check(&wire, &place, session, report).await;
    }
    if let Some(discovered) = &place.discovered {
        envelope::check(&wire, &place, discovered, report).await;
    }
    let mut link = Link::new(wire.clone(), &place);
    offers::check(&mut link, place.capabilities(), report).await;
    let method = if link.era == Era::Envelope { Method::ServerDiscover } else { Method::Ping };
    latency::check(&mut link, method, report).await;
    if let Some(session) = &place.session {
        handshake::end(&wire, &place, session, report).await;
    }
    Ok(())
}

impl Place {
    fn capabilities(&self) -> &Value {
        let result =
            self.discovered.as_ref().or_else(|| self.session.as_ref().map(|session| &session.result));
        result.and_then(|result| result.get("capabilities")).unwrap_or(&Value::Null)
    }

    /// Returns a request that a sound server answers with a result, and that changes nothing.
    fn harmless(&self) -> Exchange {
        match &self.session {
            Some(session) if self.discovered.is_none() => {
                let body =
                    messages::request(Era::Handshake, &json!("harmless"), Some(Method::Ping), json!({}));
                post(&self.url, &body, session.headers())
            }
            _ => envelope_post(&self.url, &json!("harmless"), Some(Method::ServerDiscover), json!({})),
        }
    }
}

/// Builds the POST of a message.
fn post(url: &Url, message: &Value, more: Vec<(&'static str, String)>) -> Exchange {
    let mut headers = vec![("accept", ACCEPT.to_owned()), ("content-type", JSON.to_owned())];
    headers.extend(more);
    let (url, body) = (url.clone(), Some(message.to_string()));
    Exchange { verb: Verb::POST, url, headers, body, reading: Reading::Answer }
}

/// Builds the POST of a request of the envelope era.
fn envelope_post(url: &Url, id: &Value, method: Option<Method>, params: Value) -> Exchange {
    let mut more = vec![
        (headers::PROTOCOL_VERSION.lower, ProtocolVersion::LATEST_ENVELOPE.as_str().to_owned()),
        (headers::METHOD.lower, messages::name(method).to_owned()),
    ];
    let mirrored = method.and_then(Method::mirrored_field).and_then(|field| params.get(field)?.as_str());
    more.extend(mirrored.map(|value| (headers::NAME.lower, headers::encode(value).into_owned())));
    post(url, &messages::request(Era::Envelope, id, method, params), more)
}

/// Checks what holds for every response to a request with this id.
fn common(reply: &Reply, id: &Value, report: &mut Report) {
    let media_type = reply.media_type();
    let is_known = matches!(media_type.as_deref(), Some("application/json" | "text/event-stream"));
    if reply.status.is_success() {
        report.expect(rules::CONTENT_TYPE, is_known, || match &media_type {
            Some(other) => format!("the answer to a request is {other}"),
            None => "the answer to a request has no Content-Type".to_owned(),
        });
    }
    for message in &reply.messages {
        match messages::fault(message) {
            Some(fault) => report.find(rules::JSONRPC, fault),
            None => report.pass(rules::JSONRPC),
        }
    }
    if let Some(answered) =
        reply.response().and_then(|response| response.get("id")).filter(|id| !id.is_null())
    {
        report.expect(rules::RESPONSE_ID, answered == id, || {
            format!("the request {id} was answered as {answered}")
        });
    }
}

/// Requests in the newest era that a server speaks.
struct Link<'a> {
    wire: Wire,
    place: &'a Place,
    era: Era,
    next: u64,
}

impl<'a> Link<'a> {
    fn new(wire: Wire, place: &'a Place) -> Self {
        let era = if place.discovered.is_some() { Era::Envelope } else { Era::Handshake };
        Self { wire, place, era, next: 1 }
    }
}

impl Channel for Link<'_> {
    fn era(&self) -> Era {
        self.era
    }

    async fn ask(&mut self, method: Method, params: Value) -> Answer {
        let id = json!(self.next);
        self.next += 1;
        let exchange = match (self.era, &self.place.session) {
            (Era::Handshake, Some(session)) => {
                let body = messages::request(Era::Handshake, &id, Some(method), params);
                post(&self.place.url, &body, session.headers())
            }
            _ => envelope_post(&self.place.url, &id, Some(method), params),
        };
        match self.wire.send(exchange).await {
            Ok(reply) => reply.answer(),
            Err(broken) => Answer::Nothing(broken.describe()),
        }
    }
}

/// Describes a response, or why there is none.
fn described(sent: &Result<Reply, Broken>) -> String {
    match sent {
        Ok(reply) => reply.describe(),
        Err(broken) => broken.describe(),
    }
}
