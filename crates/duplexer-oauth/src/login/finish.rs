//! The end of a login in a web application, perhaps in another process than its start.

use duplexer_types::text::shown;
use url::Url;

use crate::error::OAuthError;
use crate::event::Event;
use crate::flow::callback::Callback;
use crate::flow::pending::Pending;
use crate::oauth::OAuth;
use crate::server::Standing;
use crate::store::Swapped;

impl OAuth {
    /// Finishes a login with the query of the redirect URI: `code=..&state=..`. A whole URL is accepted too.
    ///
    /// Call it with the same application, account and store as the request that returned the login URL. The tokens are
    /// stored, and requests of this `OAuth` send them from then on.
    ///
    /// # Errors
    /// Fails if the query does not belong to a login of this account that was started in the last ten minutes, if the
    /// login was denied, or if no token can be obtained.
    pub async fn finish(&self, query: &str) -> Result<(), OAuthError> {
        let outcome = self.finish_login(query).await;
        if let Err(error) = &outcome {
            self.0.emit(&Event::Failed { error: error.clone() });
        }
        outcome
    }

    async fn finish_login(&self, query: &str) -> Result<(), OAuthError> {
        let inner = &self.0;
        let unknown = || OAuthError::Callback("it belongs to no login that is in progress".into());
        let callback = Callback::parse(query)?;
        let key = inner.pending_key(callback.state.as_ref().ok_or_else(unknown)?);
        let record = inner.parts.store.load(&key).await?.ok_or_else(unknown)?;
        // A login is finished once: the record is removed before its code is spent.
        let removed = inner.parts.store.swap(&key, Some(record.generation()), None).await?;
        if matches!(removed, Swapped::Conflict(_)) {
            return Err(unknown());
        }
        let pending: Pending = serde_json::from_slice(record.content()).map_err(|_| unknown())?;
        if pending.is_expired(inner.now()) {
            return Err(OAuthError::LoginTimedOut);
        }
        let url = Url::parse(&pending.server).map_err(|_| unknown())?;
        let server = inner.server(&url);
        server.state().offered = None;
        let web = server.web(inner.settings.network).await?;
        let (entry, tokens) = inner.redeem(web, pending, callback).await?;
        inner.emit(&Event::Authorized { issuer: shown(&entry.issuer), scopes: tokens.scopes.clone() });
        inner.adopt(&server, entry, tokens, Standing::Granted).await
    }
}
