//! Request state: middleware that seals the state which handlers send through the client between input rounds. The
//! server stores nothing; a client could change, keep or share the state. A sealed state is bound to its request, its
//! principal, this server and a time, and only handlers see its plain text. Every invalid state gets the same response;
//! the reason is only logged. A state is not single-use: a retry can arrive twice, and the handler must detect repeated
//! effects itself.

mod canonical;
mod claims;
mod codec;
mod params;

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use duplexer_types::error::{ErrorCode, ErrorObject};
use duplexer_types::input::InputRequiredResult;
use duplexer_types::methods::Method;
use duplexer_types::wire::result_type;

use self::claims::Binding;
use self::params::Occurrence;
use crate::kernel::context::Context;
use crate::kernel::outcome::Outcome;
use crate::middleware::{Middleware, Next};
use duplexer_core::dispatch::{BoxFuture, Message};
use duplexer_core::error::{BoxError, Chain, McpError};

use codec::EphemeralKey;
pub use codec::{KeyRing, RequestStateCodec};

const STATE: &str = "requestState";
const ARGUMENTS: &str = "arguments";
const DEFAULT_TTL: Duration = Duration::from_secs(600);

type PrincipalFn = dyn Fn(&Context) -> Result<Option<String>, BoxError> + Send + Sync;
type Clock = dyn Fn() -> SystemTime + Send + Sync;

/// Configuration of sealed request states. Installed with `ServerBuilder::request_state`.
///
/// The default is [`RequestState::ephemeral`].
///
/// ```
/// # use duplexer_server::Server;
/// use duplexer_server::request_state::RequestState;
///
/// // From a secret store, the same for all processes. The first key seals, all of them open.
/// let keys = [[7_u8; 32], [6_u8; 32]];
/// let server = Server::builder("restaurant", "1.0.0").request_state(RequestState::keys(keys)?).build()?;
/// # Ok::<_, Box<dyn std::error::Error>>(())
/// ```
#[doc(alias("encryption", "key"))]
#[derive(Clone)]
pub struct RequestState {
    codec: Arc<dyn RequestStateCodec>,
    ttl: Duration,
    audience: Option<Arc<str>>,
    principal: Arc<PrincipalFn>,
    clock: Arc<Clock>,
    reach: Reach,
}

/// The processes that can open a sealed state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reach {
    /// Only this process, although other instances receive retries.
    OneOfSeveralProcesses,
    ThisProcess,
    SharedKeys,
}

/// Number of processes that answer the requests of one client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Instances {
    /// One process, which does not restart between the rounds of a request.
    One,
    /// Several processes: a retry can reach another one.
    Several,
}

/// Error in the configuration of request states. Its text says what to change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RequestStateError {
    /// The key ring has no secrets.
    #[error("a key ring needs at least one secret; use `RequestState::ephemeral` for a random one")]
    NoSecret,
    /// A secret is too short.
    #[error("a secret of a key ring needs at least 32 bytes of randomness; got {got}")]
    ShortSecret {
        /// Its length in bytes.
        got: usize,
    },
    /// A secret is repeated.
    #[error("a secret stands twice in the key ring; remove one of them")]
    RepeatedSecret,
    /// The key derivation failed.
    #[error("a key could not be derived from its secret")]
    Derivation,
    /// The time to live is zero.
    #[error("the time to live of a request state must be longer than nothing")]
    NoTimeToLive,
}

impl RequestState {
    /// Seals with the first of these secrets and opens with any of them. See [`KeyRing`].
    ///
    /// # Errors
    ///
    /// Fails like [`KeyRing::new`].
    pub fn keys<T: AsRef<[u8]>>(secrets: impl IntoIterator<Item = T>) -> Result<Self, RequestStateError> {
        KeyRing::new(secrets).map(Self::codec)
    }

    /// Seals with a custom codec.
    pub fn codec(codec: impl RequestStateCodec) -> Self {
        Self {
            codec: Arc::new(codec),
            ttl: DEFAULT_TTL,
            audience: None,
            principal: Arc::new(identity),
            clock: Arc::new(SystemTime::now),
            reach: Reach::SharedKeys,
        }
    }

    /// Seals with a random key of this process. A retry that reaches another process, or this one after a restart, is
    /// refused. Where that can happen, give all processes the same [`RequestState::keys`].
    pub fn ephemeral() -> Self {
        Self { reach: Reach::ThisProcess, ..Self::codec(EphemeralKey::default()) }
    }

    /// Sets the number of processes that answer the requests of one client. With several processes and an ephemeral
    /// key, the builder logs a warning, because most retries will be refused.
    #[must_use]
    pub fn instances(mut self, instances: Instances) -> Self {
        self.reach = match (self.reach, instances) {
            (Reach::SharedKeys, _) => Reach::SharedKeys,
            (_, Instances::One) => Reach::ThisProcess,
            (_, Instances::Several) => Reach::OneOfSeveralProcesses,
        };
        self
    }

    /// Sets the time to live of a state. Default: ten minutes.
    ///
    /// # Errors
    ///
    /// Fails if the time is zero.
    pub fn ttl(mut self, ttl: Duration) -> Result<Self, RequestStateError> {
        if ttl.is_zero() {
            return Err(RequestStateError::NoTimeToLive);
        }
        self.ttl = ttl;
        Ok(self)
    }

    /// Sets the server that a state is valid for. Default: the name of the server. Instances that share work must share
    /// it too.
    #[must_use]
    pub fn audience(mut self, audience: impl Into<Arc<str>>) -> Self {
        self.audience = Some(audience.into());
        self
    }

    /// Sets the function that identifies the principal of a request: a text that is unique per principal, `None`
    /// without a principal.
    ///
    /// The default is [`Principal::identity`](crate::Principal::identity): client, issuer and subject. If the function
    /// fails, no state is opened or sealed.
    #[must_use]
    pub fn principal(
        mut self,
        principal: impl Fn(&Context) -> Result<Option<String>, BoxError> + Send + Sync + 'static,
    ) -> Self {
        self.principal = Arc::new(principal);
        self
    }

    /// Sets the clock.
    #[must_use]
    pub fn clock(mut self, clock: impl Fn() -> SystemTime + Send + Sync + 'static) -> Self {
        self.clock = Arc::new(clock);
        self
    }

    /// Returns whether other processes can open what this one seals.
    pub(crate) fn has_shared_keys(&self) -> bool {
        self.reach == Reach::SharedKeys
    }

    /// Returns the middleware of a server with this name; `None` if there is no audience.
    pub(crate) fn into_middleware(self, name: &str) -> Option<Sealing> {
        let audience = self.audience.clone().or_else(|| (!name.is_empty()).then(|| name.into()))?;
        if self.reach == Reach::OneOfSeveralProcesses {
            tracing::warn!(
                server = name,
                "request states are sealed with a key of this process, but there are several: retries that reach \
                 another one are refused; give all of them the same `RequestState::keys`"
            );
        }
        Some(Sealing(Arc::new(Policy { settings: self, audience })))
    }
}

impl Default for RequestState {
    fn default() -> Self {
        Self::ephemeral()
    }
}

impl fmt::Debug for RequestState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RequestState")
            .field("ttl", &self.ttl)
            .field("audience", &self.audience)
            .field("reach", &self.reach)
            .finish_non_exhaustive()
    }
}

/// Returns the identity of the principal as a compact JSON array.
fn identity(cx: &Context) -> Result<Option<String>, BoxError> {
    let principal = cx.principal();
    Ok(principal.map(|principal| serde_json::to_string(&principal.identity())).transpose()?)
}

/// The middleware. It knows no method by name: the table says which methods request input.
pub(crate) struct Sealing(Arc<Policy>);

struct Policy {
    settings: RequestState,
    audience: Arc<str>,
}

impl Middleware for Sealing {
    fn handle(
        &self,
        cx: Context,
        message: Message,
        next: Next,
    ) -> BoxFuture<'static, Result<Outcome, McpError>> {
        let Some(method) = message.known().filter(|method| method.asks_for_input()) else {
            return next.run(cx, message);
        };
        let policy = Arc::clone(&self.0);
        Box::pin(async move {
            // The sealed state is bound to the request as it arrived, even if inner middleware rewrites it.
            let arrived = message.clone();
            let (message, binding) = policy.open(&cx, method, message)?;
            let outcome = next.run(cx.clone(), message).await?;
            let bind = || match binding {
                Some(binding) => Ok(binding),
                None => policy.bind(&cx, method, arrived.params().unwrap_or("{}")),
            };
            policy.seal(outcome, bind).map_err(|cause| unsealed(method, &*cause))
        })
    }
}

/// The same protection for single states, without the middleware.
impl Sealing {
    /// Opens a state that arrived with these params, or returns the uniform refusal.
    pub(crate) fn open_state(
        &self,
        cx: &Context,
        method: Method,
        params: &str,
        sealed: &str,
    ) -> Result<String, McpError> {
        let Policy { settings, audience } = &*self.0;
        let open = || -> Result<String, BoxError> {
            let binding = self.0.bind(cx, method, params)?;
            let claims = settings.codec.open(sealed)?;
            claims::read(&claims, &binding, audience, (settings.clock)())
        };
        open().map_err(|cause| refusal(method, &*cause))
    }

    /// Seals a state for the request with these params.
    pub(crate) fn seal_state(
        &self,
        cx: &Context,
        method: Method,
        params: &str,
        state: &str,
    ) -> Result<String, McpError> {
        let seal = || self.0.sealed(state, &self.0.bind(cx, method, params)?);
        seal().map_err(|cause| unsealed(method, &*cause))
    }
}

impl Policy {
    /// Returns the message with its state in plain text, and the binding of that state.
    fn open(
        &self,
        cx: &Context,
        method: Method,
        message: Message,
    ) -> Result<(Message, Option<Binding>), McpError> {
        let Some(params) = message.params().filter(|params| params::may_have(params, STATE)) else {
            return Ok((message, None));
        };
        let [state] = params::find(params, [STATE]).map_err(|error| McpError::InvalidParams(error.into()))?;
        let opened = match state {
            Occurrence::Absent | Occurrence::One("null") => return Ok((message, None)),
            Occurrence::Several => Err("the request has it twice".into()),
            Occurrence::One(state) => self.open_in(cx, method, params, state),
        };
        let (params, binding) = opened.map_err(|cause| refusal(method, &*cause))?;
        Ok((message.with_params(Some(params.into())), Some(binding)))
    }

    /// Returns the params with `state` replaced by its plain text.
    fn open_in(
        &self,
        cx: &Context,
        method: Method,
        params: &str,
        state: &str,
    ) -> Result<(String, Binding), BoxError> {
        let sealed: String = serde_json::from_str(state).map_err(|_| "it is not a string")?;
        let binding = self.bind(cx, method, params)?;
        let claims = self.settings.codec.open(&sealed)?;
        let plain = claims::read(&claims, &binding, &self.audience, (self.settings.clock)())?;
        Ok((params::replace(params, state, &plain)?, binding))
    }

    fn bind(&self, cx: &Context, method: Method, params: &str) -> Result<Binding, BoxError> {
        let target = method.mirrored_field().ok_or("the method has no target")?;
        let [target, arguments] = params::find(params, [target, ARGUMENTS])?;
        Binding::new(method, target, arguments, (self.settings.principal)(cx)?)
    }

    /// Returns the outcome with its state sealed, if it requests input and has a state.
    fn seal(
        &self,
        mut outcome: Outcome,
        bind: impl FnOnce() -> Result<Binding, BoxError>,
    ) -> Result<Outcome, BoxError> {
        if let Some(asked) = outcome.downcast_mut::<InputRequiredResult>() {
            if let Some(state) = &mut asked.request_state {
                *state = self.sealed(state, &bind()?)?;
            }
            return Ok(outcome);
        }
        if outcome.result_type() != result_type::INPUT_REQUIRED {
            return Ok(outcome);
        }
        let text = outcome.as_text().ok_or("a result of an unknown type asks for input")?;
        let replaced = match params::find(text, [STATE])? {
            [Occurrence::One(state)] if state.starts_with('"') => {
                let plain: String = serde_json::from_str(state)?;
                params::replace(text, state, &self.sealed(&plain, &bind()?)?)?
            }
            [Occurrence::Several] => return Err("the result has a state twice".into()),
            [Occurrence::Absent | Occurrence::One(_)] => return Ok(outcome),
        };
        Ok(outcome.with_text(replaced)?)
    }

    fn sealed(&self, state: &str, binding: &Binding) -> Result<String, BoxError> {
        let Self { settings, audience } = self;
        let claims = claims::write(state, binding, audience, (settings.clock)(), settings.ttl)?;
        settings.codec.seal(&claims)
    }
}

/// Returns the uniform response to every invalid state, which reveals nothing to an attacker.
fn refusal(method: Method, cause: &(dyn std::error::Error + 'static)) -> McpError {
    tracing::info!(%method, cause = %Chain(cause), "a request state is refused");
    ErrorObject::new(ErrorCode::INVALID_PARAMS, "Invalid or expired requestState")
        .with_data(serde_json::json!({ "reason": "invalid_request_state" }))
        .into()
}

/// Returns the error for a state that cannot be sealed. Such a state is not sent.
fn unsealed(method: Method, cause: &(dyn std::error::Error + 'static)) -> McpError {
    tracing::error!(%method, cause = %Chain(cause), "a request state cannot be sealed");
    McpError::new(ErrorCode::INTERNAL_ERROR, "Internal error")
}

#[cfg(test)]
mod tests;
