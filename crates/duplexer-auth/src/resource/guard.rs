//! Scopes of single tools and methods: a middleware that fails with a challenge.

use duplexer_core::dispatch::{BoxFuture, Message};
use duplexer_core::error::{Challenge, McpError};
use duplexer_core::transport::Trust;
use duplexer_oauth_base::clock;
use duplexer_server::middleware::{Middleware, Next};
use duplexer_server::{Context, Outcome};
use duplexer_types::error::{ErrorCode, ErrorObject};
use duplexer_types::json::find_member;
use duplexer_types::methods::Method;

use super::Auth;
use super::builder::check_required;
use super::challenge::no_token;
use crate::error::AuthConfigError;

/// Middleware that requires further scopes for single tools or methods.
///
/// A request that lacks a scope fails with a challenge that names all scopes of the operation; over HTTP that is a 403,
/// so that the client can return with a better token. A long-lived request ends when its token expires.
///
/// ```
/// use duplexer_auth::Auth;
/// use duplexer_server::Server;
///
/// let auth = Auth::jwt("https://login.example.com").audience("https://mcp.example.com/mcp").build()?;
/// let guard = auth.guard().tool("delete", ["notes:write"]).build()?;
/// let server = Server::builder("notes", "1.0.0").middleware(guard).build()?;
/// # Ok::<_, Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct ScopeGuard {
    auth: Auth,
    rules: Vec<Rule>,
}

#[derive(Clone, Debug)]
struct Rule {
    method: Method,
    /// The tool, where the rule concerns a single one.
    name: Option<String>,
    scopes: Vec<String>,
}

/// Builder of a [`ScopeGuard`].
///
/// ```
/// use duplexer_auth::Auth;
/// use duplexer_types::methods::Method;
///
/// let auth = Auth::jwt("https://login.example.com").audience("https://mcp.example.com/mcp").build()?;
/// let guard = auth
///     .guard()
///     .tool("delete", ["notes:write"])
///     .method(Method::ResourcesRead, ["notes:read"])
///     .build()?;
/// # Ok::<_, duplexer_auth::AuthConfigError>(())
/// ```
#[derive(Clone, Debug)]
#[must_use = "nothing is guarded until it is built and installed as a middleware"]
pub struct ScopeGuardBuilder(ScopeGuard);

impl ScopeGuardBuilder {
    pub(super) fn new(auth: Auth) -> Self {
        Self(ScopeGuard { auth, rules: Vec::new() })
    }

    /// Requires these scopes for calls of a tool.
    pub fn tool(self, name: impl Into<String>, scopes: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.rule(Method::ToolsCall, Some(name.into()), scopes)
    }

    /// Requires these scopes for requests of a method.
    pub fn method(self, method: Method, scopes: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.rule(method, None, scopes)
    }

    fn rule(
        mut self,
        method: Method,
        name: Option<String>,
        scopes: impl IntoIterator<Item = impl Into<String>>,
    ) -> Self {
        let scopes = scopes.into_iter().map(Into::into).collect();
        self.0.rules.push(Rule { method, name, scopes });
        self
    }

    /// Builds the middleware.
    ///
    /// # Errors
    /// Fails if a scope is not a scope name, or is one that no server can require.
    pub fn build(self) -> Result<ScopeGuard, AuthConfigError> {
        let mut scopes = self.0.rules.iter().flat_map(|rule| &rule.scopes);
        scopes.try_for_each(|scope| check_required(scope))?;
        Ok(self.0)
    }
}

impl ScopeGuard {
    /// Returns the scopes of a message in addition to those of every request.
    fn scopes(&self, method: Method, message: &Message) -> Vec<String> {
        let named = method.mirrored_field().and_then(|field| name_of(message, field));
        let applies = |rule: &&Rule| rule.method == method && (rule.name.is_none() || rule.name == named);
        self.rules.iter().filter(applies).flat_map(|rule| rule.scopes.iter().cloned()).collect()
    }

    fn check(&self, cx: &Context, method: Method, message: &Message) -> Result<(), McpError> {
        let scopes = self.scopes(method, message);
        if scopes.is_empty() {
            return Ok(());
        }
        let refusal = match cx.principal() {
            Some(principal) => self.auth.missing(principal, &scopes),
            // A process that shares the rights of the server has no token to present.
            None if cx.transport().trust() == Trust::LocalProcess => None,
            None => Some(no_token()),
        };
        match refusal {
            None => Ok(()),
            Some(error) => {
                let header = self.auth.challenge(&error, &self.auth.needed(&scopes));
                let error = ErrorObject::new(ErrorCode::INVALID_REQUEST, error.to_string());
                Err(Challenge::new(error, header).into())
            }
        }
    }
}

fn name_of(message: &Message, field: &str) -> Option<String> {
    message
        .params()
        .and_then(|params| find_member(params, field))
        .and_then(|name| serde_json::from_str(name).ok())
}

impl Middleware for ScopeGuard {
    fn handle(
        &self,
        cx: Context,
        message: Message,
        next: Next,
    ) -> BoxFuture<'static, Result<Outcome, McpError>> {
        let Some(method) = message.known() else { return next.run(cx, message) };
        if let Err(error) = self.check(&cx, method, &message) {
            return Box::pin(std::future::ready(Err(error)));
        }
        let ends = cx.principal().and_then(|principal| principal.expires_at);
        match ends.filter(|_| method.is_long_lived()) {
            None => next.run(cx, message),
            Some(end) => {
                let left = clock::until(end, self.auth.0.clock.now());
                Box::pin(async move {
                    let ended = || McpError::new(ErrorCode::INVALID_REQUEST, "The access token has expired");
                    tokio::time::timeout(left, next.run(cx, message)).await.unwrap_or_else(|_| Err(ended()))
                })
            }
        }
    }
}
