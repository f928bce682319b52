//! TLS: the certificates that are trusted, and the one that this node shows. There is no way around the verification.

use redis::{Client, ClientTlsConfig, ConnectionAddr, ConnectionInfo, TlsCertificates};

use crate::address::url_error;
use crate::error::ConnectError;

/// Certificates in PEM format.
#[derive(Clone, Default)]
pub(crate) struct Tls {
    /// Instead of those of the platform.
    pub(crate) roots: Option<Vec<u8>>,
    /// Certificate and key.
    pub(crate) client: Option<(Vec<u8>, Vec<u8>)>,
}

impl Tls {
    pub(crate) fn client(&self, info: ConnectionInfo) -> Result<Client, ConnectError> {
        let failed = |error: redis::RedisError| url_error(&error);
        if !matches!(info.addr(), ConnectionAddr::TcpTls { .. }) {
            return Client::open(info).map_err(failed);
        }
        // Fails if the program has chosen a provider before, which is then used.
        let _ = rustls::crypto::ring::default_provider().install_default();
        Client::build_with_tls(info, self.certificates()).map_err(failed)
    }

    pub(crate) fn certificates(&self) -> TlsCertificates {
        let client = self.client.clone();
        let client_tls = client.map(|(client_cert, client_key)| ClientTlsConfig { client_cert, client_key });
        TlsCertificates { client_tls, root_cert: self.roots.clone() }
    }
}
