//! Responses of a server over HTTP, and the events of those that are streams.

use bytes::Bytes;
use duplexer_core::error::BoxError;
use http::Response;
use http_body_util::BodyExt as _;
use http_body_util::combinators::UnsyncBoxBody;
use serde_json::Value;
use tokio::task::JoinSet;

/// Header in which a balancer names the node that has responded, by its address.
pub const NODE: &str = "x-node";

/// A response. Dropping it disconnects the client.
pub struct Reply {
    /// The status code.
    pub status: u16,
    /// The session that the response names.
    pub session: Option<String>,
    /// Seconds after which a refused request can be sent again.
    pub retry_after: Option<u64>,
    /// Port of the node that a balancer has chosen, if it says so.
    pub node: Option<u16>,
    is_stream: bool,
    body: UnsyncBoxBody<Bytes, BoxError>,
    /// Drives the connection. Aborted on drop.
    _connection: Option<JoinSet<()>>,
}

impl Reply {
    /// Wraps a response and the task that drives its connection.
    pub fn new(response: Response<UnsyncBoxBody<Bytes, BoxError>>, connection: Option<JoinSet<()>>) -> Self {
        let header = |name| Some(response.headers().get(name)?.to_str().ok()?.to_owned());
        let session = header("mcp-session-id");
        let is_stream = header("content-type").is_some_and(|kind| kind.starts_with("text/event-stream"));
        let status = response.status().as_u16();
        // A balancer that has tried several nodes lists them all.
        let node = header(NODE).and_then(|text| text.rsplit(':').next()?.trim().parse().ok());
        let retry_after = header("retry-after").and_then(|text| text.parse().ok());
        Self {
            status,
            session,
            retry_after,
            node,
            is_stream,
            body: response.into_body(),
            _connection: connection,
        }
    }

    /// Returns whether the body is a stream of events.
    pub fn is_stream(&self) -> bool {
        self.is_stream
    }

    /// Reads a JSON body. `Null` if it is empty.
    pub async fn json(self) -> Value {
        let Some(bytes) = self.body.collect().await.ok().map(http_body_util::Collected::to_bytes) else {
            return Value::Null;
        };
        serde_json::from_slice(&bytes).unwrap_or_default()
    }

    /// Reads the body as a stream of events.
    pub fn events(self) -> Events {
        Events { reply: self, text: Vec::new() }
    }
}

/// An event of a stream.
#[derive(Clone, Debug, PartialEq)]
pub struct Event {
    /// Its id, for a resumption after it.
    pub id: Option<String>,
    /// The message. `None` in an event that only has an id.
    pub message: Option<Value>,
}

/// The events of a response, as they arrive.
pub struct Events {
    reply: Reply,
    text: Vec<u8>,
}

impl Events {
    /// Returns the next event; `None` at the end, and where the connection breaks.
    pub async fn next(&mut self) -> Option<Event> {
        loop {
            if let Some(at) = self.text.windows(2).position(|pair| pair == b"\n\n") {
                let rest = self.text.split_off(at + 2);
                let text = String::from_utf8(std::mem::replace(&mut self.text, rest)).unwrap();
                if let Some(event) = parse(&text) {
                    return Some(event);
                }
                continue;
            }
            let frame = self.reply.body.frame().await?.ok()?;
            if let Ok(data) = frame.into_data() {
                // Lines end with CRLF or LF. Messages have neither.
                self.text.extend(data.iter().filter(|byte| **byte != b'\r'));
            }
        }
    }
}

/// Reads one event. `None` for a comment or a retry hint alone.
fn parse(text: &str) -> Option<Event> {
    let field = |name: &str| {
        let values: Vec<&str> = text
            .lines()
            .filter_map(|line| line.strip_prefix(name)?.strip_prefix(':'))
            .map(|value| value.strip_prefix(' ').unwrap_or(value))
            .collect();
        (!values.is_empty()).then(|| values.join("\n"))
    };
    let id = field("id");
    let message = field("data").filter(|data| !data.is_empty());
    let message = message.map(|data| serde_json::from_str(&data).unwrap());
    (id.is_some() || message.is_some()).then_some(Event { id, message })
}
