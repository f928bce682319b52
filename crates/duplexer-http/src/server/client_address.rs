//! The address of the client: that of the peer or, behind trusted proxies, what they say.

use std::net::{IpAddr, SocketAddr};

use http::HeaderMap;
use http::header::FORWARDED;

const X_FORWARDED_FOR: &str = "x-forwarded-for";
/// More entries than a chain of proxies has.
const MAX_HOPS: usize = 32;

/// A range of addresses: `10.0.0.0/8`, or one address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Network {
    address: IpAddr,
    prefix: u32,
}

impl Network {
    /// Parses a range; `None` if it is not one.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let (address, prefix) = match text.split_once('/') {
            Some((address, prefix)) => (address, Some(prefix)),
            None => (text, None),
        };
        let address = address.trim().parse::<IpAddr>().ok()?.to_canonical();
        let bits = if address.is_ipv4() { 32 } else { 128 };
        let prefix = match prefix {
            Some(prefix) => prefix.trim().parse().ok().filter(|prefix| *prefix <= bits)?,
            None => bits,
        };
        Some(Self { address, prefix })
    }

    fn contains(self, address: IpAddr) -> bool {
        let matches = |ours: u128, theirs: u128, bits: u32| {
            let unused = bits - self.prefix.min(bits);
            // Shifting by all bits is not possible: then every address is within.
            ours.checked_shr(unused).unwrap_or(0) == theirs.checked_shr(unused).unwrap_or(0)
        };
        match (self.address, address) {
            (IpAddr::V4(ours), IpAddr::V4(theirs)) => {
                matches(u128::from(ours.to_bits()), u128::from(theirs.to_bits()), 32)
            }
            (IpAddr::V6(ours), IpAddr::V6(theirs)) => matches(ours.to_bits(), theirs.to_bits(), 128),
            _ => false,
        }
    }
}

/// The proxies whose headers are believed.
#[derive(Clone, Debug, Default)]
pub(super) struct TrustedProxies(Vec<Network>);

impl TrustedProxies {
    pub(super) fn add(&mut self, network: Network) {
        self.0.push(network);
    }

    /// Returns the address of the client: the last one on the way here that is not a trusted proxy. Each proxy appends the address
    /// of its own peer, so entries to the left of that one are whatever the client sent.
    pub(super) fn client(&self, peer: IpAddr, headers: &HeaderMap) -> IpAddr {
        let mut client = peer.to_canonical();
        if !self.trusts(client) {
            return client;
        }
        for hop in hops(headers).into_iter().take(MAX_HOPS) {
            // A proxy that does not name its peer is as far as the chain is known.
            let Some(hop) = hop else { break };
            client = hop;
            if !self.trusts(client) {
                break;
            }
        }
        client
    }

    fn trusts(&self, address: IpAddr) -> bool {
        self.0.iter().any(|network| network.contains(address))
    }
}

/// Returns the addresses that proxies have added, the nearest first. `None` is an entry that is not an address.
fn hops(headers: &HeaderMap) -> Vec<Option<IpAddr>> {
    let values = |name| headers.get_all(name).iter().filter_map(|value| value.to_str().ok());
    let mut hops: Vec<Option<IpAddr>> =
        values(X_FORWARDED_FOR).flat_map(|value| value.split(',')).map(address).collect();
    if hops.is_empty() {
        let elements = values(FORWARDED.as_str()).flat_map(|value| value.split(','));
        hops = elements.filter_map(forwarded_for).map(address).collect();
    }
    hops.reverse();
    hops
}

/// Returns the value of `for` in an element of `Forwarded`.
fn forwarded_for(element: &str) -> Option<&str> {
    let mut pairs = element.split(';').filter_map(|pair| pair.trim().split_once('='));
    pairs.find(|(name, _)| name.trim().eq_ignore_ascii_case("for")).map(|(_, value)| value.trim())
}

/// Parses `192.0.2.7`, `192.0.2.7:4711`, `2001:db8::7`, `[2001:db8::7]` and `[2001:db8::7]:4711`, with and without quotes.
fn address(text: &str) -> Option<IpAddr> {
    let text = text.trim().trim_matches('"');
    let bracketed = text.strip_prefix('[').and_then(|text| text.strip_suffix(']'));
    let address = bracketed.unwrap_or(text).parse::<IpAddr>().ok();
    address.or_else(|| text.parse::<SocketAddr>().ok().map(|socket| socket.ip())).map(|ip| ip.to_canonical())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn client(trusted: &[&str], peer: &str, headers: &[(&'static str, &str)]) -> String {
        let mut proxies = TrustedProxies::default();
        for network in trusted {
            proxies.add(Network::parse(network).unwrap());
        }
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.append(*name, value.parse().unwrap());
        }
        proxies.client(peer.parse().unwrap(), &map).to_string()
    }

    #[test]
    fn only_trusted_proxies_are_believed() {
        let xff = |value| [("x-forwarded-for", value)];
        assert_eq!(client(&[], "192.0.2.1", &xff("198.51.100.9")), "192.0.2.1");
        assert_eq!(client(&["10.0.0.0/8"], "192.0.2.1", &xff("198.51.100.9")), "192.0.2.1");
        assert_eq!(client(&["10.0.0.0/8"], "10.1.2.3", &xff("198.51.100.9")), "198.51.100.9");
        assert_eq!(client(&["10.0.0.0/8"], "10.1.2.3", &[]), "10.1.2.3");
    }

    /// A client can write what it likes into the header that it sends: only what proxies append counts.
    #[test]
    fn what_a_client_forges_does_not_count() {
        let forged = [("x-forwarded-for", "1.1.1.1, 198.51.100.9, 10.9.9.9")];
        assert_eq!(client(&["10.0.0.0/8"], "10.1.2.3", &forged), "198.51.100.9");
        let in_two = [("x-forwarded-for", "1.1.1.1"), ("x-forwarded-for", "198.51.100.9")];
        assert_eq!(client(&["10.0.0.0/8"], "10.1.2.3", &in_two), "198.51.100.9");
        let malformed = [("x-forwarded-for", "198.51.100.9, unknown")];
        assert_eq!(client(&["10.0.0.0/8"], "10.1.2.3", &malformed), "10.1.2.3");
    }

    #[test]
    fn both_headers_and_all_forms_of_addresses_are_read() {
        let check = |name, value, expected: &str| {
            assert_eq!(client(&["::1", "10.0.0.0/8"], "::1", &[(name, value)]), expected, "{value}");
        };
        check("x-forwarded-for", "192.0.2.7:4711", "192.0.2.7");
        check("x-forwarded-for", "[2001:db8::7]:4711", "2001:db8::7");
        check("x-forwarded-for", "::ffff:192.0.2.7", "192.0.2.7");
        check("forwarded", r#"proto=https;For="[2001:db8::7]:99";by=10.0.0.1"#, "2001:db8::7");
        check("forwarded", "for=192.0.2.7, for=10.0.0.9", "192.0.2.7");
        check("forwarded", "for=_hidden", "::1");
    }

    #[test]
    fn ranges_are_compared_by_their_prefix() {
        let contains = |network: &str, address: &str| {
            Network::parse(network).unwrap().contains(address.parse().unwrap())
        };
        assert!(contains("0.0.0.0/0", "255.1.2.3") && contains("::/0", "2001:db8::1"));
        assert!(
            contains("192.168.1.128/25", "192.168.1.200") && !contains("192.168.1.128/25", "192.168.1.1")
        );
        assert!(contains("2001:db8::/32", "2001:db8:1::1") && !contains("2001:db8::/32", "2001:db9::1"));
        assert!(!contains("0.0.0.0/0", "::1"));
        for wrong in ["", "10.0.0.0/33", "::/129", "10.0.0/8", "host", "10.0.0.0/-1"] {
            assert_eq!(Network::parse(wrong), None, "{wrong}");
        }
    }
}
