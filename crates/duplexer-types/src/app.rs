//! MCP Apps (`io.modelcontextprotocol/ui`): what servers, clients and hosts agree on.

/// Id of the extension.
pub const EXTENSION: &str = "io.modelcontextprotocol/ui";
/// Media type of a view.
pub const MIME_TYPE: &str = "text/html;profile=mcp-app";

/// What a view uses an origin for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum OriginUse {
    /// Requests and sockets (`connectDomains`).
    Connections,
    /// Scripts, styles, images, fonts and media (`resourceDomains`).
    Resources,
    /// Frames (`frameDomains`).
    Frames,
    /// The base of relative URLs (`baseUriDomains`).
    Base,
}

/// Checks an origin that a view declares: a scheme, a host, and optionally a port. Only resources can come from all
/// sub-domains of a host, and only connections can use `wss://`. A host on this machine can be reached without TLS.
///
/// ```
/// use duplexer_types::app::{OriginUse, check_origin};
///
/// assert!(check_origin("https://api.example.com", OriginUse::Connections).is_ok());
/// assert!(check_origin("https://*.cdn.example.com", OriginUse::Resources).is_ok());
/// assert!(check_origin("*", OriginUse::Resources).is_err());
/// assert!(check_origin("https://a.example; script-src *", OriginUse::Resources).is_err());
/// ```
///
/// # Errors
///
/// Fails with the reason, which follows the text of the origin.
pub fn check_origin(origin: &str, usage: OriginUse) -> Result<(), &'static str> {
    let Some((scheme, authority)) = origin.split_once("://") else {
        return Err("is not an origin such as https://example.com");
    };
    let (host, port) = match authority.rsplit_once(':') {
        Some((host, port)) if !port.contains(']') => (host, Some(port)),
        _ => (authority, None),
    };
    if port.is_some_and(|port| port.parse::<u16>().is_err()) {
        return Err("has a port that is not a number");
    }
    let (is_wildcard, host) = match host.strip_prefix("*.") {
        Some(rest) => (true, rest),
        None => (false, host),
    };
    if !is_host(host) {
        return Err("is more than a scheme, a host and a port");
    }
    if is_wildcard && (usage != OriginUse::Resources || !host.contains('.')) {
        return Err("has a wildcard, which only sub-domains of resourceDomains can have");
    }
    let is_local = matches!(host, "localhost" | "127.0.0.1" | "[::1]");
    match scheme {
        "https" => Ok(()),
        "wss" if usage == OriginUse::Connections => Ok(()),
        "http" if is_local => Ok(()),
        "ws" if is_local && usage == OriginUse::Connections => Ok(()),
        _ => Err("does not begin with https://, or wss:// for connections"),
    }
}

fn is_host(host: &str) -> bool {
    if let Some(address) = host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
        return address.parse::<std::net::Ipv6Addr>().is_ok();
    }
    let labels_fit = host.split('.').all(|label| {
        let is_word = label.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_');
        is_word && !label.is_empty() && label.len() <= 63
    });
    labels_fit && host.len() <= 253
}

#[cfg(test)]
mod tests {
    use super::*;

    /// APP-D2: no `*`, no `data:`, no quotes or semicolons; wildcards for sub-domains of resources only.
    #[test]
    fn only_origins_are_accepted() {
        use OriginUse::{Base, Connections, Frames, Resources};

        let good = [
            ("https://example.com", Base),
            ("https://example.com:8443", Frames),
            ("https://*.example.com", Resources),
            ("wss://live.example.com", Connections),
            ("http://localhost:3000", Connections),
            ("http://127.0.0.1:3000", Resources),
            ("ws://[::1]:3000", Connections),
        ];
        for (origin, usage) in good {
            assert_eq!(check_origin(origin, usage), Ok(()), "{origin}");
        }
        let bad = [
            ("*", Resources),
            ("https://*", Resources),
            ("https://*.com", Resources),
            ("https://*.example.com", Connections),
            ("https://a.*.example.com", Resources),
            ("wss://example.com", Resources),
            ("http://example.com", Connections),
            ("data:", Resources),
            ("'self'", Resources),
            ("https://a.example;script-src *", Resources),
            ("https://a.example https://b.example", Resources),
            ("https://a.example/path", Resources),
            ("https://user@a.example", Resources),
            ("https://a.example:port", Resources),
            ("https://", Resources),
            ("", Resources),
        ];
        for (origin, usage) in bad {
            assert!(check_origin(origin, usage).is_err(), "{origin}");
        }
    }
}
