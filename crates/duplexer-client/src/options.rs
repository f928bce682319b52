//! How a session is opened, and what the server can ask of the client.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use duplexer_types::capabilities::{ElicitationCapability, SamplingCapability};
use duplexer_types::elicitation::{ElicitParams, ElicitResult};
use duplexer_types::json::Json;
use duplexer_types::lifecycle::{DiscoverResult, Implementation};
use duplexer_types::logging::{LoggingLevel, LoggingMessageParams};
use duplexer_types::roots::ListRootsResult;
use duplexer_types::sampling::{CreateMessageParams, CreateMessageResult};
use duplexer_types::version::{Era, ProtocolVersion};

use super::call::ResultValidator;
use super::error::InvalidPinnedVersion;
use super::handler::{Callbacks, ServerNotification};
use duplexer_core::dispatch::DispatchOptions;
use duplexer_core::error::McpError;

/// How a session is opened. What the client can do follows from the callbacks it is given.
#[derive(Clone)]
pub struct ClientOptions {
    pub(super) info: Implementation,
    pub(super) negotiation: Negotiation,
    pub(super) timeout: Option<Duration>,
    pub(super) log_level: Option<LoggingLevel>,
    pub(super) callbacks: Callbacks,
    pub(super) dispatch: DispatchOptions,
    pub(super) validator: Option<Arc<dyn ResultValidator>>,
}

/// How the revision that is spoken is found.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub enum Negotiation {
    /// The server is asked what it speaks; one that does not understand the question gets a handshake.
    #[default]
    Auto,
    /// The session opens with a handshake and nothing else is tried.
    Handshake,
    /// A revision of the envelope era and no other.
    Pinned(PinnedVersion),
}

/// A revision of the envelope era to which a session is pinned.
#[derive(Clone, Debug)]
pub struct PinnedVersion {
    pub(super) version: ProtocolVersion,
    pub(super) prior: Option<Box<DiscoverResult>>,
}

impl PinnedVersion {
    /// Pins to `version`, as it is written on the wire. A revision with a handshake is refused.
    pub fn new(version: &str) -> Result<Self, InvalidPinnedVersion> {
        match version.parse::<ProtocolVersion>() {
            Ok(known) if known.era() == Era::Envelope => Ok(Self { version: known, prior: None }),
            _ => {
                let known = ProtocolVersion::envelope_names().join(", ");
                Err(InvalidPinnedVersion { version: version.to_owned(), known })
            }
        }
    }

    /// What the server said about itself on an earlier occasion: it is not asked again.
    #[must_use]
    pub fn prior(mut self, discovered: DiscoverResult) -> Self {
        self.prior = Some(discovered.into());
        self
    }
}

impl ClientOptions {
    /// A client with this name and version, which can do nothing that a server could ask for.
    pub fn new(info: Implementation) -> Self {
        Self {
            info,
            negotiation: Negotiation::default(),
            timeout: None,
            log_level: None,
            callbacks: Callbacks::default(),
            dispatch: DispatchOptions::default(),
            validator: None,
        }
    }

    /// How the revision is found.
    #[must_use]
    pub fn negotiation(mut self, negotiation: Negotiation) -> Self {
        self.negotiation = negotiation;
        self
    }

    /// How long requests wait for their answers unless they say otherwise. Without it: for ever.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// From which level on requests of the envelope era ask for log messages, unless they say otherwise.
    ///
    /// In the handshake era see [`Client::set_log_level`](super::Client::set_log_level).
    #[must_use]
    pub fn log_level(mut self, level: LoggingLevel) -> Self {
        self.log_level = Some(level);
        self
    }

    /// How the dispatcher behaves: limits, hooks. Only for sessions over a transport.
    #[must_use]
    pub fn dispatch(mut self, options: DispatchOptions) -> Self {
        self.dispatch = options;
        self
    }

    /// Checks every final result of a typed request before it is given out.
    #[must_use]
    pub fn result_validator(mut self, validator: impl ResultValidator) -> Self {
        self.validator = Some(Arc::new(validator));
        self
    }

    /// Declares an extension with its settings: an object. The handshake era cannot say it.
    #[must_use]
    pub fn extension(mut self, id: impl Into<String>, settings: Json) -> Self {
        self.callbacks.declared.extensions.insert(id, settings);
        self
    }

    /// Lets servers use a model. Dropping the future means that nobody waits for the answer any more.
    #[must_use]
    pub fn on_sampling<F>(
        mut self,
        callback: impl Fn(CreateMessageParams) -> F + Send + Sync + 'static,
    ) -> Self
    where
        F: Future<Output = Result<CreateMessageResult, McpError>> + Send + 'static,
    {
        self.callbacks.sampling = Some(Arc::new(move |params| Box::pin(callback(params))));
        self
    }

    /// What is declared of sampling, once there is a callback for it: by default neither tools nor context.
    #[must_use]
    pub fn sampling_capability(mut self, capability: SamplingCapability) -> Self {
        self.callbacks.declared.sampling = capability;
        self
    }

    /// Lets servers ask the user.
    #[must_use]
    pub fn on_elicitation<F>(mut self, callback: impl Fn(ElicitParams) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = Result<ElicitResult, McpError>> + Send + 'static,
    {
        self.callbacks.elicitation = Some(Arc::new(move |params| Box::pin(callback(params))));
        self
    }

    /// What is declared of elicitation, once there is a callback for it: by default forms and URLs.
    #[must_use]
    pub fn elicitation_capability(mut self, capability: ElicitationCapability) -> Self {
        self.callbacks.declared.elicitation = capability;
        self
    }

    /// Tells servers where to work. Roots are `file://` URIs.
    #[must_use]
    pub fn on_roots<F>(mut self, callback: impl Fn() -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = Result<ListRootsResult, McpError>> + Send + 'static,
    {
        self.callbacks.roots = Some(Arc::new(move |()| Box::pin(callback())));
        self
    }

    /// Sees the server's log messages, in the order they come. It must not block.
    #[must_use]
    pub fn on_log(mut self, callback: impl Fn(LoggingMessageParams) + Send + Sync + 'static) -> Self {
        self.callbacks.log = Some(Arc::new(callback));
        self
    }

    /// Sees everything the server tells, log messages too, in the order it comes. It must not block.
    #[must_use]
    pub fn on_notification(mut self, callback: impl Fn(ServerNotification) + Send + Sync + 'static) -> Self {
        self.callbacks.notification = Some(Arc::new(callback));
        self
    }
}

impl fmt::Debug for ClientOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientOptions")
            .field("info", &self.info)
            .field("negotiation", &self.negotiation)
            .finish_non_exhaustive()
    }
}
