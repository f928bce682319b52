//! In-process dispatcher: a pair of peers without frames or a byte transport.
//!
//! A request awaits the other end's handler in the caller's own task; dropping it drops the handler. Params and results are
//! passed as JSON text, because handlers read that and results are shaped into it.

mod call;

use std::fmt;
use std::sync::{Arc, Mutex};

use bytestring::ByteString;
use duplexer_types::jsonrpc::Body;

use self::call::text_of;
use super::context::{Cancellation, Latch};
use super::in_flight::Outstanding;
use super::jsonrpc::{FailureMode, RunError};
use super::outbound::{BoxFuture, NotifyFuture, Outbound, OutboundRequest};
use super::panic::catch_unwind;
use super::{CallContext, Dispatch, Inbound, Message, NotificationRoute, lock};
use crate::error::{CallError, McpError};
use crate::transport::TransportContext;

/// One end of an in-process connection.
pub struct DirectDispatcher {
    here: Arc<Side>,
    there: Arc<Side>,
}

/// Channel from one end of an in-process connection to the other. Clones share the connection.
#[derive(Clone)]
pub struct DirectPeer {
    here: Arc<Side>,
    there: Arc<Side>,
}

/// Options of one end of an in-process connection.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct DirectOptions {
    /// The transport context of messages that arrive at this end.
    pub context: TransportContext,
    /// Whether a failure that was not resolve for the peer shows its text.
    pub failures: FailureMode,
}

impl Default for DirectOptions {
    fn default() -> Self {
        Self { context: TransportContext::local_process("direct"), failures: FailureMode::Contain }
    }
}

/// One end: its receiver, and the ids of the requests it is handling.
struct Side {
    receiver: Mutex<Option<Arc<dyn Receive>>>,
    started: Latch,
    closing: Cancellation,
    closed: Latch,
    ids: Mutex<Outstanding<()>>,
    /// The context of messages that arrive here.
    context: Arc<TransportContext>,
    failures: FailureMode,
}

/// [`Inbound`] as an object.
trait Receive: Send + Sync {
    fn request(
        &self,
        cx: CallContext,
        call: Arc<Message>,
    ) -> BoxFuture<'static, Result<ByteString, McpError>>;
    fn notification(&self, cx: CallContext, call: Arc<Message>) -> BoxFuture<'static, ()>;
    fn on_notification_read(&self, call: &Message) -> NotificationRoute;
}

struct Receiver<I>(Arc<I>);

impl<I: Inbound> Receive for Receiver<I> {
    fn request(
        &self,
        cx: CallContext,
        call: Arc<Message>,
    ) -> BoxFuture<'static, Result<ByteString, McpError>> {
        let inbound = Arc::clone(&self.0);
        Box::pin(async move { text_of(&inbound.request(cx, call).await?) })
    }

    fn notification(&self, cx: CallContext, call: Arc<Message>) -> BoxFuture<'static, ()> {
        let inbound = Arc::clone(&self.0);
        Box::pin(async move { inbound.notification(cx, call).await })
    }

    fn on_notification_read(&self, call: &Message) -> NotificationRoute {
        catch_unwind(|| self.0.on_notification_read(call)).unwrap_or(NotificationRoute::Forward)
    }
}

impl DirectDispatcher {
    /// Creates two connected ends, each with the channel to the other.
    pub fn pair() -> ((Self, DirectPeer), (Self, DirectPeer)) {
        Self::pair_with(DirectOptions::default(), DirectOptions::default())
    }

    /// Creates two connected ends with options: those of an end apply to the messages that arrive there.
    pub fn pair_with(one: DirectOptions, two: DirectOptions) -> ((Self, DirectPeer), (Self, DirectPeer)) {
        let (one, two) = (Arc::new(Side::new(one)), Arc::new(Side::new(two)));
        let end = |here: &Arc<Side>, there: &Arc<Side>| {
            let (here, there) = (Arc::clone(here), Arc::clone(there));
            (Self { here: Arc::clone(&here), there: Arc::clone(&there) }, DirectPeer { here, there })
        };
        (end(&one, &two), end(&two, &one))
    }
}

impl Dispatch for DirectDispatcher {
    /// Serves until either end is stopped or dropped.
    async fn run<I: Inbound>(self, inbound: Arc<I>) -> Result<(), RunError> {
        *lock(&self.here.receiver) = Some(Arc::new(Receiver(inbound)));
        self.here.started.set();
        tokio::select! {
            () = self.here.closed.wait() => {}
            () = self.there.closed.wait() => {}
        }
        Ok(())
    }
}

/// An end that no longer runs is a closed peer for the other.
impl Drop for DirectDispatcher {
    fn drop(&mut self) {
        self.here.close();
    }
}

impl Side {
    fn new(options: DirectOptions) -> Self {
        Self {
            receiver: Mutex::new(None),
            started: Latch::new(),
            closing: Cancellation::new(),
            closed: Latch::new(),
            ids: Mutex::new(Outstanding::new()),
            context: Arc::new(options.context),
            failures: options.failures,
        }
    }

    fn close(&self) {
        self.closing.cancel();
        self.closed.set();
        // The handlers may hold this connection: dropping them breaks the cycle.
        let receiver = lock(&self.receiver).take();
        drop(receiver);
    }

    /// Waits for the receiver of this end; `None` if the end is closed.
    async fn receiver(&self) -> Option<Arc<dyn Receive>> {
        tokio::select! {
            biased;
            () = self.closed.wait() => return None,
            () = self.started.wait() => {}
        }
        lock(&self.receiver).clone()
    }
}

impl DirectPeer {
    /// Closes this end: the other end has a closed peer, and both runs end.
    pub fn stop(&self) {
        self.here.close();
    }
}

impl Outbound for DirectPeer {
    fn request(&self, request: OutboundRequest) -> BoxFuture<'_, Result<ByteString, CallError>> {
        Box::pin(call::request(Arc::clone(&self.here), Arc::clone(&self.there), request))
    }

    fn notify(&self, method: &str, params: Option<&dyn Body>) -> NotifyFuture {
        call::notify(Arc::clone(&self.here), Arc::clone(&self.there), method, params)
    }
}

impl fmt::Debug for DirectDispatcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("DirectDispatcher")
    }
}

impl fmt::Debug for DirectPeer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("DirectPeer")
    }
}
