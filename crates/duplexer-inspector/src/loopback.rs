//! Who may use the page: peers on the loopback interface that name it by a loopback address.
//!
//! The name matters because a page of another site can have its own host name resolve to this machine.

use std::net::{IpAddr, SocketAddr};

use http::header::HOST;
use http::{Extensions, HeaderMap, StatusCode, Uri};

use crate::reply::{self, Reply};

/// Returns the refusal of a request that does not come from this machine.
pub(crate) fn refusal(extensions: &Extensions, headers: &HeaderMap, uri: &Uri) -> Option<Reply> {
    let reason = match extensions.get::<SocketAddr>() {
        None => {
            "the address of the peer is not known: insert it as a `SocketAddr` into the extensions of the request"
        }
        Some(peer) if !is_loopback(peer.ip()) => "the inspector serves this machine only",
        Some(_) if !names_loopback(headers, uri) => "the inspector is reached under a loopback address only",
        Some(_) => return None,
    };
    tracing::warn!(reason, "a request to the inspector was refused");
    Some(reply::error(StatusCode::FORBIDDEN, reason))
}

fn is_loopback(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => address.is_loopback(),
        IpAddr::V6(address) => {
            address.is_loopback() || address.to_ipv4_mapped().is_some_and(|inner| inner.is_loopback())
        }
    }
}

fn names_loopback(headers: &HeaderMap, uri: &Uri) -> bool {
    let host = headers
        .get(HOST)
        .and_then(|host| host.to_str().ok())
        .or_else(|| uri.authority().map(http::uri::Authority::as_str));
    let Some(host) = host else { return false };
    let name = match host.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or_default(),
        None => host.rsplit_once(':').map_or(host, |(name, _)| name),
    };
    name.eq_ignore_ascii_case("localhost") || name.parse().is_ok_and(is_loopback)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_refused(peer: Option<&str>, host: Option<&str>) -> bool {
        let (mut extensions, mut headers) = (Extensions::new(), HeaderMap::new());
        if let Some(peer) = peer {
            extensions.insert::<SocketAddr>(peer.parse().unwrap());
        }
        if let Some(host) = host {
            headers.insert(HOST, host.parse().unwrap());
        }
        refusal(&extensions, &headers, &Uri::from_static("/")).is_some()
    }

    #[test]
    fn only_this_machine_is_served() {
        for host in ["127.0.0.1:8000", "localhost", "LOCALHOST:1", "[::1]:8000", "127.9.9.9"] {
            assert!(!is_refused(Some("127.0.0.1:50000"), Some(host)), "{host}");
        }
        assert!(!is_refused(Some("[::ffff:127.0.0.1]:5"), Some("localhost")));
        assert!(is_refused(Some("192.0.2.1:50000"), Some("127.0.0.1")));
        assert!(is_refused(None, Some("127.0.0.1")));
    }

    /// A page of another site whose name resolves to this machine is refused.
    #[test]
    fn another_name_of_this_machine_is_refused() {
        for host in [
            "evil.example",
            "evil.example:8000",
            "127.0.0.1.evil.example",
            "localhost.evil.example",
            "",
            "[::2]",
        ] {
            assert!(is_refused(Some("127.0.0.1:50000"), Some(host)), "{host}");
        }
        assert!(is_refused(Some("127.0.0.1:50000"), None));
    }
}
