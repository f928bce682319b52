//! A request that has been admitted, apart from its message.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use duplexer_core::transport::{Headers, TransportContext};
use duplexer_server::{Caller, Principal, RunningServer};
use http::request::Parts;

use super::head::Accepts;
use super::reply::{self, Rejection};
use super::request_headers::{KnownHeaders, RequestHeaders};
use super::service_state::{BeyondLimit, RequestPermit, ServiceState, StartFailed};

/// A request that holds a permit. Its server may still have to start.
pub(super) struct AdmittedRequest {
    pub(super) permit: RequestPermit,
    pub(super) headers: Arc<RequestHeaders>,
    pub(super) accepts: Accepts,
    pub(super) caller: Caller,
    /// Address of the client, if it is known.
    client: Option<IpAddr>,
}

impl AdmittedRequest {
    /// Takes a permit. Rejects the request if there is none.
    pub(super) fn new(
        service: Arc<ServiceState>,
        mut parts: Parts,
        known: KnownHeaders,
        accepts: Accepts,
        peer: Option<SocketAddr>,
    ) -> Result<Self, Rejection> {
        let peer = peer.or_else(|| parts.extensions.get::<SocketAddr>().copied());
        let client = peer.map(|peer| service.config.proxies.client(peer.ip(), &parts.headers));
        let mut caller = Caller::default();
        caller.principal = parts.extensions.remove::<Arc<Principal>>();
        let is_closing = service.closing.is_cancelled();
        let refused = || if is_closing { reply::shutting_down() } else { reply::overloaded() };
        let permit = service.admit(caller.principal.as_deref()).ok_or_else(refused)?;
        Ok(Self {
            permit,
            headers: Arc::new(RequestHeaders::new(parts.headers, known)),
            accepts,
            caller,
            client,
        })
    }

    /// Waits until the server has started.
    pub(super) async fn start(self) -> Result<RequestContext, Rejection> {
        let running = match self.permit.service().running().await {
            Ok(running) => running.clone(),
            Err(StartFailed) => return Err(reply::unavailable(None, "Internal server error").into()),
        };
        Ok(RequestContext { running, request: self })
    }
}

/// A request and the running server that handles it.
pub(super) struct RequestContext {
    pub(super) running: RunningServer,
    pub(super) request: AdmittedRequest,
}

impl RequestContext {
    pub(super) fn service(&self) -> &Arc<ServiceState> {
        self.request.permit.service()
    }

    /// Returns what handlers see of the transport.
    pub(super) fn transport(&self) -> TransportContext {
        let headers = Headers::of(Arc::clone(&self.request.headers) as _);
        let mut transport = TransportContext::exchange("http", headers);
        transport.client_address = self.request.client;
        transport
    }

    /// Returns the context of another message in the same batch. `None` if it would exceed the limit of requests.
    pub(super) fn for_batch_item(&self, beyond: BeyondLimit) -> Option<Self> {
        let AdmittedRequest { permit, headers, accepts, caller, client } = &self.request;
        let request = AdmittedRequest {
            permit: permit.additional(beyond)?,
            headers: Arc::clone(headers),
            accepts: *accepts,
            caller: caller.clone(),
            client: *client,
        };
        Some(Self { running: self.running.clone(), request })
    }
}
