//! Checks of the `Host` and `Origin` headers.
//!
//! Any web page can make a browser send requests to a server on this machine; only these two headers reveal it. Both
//! are parsed and compared by their parts, never by prefix.

use duplexer_types::headers::Values;
use duplexer_types::text;
use http::uri::Authority as Target;

use super::head::Head;

/// Error of a text that is neither a host nor an origin.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("'{text}' is not {expected}")]
pub struct InvalidName {
    text: String,
    expected: &'static str,
}

/// Reason of a rejection, addressed to the operator of the server.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct NotAllowed(pub(super) String);

/// Allowed hosts and origins.
#[derive(Clone, Debug)]
pub(super) struct Allowed {
    hosts: Hosts,
    origins: Origins,
}

#[derive(Clone, Debug)]
enum Hosts {
    Listed(Vec<Authority>),
    Any,
}

#[derive(Clone, Debug)]
enum Origins {
    Listed(Vec<Origin>),
    Any,
}

/// A host and an optional port. Without one it matches any port.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Authority {
    host: String,
    port: Option<u16>,
}

/// An origin. Without a scheme it matches both schemes.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Origin {
    scheme: Option<&'static str>,
    authority: Authority,
}

const LOOPBACK: [&str; 3] = ["localhost", "127.0.0.1", "[::1]"];

impl Default for Allowed {
    fn default() -> Self {
        let loopback = || LOOPBACK.iter().map(|host| Authority { host: (*host).to_owned(), port: None });
        Self {
            hosts: Hosts::Listed(loopback().collect()),
            origins: Origins::Listed(
                loopback().map(|authority| Origin { scheme: None, authority }).collect(),
            ),
        }
    }
}

impl Allowed {
    pub(super) fn add_host(&mut self, host: &str) -> Result<(), InvalidName> {
        let parsed = Authority::parse(host).ok_or_else(|| InvalidName {
            text: host.to_owned(),
            expected: "a host: give a name or an address, and a port if only that port is meant",
        })?;
        if let Hosts::Listed(hosts) = &mut self.hosts {
            hosts.push(parsed);
        }
        Ok(())
    }

    pub(super) fn any_host(&mut self) {
        self.hosts = Hosts::Any;
    }

    pub(super) fn add_origin(&mut self, origin: &str) -> Result<(), InvalidName> {
        let parsed = Origin::parse(origin).ok_or_else(|| InvalidName {
            text: origin.to_owned(),
            expected: "an origin: give scheme, host and maybe a port, such as https://app.example.com",
        })?;
        if let Origins::Listed(origins) = &mut self.origins {
            origins.push(parsed);
        }
        Ok(())
    }

    pub(super) fn any_origin(&mut self) {
        self.origins = Origins::Any;
    }

    /// Checks host and origin of a request.
    pub(super) fn check(&self, head: &Head<'_>, target: Option<&Target>) -> Result<(), NotAllowed> {
        self.check_host(head.host, target)?;
        self.check_origin(head.origin)
    }

    /// Requires at least one host, and that every host of the request is allowed.
    fn check_host(&self, header: Values<'_>, target: Option<&Target>) -> Result<(), NotAllowed> {
        let Hosts::Listed(hosts) = &self.hosts else { return Ok(()) };
        let header = match header {
            Values::Several => {
                return Err(NotAllowed("the request has more than one Host header".to_owned()));
            }
            Values::Absent => None,
            Values::One(host) => Some(host),
        };
        let target = target.map(|target| target.as_str().as_bytes());
        if header.is_none() && target.is_none() {
            return Err(NotAllowed("the request names no host".to_owned()));
        }
        for named in [header, target].into_iter().flatten() {
            if !hosts.iter().any(|allowed| allowed.is(named)) {
                let named = shown(named);
                return Err(NotAllowed(format!(
                    "host '{named}' is not allowed: to allow it, name it with `public_url` or `allow_host`"
                )));
            }
        }
        Ok(())
    }

    fn check_origin(&self, header: Values<'_>) -> Result<(), NotAllowed> {
        let Origins::Listed(origins) = &self.origins else { return Ok(()) };
        let origin = match header {
            Values::Absent => return Ok(()),
            Values::Several => {
                return Err(NotAllowed("the request has more than one Origin header".to_owned()));
            }
            Values::One(origin) => origin,
        };
        if is_listed(origins, origin) {
            return Ok(());
        }
        let origin = shown(origin);
        Err(NotAllowed(format!(
            "origin '{origin}' is not allowed: to allow it, name it with `public_url` or `allow_origin`"
        )))
    }
}

fn is_listed(origins: &[Origin], origin: &[u8]) -> bool {
    let Some(origin) = std::str::from_utf8(origin).ok().and_then(Origin::parse) else {
        return false;
    };
    origins.iter().any(|allowed| {
        allowed.scheme.is_none_or(|scheme| origin.scheme == Some(scheme))
            && allowed.authority.host == origin.authority.host
            && (allowed.scheme.is_none() || allowed.port() == origin.port())
    })
}

impl Authority {
    fn parse(text: &str) -> Option<Self> {
        let (host, port) = Self::split(text)?;
        Some(Self { host: host.to_ascii_lowercase(), port })
    }

    /// Splits `host[:port]`. Rejects everything else: a user, a path, a list.
    fn split(text: &str) -> Option<(&str, Option<u16>)> {
        let end =
            if text.starts_with('[') { text.find(']')? + 1 } else { text.find(':').unwrap_or(text.len()) };
        let (host, rest) = text.split_at(end);
        let port = match rest.strip_prefix(':') {
            None if rest.is_empty() => None,
            Some(digits) => Some(port(digits.as_bytes())?),
            None => return None,
        };
        let valid = match host.strip_prefix('[').and_then(|host| host.strip_suffix(']')) {
            Some(address) => address.parse::<std::net::Ipv6Addr>().is_ok(),
            None => {
                !host.is_empty()
                    && host
                        .bytes()
                        .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_'))
            }
        };
        valid.then_some((host, port))
    }

    /// Returns whether `text` is this host, with its port if one is set. A text equal to a valid host is valid.
    fn is(&self, text: &[u8]) -> bool {
        let Some((host, rest)) = text.split_at_checked(self.host.len()) else { return false };
        host.eq_ignore_ascii_case(self.host.as_bytes())
            && match rest {
                [] => self.port.is_none(),
                [b':', digits @ ..] => {
                    port(digits).is_some_and(|port| self.port.is_none_or(|meant| meant == port))
                }
                _ => false,
            }
    }
}

/// Parses a port. Accepts digits only.
fn port(digits: &[u8]) -> Option<u16> {
    let add = |port: u16, digit: &u8| {
        let digit = digit.is_ascii_digit().then(|| digit - b'0')?;
        port.checked_mul(10)?.checked_add(digit.into())
    };
    digits.iter().try_fold(0, add).filter(|_| !digits.is_empty())
}

impl Origin {
    /// Parses an origin as browsers serialize it. `null` is rejected.
    fn parse(text: &str) -> Option<Self> {
        let (scheme, rest) = text.split_once("://")?;
        let scheme = ["http", "https"].into_iter().find(|known| known.eq_ignore_ascii_case(scheme))?;
        Some(Self { scheme: Some(scheme), authority: Authority::parse(rest)? })
    }

    /// Returns the port, explicit or the default of the scheme.
    fn port(&self) -> Option<u16> {
        let usual = match self.scheme {
            Some("http") => Some(80),
            Some(_) => Some(443),
            None => None,
        };
        self.authority.port.or(usual)
    }
}

/// Returns an untrusted value for an error text.
fn shown(value: &[u8]) -> String {
    text::shown(&String::from_utf8_lossy(value.get(..100).unwrap_or(value)))
}

#[cfg(test)]
mod tests {
    use http::Request;

    use super::*;

    fn check(allowed: &Allowed, uri: &str, headers: &[(&str, &str)]) -> Result<(), NotAllowed> {
        let mut request = Request::builder().method("POST").uri(uri);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let (parts, ()) = request.body(()).unwrap().into_parts();
        allowed.check(&Head::read(&parts.headers), parts.uri.authority())
    }

    fn origin_of(allowed: &Allowed, origin: &str) -> bool {
        check(allowed, "/", &[("host", "localhost"), ("origin", origin)]).is_ok()
    }

    /// SEC-02: hosts are compared by parts; a text that only resembles one is rejected.
    #[test]
    fn only_this_machine_is_a_host_by_default() {
        let allowed = Allowed::default();
        for host in ["localhost", "localhost:3000", "LOCALHOST:1", "127.0.0.1:80", "[::1]", "[::1]:8080"] {
            assert_eq!(check(&allowed, "/mcp", &[("host", host)]), Ok(()), "{host}");
        }
        for host in [
            "",
            "evil.example",
            "localhost.evil.example",
            "localhost:3000@evil.example",
            "user@localhost",
            "127.0.0.1:80.evil.example",
            "localhost:",
            "localhost:99999",
            "localhost:+1",
            "localhost/",
            "localhost, evil.example",
            "[::1",
            "[::1]evil",
            "[localhost]",
            "127.0.0.1.",
            "0.0.0.0",
        ] {
            assert!(check(&allowed, "/mcp", &[("host", host)]).is_err(), "{host}");
        }
        assert!(check(&allowed, "/mcp", &[]).is_err(), "no host at all");
        assert!(check(&allowed, "/mcp", &[("host", "localhost"), ("host", "localhost")]).is_err());
        assert!(check(&allowed, "http://evil.example/mcp", &[("host", "localhost")]).is_err());
        assert_eq!(check(&allowed, "http://localhost/mcp", &[]), Ok(()), "HTTP/2 names it in the target");
    }

    /// SEC-03: origins are compared by scheme, host and port.
    #[test]
    fn only_this_machine_is_an_origin_by_default() {
        let allowed = Allowed::default();
        let origin = |origin| check(&allowed, "/mcp", &[("host", "localhost"), ("origin", origin)]);
        for fine in ["http://localhost", "https://localhost:5173", "http://127.0.0.1:80", "http://[::1]:1"] {
            assert_eq!(origin(fine), Ok(()), "{fine}");
        }
        for foreign in [
            "null",
            "",
            "localhost",
            "http://evil.example",
            "http://localhost.evil.example:80",
            "http://127.0.0.1:80.evil.example",
            "http://localhost@evil.example",
            "http://localhost/",
            "file://localhost",
            "http://localhost:80 http://evil.example",
        ] {
            assert!(origin(foreign).is_err(), "{foreign}");
        }
        let twice = [("host", "localhost"), ("origin", "http://localhost"), ("origin", "http://localhost")];
        assert!(check(&allowed, "/mcp", &twice).is_err());
    }

    #[test]
    fn a_refusal_names_the_value_and_the_setting() {
        let Err(NotAllowed(text)) = check(&Allowed::default(), "/", &[("host", "mcp.example.com")]) else {
            panic!("refused")
        };
        assert!(text.contains("'mcp.example.com'") && text.contains("`allow_host`"), "{text}");
        let named = [("host", "localhost"), ("origin", "https://app.example.com")];
        let Err(NotAllowed(text)) = check(&Allowed::default(), "/", &named) else { panic!("refused") };
        assert!(text.contains("'https://app.example.com'") && text.contains("`allow_origin`"), "{text}");
    }

    #[test]
    fn what_is_listed_is_allowed_with_its_port_and_scheme() {
        let mut allowed = Allowed::default();
        allowed.add_host("mcp.example.com").unwrap();
        allowed.add_host("one.example.com:8443").unwrap();
        allowed.add_origin("https://app.example.com").unwrap();
        let host = |host| check(&allowed, "/mcp", &[("host", host)]).is_ok();
        assert!(host("mcp.example.com") && host("MCP.example.com:443") && host("one.example.com:8443"));
        assert!(!host("one.example.com") && !host("one.example.com:80"));
        let origin = |origin| origin_of(&allowed, origin);
        assert!(origin("https://app.example.com") && origin("https://app.example.com:443"));
        assert!(!origin("http://app.example.com") && !origin("https://app.example.com:8443"));
        for wrong in ["", "a b", "http://x", "user@x", "x:y"] {
            assert!(allowed.add_host(wrong).is_err(), "{wrong}");
        }
        assert!(allowed.add_origin("app.example.com").is_err() && allowed.add_origin("null").is_err());
        allowed.any_origin();
        assert!(origin_of(&allowed, "https://other.example") && origin_of(&allowed, "null"));
        allowed.any_host();
        assert_eq!(check(&allowed, "/mcp", &[("host", "anything.example")]), Ok(()));
    }
}
