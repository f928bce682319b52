//! A login in progress. It is a value, so that a web application can finish it in another process (OAC-35).

use std::time::Duration;

use duplexer_oauth_base::Secret;
use duplexer_oauth_base::secret::as_text;
use serde::{Deserialize, Serialize};
use url::Url;

use crate::discovery::Discovered;
use crate::error::OAuthError;
use crate::record::Entry;
use crate::scope;

/// Maximum time between the start and the end of a login.
pub(crate) const LIFETIME: Duration = Duration::from_secs(600);

/// A login that has been started.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Pending {
    /// The server, by its URL.
    pub(crate) server: String,
    #[serde(with = "as_text")]
    pub(crate) state: Secret,
    #[serde(with = "as_text")]
    pub(crate) verifier: Secret,
    pub(crate) iss: IssRule,
    pub(crate) redirect_uri: String,
    /// Issuer, client, endpoints and scopes. It has no tokens yet.
    pub(crate) entry: Entry,
    /// In seconds since 1970.
    pub(crate) started_at: u64,
}

/// Whether the authorization server says that it sends `iss` (RFC 9207).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum IssRule {
    Required,
    Optional,
}

impl Pending {
    pub(crate) fn new(
        server: &Url,
        discovered: &Discovered,
        entry: Entry,
        redirect_uri: &str,
        now: u64,
    ) -> Result<Self, OAuthError> {
        let is_advertised = discovered.authority.authorization_response_iss_parameter_supported;
        Ok(Self {
            server: server.as_str().to_owned(),
            state: Secret::random()?,
            verifier: Secret::random()?,
            iss: if is_advertised { IssRule::Required } else { IssRule::Optional },
            redirect_uri: redirect_uri.to_owned(),
            entry,
            started_at: now,
        })
    }

    pub(crate) fn is_expired(&self, now: u64) -> bool {
        now.saturating_sub(self.started_at) > LIFETIME.as_secs()
    }

    /// Returns the URL of the authorization request. A query that the endpoint has is kept.
    pub(crate) fn url(&self, endpoint: &Url, thumbprint: Option<&str>) -> Url {
        let mut url = endpoint.clone();
        let challenge = self.verifier.digest();
        let mut query = url.query_pairs_mut();
        query
            .append_pair("response_type", "code")
            .append_pair("client_id", &self.entry.client.id)
            .append_pair("redirect_uri", &self.redirect_uri)
            .append_pair("state", self.state.reveal())
            .append_pair("code_challenge", &challenge)
            .append_pair("code_challenge_method", "S256");
        if let Some(resource) = &self.entry.resource {
            query.append_pair("resource", resource);
        }
        if let Some(scope) = scope::joined(&self.entry.requested) {
            query.append_pair("scope", &scope);
        }
        if self.entry.requested.iter().any(|scope| scope == scope::OFFLINE_ACCESS) {
            query.append_pair("prompt", "consent");
        }
        if let Some(thumbprint) = thumbprint {
            query.append_pair("dpop_jkt", thumbprint);
        }
        drop(query);
        url
    }
}
