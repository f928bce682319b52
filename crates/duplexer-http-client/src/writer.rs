//! The write half: sends every frame as its own POST and cancels requests in the manner of their era.

use std::collections::HashMap;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use duplexer_core::dispatch::{BoxFuture, cancelled};
use duplexer_core::transport::{FrameWriter, Frames, TransportError};
use duplexer_types::jsonrpc::{self, RawCall, RawFrame, RequestId};
use duplexer_types::meta::is_envelope;
use duplexer_types::methods::{Cancelled, Initialize, Initialized, Notification, Request, ServerDiscover};
use tokio::sync::{Notify, oneshot};
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::{sleep, timeout};

use crate::connection::{Connection, Outgoing, SessionRole};
use crate::exchange::{self, Resend};
use crate::reconnect;

/// Maximum concurrent exchanges. Further messages wait in the queue of the caller.
const MAX_EXCHANGES: usize = 1024;
/// Time during which messages of a request are still read after its cancellation was sent.
const CANCEL_GRACE: Duration = Duration::from_secs(5);
/// Maximum time that the first request waits for the response to the GET of the standalone stream: a server may send
/// what belongs there with its first response.
const OPENING_TIMEOUT: Duration = Duration::from_secs(1);
/// Maximum time for the messages in flight when the transport closes.
const FLUSH_TIMEOUT: Duration = Duration::from_millis(500);
/// Maximum time for the DELETE of the session.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(2);

/// Owner of all exchanges. Dropping it aborts them.
pub(crate) struct Writer {
    /// `None` after the write half is closed.
    connection: Option<Arc<Connection>>,
    exchanges: JoinSet<Option<RequestId>>,
    requests: HashMap<RequestId, InFlight>,
    listening: Option<AbortHandle>,
    /// Resolves when `notifications/initialized` has been sent and the standalone stream is open. POSTs can overtake each
    /// other, and no request may overtake that notification.
    gate: Option<BoxFuture<'static, ()>>,
    closing: Option<BoxFuture<'static, ()>>,
}

/// A request in flight.
struct InFlight {
    abort: AbortHandle,
    cancel: CancelMode,
}

/// How a request is cancelled, by its era.
enum CancelMode {
    /// Abort the POST.
    Abort,
    /// Send the cancellation to the server and end the POST after [`CANCEL_GRACE`].
    Notify(Arc<Notify>),
}

impl Writer {
    pub(crate) fn new(connection: Connection) -> Self {
        Self {
            connection: Some(Arc::new(connection)),
            exchanges: JoinSet::new(),
            requests: HashMap::new(),
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
                self.request(connection, id, (role, resend), message);
            }
            Some(RawFrame::Notification(call))
                if call.method == <Cancelled as Notification>::METHOD.name() =>
            {
                let id = cancelled(call.params);
                self.cancel(connection, id.as_ref(), message);
            }
            Some(RawFrame::Notification(call))
                if call.method == <Initialized as Notification>::METHOD.name() =>
            {
                self.open(connection, message);
            }
            _ => self.send_one_way(connection, message),
        }
    }

    fn request(
        &mut self,
        connection: &Arc<Connection>,
        id: RequestId,
        (role, resend): (SessionRole, Resend),
        message: Outgoing,
    ) {
        let (connection, own) = (Arc::clone(connection), id.clone());
        let cancelled = Arc::new(Notify::new());
        let cancel = match role {
            SessionRole::None => CancelMode::Abort,
            SessionRole::Opens | SessionRole::Member => CancelMode::Notify(Arc::clone(&cancelled)),
        };
        // Boxed, because the runtime moves the future of a task several times, and this one is large.
        let abort = self.exchanges.spawn(Box::pin(async move {
            let given_up = async {
                cancelled.notified().await;
                sleep(CANCEL_GRACE).await;
            };
            tokio::select! {
                () = exchange::request(&connection, &own, message, role, resend) => {}
                () = given_up => {}
            }
            Some(own)
        }));
        self.requests.insert(id, InFlight { abort, cancel });
    }

    fn cancel(&mut self, connection: &Arc<Connection>, id: Option<&RequestId>, message: Outgoing) {
        match id.and_then(|id| self.requests.get(id)).map(|in_flight| &in_flight.cancel) {
            Some(CancelMode::Abort) => {
                if let Some(in_flight) = id.and_then(|id| self.requests.remove(id)) {
                    in_flight.abort.abort();
                }
            }
            Some(CancelMode::Notify(cancelled)) => {
                cancelled.notify_one();
                self.send_one_way(connection, message);
            }
            // The response has arrived already: there is nothing to cancel.
            None => {}
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
        self.listening = Some(self.exchanges.spawn(async move {
            exchange::send_one_way(&connection, message).await;
            let _ = initialized.send(());
            reconnect::listen(&connection, opened).await;
            None
        }));
    }

    fn send_one_way(&mut self, connection: &Arc<Connection>, message: Outgoing) {
        let connection = Arc::clone(connection);
        self.exchanges.spawn(async move {
            exchange::send_one_way(&connection, message).await;
            None
        });
    }

    /// Waits until the next message can be sent.
    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if let Some(gate) = &mut self.gate {
            ready!(gate.as_mut().poll(cx));
            self.gate = None;
        }
        // Removes finished exchanges. An aborted request was removed when it was aborted.
        while let Poll::Ready(Some(ended)) = self.exchanges.poll_join_next(cx) {
            if let Ok(Some(id)) = ended {
                self.requests.remove(&id);
            }
        }
        if self.exchanges.len() < MAX_EXCHANGES { Poll::Ready(()) } else { Poll::Pending }
    }
}

impl FrameWriter for Writer {
    fn poll_write(&mut self, cx: &mut Context<'_>, frames: &mut Frames) -> Poll<Result<(), TransportError>> {
        let Some(connection) = self.connection.clone() else {
            return Poll::Ready(Err(TransportError::Closed));
        };
        while !frames.is_empty() {
            ready!(self.poll_ready(cx));
            let Some((frame, hints)) = frames.pop() else { break };
            self.send(&connection, Outgoing { frame: frame.into(), hints });
        }
        Poll::Ready(Ok(()))
    }

    fn poll_close(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), TransportError>> {
        if let Some(connection) = self.connection.take() {
            let requests = self.requests.drain().map(|(_, in_flight)| in_flight.abort);
            requests.chain(self.listening.take()).for_each(|exchange| exchange.abort());
            self.closing = Some(Box::pin(close_session(connection, std::mem::take(&mut self.exchanges))));
        }
        if let Some(closing) = &mut self.closing {
            ready!(closing.as_mut().poll(cx));
            self.closing = None;
        }
        Poll::Ready(Ok(()))
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
    let opens = [<Initialize as Request>::METHOD, <ServerDiscover as Request>::METHOD];
    if opens.iter().any(|method| method.name() == call.method) { Resend::Never } else { Resend::WhenBusy }
}

/// Derives the role, and with it the era, from the content of a request.
fn role(call: &RawCall<'_>) -> SessionRole {
    if call.meta.is_some_and(is_envelope) {
        SessionRole::None
    } else if call.method == <Initialize as Request>::METHOD.name() {
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

    use super::*;
    use crate::connection::Inbox;
    use crate::endpoint::Endpoint;
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
