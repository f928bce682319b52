//! Client id metadata documents: clients whose id is the URL of their metadata.
//!
//! The URL is untrusted: it must be https and resolve to the public network, and the response is limited in time and
//! size and must not redirect. A document is cached for five minutes, a failure for half a minute.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use duplexer_oauth_base::address::is_public;
use serde::Deserialize;
use tokio::sync::Semaphore;
use tokio::time::Instant;
use url::{Host, Url};

use super::AuthorizationServer;
use super::client::{AuthMethod, ClientMetadata, RegisteredClient};
use super::register::has_secret_members;
use super::store::RecordKind;
use crate::error::{AuthConfigError, OAuthError};
use crate::fetch::{self, FetchError, Fetcher};
use crate::urls;

const MAX_URL: usize = 512;
const MAX_DOCUMENT: usize = 16 * 1024;
const MAX_AGE: Duration = Duration::from_secs(300);
/// Maximum concurrent fetches. Further ones are rejected.
const MAX_FETCHES: usize = 8;

/// Time for which a document that could not be fetched is not fetched again.
const FAILURE_AGE: Duration = Duration::from_secs(30);
/// Maximum cached failures.
const MAX_FAILURES: usize = 1024;
const BUSY: &str = "the server fetches too many documents of clients; try again later";

pub(super) struct ClientDocuments {
    fetcher: Fetcher,
    /// Decides which IP addresses a URL may contain.
    may_call: fn(IpAddr) -> bool,
    fetches: Semaphore,
    failures: Mutex<Failures>,
}

/// Failed fetches: time and error of each, by the URL of the document, or by the origin of a host that did not respond.
///
/// Without them, a few slow documents that are requested again and again would occupy all fetches.
#[derive(Debug, Default)]
struct Failures(HashMap<String, (Instant, OAuthError)>);

#[derive(Deserialize)]
struct Document {
    client_id: String,
    #[serde(flatten)]
    metadata: ClientMetadata,
}

impl ClientDocuments {
    pub(super) fn new() -> Result<Self, AuthConfigError> {
        Ok(Self::with(fetch::guarded()?, is_public))
    }

    pub(super) fn with(fetcher: Fetcher, may_call: fn(IpAddr) -> bool) -> Self {
        Self { fetcher, may_call, fetches: Semaphore::new(MAX_FETCHES), failures: Mutex::default() }
    }

    pub(super) async fn client(
        &self,
        authorization_server: &AuthorizationServer,
        id: &str,
    ) -> Result<Option<RegisteredClient>, OAuthError> {
        let records = &authorization_server.0.records;
        if let Some(known) = records.get(RecordKind::Document, id).await? {
            return Ok(Some(known));
        }
        let url = self.check(id)?;
        if let Some(error) = self.failures().recent(id, &url) {
            return Err(error);
        }
        let permit = self.fetches.try_acquire().map_err(|_| OAuthError::unavailable(BUSY))?;
        let fetched = self.fetch(id).await;
        drop(permit);
        let metadata = fetched
            .map_err(|error| {
                tracing::debug!(%error, "a client's document could not be used");
                if matches!(error, FetchError::Unreachable(_)) {
                    self.failures()
                        .add(urls::origin(&url), unusable("its host did not respond a moment ago"));
                }
                unusable("it cannot be fetched")
            })
            .and_then(|document| usable(document, id))
            .and_then(|metadata| authorization_server.check(&metadata).map(|()| metadata));
        let metadata = metadata.inspect_err(|error| self.failures().add(id.to_owned(), error.clone()))?;
        let client = RegisteredClient::documented(id, metadata);
        let until = authorization_server.after(MAX_AGE);
        records.put_evictable(RecordKind::Document, id, &client, until).await?;
        Ok(Some(client))
    }

    fn failures(&self) -> MutexGuard<'_, Failures> {
        self.failures.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn fetch(&self, url: &str) -> Result<Document, FetchError> {
        let mut value: serde_json::Value = self.fetcher.json(url, MAX_DOCUMENT).await?;
        // The default of a document is a client without a secret.
        if let Some(members) = value.as_object_mut() {
            members.entry("token_endpoint_auth_method").or_insert_with(|| "none".into());
        }
        serde_json::from_value(value).map_err(FetchError::Malformed)
    }

    /// Reads and checks the URL. Host names are checked when they are resolved.
    fn check(&self, id: &str) -> Result<Url, OAuthError> {
        let url = Url::parse(id).map_err(|_| unusable("its URL cannot be read"))?;
        let is_plain = url.as_str() == id && url.fragment().is_none() && url.username().is_empty();
        if id.len() > MAX_URL || url.scheme() != "https" || !is_plain || url.path() == "/" {
            return Err(unusable("its URL must be https, with a path, without user and fragment"));
        }
        let may_call = match url.host() {
            Some(Host::Ipv4(address)) => (self.may_call)(address.into()),
            Some(Host::Ipv6(address)) => (self.may_call)(address.into()),
            Some(Host::Domain(_)) => true,
            None => false,
        };
        if may_call { Ok(url) } else { Err(unusable("its URL is not on the public network")) }
    }
}

impl Failures {
    /// Returns the error of a recent fetch of this document, or from its host.
    fn recent(&self, id: &str, url: &Url) -> Option<OAuthError> {
        let recent = |key: &str| self.0.get(key).filter(|(failed, _)| failed.elapsed() < FAILURE_AGE);
        recent(id).or_else(|| recent(&urls::origin(url))).map(|(_, error)| error.clone())
    }

    fn add(&mut self, key: String, error: OAuthError) {
        if self.0.len() >= MAX_FAILURES {
            self.0.retain(|_, (failed, _)| failed.elapsed() < FAILURE_AGE);
        }
        if self.0.len() < MAX_FAILURES {
            self.0.insert(key, (Instant::now(), error));
        }
    }
}

/// Returns the metadata of a document, if it describes this client and holds no secret.
fn usable(document: Document, id: &str) -> Result<ClientMetadata, OAuthError> {
    if document.client_id != id {
        return Err(unusable("it names another client_id"));
    }
    let mut metadata = document.metadata;
    if has_secret_members(&metadata) {
        return Err(unusable("it must not hold a secret"));
    }
    if metadata.token_endpoint_auth_method == AuthMethod::PrivateKeyJwt {
        return Err(unusable("keys in documents are not supported"));
    }
    metadata.others.clear();
    Ok(metadata)
}

fn unusable(reason: &'static str) -> OAuthError {
    OAuthError::new("invalid_client", format!("the client's document is of no use: {reason}"))
}
