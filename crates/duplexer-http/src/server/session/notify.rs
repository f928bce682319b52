//! A notification of a session: taken note of in the order of arrival, then handled.

use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;

use duplexer_core::dispatch::{CallContext, Cancellation, CatchUnwind, Invocation};
use duplexer_core::server::serve_on;
use duplexer_core::transport::BackChannel;

use super::channel::NotificationChannel;
use super::{Session, hand_over};
use crate::server::door::Visit;

/// Handles a notification as far as it goes at once. What takes longer goes on as a task, for nobody waits for it.
pub(in crate::server) async fn notification(session: &Arc<Session>, visit: Visit, message: Invocation) {
    session.correlation.observe(&message);
    let mut transport = visit.transport_context();
    transport.back_channel = BackChannel::Open;
    let Visit { admitted, running, caller, .. } = visit;
    let hub = Arc::clone(admitted.hub());
    let busy = session.busy(admitted);
    let channel = NotificationChannel {
        hub: Arc::clone(&hub),
        session: Arc::clone(session),
        never: Cancellation::new(),
    };
    let cx = CallContext::new(None, Arc::new(transport), Arc::new(channel));
    let (session, ending) = (Arc::clone(session), Arc::clone(&hub));
    let handled = async move {
        let told = async {
            serve_on(&running, &session.connection, caller.principal, cx, message).await;
            hand_over::remember(&ending, &session).await;
        };
        tokio::select! {
            biased;
            () = told => {}
            () = ending.cut.cancelled() => {}
        }
        drop(busy);
    };
    let mut handled = Box::pin(async move {
        if let Err(error) = CatchUnwind::of(Box::pin(handled)).await {
            tracing::error!(%error, "a notification's handler failed");
        }
    });
    let first = poll_fn(|cx| Poll::Ready(handled.as_mut().poll(cx))).await;
    if first.is_pending() {
        hub.see_to(handled);
    }
}
