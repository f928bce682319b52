//! The direction to the server: every frame is a POST of its own.

use std::collections::HashMap;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use duplexer_core::transport::{FrameWriter, Frames, TransportError};
use duplexer_types::jsonrpc::{self, Frame, Invocation, RequestId};
use duplexer_types::meta::is_envelope;
use duplexer_types::methods::{Cancelled, Initialize, Initialized, Notification, Request};
use serde::Deserialize;
use tokio::sync::{Notify, oneshot};
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::{sleep, timeout};

use crate::exchange;
use crate::link::{Link, Outgoing, Standing};
use crate::reconnect;

/// Messages under way at once; further ones wait to be sent.
const MAX_EXCHANGES: usize = 1024;
/// How long a server that was told to stop may still say what belongs to the request.
const CALLED_OFF: Duration = Duration::from_secs(5);
/// How long what was sent last may take at the end.
const LAST_WORDS: Duration = Duration::from_millis(500);
/// How long the server may take to end the session.
const FAREWELL: Duration = Duration::from_secs(2);

/// Owns all that is under way: dropped, every exchange ends.
pub(crate) struct Writer {
    /// `None` once the direction is closed.
    link: Option<Arc<Link>>,
    exchanges: JoinSet<Option<RequestId>>,
    requests: HashMap<RequestId, Under>,
    listening: Option<AbortHandle>,
    /// Until it is raised nothing leaves: POSTs can overtake each other, but no request may overtake the notification
    /// that the session is open.
    gate: Option<oneshot::Receiver<()>>,
    farewell: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
}

/// A request under way.
struct Under {
    abort: AbortHandle,
    cancel: Cancel,
}

/// What giving up a request means, by the era it was sent under.
enum Cancel {
    /// Its POST ends.
    Abort,
    /// The server is told, and its POST ends a little later.
    Tell(Arc<Notify>),
}

impl Writer {
    pub(crate) fn new(link: Link) -> Self {
        Self {
            link: Some(Arc::new(link)),
            exchanges: JoinSet::new(),
            requests: HashMap::new(),
            listening: None,
            gate: None,
            farewell: None,
        }
    }

    fn send(&mut self, link: &Arc<Link>, message: Outgoing) {
        let read = std::str::from_utf8(&message.frame).ok().and_then(|text| jsonrpc::read(text).ok());
        match read {
            Some(Frame::Request { id, call }) => {
                let standing = standing(&call);
                self.request(link, id, standing, message);
            }
            Some(Frame::Notification(call)) if call.method == <Cancelled as Notification>::METHOD.name() => {
                let id = call.params.and_then(cancelled_id);
                self.cancel(link, id.as_ref(), message);
            }
            Some(Frame::Notification(call))
                if call.method == <Initialized as Notification>::METHOD.name() =>
            {
                self.open(link, message);
            }
            _ => self.tell(link, message),
        }
    }

    fn request(&mut self, link: &Arc<Link>, id: RequestId, standing: Standing, message: Outgoing) {
        let (link, own) = (Arc::clone(link), id.clone());
        let called_off = Arc::new(Notify::new());
        let cancel = match standing {
            Standing::Alone => Cancel::Abort,
            Standing::Opening | Standing::Within => Cancel::Tell(Arc::clone(&called_off)),
        };
        let abort = self.exchanges.spawn(async move {
            let given_up = async {
                called_off.notified().await;
                sleep(CALLED_OFF).await;
            };
            tokio::select! {
                () = exchange::request(&link, &own, message, standing) => {}
                () = given_up => {}
            }
            Some(own)
        });
        self.requests.insert(id, Under { abort, cancel });
    }

    fn cancel(&mut self, link: &Arc<Link>, id: Option<&RequestId>, message: Outgoing) {
        match id.and_then(|id| self.requests.get(id)).map(|under| &under.cancel) {
            Some(Cancel::Abort) => {
                if let Some(under) = id.and_then(|id| self.requests.remove(id)) {
                    under.abort.abort();
                }
            }
            Some(Cancel::Tell(called_off)) => {
                called_off.notify_one();
                self.tell(link, message);
            }
            // The answer is here already: there is nothing to call off.
            None => {}
        }
    }

    /// Says that the session is open, then listens to what the server says in it beside any request.
    fn open(&mut self, link: &Arc<Link>, message: Outgoing) {
        let link = Arc::clone(link);
        let (opened, gate) = oneshot::channel();
        self.gate = Some(gate);
        self.listening = Some(self.exchanges.spawn(async move {
            exchange::tell(&link, message).await;
            // Whoever waited for it is gone if this fails.
            let _ = opened.send(());
            reconnect::listen(&link).await;
            None
        }));
    }

    fn tell(&mut self, link: &Arc<Link>, message: Outgoing) {
        let link = Arc::clone(link);
        self.exchanges.spawn(async move {
            exchange::tell(&link, message).await;
            None
        });
    }

    /// Waits until the next message may leave.
    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if let Some(gate) = &mut self.gate {
            // Nobody left to raise it is as good.
            let _ = ready!(Pin::new(gate).poll(cx));
            self.gate = None;
        }
        // Forgets what has ended. An aborted request is forgotten already.
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
        let Some(link) = self.link.clone() else { return Poll::Ready(Err(TransportError::Closed)) };
        while !frames.is_empty() {
            ready!(self.poll_ready(cx));
            let Some((frame, hints)) = frames.pop() else { break };
            self.send(&link, Outgoing { frame, hints });
        }
        Poll::Ready(Ok(()))
    }

    fn poll_close(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), TransportError>> {
        if let Some(link) = self.link.take() {
            let requests = self.requests.drain().map(|(_, under)| under.abort);
            requests.chain(self.listening.take()).for_each(|exchange| exchange.abort());
            self.farewell = Some(Box::pin(farewell(link, std::mem::take(&mut self.exchanges))));
        }
        if let Some(farewell) = &mut self.farewell {
            ready!(farewell.as_mut().poll(cx));
            self.farewell = None;
        }
        Poll::Ready(Ok(()))
    }
}

/// Lets what was said last arrive, then ends the session, if the server remembers one.
async fn farewell(link: Arc<Link>, mut exchanges: JoinSet<Option<RequestId>>) {
    let last_words = async { while exchanges.join_next().await.is_some() {} };
    if timeout(LAST_WORDS, last_words).await.is_err() {
        tracing::debug!("the server does not take what was said last");
    }
    drop(exchanges);
    if link.session.has_id() && timeout(FAREWELL, link.delete()).await.is_err() {
        tracing::debug!("the server does not say whether the session has ended");
    }
}

/// The era of a request is told by what it carries.
fn standing(call: &Invocation<'_>) -> Standing {
    if call.meta.is_some_and(is_envelope) {
        Standing::Alone
    } else if call.method == <Initialize as Request>::METHOD.name() {
        Standing::Opening
    } else {
        Standing::Within
    }
}

fn cancelled_id(params: &str) -> Option<RequestId> {
    #[derive(Deserialize)]
    struct Params {
        #[serde(rename = "requestId")]
        id: RequestId,
    }
    serde_json::from_str::<Params>(params).ok().map(|params| params.id)
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;

    use duplexer_core::transport::{FrameMeta, TransportContext};
    use reqwest::header::HeaderMap;
    use reqwest::{Client, Url};
    use tokio::sync::mpsc;

    use super::*;
    use crate::link::Endpoint;
    use crate::session::Session;

    /// Beyond the bound messages wait, and go on when there is room: also if all of them came at once.
    #[tokio::test(start_paused = true)]
    async fn more_messages_than_may_be_under_way_all_leave() {
        let url = Url::parse("http://127.0.0.1:1/").unwrap();
        let client = Client::new();
        let endpoint = Endpoint { client, url, headers: HeaderMap::new(), limit: 1, on_challenge: None };
        let (inbox, mut answers) = mpsc::channel(1);
        let context = Arc::new(TransportContext::stream("http"));
        let mut writer = Writer::new(Link { endpoint, session: Session::default(), inbox, context });
        let mut frames = Frames::default();
        for id in 0..MAX_EXCHANGES + 10 {
            // Not a header: every exchange fails without a socket.
            let mut hints = FrameMeta::default();
            hints.headers = vec![("not a name".to_owned(), String::new())];
            frames.push(format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"x"}}"#).as_bytes(), Some(hints));
        }
        // In a task of its own, so that only the writer's own waker wakes the writer.
        let mut reading = JoinSet::new();
        reading.spawn(async move { while answers.recv().await.is_some() {} });
        tokio::select! {
            biased;
            () = sleep(CALLED_OFF) => panic!("nobody wakes the writer"),
            written = poll_fn(|cx| writer.poll_write(cx, &mut frames)) => written.unwrap(),
        }
    }
}
