//! HTTP+SSE, the transport of 2024-11-05: one SSE stream brings all messages of the server, and each message to it is a
//! POST to the address that the stream names first. A stream that ends cannot be resumed: the connection ends with it.

use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytestring::ByteString;
use duplexer_core::dispatch::{BoxFuture, CallClock};
use duplexer_core::transport::{
    FrameReader, FrameWriter, Frames, Incoming, Transport, TransportContext, TransportError, TransportFailure,
};
use duplexer_types::jsonrpc::{self, RawFrame, RequestId};
use duplexer_types::methods::{Initialized, Notification};
use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderName, HeaderValue};
use reqwest::{Method, Response, Url};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout, timeout_at};

use crate::connection::{EVENTS, Inbox, Outgoing};
use crate::endpoint::Endpoint;
use crate::exchange::media_type;
use crate::failure;
use crate::sse::EventReader;
use crate::transport::{HttpTransport, InvalidEndpoint, inbox};

/// Maximum concurrent POSTs. Further messages wait in the queue of the caller.
const MAX_POSTS: usize = 256;
/// Maximum time until the server accepts a message. Its response comes on the stream.
const POST_TIMEOUT: Duration = Duration::from_secs(30);
/// Maximum time after the beginning of the stream until it names the address of messages.
const ADDRESS_TIMEOUT: Duration = Duration::from_secs(10);
/// Maximum time for the messages in flight when the transport closes.
const FLUSH_TIMEOUT: Duration = Duration::from_millis(500);

/// Transport to a server of 2024-11-05 that offers HTTP+SSE. The URL is that of its stream, often `/sse`.
///
/// ```no_run
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// use duplexer_http_client::HttpSseTransport;
/// let transport = HttpSseTransport::new("https://mcp.example.com/sse")?;
/// # Ok(()) }
/// ```
#[derive(Debug)]
pub struct HttpSseTransport(Endpoint);

impl HttpSseTransport {
    /// Creates a transport with default settings. For others, see
    /// [`HttpTransportBuilder::build_http_sse`](crate::HttpTransportBuilder::build_http_sse).
    ///
    /// # Errors
    /// Fails if `url` is not an HTTP URL, or if the HTTP client cannot be set up.
    pub fn new(url: &str) -> Result<Self, InvalidEndpoint> {
        HttpTransport::builder(url).build_http_sse()
    }

    pub(crate) fn from_endpoint(endpoint: Endpoint) -> Self {
        Self(endpoint)
    }
}

impl Transport for HttpSseTransport {
    fn split(self) -> (Box<dyn FrameReader>, Box<dyn FrameWriter>) {
        let (inbox, reader) = inbox("http+sse");
        (Box::new(reader), Box::new(Writer::new(self.0, inbox)))
    }

    fn clock(&self) -> Option<CallClock> {
        self.0.clock()
    }
}

/// Where messages are sent to.
#[derive(Clone)]
enum Target {
    /// The stream has not named it yet.
    Unknown,
    At(Url),
    /// The stream was not opened.
    Failed(TransportFailure),
}

/// Owner of the stream and of all POSTs. Dropping it aborts them.
struct Writer {
    endpoint: Arc<Endpoint>,
    /// The only sender, until the stream takes it: when the stream ends, the reader half ends too.
    stream: Option<Inbox>,
    inbox: WeakInbox,
    target: watch::Sender<Target>,
    tasks: JoinSet<()>,
    /// Resolves when `notifications/initialized` has been accepted: no request may overtake it.
    gate: Option<oneshot::Receiver<()>>,
    closing: Option<BoxFuture<'static, ()>>,
}

/// An inbox that does not keep the reader half alive.
struct WeakInbox {
    queue: mpsc::WeakSender<Incoming>,
    context: Arc<TransportContext>,
}

impl WeakInbox {
    /// Returns the inbox, unless the stream has ended.
    fn upgrade(&self) -> Option<Inbox> {
        Some(Inbox { queue: self.queue.upgrade()?, context: Arc::clone(&self.context) })
    }
}

impl Writer {
    fn new(endpoint: Endpoint, inbox: Inbox) -> Self {
        Self {
            endpoint: Arc::new(endpoint),
            inbox: WeakInbox { queue: inbox.queue.downgrade(), context: Arc::clone(&inbox.context) },
            stream: Some(inbox),
            target: watch::Sender::new(Target::Unknown),
            tasks: JoinSet::new(),
            gate: None,
            closing: None,
        }
    }

    /// Opens the stream with the first message.
    fn open(&mut self) {
        if let Some(inbox) = self.stream.take() {
            let (endpoint, target) = (Arc::clone(&self.endpoint), self.target.clone());
            self.tasks.spawn(async move {
                if let Err(failure) = listen(&endpoint, &inbox, &target).await {
                    tracing::debug!(%failure, "the stream of the server has ended");
                    target.send_if_modified(|target| {
                        let is_unknown = matches!(target, Target::Unknown);
                        if is_unknown {
                            *target = Target::Failed(failure);
                        }
                        is_unknown
                    });
                }
            });
        }
    }

    fn send(&mut self, inbox: Inbox, message: Outgoing) {
        let (id, is_initialized) = match std::str::from_utf8(&message.frame).ok().map(jsonrpc::read) {
            Some(Ok(RawFrame::Request { id, .. })) => (Some(id), false),
            Some(Ok(RawFrame::Notification(call))) => {
                (None, call.method == <Initialized as Notification>::METHOD.name())
            }
            _ => (None, false),
        };
        let (endpoint, target) = (Arc::clone(&self.endpoint), self.target.subscribe());
        let (accepted, gate) = oneshot::channel();
        if is_initialized {
            self.gate = Some(gate);
        }
        self.tasks.spawn(async move {
            deliver(&endpoint, &inbox, target, id, message).await;
            // Other messages have no receiver.
            let _ = accepted.send(());
        });
    }

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if let Some(gate) = &mut self.gate {
            let _ = ready!(std::pin::Pin::new(gate).poll(cx));
            self.gate = None;
        }
        while let Poll::Ready(Some(_)) = self.tasks.poll_join_next(cx) {}
        if self.tasks.len() < MAX_POSTS { Poll::Ready(()) } else { Poll::Pending }
    }
}

impl FrameWriter for Writer {
    fn poll_write(&mut self, cx: &mut Context<'_>, frames: &mut Frames) -> Poll<Result<(), TransportError>> {
        while !frames.is_empty() {
            ready!(self.poll_ready(cx));
            let Some(inbox) = self.inbox.upgrade() else { return Poll::Ready(Err(TransportError::Closed)) };
            self.open();
            let Some((frame, hints)) = frames.pop() else { break };
            self.send(inbox, Outgoing { frame: frame.into(), hints });
        }
        Poll::Ready(Ok(()))
    }

    /// Waits for the messages in flight for a moment. The end of the stream ends the session at the server.
    fn poll_close(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), TransportError>> {
        let closing = self.closing.get_or_insert_with(|| {
            let mut tasks = std::mem::take(&mut self.tasks);
            Box::pin(async move {
                // The stream does not end by itself.
                let flushed = async { while tasks.len() > 1 && tasks.join_next().await.is_some() {} };
                if timeout(FLUSH_TIMEOUT, flushed).await.is_err() {
                    tracing::debug!("the last messages were not accepted in time");
                }
            })
        });
        ready!(closing.as_mut().poll(cx));
        self.stream = None;
        Poll::Ready(Ok(()))
    }
}

/// Reads the stream to its end.
async fn listen(
    endpoint: &Endpoint,
    inbox: &Inbox,
    target: &watch::Sender<Target>,
) -> Result<(), TransportFailure> {
    let mut request = endpoint.request(Method::GET, &endpoint.url);
    request.headers_mut().insert(ACCEPT, HeaderValue::from_static(EVENTS));
    let mut response = endpoint.send(request).await?;
    if !response.status().is_success() {
        return Err(failure::of_refusal(response).await);
    }
    if media_type(&response) != EVENTS {
        return Err(TransportFailure::Protocol("it is not a stream of events".into()));
    }
    let (mut reader, mut ready) = (EventReader::new(endpoint.limit), Vec::new());
    let deadline = Instant::now() + ADDRESS_TIMEOUT;
    loop {
        let chunk = response.chunk();
        let piece = if matches!(*target.borrow(), Target::Unknown) {
            let in_time = timeout_at(deadline, chunk).await;
            in_time
                .map_err(|_| TransportFailure::Protocol("it does not name an address for messages".into()))?
        } else {
            chunk.await
        };
        let Some(piece) = piece.map_err(failure::of_reading)? else { break };
        let fed = reader.feed(&piece, &mut |event| ready.push(event));
        for event in ready.drain(..) {
            match event.kind.as_deref() {
                Some(b"endpoint") => {
                    let address = address(&endpoint.url, &event.data)?;
                    target.send_replace(Target::At(address));
                }
                None if !event.data.is_empty() => {
                    if let Ok(text) = ByteString::try_from(event.data) {
                        inbox.deliver(text).await;
                    } else {
                        tracing::warn!("an event that is not UTF-8 is dropped");
                    }
                }
                _ => {}
            }
        }
        fed.map_err(|_| failure::too_large(endpoint.limit))?;
    }
    Err(TransportFailure::Interrupted("the stream has ended".into()))
}

/// Resolves the address of messages. It must be on the same server, because messages can hold credentials.
fn address(stream: &Url, data: &[u8]) -> Result<Url, TransportFailure> {
    let address = std::str::from_utf8(data).ok().and_then(|text| stream.join(text).ok());
    match address {
        Some(address) if address.origin() == stream.origin() => Ok(address),
        _ => Err(TransportFailure::Protocol("it names an address on another server".into())),
    }
}

/// Sends a message once the address is known. A request that is not accepted fails.
async fn deliver(
    endpoint: &Endpoint,
    inbox: &Inbox,
    mut target: watch::Receiver<Target>,
    id: Option<RequestId>,
    message: Outgoing,
) {
    let known = target.wait_for(|target| !matches!(target, Target::Unknown)).await;
    let known = known.map(|target| target.clone());
    let outcome = match known {
        Ok(Target::At(url)) => {
            endpoint.within(POST_TIMEOUT, post(endpoint, &url, message)).await.unwrap_or_else(|| {
                Err(TransportFailure::Interrupted(
                    "the server does not say whether it accepts the message".into(),
                ))
            })
        }
        Ok(Target::Failed(failure)) => Err(failure),
        Ok(Target::Unknown) | Err(_) => Err(TransportFailure::Interrupted("the stream has ended".into())),
    };
    match (outcome, id) {
        (Ok(()), _) => {}
        (Err(failure), Some(id)) => inbox.fail(&id, failure).await,
        (Err(error), None) => tracing::warn!(%error, "a message was not accepted"),
    }
}

async fn post(endpoint: &Endpoint, url: &Url, message: Outgoing) -> Result<(), TransportFailure> {
    let mut request = endpoint.request(Method::POST, url);
    request.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    for (name, value) in &message.hints.headers {
        if let (Ok(name), Ok(mut value)) = (HeaderName::try_from(name), HeaderValue::try_from(value)) {
            value.set_sensitive(true);
            request.headers_mut().insert(name, value);
        }
    }
    *request.body_mut() = Some(message.frame.into());
    let response: Response = endpoint.send(request).await?;
    if response.status().is_success() { Ok(()) } else { Err(failure::of_refusal(response).await) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_stay_on_the_server_of_the_stream() {
        let stream = Url::parse("https://host/base/sse").unwrap();
        let found = |text: &str| address(&stream, text.as_bytes()).ok().map(|url| url.to_string());
        assert_eq!(found("/messages?session_id=1").as_deref(), Some("https://host/messages?session_id=1"));
        assert_eq!(found("m").as_deref(), Some("https://host/base/m"));
        assert_eq!(found("https://host/m").as_deref(), Some("https://host/m"));
        for elsewhere in ["https://other/m", "//other/m", "http://host/m", "https://host:8443/m", "file:///m"]
        {
            assert_eq!(found(elsewhere), None, "{elsewhere}");
        }
        assert!(address(&stream, b"\xff").is_err());
    }
}
