//! Messages of a client that concern another node, and messages of other nodes that concern this one.
//!
//! A response or progress names the run of the request it belongs to; the run of a cancelled request is in the store. The
//! receiver compares the session: to know the name of a run gives no rights.

use std::sync::{Arc, Weak};

use bytes::Bytes;
use bytestring::ByteString;
use duplexer_core::dispatch::{Frame, Message, cancelled};
use duplexer_core::error::{CallError, StoreError};
use duplexer_core::run::RunId;
use duplexer_types::jsonrpc::{self, RequestId};
use duplexer_types::methods::Method;
use serde::Deserialize;

use super::stores::Stores;
use super::stream::node_lost;
use super::{Ending, Session, Sessions};
use crate::server::http_sse;
use crate::server::service_state::ServiceState;
use crate::session::{NodeListener, NodeMessage, Sent, SessionDigest, StreamKey};

/// Returns the run that an id of a server's own request names.
fn run_of(id: &RequestId) -> Option<RunId> {
    let RequestId::String(text) = id else { return None };
    let (tag, _) = text.split_once('.')?;
    (tag.len() == 16).then(|| tag.parse().ok()).flatten()
}

impl Session {
    /// Returns the stores and the digest of the session, if the run is not this one.
    fn elsewhere(&self, run: Option<RunId>) -> Option<(&Arc<Stores>, SessionDigest, RunId)> {
        let (stores, shared, run) = (self.shared_stores()?, self.shared.get()?, run?);
        (run != stores.run()).then_some((stores, shared.digest, run))
    }

    /// Completes a request of the server with the client's response, at the node that waits for it.
    pub(in crate::server) async fn settle(
        &self,
        id: &RequestId,
        result: Result<ByteString, CallError>,
    ) -> Result<(), StoreError> {
        let elsewhere = self.elsewhere(run_of(id));
        let message = elsewhere.is_some().then(|| encode(id, &result)).flatten();
        // The request can belong to an earlier run of this node.
        self.correlation.settle(id, result);
        if let (Some((stores, session, run)), Some(message)) = (elsewhere, message) {
            // A run that is gone waits for nothing.
            Box::pin(stores.send(run, &NodeMessage::Response { session, message })).await?;
        }
        Ok(())
    }

    /// Applies a cancellation or progress of the client, at the node that it concerns.
    pub(super) async fn observe(&self, message: &Message) -> Result<(), StoreError> {
        self.correlation.observe(message);
        if self.shared.get().is_none() {
            return Ok(());
        }
        match message.known() {
            Some(Method::Cancelled) => match cancelled(message.params()) {
                Some(request) => Box::pin(self.cancel_elsewhere(request)).await,
                None => Ok(()),
            },
            Some(Method::Progress) => Box::pin(self.report_elsewhere(message)).await,
            _ => Ok(()),
        }
    }

    async fn cancel_elsewhere(&self, request: RequestId) -> Result<(), StoreError> {
        let Some((stores, shared)) = self.shared_stores().and_then(|stores| Some((stores, stores.shared()?)))
        else {
            return Ok(());
        };
        for request in [Some(request.clone()), request.twin()].into_iter().flatten() {
            let placed = stores.guard().run(|| shared.sessions.locate(&self.id, &request)).await?;
            let Some(placed) = placed else { continue };
            if let Some((stores, session, run)) = self.elsewhere(Some(placed.run)) {
                let message = NodeMessage::Cancelled { session, request: request.clone() };
                if let (Sent::Gone, Some(stream)) = (stores.send(run, &message).await?, placed.stream) {
                    // Its handler may run on, at a node that has lost its lease and goes on as another run: it ends as soon
                    // as it writes to the stream.
                    let key = StreamKey::new(Arc::clone(&self.id), stream);
                    stores.conclude(&key, run, &node_lost(&request)).await?;
                }
            }
            return Ok(());
        }
        Ok(())
    }

    async fn report_elsewhere(&self, message: &Message) -> Result<(), StoreError> {
        #[derive(Deserialize)]
        struct Params {
            #[serde(rename = "progressToken")]
            token: RequestId,
        }
        let Ok(Params { token }) = message.decode() else { return Ok(()) };
        let Some((stores, session, run)) = self.elsewhere(run_of(&token)) else { return Ok(()) };
        let mut text = Vec::new();
        if jsonrpc::write_notification(&mut text, message.method(), message.params()).is_ok() {
            stores.send(run, &NodeMessage::Progress { session, message: text.into() }).await?;
        }
        Ok(())
    }

    /// Ends the session everywhere. Without shared stores the caller does so.
    pub(in crate::server) async fn delete(&self) -> Result<(), StoreError> {
        let Some((stores, shared)) = self.shared_stores().and_then(|stores| Some((stores, stores.shared()?)))
        else {
            return Ok(());
        };
        let placements = stores.guard().run(|| shared.sessions.delete(&self.id)).await?;
        let mut runs: Vec<_> = placements.into_iter().map(|placement| placement.run).collect();
        runs.sort_unstable();
        runs.dedup();
        for (stores, session, run) in runs.into_iter().filter_map(|run| self.elsewhere(Some(run))) {
            let owner = Arc::clone(stores);
            stores.spawn(async move {
                let _ = owner.send(run, &NodeMessage::Deleted { session }).await;
            });
        }
        Ok(())
    }
}

fn encode(id: &RequestId, result: &Result<ByteString, CallError>) -> Option<Bytes> {
    let mut text = Vec::new();
    match result {
        Ok(result) => jsonrpc::write_success(&mut text, id, &**result).ok()?,
        Err(CallError::Rpc(error)) => jsonrpc::write_failure(&mut text, Some(id), error),
        Err(_) => return None,
    }
    Some(text.into())
}

/// Receives the messages of other nodes.
pub(in crate::server) struct Inbox(Weak<ServiceState>);

impl Inbox {
    pub(in crate::server) fn new(service: Weak<ServiceState>) -> Self {
        Self(service)
    }
}

impl NodeListener for Inbox {
    fn receive(&self, message: NodeMessage) {
        let Some(service) = self.0.upgrade() else { return };
        let find = |digest| service.sessions.find_digest(digest);
        match message {
            NodeMessage::Response { session, message } => {
                if let (Some(session), Some(Frame::Response(id, result))) = (find(session), frame(&message)) {
                    session.correlation.settle(&id, result);
                }
            }
            NodeMessage::Progress { session, message } => {
                if let (Some(session), Some(Frame::Notification(call))) = (find(session), frame(&message)) {
                    session.correlation.observe(&call);
                }
            }
            NodeMessage::Cancelled { session, request } => {
                if let Some(session) = find(session) {
                    session.cancel(&request);
                }
            }
            NodeMessage::Deleted { session } => {
                if let Some(session) = find(session) {
                    Sessions::end(&service, &session, Ending::Transferred);
                }
            }
            NodeMessage::Posted { link, message } => http_sse::receive(&service, link, &message),
        }
    }
}

impl Session {
    /// Cancels a request of the client on behalf of another node.
    fn cancel(&self, request: &RequestId) {
        let mut params = br#"{"requestId":"#.to_vec();
        request.write(&mut params);
        params.push(b'}');
        if let Ok(params) = ByteString::try_from(params) {
            self.correlation.observe(&Message::new(Method::Cancelled.name(), Some(params)));
        }
    }
}

fn frame(message: &Bytes) -> Option<Frame> {
    Frame::parse(&ByteString::try_from(message.clone()).ok()?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_id_of_a_request_to_the_client_names_its_run() {
        assert_eq!(run_of(&RequestId::from("000000000000beef.7")), Some(RunId(0xbeef)));
        for other in ["7", "beef.7", "000000000000beef", "zzzzzzzzzzzzzzzz.1", ""] {
            assert_eq!(run_of(&RequestId::from(other)), None, "{other}");
        }
        assert_eq!(run_of(&RequestId::from(7_i64)), None);
    }
}
