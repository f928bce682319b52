//! Addresses and URLs: which are public, which are on this machine, and which are protected by TLS.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use url::{Host, Url};

/// Returns whether an address belongs to the public network.
pub fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => is_public_v6(address),
    }
}

fn is_public_v4(address: Ipv4Addr) -> bool {
    let [a, b, c, _] = address.octets();
    let special = address.is_private()
        || address.is_loopback()
        || address.is_link_local()
        || address.is_multicast()
        || address.is_documentation()
        || a == 0
        || a >= 240
        // Carrier-grade NAT, protocol assignments, old 6to4 relays, benchmarks.
        || (a == 100 && (64..128).contains(&b))
        || (a, b, c) == (192, 0, 0)
        || (a, b, c) == (192, 88, 99)
        || (a == 198 && (18..20).contains(&b));
    !special
}

/// Accepts global unicast (`2000::/3`), except ranges that are reserved or embed another address.
fn is_public_v6(address: Ipv6Addr) -> bool {
    if let Some(inner) = address.to_ipv4_mapped() {
        return is_public_v4(inner);
    }
    let [first, second, ..] = address.segments();
    let is_global = first & 0xe000 == 0x2000;
    let is_teredo_or_special = first == 0x2001 && (second < 0x0200 || second == 0x0db8);
    let is_6to4 = first == 0x2002;
    let is_documentation = first & 0xfff0 == 0x3ff0;
    is_global && !is_teredo_or_special && !is_6to4 && !is_documentation
}

/// Returns whether the URL is https, or http on this machine.
pub fn is_protected(url: &Url) -> bool {
    match url.scheme() {
        "https" => url.host().is_some(),
        "http" => url.host().is_some_and(|host| is_loopback(&host)),
        _ => false,
    }
}

/// Returns whether a host is this machine: `localhost`, or a loopback address.
pub fn is_loopback(host: &Host<&str>) -> bool {
    match host {
        Host::Domain(name) => *name == "localhost",
        Host::Ipv4(address) => IpAddr::from(*address).is_loopback(),
        Host::Ipv6(address) => IpAddr::from(*address).is_loopback(),
    }
}

/// Returns the path of a well-known document, which is inserted before the path of the URL.
pub fn well_known(name: &str, url: &Url) -> String {
    let path = url.path().strip_suffix('/').unwrap_or(url.path());
    format!("/.well-known/{name}{path}")
}

/// Returns scheme, host and port in the form of an `Origin` header.
pub fn origin(url: &Url) -> String {
    url.origin().ascii_serialization()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// O15: addresses of this machine, its network and its cloud are not public.
    #[test]
    fn only_the_public_network_is_public() {
        for private in [
            "127.0.0.1",
            "127.8.8.8",
            "0.0.0.0",
            "10.0.0.1",
            "172.16.0.1",
            "192.168.1.1",
            "169.254.169.254",
            "100.64.0.1",
            "192.0.0.8",
            "192.0.2.1",
            "198.18.0.1",
            "203.0.113.9",
            "224.0.0.1",
            "255.255.255.255",
            "::",
            "::1",
            "::ffff:127.0.0.1",
            "::ffff:10.0.0.1",
            "fe80::1",
            "fc00::1",
            "fd12:3456::1",
            "ff02::1",
            "2001::1",
            "2001:db8::1",
            "2002:7f00:1::",
            "64:ff9b::7f00:1",
            "3fff::1",
        ] {
            assert!(!is_public(private.parse().unwrap()), "{private}");
        }
        for public in ["1.1.1.1", "8.8.8.8", "172.32.0.1", "100.128.0.1", "2606:4700::1111", "2a00:1450::1"] {
            assert!(is_public(public.parse().unwrap()), "{public}");
        }
    }
}
