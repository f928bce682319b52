//! Protection against server-side request forgery: a name that resolves to a non-public address is rejected.
//! The checked addresses are the ones that are connected to.

use std::net::SocketAddr;

use reqwest::dns::{Addrs, Name, Resolve, Resolving};

use crate::address::is_public;

/// DNS resolver of the system that rejects names with a non-public address.
#[derive(Debug)]
pub(super) struct Guarded;

/// A name that does not lead to the public network.
#[derive(Debug, thiserror::Error)]
#[error("the name does not lead to the public network")]
pub(super) struct NotPublic;

impl Resolve for Guarded {
    fn resolve(&self, name: Name) -> Resolving {
        Box::pin(async move {
            let found: Vec<SocketAddr> = tokio::net::lookup_host((name.as_str(), 0)).await?.collect();
            // One private address among public ones indicates an attack.
            if found.is_empty() || !found.iter().all(|address| is_public(address.ip())) {
                return Err(NotPublic.into());
            }
            Ok(Box::new(found.into_iter()) as Addrs)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// O15
    #[tokio::test]
    async fn a_name_of_this_machine_is_not_resolved() {
        assert!(Guarded.resolve("localhost".parse().unwrap()).await.is_err());
    }
}
