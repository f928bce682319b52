//! HTTP requests of `doctor`: without redirects, with limits on size and time.

use std::time::Duration;

use duplexer::types::text::shown;
use duplexer_oauth_base::fetch;
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use reqwest::{Client, Method as Verb, Response, StatusCode};
use serde_json::Value;
use tokio::time::timeout;
use url::Url;

use super::super::messages::{Answer, is_response, parse};
use crate::events::events;
use crate::failure::{Exit, Failure, chain};

/// Maximum bytes of a body that are read.
const MAX_BODY: usize = 8 * 1024 * 1024;

/// A client with the headers of the user.
#[derive(Clone, Debug)]
pub(super) struct Wire {
    client: Client,
    headers: HeaderMap,
    limit: Duration,
}

/// One request. A header of it replaces that of the user.
#[derive(Clone, Debug)]
pub(super) struct Exchange {
    pub(super) verb: Verb,
    pub(super) url: Url,
    pub(super) headers: Vec<(&'static str, String)>,
    pub(super) body: Option<String>,
    pub(super) reading: Reading,
}

/// What is read of a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reading {
    /// The body, or a stream up to the response that it carries.
    Answer,
    /// Status and headers.
    Head,
}

/// A response.
#[derive(Debug)]
pub(super) struct Reply {
    pub(super) status: StatusCode,
    pub(super) headers: HeaderMap,
    pub(super) text: String,
    /// The messages of the body or the stream.
    pub(super) messages: Vec<Value>,
}

/// Why there is no response.
#[derive(Debug)]
pub(super) enum Broken {
    Unreachable(String),
    Interrupted(String),
    Late(Duration),
    TooLarge,
}

impl Broken {
    pub(super) fn describe(&self) -> String {
        match self {
            Self::Unreachable(cause) => format!("no connection: {cause}"),
            Self::Interrupted(cause) => format!("the connection broke off: {cause}"),
            Self::Late(limit) => format!("no complete answer within {} s", limit.as_secs_f64()),
            Self::TooLarge => format!("an answer of more than {MAX_BODY} bytes"),
        }
    }
}

impl Wire {
    pub(super) fn new(headers: &[(String, String)], limit: Duration) -> Result<Self, Failure> {
        let builder = fetch::builder(super::super::USER_AGENT).timeout(limit);
        let client = builder.build().map_err(|error| Failure::new(Exit::Connect, chain(&error)))?;
        let mut all = HeaderMap::new();
        for (name, value) in headers {
            match (HeaderName::try_from(name), HeaderValue::try_from(value)) {
                (Ok(name), Ok(value)) => drop(all.insert(name, value)),
                _ => {
                    return Err(Failure::usage(format!("'{name}' is not a header, or its value is not one")));
                }
            }
        }
        Ok(Self { client, headers: all, limit })
    }

    /// Returns the same client without a header of the user.
    pub(super) fn without(&self, name: HeaderName) -> Self {
        let mut other = self.clone();
        other.headers.remove(name);
        other
    }

    pub(super) fn has_token(&self) -> bool {
        self.headers.contains_key(reqwest::header::AUTHORIZATION)
    }

    /// Sends a request and reads its response.
    pub(super) async fn send(&self, exchange: Exchange) -> Result<Reply, Broken> {
        let sent = timeout(self.limit, self.exchange(exchange)).await;
        sent.unwrap_or(Err(Broken::Late(self.limit)))
    }

    async fn exchange(&self, exchange: Exchange) -> Result<Reply, Broken> {
        let mut headers = self.headers.clone();
        for (name, value) in exchange.headers {
            if let (Ok(name), Ok(value)) = (HeaderName::try_from(name), HeaderValue::try_from(value)) {
                headers.insert(name, value);
            }
        }
        let request = self.client.request(exchange.verb, exchange.url).headers(headers);
        let request = match exchange.body {
            Some(body) => request.body(body),
            None => request,
        };
        let mut response = request.send().await.map_err(|error| self.broken(error))?;
        let (status, headers) = (response.status(), std::mem::take(response.headers_mut()));
        let mut reply = Reply { status, headers, text: String::new(), messages: Vec::new() };
        if exchange.reading == Reading::Answer {
            self.read(&mut reply, response).await?;
        }
        Ok(reply)
    }

    async fn read(&self, reply: &mut Reply, mut response: Response) -> Result<(), Broken> {
        let is_stream = reply.media_type().as_deref() == Some("text/event-stream");
        let mut bytes: Vec<u8> = Vec::new();
        let mut parsed = 0;
        while let Some(piece) = response.chunk().await.map_err(|error| self.broken(error))? {
            if bytes.len() + piece.len() > MAX_BODY {
                return Err(Broken::TooLarge);
            }
            bytes.extend_from_slice(&piece);
            if is_stream {
                let mut data = Vec::new();
                parsed += events(bytes.get(parsed..).unwrap_or_default(), &mut data);
                reply.messages.extend(data.iter().filter_map(|text| parse(text).ok()));
                if reply.messages.iter().any(is_response) {
                    break;
                }
            }
        }
        reply.text = String::from_utf8_lossy(&bytes).into_owned();
        if !is_stream && let Ok(message) = parse(&reply.text) {
            reply.messages = match message {
                Value::Array(batch) => batch,
                one => vec![one],
            };
        }
        Ok(())
    }

    fn broken(&self, error: reqwest::Error) -> Broken {
        let is_late = error.is_timeout();
        let is_connect = error.is_connect();
        let cause = chain(&error.without_url());
        match (is_late, is_connect) {
            (true, _) => Broken::Late(self.limit),
            (_, true) => Broken::Unreachable(cause),
            _ => Broken::Interrupted(cause),
        }
    }
}

impl Reply {
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).and_then(|value| value.to_str().ok())
    }

    /// Returns type and subtype in lower case.
    pub(super) fn media_type(&self) -> Option<String> {
        let value = self.header(CONTENT_TYPE.as_str())?;
        Some(value.split(';').next().unwrap_or_default().trim().to_ascii_lowercase())
    }

    /// Returns the response of the protocol, if there is one.
    pub(super) fn response(&self) -> Option<&Value> {
        self.messages.iter().find(|message| is_response(message))
    }

    /// Returns the result, if the request was successful.
    pub(super) fn result(&self) -> Option<&Value> {
        self.response().filter(|_| self.status.is_success())?.get("result")
    }

    pub(super) fn error_code(&self) -> Option<i64> {
        self.response()?.get("error")?.get("code")?.as_i64()
    }

    pub(super) fn answer(&self) -> Answer {
        match self.response() {
            Some(response) => Answer::of(response),
            None => Answer::Nothing(self.describe()),
        }
    }

    /// Describes the response in a few words.
    pub(super) fn describe(&self) -> String {
        let status = self.status;
        let body = shown(self.text.trim());
        match (self.header("location"), body.is_empty()) {
            (Some(to), _) if status.is_redirection() => format!("{status} to {}", shown(to)),
            (_, true) => format!("{status} without a body"),
            _ => format!("{status} with {body}"),
        }
    }
}
