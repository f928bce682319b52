//! Discovery: from the challenge of a server to the endpoints of its authorization server.

pub(crate) mod authority;
pub(crate) mod resource;

use duplexer_oauth_base::address::origin;
use duplexer_types::text::shown;
use serde::{Deserialize, Deserializer};
use url::Url;

use crate::challenge::Challenge;
use crate::error::OAuthError;
use crate::settings::IssuerRules;
use crate::web::Web;
use authority::{Authority, Found};
use resource::Resource;

/// Result of discovery.
#[derive(Clone, Debug)]
pub(crate) struct Discovered {
    pub(crate) authority: Authority,
    /// `resource` as the server publishes it, byte for byte. Servers of 2025-03-26 have none.
    pub(crate) resource: Option<String>,
    /// Scopes that the server publishes.
    pub(crate) scopes: Vec<String>,
}

/// Maximum authorization servers of one server that are tried.
const MAX_AUTHORITIES: usize = 8;

/// Discovers the authorization server of `server`. It is never cached: the server can change it (OAC-16).
///
/// `known` are issuers with stored credentials, which are preferred (OAC-15).
pub(crate) async fn discover(
    web: &Web,
    server: &Url,
    challenge: &Challenge,
    rules: &IssuerRules,
    known: &[String],
) -> Result<Discovered, OAuthError> {
    let Some(resource) = resource::fetch(web, server, challenge).await? else {
        // An attacker who hides the metadata must not choose another issuer than the configured one.
        if rules.pinned.as_ref().is_some_and(|pinned| !rules.is_same(pinned, &origin(server))) {
            return Err(none(server, "it has no metadata, and is not the configured issuer"));
        }
        let authority = authority::of_origin(web, server, rules).await?;
        return Ok(Discovered { authority, resource: None, scopes: Vec::new() });
    };
    let authority = choose(web, server, &resource, rules, known).await?;
    Ok(Discovered { authority, resource: Some(resource.resource), scopes: resource.scopes_supported })
}

async fn choose(
    web: &Web,
    server: &Url,
    resource: &Resource,
    rules: &IssuerRules,
    known: &[String],
) -> Result<Authority, OAuthError> {
    let mut listed = resource.authorization_servers.clone();
    if let Some(pinned) = &rules.pinned {
        listed.retain(|issuer| rules.is_same(pinned, issuer));
        if listed.is_empty() {
            return Err(none(server, "the configured issuer is not listed in its metadata"));
        }
    }
    // The sort is stable: other issuers keep the order of the server.
    listed.sort_by_key(|issuer| !known.iter().any(|known| rules.is_same(known, issuer)));
    listed.truncate(MAX_AUTHORITIES);
    let mut first = None;
    for issuer in &listed {
        let failure = match authority::fetch(web, issuer, rules).await {
            Ok(Found::Metadata(authority)) => return Ok(*authority),
            Ok(Found::Nothing) => none(server, &format!("there is no metadata of '{}'", shown(issuer))),
            Err(error) => error,
        };
        first.get_or_insert(failure);
    }
    Err(first.unwrap_or_else(|| none(server, "its metadata lists none")))
}

fn none(server: &Url, reason: &str) -> OAuthError {
    OAuthError::NoAuthority { server: origin(server), reason: reason.to_owned() }
}

/// Reads a member of metadata. Some servers write `null` for members that they do not have.
fn or_default<'de, D: Deserializer<'de>, T: Deserialize<'de> + Default>(from: D) -> Result<T, D::Error> {
    Ok(Option::deserialize(from)?.unwrap_or_default())
}
