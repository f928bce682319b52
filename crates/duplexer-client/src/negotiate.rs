//! Opening of a session: the only part of the client that knows both eras and their revisions.
//!
//! The client sends `server/discover`. A server that does not support it gets a handshake (`initialize`); no single
//! error code decides that.

use std::pin::pin;
use std::time::Duration;

use bytestring::ByteString;
use duplexer_types::error::{ErrorCode, ErrorObject};
use duplexer_types::json::{Json, JsonObject};
use duplexer_types::lifecycle::{
    DiscoverResult, EmptyParams, InitializeParams, InitializeResult, UnsupportedVersionData,
};
use duplexer_types::meta::key;
use duplexer_types::methods::{Initialize, Initialized, Method, Notification, Request};
use duplexer_types::version::{Era, ProtocolVersion};
use duplexer_types::wire::{ForRevision, Shape};

use super::builder::{ClientBuilder, Negotiation, PinnedVersion};
use super::error::ConnectError;
use super::inbound::ClientInbound;
use super::session::{Identity, RequestEnvelope, Session, decode_result};
use super::timeouts::Timeouts;
use duplexer_core::dispatch::{CallClock, OnDrop, Outbound, OutboundRequest};
use duplexer_core::error::CallError;
use duplexer_core::transport::TransportFailure;

/// The revision that a handshake proposes, unless the builder sets another.
pub(super) const PROPOSED: ProtocolVersion = ProtocolVersion::LATEST_HANDSHAKE;

/// Time without an answer to `server/discover` after which a handshake is sent beside it.
const FALLBACK_DELAY: Duration = Duration::from_secs(10);

/// Negotiates the revision and opens the session.
pub(super) async fn negotiate(
    peer: &dyn Outbound,
    builder: &ClientBuilder,
    inbound: &ClientInbound,
) -> Result<Session, ConnectError> {
    let identity = Identity {
        info: &builder.info,
        callbacks: &builder.callbacks,
        log_level: builder.log_level,
        headers: builder.headers,
    };
    let Timeouts { clock, .. } = &builder.timeouts;
    let proposed = builder.proposed;
    let negotiator = Negotiator { peer, proposed, identity, inbound, clock };
    let negotiated = async {
        match &builder.negotiation {
            Negotiation::Auto => negotiator.auto().await,
            Negotiation::Handshake => negotiator.initialize().await,
            Negotiation::PreferHandshake => negotiator.initialize_first().await,
            Negotiation::Pinned(pinned) => negotiator.pinned(pinned).await,
        }
    };
    let session = within(&builder.timeouts, negotiated).await?;
    if session.version.era() == Era::Envelope {
        inbound.set_version(session.version);
        negotiator.warn_about_deprecations(session.version);
    }
    Ok(session)
}

/// Opens a session like the earlier one `session`, which the server has ended.
pub(super) async fn renew(
    peer: &dyn Outbound,
    opening: &Json,
    session: &Session,
    timeouts: &Timeouts,
) -> Result<(), CallError> {
    let renewed = async {
        let (opened, _) = initialize(peer, opening.clone()).await?;
        if opened.protocol_version != session.version.as_str() {
            tracing::warn!(version = opened.protocol_version, "the server has changed the protocol revision");
            return Err(CallError::Transport(TransportFailure::SessionEnded));
        }
        peer.notify(Initialized::METHOD.name(), None).await;
        Ok(())
    };
    within(timeouts, renewed).await
}

/// Runs a negotiation within the limit of the session.
async fn within<T, E: From<CallError>>(
    timeouts: &Timeouts,
    negotiation: impl Future<Output = Result<T, E>>,
) -> Result<T, E> {
    let limit = timeouts.handshake();
    tokio::select! {
        biased;
        outcome = negotiation => outcome,
        () = timeouts.clock.run_for(limit) => {
            let text = format!("the server did not open the session within {} s", limit.as_secs_f64());
            Err(CallError::Timeout(text.into()).into())
        }
    }
}

/// Performs the handshake, and returns its result with the text of it. The protocol forbids to cancel `initialize`.
async fn initialize(peer: &dyn Outbound, params: Json) -> Result<(InitializeResult, ByteString), CallError> {
    let mut request = OutboundRequest::new(Initialize::METHOD.name()).params(params);
    request.options.on_drop = OnDrop::Detach;
    let text = peer.request(request).await?;
    Ok((decode_result(&text, Some(PROPOSED))?, text))
}

struct Negotiator<'a> {
    peer: &'a dyn Outbound,
    /// The revision that a handshake proposes.
    proposed: ProtocolVersion,
    identity: Identity<'a>,
    inbound: &'a ClientInbound,
    clock: &'a CallClock,
}

impl Negotiator<'_> {
    /// Probes the server, and performs a handshake if it refuses. A server that is silent gets both: the first good answer
    /// counts, so that a slow server is not taken for an old one.
    async fn auto(&self) -> Result<Session, ConnectError> {
        let mut probe = pin!(self.probe());
        tokio::select! {
            biased;
            probed = &mut probe => match probed? {
                Some(session) => return Ok(session),
                None => return self.initialize_or_probe_again().await,
            },
            () = self.clock.run_for(FALLBACK_DELAY) => {}
        }
        let mut handshake = pin!(self.initialize());
        let refusal = tokio::select! {
            biased;
            probed = &mut probe => match probed? {
                Some(session) => return Ok(session),
                None => return handshake.await,
            },
            opened = &mut handshake => match opened {
                Ok(session) => return Ok(session),
                Err(refusal) => refusal,
            },
        };
        // A server that knows the envelope era may have missed the first probe.
        let probed = if is_unsupported(&refusal) {
            tokio::select! {
                probed = probe => probed,
                probed = self.probe() => probed,
            }
        } else {
            probe.await
        };
        probed.ok().flatten().ok_or(refusal)
    }

    /// Performs the handshake. A server that refuses its revision is probed once more.
    async fn initialize_or_probe_again(&self) -> Result<Session, ConnectError> {
        match self.initialize().await {
            Err(refusal) if is_unsupported(&refusal) => {
                if let Some(session) = self.probe().await? {
                    return Ok(session);
                }
                // The server knows the envelope era, so its error there is the reason.
                let error = self.discover(ProtocolVersion::LATEST_ENVELOPE).await.err();
                Err(error.map_or(refusal, Into::into))
            }
            opened => opened,
        }
    }

    /// Performs the handshake, and probes a server that refuses it.
    async fn initialize_first(&self) -> Result<Session, ConnectError> {
        match self.initialize().await {
            Err(refusal) if is_refused(&refusal) => match self.probe().await {
                Ok(Some(session)) => Ok(session),
                Ok(None) | Err(_) => Err(refusal),
            },
            opened => opened,
        }
    }

    async fn pinned(&self, pinned: &PinnedVersion) -> Result<Session, ConnectError> {
        let version = pinned.version()?;
        let discovered = match pinned.prior_result() {
            Some(prior) => Discovered { result: prior.clone(), text: ByteString::new() },
            None => self.discover(version).await?,
        };
        if discovered.result.supported_versions.iter().any(|offered| offered == version.as_str()) {
            Ok(self.envelope_session(discovered, version)?)
        } else {
            Err(ConnectError::NoCommonVersion(discovered.result.supported_versions))
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
            Ok(discovered) => match newest_common(&discovered.result.supported_versions) {
                Some(version) => Ok(Some(self.envelope_session(discovered, version)?)),
                None => Ok(None),
            },
            Err(CallError::Rpc(error)) => match offered_versions(&error) {
                Some(offer) if !offer.iter().any(|text| is_handshake(text)) => {
                    Err(ConnectError::NoCommonVersion(offer))
                }
                _ => Ok(None),
            },
            Err(CallError::Unexpected(_)) => Ok(None),
            Err(CallError::Transport(failure)) if is_refusal_of_unknown(&failure) => Ok(None),
            Err(broken) => Err(broken.into()),
        }
    }

    async fn discover(&self, version: ProtocolVersion) -> Result<Discovered, CallError> {
        let envelope = RequestEnvelope::new(version, self.identity)?;
        let request = envelope.attach(Method::ServerDiscover, &EmptyParams::new(), JsonObject::new())?;
        let text = self.peer.request(request).await?;
        let result = serde_json::from_str(&text).map_err(CallError::Unexpected)?;
        Ok(Discovered { result, text })
    }

    fn envelope_session(
        &self,
        Discovered { result: discovered, text }: Discovered,
        version: ProtocolVersion,
    ) -> Result<Session, CallError> {
        let info = discovered.meta.as_ref().and_then(|meta| meta.get(key::SERVER_INFO));
        Ok(Session {
            version,
            server_info: info.and_then(|info| info.decode().ok()),
            capabilities: discovered.capabilities,
            instructions: discovered.instructions,
            envelope: RequestEnvelope::new(version, self.identity)?,
            opening: None,
            opened: text,
            result_revision: None,
        })
    }

    /// Performs the handshake and confirms it.
    async fn initialize(&self) -> Result<Session, ConnectError> {
        let (opened, text) = initialize(self.peer, self.opening(self.proposed)?).await?;
        let Some(version) = handshake_version(&opened.protocol_version) else {
            return Err(ConnectError::UnsupportedVersion(opened.protocol_version));
        };
        let session = Session {
            version,
            server_info: Some(opened.server_info),
            capabilities: opened.capabilities,
            instructions: opened.instructions,
            envelope: RequestEnvelope::new(version, self.identity)?,
            opening: Some(self.opening(version)?),
            opened: text,
            result_revision: Some(PROPOSED),
        };
        // Requests of the server can follow the notification at once.
        self.inbound.set_version(version);
        self.peer.notify(Initialized::METHOD.name(), None).await;
        Ok(session)
    }

    /// Returns the params of a handshake that proposes `version`.
    fn opening(&self, version: ProtocolVersion) -> Result<Json, CallError> {
        let Identity { info, callbacks, .. } = self.identity;
        let params = InitializeParams::new(version.as_str(), callbacks.capabilities(version), info.clone());
        Json::encode(&ForRevision(&params, Shape::new(version))).map_err(CallError::Encode)
    }

    fn warn_about_deprecations(&self, version: ProtocolVersion) {
        let declared = self.identity.callbacks.capabilities(version);
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

/// Result of `server/discover`, and its text.
struct Discovered {
    result: DiscoverResult,
    text: ByteString,
}

/// Returns whether a refused handshake shows that the server knows the envelope era.
fn is_unsupported(refusal: &ConnectError) -> bool {
    matches!(refusal, ConnectError::Call(CallError::Rpc(error)) if is_unsupported_version(error))
}

/// Returns whether the server has answered a handshake, and not opened a session.
fn is_refused(refusal: &ConnectError) -> bool {
    match refusal {
        ConnectError::UnsupportedVersion(_)
        | ConnectError::Call(CallError::Rpc(_) | CallError::Unexpected(_)) => true,
        ConnectError::Call(CallError::Transport(failure)) => is_refusal_of_unknown(failure),
        _ => false,
    }
}

/// Returns whether an HTTP status says that the server does not know the request, as servers without `server/discover` do.
/// A status about credentials or capacity says nothing about the era.
fn is_refusal_of_unknown(failure: &TransportFailure) -> bool {
    failure.refusal().is_some_and(|refusal| {
        (400..500).contains(&refusal.status) && !matches!(refusal.status, 401 | 403 | 407 | 408 | 429)
    })
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
