//! Request state: what a handler wants to get back travels through the client sealed.
//!
//! A server that asks for input keeps nothing between rounds; the client carries the handler's state, and what a
//! client carries it can change, keep, or hand on. This middleware seals the state on its way out and opens it on its
//! way in, bound to its request, its principal, this server and a time. Handlers see plain text, everybody else
//! nothing. A state that does not hold is refused with one answer; why, only the log says. It does not make a state
//! single-use: a retry may arrive twice, and what must happen once is the handler's to remember.

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
use self::params::Found;
use crate::kernel::context::Context;
use crate::kernel::outcome::Outcome;
use crate::middleware::{Middleware, Next};
use duplexer_core::dispatch::{BoxFuture, Invocation};
use duplexer_core::error::{BoxError, Chain, McpError};

pub use codec::{KeyRing, RequestStateCodec};

const STATE: &str = "requestState";
const ARGUMENTS: &str = "arguments";
const DEFAULT_TTL: Duration = Duration::from_secs(600);

type PrincipalFn = dyn Fn(&Context) -> Result<Option<String>, BoxError> + Send + Sync;
type Clock = dyn Fn() -> SystemTime + Send + Sync;

/// How a server protects the states it sends through its clients. Installed with `ServerBuilder::request_state`.
///
/// The default is [`RequestState::ephemeral`].
#[derive(Clone)]
pub struct RequestState {
    codec: Arc<dyn RequestStateCodec>,
    ttl: Duration,
    audience: Option<Arc<str>>,
    principal: Arc<PrincipalFn>,
    clock: Arc<Clock>,
    reach: Reach,
}

/// Who else can open what is sealed here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reach {
    /// Nobody, although other instances get the retries.
    ThisProcessOfSeveral,
    ThisProcess,
    WhoeverHasTheKeys,
}

/// How many processes answer the requests of one client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Instances {
    /// One, which also does not restart between the rounds of a request.
    One,
    /// Several: a retry may reach another one.
    Several,
}

/// Why a server's protection of states is not one; the text says what to change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RequestStateError {
    /// A ring without secrets.
    #[error("a key ring needs at least one secret; use `RequestState::ephemeral` for a random one")]
    NoSecret,
    /// A secret that can be guessed.
    #[error("a secret of a key ring needs at least 32 bytes of randomness; got {got}")]
    ShortSecret {
        /// How long it is.
        got: usize,
    },
    /// Twice the same secret.
    #[error("a secret stands twice in the key ring; remove one of them")]
    RepeatedSecret,
    /// The key derivation failed.
    #[error("a key could not be derived from its secret")]
    Derivation,
    /// States that expire when they are made.
    #[error("the time to live of a request state must be longer than nothing")]
    NoTimeToLive,
}

impl RequestState {
    /// Seals with the first of these secrets and opens with any of them; see [`KeyRing`].
    pub fn keys<T: AsRef<[u8]>>(secrets: impl IntoIterator<Item = T>) -> Result<Self, RequestStateError> {
        KeyRing::new(secrets).map(Self::codec)
    }

    /// Seals with a codec of your own.
    pub fn codec(codec: impl RequestStateCodec) -> Self {
        Self {
            codec: Arc::new(codec),
            ttl: DEFAULT_TTL,
            audience: None,
            principal: Arc::new(identity),
            clock: Arc::new(SystemTime::now),
            reach: Reach::WhoeverHasTheKeys,
        }
    }

    /// Seals with a random key of this process. A retry that reaches another process, or this one after a restart,
    /// is refused; where that can happen, give all of them the same [`RequestState::keys`].
    pub fn ephemeral() -> Self {
        Self { reach: Reach::ThisProcess, ..Self::codec(KeyRing::random()) }
    }

    /// Says how many processes answer the requests of one client. With several and an ephemeral key the server logs
    /// a warning when it is built, because most retries will be refused.
    #[must_use]
    pub fn instances(mut self, instances: Instances) -> Self {
        self.reach = match (self.reach, instances) {
            (Reach::WhoeverHasTheKeys, _) => Reach::WhoeverHasTheKeys,
            (_, Instances::One) => Reach::ThisProcess,
            (_, Instances::Several) => Reach::ThisProcessOfSeveral,
        };
        self
    }

    /// A state is good for so long; ten minutes if not given.
    pub fn ttl(mut self, ttl: Duration) -> Result<Self, RequestStateError> {
        if ttl.is_zero() {
            return Err(RequestStateError::NoTimeToLive);
        }
        self.ttl = ttl;
        Ok(self)
    }

    /// Which server a state is for; its name if not given. Instances that share work share this too.
    #[must_use]
    pub fn audience(mut self, audience: impl Into<Arc<str>>) -> Self {
        self.audience = Some(audience.into());
        self
    }

    /// Says for whom a request is made, in a text that is the same for the same principal only; `None` for nobody.
    ///
    /// If not given, it is the identity of the principal: client, issuer and subject. Where it fails,
    /// no state is opened or sealed.
    #[must_use]
    pub fn principal(
        mut self,
        principal: impl Fn(&Context) -> Result<Option<String>, BoxError> + Send + Sync + 'static,
    ) -> Self {
        self.principal = Arc::new(principal);
        self
    }

    /// Tells the time by another clock.
    #[must_use]
    pub fn clock(mut self, clock: impl Fn() -> SystemTime + Send + Sync + 'static) -> Self {
        self.clock = Arc::new(clock);
        self
    }

    /// The middleware of a server called `name`; `None` if nothing says for whom its states are.
    pub(crate) fn into_middleware(self, name: &str) -> Option<Sealing> {
        let audience = self.audience.clone().or_else(|| (!name.is_empty()).then(|| name.into()))?;
        if self.reach == Reach::ThisProcessOfSeveral {
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

/// The identity of the principal as a compact JSON array.
fn identity(cx: &Context) -> Result<Option<String>, BoxError> {
    let principal = cx.principal();
    Ok(principal.map(|principal| serde_json::to_string(&principal.identity())).transpose()?)
}

/// The middleware. It names no method: the table says which ones ask for input.
pub(crate) struct Sealing(Arc<Policy>);

struct Policy {
    settings: RequestState,
    audience: Arc<str>,
}

impl Middleware for Sealing {
    fn handle(
        &self,
        cx: Context,
        message: Invocation,
        next: Next,
    ) -> BoxFuture<'static, Result<Outcome, McpError>> {
        let Some(method) = message.known().filter(|method| method.asks_for_input()) else {
            return next.run(cx, message);
        };
        let policy = Arc::clone(&self.0);
        Box::pin(async move {
            // What is sealed is bound to the request as it came, whatever becomes of it further in.
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

/// For those who ask without the middleware: the same protection, one state at a time.
impl Sealing {
    /// The plain text of a state that came with these params, or the one refusal.
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

    /// A state sealed for the request with these params.
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
    /// The message with its state in plain text, and what that state is bound to.
    fn open(
        &self,
        cx: &Context,
        method: Method,
        message: Invocation,
    ) -> Result<(Invocation, Option<Binding>), McpError> {
        let Some(params) = message.params().filter(|params| params::may_have(params, STATE)) else {
            return Ok((message, None));
        };
        let [state] = params::find(params, [STATE]).map_err(|error| McpError::InvalidParams(error.into()))?;
        let opened = match state {
            Found::Absent | Found::One("null") => return Ok((message, None)),
            Found::Several => Err("it stands twice in the request".into()),
            Found::One(state) => self.open_in(cx, method, params, state),
        };
        let (params, binding) = opened.map_err(|cause| refusal(method, &*cause))?;
        Ok((message.with_params(Some(params.into())), Some(binding)))
    }

    /// The params with the plain text in the place of `state`.
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

    /// The outcome with its state sealed, if it asks for input and has one.
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
            [Found::One(state)] if state.starts_with('"') => {
                let plain: String = serde_json::from_str(state)?;
                params::replace(text, state, &self.sealed(&plain, &bind()?)?)?
            }
            [Found::Several] => return Err("the result has a state twice".into()),
            [Found::Absent | Found::One(_)] => return Ok(outcome),
        };
        Ok(outcome.with_text(replaced)?)
    }

    fn sealed(&self, state: &str, binding: &Binding) -> Result<String, BoxError> {
        let Self { settings, audience } = self;
        let claims = claims::write(state, binding, audience, (settings.clock)(), settings.ttl)?;
        settings.codec.seal(&claims)
    }
}

/// The one answer to every state that does not hold: it tells an attacker nothing.
fn refusal(method: Method, cause: &(dyn std::error::Error + 'static)) -> McpError {
    tracing::info!(%method, cause = %Chain(cause), "a request state is refused");
    ErrorObject::new(ErrorCode::INVALID_PARAMS, "Invalid or expired requestState")
        .with_data(serde_json::json!({ "reason": "invalid_request_state" }))
        .into()
}

/// A state that cannot be sealed is not sent.
fn unsealed(method: Method, cause: &(dyn std::error::Error + 'static)) -> McpError {
    tracing::error!(%method, cause = %Chain(cause), "a request state cannot be sealed");
    McpError::new(ErrorCode::INTERNAL_ERROR, "Internal error")
}

#[cfg(test)]
mod tests;
