//! The write half: sends every frame as its own POST and cancels requests in the manner of their era.

use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use duplexer_core::dispatch::{BoxFuture, cancelled};
use duplexer_core::transport::{FrameMeta, FrameWriter, Frames, PolledExchange, TransportError};
use duplexer_types::jsonrpc::{self, RawCall, RawFrame, RequestId};
use duplexer_types::meta::is_envelope;
use duplexer_types::methods::{self, Cancelled, Initialize, Initialized, Notification, ServerDiscover};
use tokio::runtime::{self, Handle};
use tokio::sync::oneshot;
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::timeout;

use crate::connection::{Connection, Outgoing, SessionRole};
use crate::exchange::{self, Resend};
use crate::exchanges::{self, Exchanges, Request, Step};
use crate::reconnect;

/// Maximum time that the first request waits for the response to the GET of the standalone stream: a server may send
/// what belongs there with its first response.
const OPENING_TIMEOUT: Duration = Duration::from_secs(1);
/// Maximum time for the messages in flight when the transport closes.
const FLUSH_TIMEOUT: Duration = Duration::from_millis(500);
/// Maximum time for the DELETE of the session.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(2);

/// Owner of all exchanges. Dropping it aborts those in tasks.
pub(crate) struct Writer {
    /// `None` after the write half is closed.
    connection: Option<Arc<Connection>>,
    exchanges: Arc<Exchanges>,
    /// The runtime of the connection. A caller in another one does not poll its exchange: the HTTP connection, which other
    /// calls use later, would end with that runtime.
    runtime: Option<runtime::Id>,
    listening: Option<AbortHandle>,
    /// Resolves when `notifications/initialized` has been sent and the standalone stream is open. POSTs can overtake each
    /// other, and no request may overtake that notification.
    gate: Option<BoxFuture<'static, ()>>,
    closing: Option<BoxFuture<'static, ()>>,
}

impl Writer {
    pub(crate) fn new(connection: Connection) -> Self {
        Self {
            connection: Some(Arc::new(connection)),
            exchanges: Arc::default(),
            runtime: None,
            listening: None,
            gate: None,
            closing: None,
        }
    }

    fn send(&mut self, connection: &Arc<Connection>, message: Outgoing) {
        let read = std::str::from_utf8(&message.frame).ok().and_then(|text| jsonrpc::read(text).ok());
        match read {
            Some(RawFrame::Request { id, call }) => {
                let (role, resend) = (role(&call), resend(&call));
                let request = Request { connection: Arc::clone(connection), id, role };
                let begun = Step::Begin(request.begin(message, resend));
                self.exchanges.spawn_request(&Handle::current(), request, begun);
            }
            Some(RawFrame::Notification(call))
                if call.method == <Cancelled as Notification>::METHOD.name() =>
            {
                let id = cancelled(call.params);
                if id.is_some_and(|id| self.exchanges.cancel(&id) == exchanges::Cancelled::Tell) {
                    self.send_one_way(connection, message);
                }
            }
            Some(RawFrame::Notification(call))
                if call.method == <Initialized as Notification>::METHOD.name() =>
            {
                self.open(connection, message);
            }
            _ => self.send_one_way(connection, message),
        }
    }

    /// Sends `notifications/initialized`, then reads the standalone stream, in place of that of an earlier session.
    fn open(&mut self, connection: &Arc<Connection>, message: Outgoing) {
        let connection = Arc::clone(connection);
        let (initialized, sent) = oneshot::channel();
        let (opened, opening) = oneshot::channel();
        // Dropped senders open the gate too.
        self.gate = Some(Box::pin(async move {
            let _ = sent.await;
            let _ = timeout(OPENING_TIMEOUT, opening).await;
        }));
        if let Some(earlier) = self.listening.take() {
            earlier.abort();
        }
        self.listening = self.exchanges.spawn(async move {
            exchange::send_one_way(&connection, message).await;
            let _ = initialized.send(());
            reconnect::listen(&connection, opened).await;
        });
    }

    fn send_one_way(&mut self, connection: &Arc<Connection>, message: Outgoing) {
        let connection = Arc::clone(connection);
        self.exchanges.spawn(async move { exchange::send_one_way(&connection, message).await });
    }

    /// Waits until the next message can be sent.
    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if let Some(gate) = &mut self.gate {
            ready!(gate.as_mut().poll(cx));
            self.gate = None;
        }
        self.exchanges.poll_capacity(cx)
    }
}

impl FrameWriter for Writer {
    fn poll_write(&mut self, cx: &mut Context<'_>, frames: &mut Frames) -> Poll<Result<(), TransportError>> {
        let Some(connection) = self.connection.clone() else {
            return Poll::Ready(Err(TransportError::Closed));
        };
        if self.runtime.is_none() {
            self.runtime = Handle::try_current().ok().map(|runtime| runtime.id());
        }
        while !frames.is_empty() {
            ready!(self.poll_ready(cx));
            let Some((frame, hints)) = frames.pop() else { break };
            self.send(&connection, Outgoing { frame: frame.into(), hints });
        }
        Poll::Ready(Ok(()))
    }

    fn poll_close(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), TransportError>> {
        if let Some(connection) = self.connection.take() {
            if let Some(listening) = self.listening.take() {
                listening.abort();
            }
            self.closing = Some(Box::pin(close_session(connection, self.exchanges.close())));
        }
        if let Some(closing) = &mut self.closing {
            ready!(closing.as_mut().poll(cx));
            self.closing = None;
        }
        Poll::Ready(Ok(()))
    }

    fn begin(
        &mut self,
        id: &RequestId,
        frame: &mut Vec<u8>,
        meta: Option<&FrameMeta>,
    ) -> Option<Box<dyn PolledExchange>> {
        let runtime = Handle::try_current().ok().filter(|runtime| self.runtime == Some(runtime.id()))?;
        let connection = self.connection.as_ref().filter(|_| self.gate.is_none())?;
        let Ok(RawFrame::Request { call, .. }) = jsonrpc::read(std::str::from_utf8(frame).ok()?) else {
            return None;
        };
        let (role, resend) = (role(&call), resend(&call));
        let request = Request { connection: Arc::clone(connection), id: id.clone(), role };
        self.exchanges.poll_request(runtime, request, resend, || Outgoing {
            frame: std::mem::take(frame).into(),
            hints: meta.cloned().unwrap_or_default(),
        })
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        // Exchanges that callers poll share them.
        drop(self.exchanges.close());
    }
}

/// Waits for the messages in flight, then ends the session if the server has assigned an id.
async fn close_session(connection: Arc<Connection>, mut exchanges: JoinSet<Option<RequestId>>) {
    let flushed = async { while exchanges.join_next().await.is_some() {} };
    if timeout(FLUSH_TIMEOUT, flushed).await.is_err() {
        tracing::debug!("the last messages were not accepted in time");
    }
    drop(exchanges);
    if connection.session.has_id() && timeout(CLOSE_TIMEOUT, connection.delete()).await.is_err() {
        tracing::debug!("the server does not confirm the end of the session");
    }
}

/// A request that opens a session is one attempt: its failure is the answer to `connect`.
fn resend(call: &RawCall<'_>) -> Resend {
    let opens = [<Initialize as methods::Request>::METHOD, <ServerDiscover as methods::Request>::METHOD];
    if opens.iter().any(|method| method.name() == call.method) { Resend::Never } else { Resend::WhenBusy }
}

/// Derives the role, and with it the era, from the content of a request.
fn role(call: &RawCall<'_>) -> SessionRole {
    if call.meta.is_some_and(is_envelope) {
        SessionRole::None
    } else if call.method == <Initialize as methods::Request>::METHOD.name() {
        SessionRole::Opens
    } else {
        SessionRole::Member
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;

    use duplexer_core::transport::{FrameMeta, TransportContext};
    use reqwest::Url;
    use reqwest::header::HeaderMap;
    use tokio::sync::mpsc;
    use tokio::time::sleep;

    use super::*;
    use crate::connection::Inbox;
    use crate::endpoint::Endpoint;
    use crate::exchanges::{CANCEL_GRACE, MAX_EXCHANGES};
    use crate::session::Session;

    /// Messages above the limit wait and are sent when an exchange ends, also if all of them arrive at once.
    #[tokio::test(start_paused = true)]
    async fn messages_above_the_limit_are_all_sent() {
        let url = Url::parse("http://127.0.0.1:1/").unwrap();
        let client = crate::transport::default_client().unwrap();
        let endpoint = Endpoint {
            client,
            url,
            headers: HeaderMap::new(),
            limit: 1,
            authorization: None,
            observer: None,
        };
        let (queue, mut answers) = mpsc::channel(1);
        let context = Arc::new(TransportContext::stream("http"));
        let mut writer = Writer::new(Connection {
            endpoint,
            session: Session::default(),
            inbox: Inbox { queue, context },
        });
        let mut frames = Frames::default();
        for id in 0..MAX_EXCHANGES + 10 {
            // An invalid header name: every exchange fails without opening a socket.
            let mut hints = FrameMeta::default();
            hints.headers = vec![("not a name".to_owned(), String::new())];
            frames.push(format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"x"}}"#).as_bytes(), Some(hints));
        }
        // Runs in a separate task, so that only the waker of the writer wakes the writer.
        let mut reading = JoinSet::new();
        reading.spawn(async move { while answers.recv().await.is_some() {} });
        tokio::select! {
            biased;
            () = sleep(CANCEL_GRACE) => panic!("the writer is not woken"),
            written = poll_fn(|cx| writer.poll_write(cx, &mut frames)) => written.unwrap(),
        }
    }
}
