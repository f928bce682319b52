//! How the protocol revision of a session is chosen.

use duplexer_types::lifecycle::DiscoverResult;
use duplexer_types::version::{Era, ProtocolVersion};

use crate::error::ConnectError;

/// How client and server choose the protocol revision.
///
/// ```
/// use duplexer::Server;
/// use duplexer::client::prelude::*;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), duplexer::BoxError> {
/// let server = Server::builder("calculator", "1.0.0").build()?;
/// let older = Client::builder("my-agent", "1.0").negotiation(Negotiation::Handshake);
/// let client = older.connect(server.in_process()).await?;
/// assert_eq!(client.protocol_version().as_str(), "2025-11-25");
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub enum Negotiation {
    /// Sends `server/discover` first. A server that does not support it gets a handshake.
    #[default]
    Auto,
    /// Opens the session with a handshake (`initialize`) and tries nothing else.
    Handshake,
    /// Sends a handshake (`initialize`) first. A server that refuses it gets `server/discover`.
    PreferHandshake,
    /// Uses this revision of the envelope era and no other.
    Pinned(PinnedVersion),
}

/// Revision of the envelope era to which a session is pinned.
///
/// ```
/// use duplexer::Server;
/// use duplexer::client::{PinnedVersion, prelude::*};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), duplexer::BoxError> {
/// let server = Server::builder("calculator", "1.0.0").build()?;
/// let pinned = Negotiation::Pinned(PinnedVersion::new("2026-07-28"));
/// let client = Client::builder("my-agent", "1.0").negotiation(pinned).connect(server.in_process()).await?;
/// assert_eq!(client.protocol_version().as_str(), "2026-07-28");
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct PinnedVersion {
    version: String,
    prior: Option<Box<DiscoverResult>>,
}

impl PinnedVersion {
    /// Creates a pin to `version`, in the protocol's spelling.
    ///
    /// The version is checked by [`ClientBuilder::connect`](crate::ClientBuilder::connect), which accepts revisions of the envelope era only.
    pub fn new(version: impl Into<String>) -> Self {
        Self { version: version.into(), prior: None }
    }

    /// Sets the server's earlier `server/discover` result. The session then opens without that request.
    #[must_use]
    pub fn prior(mut self, discovered: DiscoverResult) -> Self {
        self.prior = Some(discovered.into());
        self
    }

    pub(crate) fn version(&self) -> Result<ProtocolVersion, ConnectError> {
        match self.version.parse::<ProtocolVersion>() {
            Ok(known) if known.era() == Era::Envelope => Ok(known),
            _ => {
                let known = ProtocolVersion::envelope_names().join(", ");
                Err(ConnectError::InvalidPinnedVersion { version: self.version.clone(), known })
            }
        }
    }

    pub(crate) fn prior_result(&self) -> Option<&DiscoverResult> {
        self.prior.as_deref()
    }
}
