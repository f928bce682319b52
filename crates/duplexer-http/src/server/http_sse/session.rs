//! Sessions of the HTTP+SSE transport, from the GET that opens one to its end.

use std::collections::HashMap;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use duplexer_core::dispatch::{DispatchLimits, DispatchOptions, Peer};
use duplexer_core::transport::Incoming;
use duplexer_server::driver::StreamServer;
use duplexer_server::{Caller, Principal, RunningServer};
use tokio::sync::mpsc;
use tokio::time::timeout;

use super::transport::{BodyHandle, SseSessionBody, SseTransport, transport};
use super::unknown_session;
use crate::server::body::{Expiry, ResponseBody};
use crate::server::config::CallLimits;
use crate::server::reply::{self, Rejection, Reply};
use crate::server::request::{AdmittedRequest, RequestContext};
use crate::server::service_state::{ServiceState, shrink};
use crate::server::session::{SessionPermit, Sessions, caller, random};
use crate::server::sse;
use crate::session::{PrincipalKey, SessionDigest};
use crate::sync::{Mutex, lock};

/// Time that a POST waits for earlier messages to be accepted.
const POST_TIMEOUT: Duration = Duration::from_secs(10);

/// Inbound half of an open session.
pub(super) struct SseSession {
    messages: mpsc::Sender<Incoming>,
    principal: Option<PrincipalKey>,
}

impl SseSession {
    /// Delivers a message to the transport.
    pub(super) async fn deliver(&self, service: &ServiceState, incoming: Incoming) -> Result<(), Rejection> {
        let full = || reply::overloaded().into();
        tokio::select! {
            biased;
            sent = timeout(POST_TIMEOUT, self.messages.send(incoming)) => match sent {
                Ok(Ok(())) => Ok(()),
                Ok(Err(_)) => Err(unknown_session()),
                Err(_) => Err(full()),
            },
            () = service.closing.cancelled() => Err(full()),
        }
    }
}

/// All sessions that accept messages.
#[derive(Default)]
pub(in crate::server) struct SseSessions(Mutex<HashMap<u128, Arc<SseSession>>>);

impl SseSessions {
    /// Returns the session with this id, if it belongs to the principal.
    pub(super) fn find(
        service: &ServiceState,
        id: u128,
        principal: Option<&Principal>,
    ) -> Option<Arc<SseSession>> {
        let session = lock(&service.sse_sessions.0).get(&id).cloned()?;
        PrincipalKey::admits(session.principal.as_ref(), principal).then_some(session)
    }
}

/// Returns the key of a session whose name names its run: a digest, because other nodes send it. `None` for other names.
pub(super) fn link_key(name: &str) -> Option<u128> {
    name.contains('.').then(|| SessionDigest::of(name).0)
}

/// Returns the name of a session, which the client sends back. With shared stores it names the run that serves it.
fn link_name(service: &ServiceState, id: u128) -> String {
    match service.stores.as_ref().filter(|stores| stores.shared().is_some()) {
        Some(stores) => format!("{}.{id:032x}", stores.run()),
        None => format!("{id:032x}"),
    }
}

/// Opens a session. Its task outlives the request, and ends when the client stops reading the response.
pub(super) fn open(context: RequestContext) -> Result<Reply, Rejection> {
    let RequestContext { running, request: AdmittedRequest { permit, caller: Caller { principal, .. }, .. } } =
        context;
    let service = Arc::clone(permit.service());
    let key = principal.as_deref().map(PrincipalKey::of);
    let session_permit =
        Sessions::reserve(&service, key.as_ref()).ok_or_else(|| reply::too_many_sessions(None))?;
    let id = random().ok_or_else(reply::internal_error_without_id)?;
    let name: Arc<str> = link_name(&service, id).into();
    let (transport, messages, chunks) = transport();
    let session = SseSession { messages, principal: key };
    let id = link_key(&name).unwrap_or(id);
    lock(&service.sse_sessions.0).insert(id, Arc::new(session));
    let body = BodyHandle::new();
    let open =
        ServedSession { service: Arc::clone(&service), id, body: Arc::clone(&body), _permit: session_permit };
    let expiry = Expiry::of(principal.as_deref());
    service.spawn_tracked(open.serve(running, transport, caller(&name, principal)));
    let endpoint_event = sse::endpoint(&service.config.http_sse.endpoint(&name));
    let body = SseSessionBody::new(body, endpoint_event, chunks, permit).until(expiry);
    Ok(reply::events(ResponseBody::http_sse(body)))
}

/// A session that is being served. It is removed from the table when it is dropped.
struct ServedSession {
    service: Arc<ServiceState>,
    id: u128,
    body: Arc<BodyHandle>,
    _permit: SessionPermit,
}

impl ServedSession {
    async fn serve(self, running: RunningServer, transport: SseTransport, caller: Caller) {
        let config = &self.service.config;
        let CallLimits { in_flight, client_request, .. } = config.sessions.calls;
        let drain = config.timing.shutdown_grace;
        let options = DispatchOptions::default()
            .hook(config.sessions.hook.clone())
            .request_timeout(client_request)
            .limits(DispatchLimits::default().running(in_flight).queued(in_flight).drain(drain));
        let (stream, peer) = StreamServer::new(&running, transport, options);
        let mut serving = pin!(stream.with_caller(caller).run());
        let ended = tokio::select! {
            ended = serving.as_mut() => ended,
            () = self.end(&peer) => serving.await,
        };
        if let Err(error) = ended {
            tracing::debug!(%error, "a stream of events broke");
        }
    }

    /// Ends the session: orderly with the service; at once when the client has left or the shutdown grace has ended.
    async fn end(&self, peer: &Peer) {
        let over = async {
            tokio::select! {
                () = self.body.gone.cancelled() => {}
                () = self.service.abort.cancelled() => {}
            }
        };
        let mut over = pin!(over);
        tokio::select! {
            biased;
            () = over.as_mut() => {}
            () = self.service.closing.cancelled() => {
                // New POSTs are rejected. Accepted messages are still answered before the stream ends.
                self.remove();
                over.await;
            }
        }
        peer.stop();
        peer.closing().await;
        // The second call skips the drain, because no client reads the responses.
        peer.stop();
    }

    fn remove(&self) {
        let mut sessions = lock(&self.service.sse_sessions.0);
        sessions.remove(&self.id);
        shrink(&mut sessions);
    }
}

impl Drop for ServedSession {
    fn drop(&mut self) {
        self.remove();
    }
}
