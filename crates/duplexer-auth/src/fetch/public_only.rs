//! Protection against server-side request forgery: a name that resolves to a non-public address is rejected.
//! The checked addresses are the ones that are connected to.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use reqwest::dns::{Addrs, Name, Resolve, Resolving};

/// DNS resolver of the system that rejects names with a non-public address.
#[derive(Debug)]
pub(crate) struct Guarded;

impl Resolve for Guarded {
    fn resolve(&self, name: Name) -> Resolving {
        Box::pin(async move {
            let found: Vec<SocketAddr> = tokio::net::lookup_host((name.as_str(), 0)).await?.collect();
            // One private address among public ones indicates an attack.
            if found.is_empty() || !found.iter().all(|address| is_public(address.ip())) {
                return Err(io::Error::other("the name does not lead to the public network").into());
            }
            Ok(Box::new(found.into_iter()) as Addrs)
        })
    }
}

/// Returns whether an address belongs to the public network.
pub(crate) fn is_public(address: IpAddr) -> bool {
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

    /// O15
    #[tokio::test]
    async fn a_name_of_this_machine_is_not_resolved() {
        assert!(Guarded.resolve("localhost".parse().unwrap()).await.is_err());
    }
}
