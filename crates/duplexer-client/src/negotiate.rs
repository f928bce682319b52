//! Opening of a session: the only part of the client that knows both eras and their revisions.
//!
//! The client sends `server/discover`. A server that does not support it gets a handshake (`initialize`); no single
//! error code decides that.

use std::time::Duration;

use duplexer_types::error::{ErrorCode, ErrorObject};
use duplexer_types::json::{Json, JsonObject};
use duplexer_types::lifecycle::{
    DiscoverResult, EmptyParams, InitializeParams, InitializeResult, UnsupportedVersionData,
};
use duplexer_types::meta::key;
use duplexer_types::methods::{Initialize, Initialized, Notification, Request, ServerDiscover};
use duplexer_types::version::{Era, ProtocolVersion};
use duplexer_types::wire::{ForRevision, Shape};

use super::builder::{ClientBuilder, Negotiation, PinnedVersion};
use super::error::ConnectError;
use super::inbound::ClientInbound;
use super::session::{Identity, RequestEnvelope, Session, decode_result};
use duplexer_core::dispatch::{OnDrop, Outbound, OutboundRequest};
use duplexer_core::error::CallError;

/// The revision that a handshake proposes.
pub(super) const PROPOSED: ProtocolVersion = ProtocolVersion::LATEST_HANDSHAKE;

/// Maximum time for the response to `server/discover` before the client falls back to a handshake.
const PROBE_TIMEOUT: Duration = Duration::from_secs(10);

/// Negotiates the revision and opens the session.
pub(super) async fn negotiate(
    peer: &dyn Outbound,
    builder: &ClientBuilder,
    inbound: &ClientInbound,
) -> Result<Session, ConnectError> {
    let identity = Identity {
        info: builder.info.clone(),
        capabilities: builder.callbacks.capabilities(),
        log_level: builder.log_level,
    };
    let negotiator = Negotiator { peer, identity, timeout: builder.timeout };
    let session = match &builder.negotiation {
        Negotiation::Auto => negotiator.auto().await?,
        Negotiation::Handshake => negotiator.initialize().await?,
        Negotiation::Pinned(pinned) => negotiator.pinned(pinned).await?,
    };
    inbound.set_version(session.version);
    match session.version.era() {
        Era::Handshake => peer.notify(Initialized::METHOD.name(), None).await,
        Era::Envelope => negotiator.warn_about_deprecations(session.version),
    }
    Ok(session)
}

struct Negotiator<'a> {
    peer: &'a dyn Outbound,
    identity: Identity,
    timeout: Option<Duration>,
}

impl Negotiator<'_> {
    async fn auto(&self) -> Result<Session, ConnectError> {
        if let Some(session) = self.probe().await? {
            return Ok(session);
        }
        match self.initialize().await {
            // The server does know the envelope era. The first probe may have come too early or timed out.
            Err(ConnectError::Call(CallError::Rpc(error))) if is_unsupported_version(&error) => {
                let session = self.probe().await?;
                session.ok_or(ConnectError::Call(CallError::Rpc(error)))
            }
            opened => opened,
        }
    }

    async fn pinned(&self, pinned: &PinnedVersion) -> Result<Session, ConnectError> {
        let version = pinned.version()?;
        let discovered = match pinned.prior_result() {
            Some(prior) => prior.clone(),
            None => self.discover(version).await?,
        };
        if discovered.supported_versions.iter().any(|offered| offered == version.as_str()) {
            Ok(self.envelope_session(discovered, version)?)
        } else {
            Err(ConnectError::NoCommonVersion(discovered.supported_versions))
        }
    }

    /// Sends `server/discover`. Returns `None` if the response leaves only a handshake.
    async fn probe(&self) -> Result<Option<Session>, ConnectError> {
        let mut response = self.discover(ProtocolVersion::LATEST_ENVELOPE).await;
        if let Err(CallError::Rpc(error)) = &response
            && let Some(version) = offered_versions(error).and_then(|offer| newest_common(&offer))
        {
            response = self.discover(version).await;
        }
        match response {
            Ok(discovered) => match newest_common(&discovered.supported_versions) {
                Some(version) => Ok(Some(self.envelope_session(discovered, version)?)),
                None => Ok(None),
            },
            Err(CallError::Rpc(error)) => match offered_versions(&error) {
                Some(offer) if !offer.iter().any(|text| is_handshake(text)) => {
                    Err(ConnectError::NoCommonVersion(offer))
                }
                _ => Ok(None),
            },
            Err(CallError::Timeout(_) | CallError::Unexpected(_)) => Ok(None),
            Err(broken) => Err(broken.into()),
        }
    }

    async fn discover(&self, version: ProtocolVersion) -> Result<DiscoverResult, CallError> {
        let envelope = RequestEnvelope::new(version, &self.identity)?;
        let mut request = envelope.attach::<ServerDiscover>(&EmptyParams::new(), JsonObject::new())?;
        request.options = request.options.timeout(PROBE_TIMEOUT).on_drop(OnDrop::Detach);
        let text = self.peer.request(request).await?;
        serde_json::from_str(&text).map_err(CallError::Unexpected)
    }

    fn envelope_session(
        &self,
        discovered: DiscoverResult,
        version: ProtocolVersion,
    ) -> Result<Session, CallError> {
        let info = discovered.meta.as_ref().and_then(|meta| meta.get(key::SERVER_INFO));
        Ok(Session {
            version,
            server_info: info.and_then(|info| info.decode().ok()),
            capabilities: discovered.capabilities,
            instructions: discovered.instructions,
            envelope: RequestEnvelope::new(version, &self.identity)?,
            result_revision: None,
        })
    }

    /// Performs the handshake. The protocol forbids to cancel `initialize`.
    async fn initialize(&self) -> Result<Session, ConnectError> {
        let Identity { info, capabilities, .. } = &self.identity;
        let params = InitializeParams::new(PROPOSED.as_str(), capabilities.clone(), info.clone());
        let params = Json::encode(&ForRevision(&params, Shape::new(PROPOSED))).map_err(CallError::Encode)?;
        let mut request = OutboundRequest::new(Initialize::METHOD.name()).params(params);
        request.options.timeout = self.timeout;
        request.options.on_drop = OnDrop::Detach;
        let text = self.peer.request(request).await?;
        let opened: InitializeResult = decode_result(&text, Some(PROPOSED))?;
        let Some(version) = handshake_version(&opened.protocol_version) else {
            return Err(ConnectError::UnsupportedVersion(opened.protocol_version));
        };
        Ok(Session {
            version,
            server_info: Some(opened.server_info),
            capabilities: opened.capabilities,
            instructions: opened.instructions,
            envelope: RequestEnvelope::new(version, &self.identity)?,
            result_revision: Some(PROPOSED),
        })
    }

    fn warn_about_deprecations(&self, version: ProtocolVersion) {
        let declared = &self.identity.capabilities;
        let deprecated = [
            ("logging", self.identity.log_level.is_some()),
            ("roots", declared.roots.is_some()),
            ("sampling", declared.sampling.is_some()),
        ];
        for (capability, _) in deprecated.into_iter().filter(|(_, used)| *used) {
            tracing::warn!("The {capability} capability is deprecated as of {version} (SEP-2577).");
        }
    }
}

fn is_unsupported_version(error: &ErrorObject) -> bool {
    error.code == ErrorCode::UNSUPPORTED_PROTOCOL_VERSION
}

/// Returns the revisions that a server offers when it refuses one, if the error data is valid.
fn offered_versions(error: &ErrorObject) -> Option<Vec<String>> {
    let data = error.data::<UnsupportedVersionData>().filter(|_| is_unsupported_version(error))?;
    Some(data.supported)
}

fn newest_common(offer: &[String]) -> Option<ProtocolVersion> {
    let offered = |version: &&ProtocolVersion| offer.iter().any(|text| text == version.as_str());
    ProtocolVersion::ENVELOPE.iter().rev().find(offered).copied()
}

fn handshake_version(text: &str) -> Option<ProtocolVersion> {
    ProtocolVersion::HANDSHAKE.iter().find(|version| version.as_str() == text).copied()
}

fn is_handshake(text: &str) -> bool {
    handshake_version(text).is_some()
}
