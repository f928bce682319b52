//! Settings of the builder for those who operate a service: proxies, request ids, the server card.

use super::{HttpConfigError, RequestIds, StreamableHttpBuilder};
use crate::server::client_address::Network;
use crate::server::server_card::ServerCard;

impl StreamableHttpBuilder {
    /// Believes the headers `X-Forwarded-For` and `Forwarded` of these proxies, given as addresses or ranges (`10.0.0.0/8`): the
    /// client's address is then what they say. Without this it is the address of the peer, which the service's own listener
    /// knows. A server of another library can insert it as a `SocketAddr` into the extensions of a request.
    pub fn trusted_proxies(mut self, proxies: impl IntoIterator<Item = impl AsRef<str>>) -> Self {
        for proxy in proxies {
            match Network::parse(proxy.as_ref()) {
                Some(network) => self.config.proxies.add(network),
                None => self.fault(HttpConfigError::Network(proxy.as_ref().to_owned())),
            }
        }
        self
    }

    /// Gives every request an id: that of its header `X-Request-Id`, or else a random one. The response has it in the same header,
    /// and handlers find it among the headers of the transport.
    pub fn request_ids(mut self) -> Self {
        self.config.request_ids = RequestIds::On;
        self
    }

    /// Serves a description of the server for clients that look for servers: at `server-card` below the endpoint, and in the
    /// catalog of the domain if the card says so. Every page and program can read both. Of a service without
    /// [`path`](Self::path), a router must route these paths to it.
    pub fn server_card(mut self, card: ServerCard) -> Self {
        self.card = Some(card);
        self
    }
}
