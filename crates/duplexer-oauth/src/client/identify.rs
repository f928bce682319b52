//! Which identity a login uses at an issuer (OAC-22).

use super::authentication::{Client, Method};
use super::{ClientIdentity, Credential};
use crate::discovery::authority::Authority;
use crate::record::{ClientOrigin, StoredClient};

/// Returns the configured identity that applies at an issuer: one of this issuer first, a registered one before a
/// document, and a document only where the authorization server supports it.
pub(crate) fn configured<'a>(
    identities: &'a [ClientIdentity],
    authority: &Authority,
) -> Option<&'a ClientIdentity> {
    let usable = || {
        identities.iter().filter(|identity| {
            identity.is_for(&authority.issuer)
                && (!identity.is_document() || authority.client_id_metadata_document_supported)
        })
    };
    usable()
        .filter(|identity| !identity.is_document())
        .max_by_key(|identity| identity.issuer.is_some())
        .or_else(|| usable().find(|identity| identity.is_document()))
}

impl ClientIdentity {
    /// Returns the client for token requests at an authorization server.
    pub(crate) fn resolve(&self, authority: &Authority) -> Client {
        let id = self.id.clone();
        match &self.credential {
            Credential::Public | Credential::Document => {
                Client { id, method: Method::None, secret: None, key: None }
            }
            Credential::Secret(secret) => {
                let method = Method::with_secret(authority);
                Client { id, method, secret: Some(secret.clone()), key: None }
            }
            Credential::Key(key) => {
                Client { id, method: Method::PrivateKeyJwt, secret: None, key: Some(key.clone()) }
            }
        }
    }

    /// Returns what is stored of a configured client: its id, never its secret.
    pub(crate) fn stored(&self, method: Method, redirect_uri: Option<String>) -> StoredClient {
        StoredClient {
            id: self.id.clone(),
            method,
            secret: None,
            secret_expires_at: None,
            redirect_uri,
            origin: ClientOrigin::Configured,
        }
    }
}

impl StoredClient {
    /// Returns whether a stored registration can be used for another login: by its redirect URI, and by the time.
    pub(crate) fn fits(&self, redirect_uri: &str, now: u64) -> bool {
        self.origin == ClientOrigin::Registered
            && self.redirect_uri.as_deref() == Some(redirect_uri)
            && self.secret_expires_at.is_none_or(|end| now < end)
    }

    /// Returns the client for token requests, or `None` if the configuration names another one, or lacks its secret or key.
    pub(crate) fn resolve(&self, identities: &[ClientIdentity], issuer: &str) -> Option<Client> {
        let applicable = || identities.iter().filter(|identity| identity.is_for(issuer));
        if let Some(identity) = applicable().find(|identity| identity.id == self.id) {
            let mut client = identity.resolve(&Authority::default());
            client.method = self.method;
            return Some(client);
        }
        // A document replaces no client: it may not be supported there.
        let is_replaced = applicable().any(|identity| !identity.is_document());
        let has_all = self.origin == ClientOrigin::Registered || self.method == Method::None;
        let client =
            || Client { id: self.id.clone(), method: self.method, secret: self.secret.clone(), key: None };
        (has_all && !is_replaced).then(client)
    }
}

#[cfg(test)]
mod tests {
    use duplexer_oauth_base::Secret;

    use super::*;

    /// OAC-22, P-AUC-7
    #[test]
    fn a_client_of_the_issuer_comes_first_and_a_document_only_where_it_is_supported() {
        let identities = [
            ClientIdentity::document("https://c.example/client.json"),
            ClientIdentity::public("any"),
            ClientIdentity::secret("own", Secret::new("s")).issuer("https://a"),
        ];
        let chosen = |identities: &[ClientIdentity], issuer: &str, documents: bool| {
            let authority = Authority {
                issuer: issuer.into(),
                client_id_metadata_document_supported: documents,
                ..Authority::default()
            };
            configured(identities, &authority).map(|identity| identity.id.clone())
        };
        assert_eq!(chosen(&identities, "https://a", true).as_deref(), Some("own"));
        assert_eq!(chosen(&identities, "https://b", true).as_deref(), Some("any"));
        assert_eq!(
            chosen(&identities[..1], "https://b", true).as_deref(),
            Some("https://c.example/client.json")
        );
        assert_eq!(chosen(&identities[..1], "https://b", false), None);
        assert_eq!(chosen(&identities[2..], "https://b", true), None);
    }

    /// OAC-22: an expired secret or another redirect URI requires another registration.
    #[test]
    fn a_stored_registration_is_used_while_it_fits() {
        let mut client = StoredClient {
            id: "a".into(),
            method: Method::Basic,
            secret: Some(Secret::new("s")),
            secret_expires_at: Some(100),
            redirect_uri: Some("http://127.0.0.1:1/cb".into()),
            origin: ClientOrigin::Registered,
        };
        assert!(client.fits("http://127.0.0.1:1/cb", 99));
        assert!(!client.fits("http://127.0.0.1:1/cb", 100) && !client.fits("http://127.0.0.1:2/cb", 99));
        client.origin = ClientOrigin::Configured;
        assert!(!client.fits("http://127.0.0.1:1/cb", 99) && client.resolve(&[], "https://a").is_none());
    }

    /// OAC-22: a stored client is used as long as the configuration names no other one and it needs nothing from there.
    #[test]
    fn a_configured_client_replaces_a_stored_one() {
        let registered = StoredClient {
            id: "a".into(),
            method: Method::Basic,
            secret: Some(Secret::new("s")),
            secret_expires_at: None,
            redirect_uri: None,
            origin: ClientOrigin::Registered,
        };
        let configured = |method| ClientIdentity::public("a").stored(method, None);
        let resolved = |client: &StoredClient, identities: &[ClientIdentity]| {
            let client = client.resolve(identities, "https://i")?;
            Some(client.secret.map_or_else(String::new, |secret| secret.reveal().to_owned()))
        };
        let other = [ClientIdentity::public("b")];
        let elsewhere = [ClientIdentity::public("b").issuer("https://other")];
        let document = [ClientIdentity::document("https://c.example/client.json")];
        for harmless in [&[][..], &elsewhere, &document] {
            assert_eq!(resolved(&registered, harmless).as_deref(), Some("s"));
            assert_eq!(resolved(&configured(Method::None), harmless).as_deref(), Some(""));
            assert_eq!(resolved(&configured(Method::Post), harmless), None);
        }
        assert_eq!(
            (resolved(&registered, &other), resolved(&configured(Method::None), &other)),
            (None, None)
        );
        let own = [ClientIdentity::secret("a", Secret::new("new"))];
        assert_eq!(resolved(&configured(Method::Post), &own).as_deref(), Some("new"));
    }
}
