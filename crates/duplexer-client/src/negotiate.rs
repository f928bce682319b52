//! How a session is opened: the one place of the client that knows there are two eras, and their revisions.
//!
//! A server is asked what it speaks (`server/discover`); one that does not understand the question gets a
//! handshake (`initialize`). No single error code decides that it does not understand.

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
use super::session::{Identity, RequestEnvelope, Session, read};
use duplexer_core::dispatch::{Abandon, Outbound, OutboundRequest};
use duplexer_core::error::CallError;

/// What a handshake offers.
pub(super) const OFFERED: ProtocolVersion = ProtocolVersion::LATEST_HANDSHAKE;

/// How long a server may think about what it speaks before it gets a handshake.
const PROBE: Duration = Duration::from_secs(10);

/// Opens the session.
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
        Negotiation::Pinned(pin) => negotiator.pinned(pin).await?,
    };
    inbound.agree(session.version);
    match session.version.era() {
        Era::Handshake => peer.notify(Initialized::METHOD.name(), None).await,
        Era::Envelope => negotiator.warn_of_what_is_deprecated(session.version),
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
            // It did understand the question, then: it may have been too slow, or not ready yet.
            Err(ConnectError::Call(CallError::Peer(refusal))) if refuses_version(&refusal) => {
                let session = self.probe().await?;
                session.ok_or(ConnectError::Call(CallError::Peer(refusal)))
            }
            opened => opened,
        }
    }

    async fn pinned(&self, pin: &PinnedVersion) -> Result<Session, ConnectError> {
        let version = pin.version()?;
        let found = match pin.prior_result() {
            Some(prior) => prior.clone(),
            None => self.discover(version).await?,
        };
        if found.supported_versions.iter().any(|offered| offered == version.as_str()) {
            Ok(self.adopt(found, version)?)
        } else {
            Err(ConnectError::NoCommonVersion(found.supported_versions))
        }
    }

    /// Asks what the server speaks; `None` if the answer leaves only a handshake.
    async fn probe(&self) -> Result<Option<Session>, ConnectError> {
        let mut answer = self.discover(ProtocolVersion::LATEST_ENVELOPE).await;
        if let Err(CallError::Peer(refusal)) = &answer
            && let Some(version) = offer(refusal).and_then(|offer| newest_common(&offer))
        {
            answer = self.discover(version).await;
        }
        match answer {
            Ok(found) => match newest_common(&found.supported_versions) {
                Some(version) => Ok(Some(self.adopt(found, version)?)),
                None => Ok(None),
            },
            Err(CallError::Peer(refusal)) => match offer(&refusal) {
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
        let stamp = RequestEnvelope::new(version, &self.identity)?;
        let mut request = stamp.attach::<ServerDiscover>(&EmptyParams::new(), JsonObject::new())?;
        request.options = request.options.timeout(PROBE).abandon(Abandon::Silent);
        let text = self.peer.request(request).await?;
        serde_json::from_str(&text).map_err(CallError::Unexpected)
    }

    fn adopt(&self, found: DiscoverResult, version: ProtocolVersion) -> Result<Session, CallError> {
        let info = found.meta.as_ref().and_then(|meta| meta.get(key::SERVER_INFO));
        Ok(Session {
            version,
            server_info: info.and_then(|info| info.decode().ok()),
            capabilities: found.capabilities,
            instructions: found.instructions,
            envelope: RequestEnvelope::new(version, &self.identity)?,
            result_revision: None,
        })
    }

    /// The handshake. It is never called off: a server may not be told to forget it.
    async fn initialize(&self) -> Result<Session, ConnectError> {
        let Identity { info, capabilities, .. } = &self.identity;
        let params = InitializeParams::new(OFFERED.as_str(), capabilities.clone(), info.clone());
        let params = Json::encode(&ForRevision(&params, Shape::new(OFFERED))).map_err(CallError::Encode)?;
        let mut request = OutboundRequest::new(Initialize::METHOD.name()).params(params);
        request.options.timeout = self.timeout;
        request.options.abandon = Abandon::Silent;
        let text = self.peer.request(request).await?;
        let opened: InitializeResult = read(&text, Some(OFFERED))?;
        let Some(version) = handshake_version(&opened.protocol_version) else {
            return Err(ConnectError::UnsupportedVersion(opened.protocol_version));
        };
        Ok(Session {
            version,
            server_info: Some(opened.server_info),
            capabilities: opened.capabilities,
            instructions: opened.instructions,
            envelope: RequestEnvelope::new(version, &self.identity)?,
            result_revision: Some(OFFERED),
        })
    }

    fn warn_of_what_is_deprecated(&self, version: ProtocolVersion) {
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

fn refuses_version(refusal: &ErrorObject) -> bool {
    refusal.code == ErrorCode::UNSUPPORTED_PROTOCOL_VERSION
}

/// What a server that refuses a revision offers instead, if it says so readably.
fn offer(refusal: &ErrorObject) -> Option<Vec<String>> {
    let data = refusal.data::<UnsupportedVersionData>().filter(|_| refuses_version(refusal))?;
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
