//! Messages of HTTP+SSE that arrive at another node than the one that holds the stream.

use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use duplexer_server::Principal;
use duplexer_types::json::JsonObject;
use duplexer_types::jsonrpc;
use http::StatusCode;
use serde::{Deserialize, Serialize};

use super::session::SseSessions;
use super::{Link, Posted, incoming_message, unknown_session};
use crate::server::reply::{self, Rejection, Reply};
use crate::server::service_state::ServiceState;
use crate::server::session::Stores;
use crate::session::{NodeMessage, Sent, SessionDigest};

/// A message on its way to another node.
#[derive(Serialize, Deserialize)]
struct Forwarded {
    sender: Option<Sender>,
    body: String,
}

/// The principal of a message.
#[derive(Serialize, Deserialize)]
struct Sender {
    client: String,
    issuer: Option<String>,
    subject: Option<String>,
    scopes: Vec<String>,
    /// Seconds since 1970.
    expires_at: Option<u64>,
    claims: JsonObject,
}

impl Sender {
    fn of(principal: &Principal) -> Self {
        let expires_at = principal.expires_at.and_then(|time| time.duration_since(UNIX_EPOCH).ok());
        Self {
            client: principal.client_id.clone(),
            issuer: principal.issuer.clone(),
            subject: principal.subject.clone(),
            scopes: principal.scopes.clone(),
            expires_at: expires_at.map(|time| time.as_secs()),
            claims: principal.claims.clone(),
        }
    }

    fn into_principal(self) -> Principal {
        let mut principal = Principal::new(self.client);
        principal.issuer = self.issuer;
        principal.subject = self.subject;
        principal.scopes = self.scopes;
        principal.expires_at = self
            .expires_at
            .and_then(|seconds| SystemTime::checked_add(&UNIX_EPOCH, Duration::from_secs(seconds)));
        principal.claims = self.claims;
        principal
    }
}

/// Sends a message to the node that holds the stream of its session.
pub(super) async fn send(
    stores: &Stores,
    link: &Link,
    principal: Option<&Principal>,
    body: &Bytes,
) -> Result<Reply, Rejection> {
    let garbled = || Rejection::new(reply::text(StatusCode::BAD_REQUEST, "Could not parse message"));
    let text = std::str::from_utf8(body).map_err(|_| garbled())?;
    jsonrpc::read(text).map_err(|_| garbled())?;
    let forwarded = Forwarded { sender: principal.map(Sender::of), body: text.to_owned() };
    let message = serde_json::to_vec(&forwarded).map_err(|_| reply::internal_error_without_id())?.into();
    let run = link.run.ok_or_else(unknown_session)?;
    let posted = NodeMessage::Posted { link: SessionDigest(link.key), message };
    match stores.send(run, &posted).await {
        Ok(Sent::Queued) => Ok(reply::text(StatusCode::ACCEPTED, "Accepted")),
        Ok(Sent::Gone) => Err(unknown_session()),
        Err(error) => Err(reply::store_failed(None, &error).into()),
    }
}

/// Delivers a message that another node has received, if its sender owns the session.
pub(in crate::server) fn receive(service: &Arc<ServiceState>, link: SessionDigest, message: &Bytes) {
    let Ok(Forwarded { sender, body }) = serde_json::from_slice(message) else { return };
    let principal = sender.map(|sender| Arc::new(sender.into_principal()));
    let Some(session) = SseSessions::find(service, link.0, principal.as_deref()) else { return };
    let Some(permit) = Arc::clone(service).admit(principal.as_deref()) else {
        tracing::warn!("a message that another node has received is dropped: too many requests in flight");
        return;
    };
    let posted = Posted { headers: None, _permit: permit };
    let (incoming, _) = incoming_message(posted, principal, &body.into());
    let owner = Arc::clone(service);
    service.spawn_tracked(async move {
        let _ = session.deliver(&owner, incoming).await;
    });
}
