//! Scopes of single tools and methods: a middleware of the kernel, which fails with a challenge.

use duplexer_core::dispatch::{BoxFuture, Invocation};
use duplexer_core::error::{Challenge, McpError};
use duplexer_core::server::{Context, Middleware, Next, Outcome};
use duplexer_types::error::{ErrorCode, ErrorObject};
use duplexer_types::json::find_member;
use duplexer_types::methods::Method;

use super::Auth;
use super::builder::check_required;
use super::challenge::unauthenticated;
use crate::clock;
use crate::error::ConfigError;

/// The transport whose peer is the one who started the process: there is no token to ask for.
const STDIO: &str = "stdio";

/// What single tools and methods need beside what every request does.
///
/// Whoever lacks a scope is told all that the operation takes: over HTTP as 403 with a challenge, so that its client
/// can come back with a better token. Requests that stand for long end with their token.
#[derive(Clone, Debug)]
pub struct ScopeGuard {
    auth: Auth,
    rules: Vec<Rule>,
}

#[derive(Clone, Debug)]
struct Rule {
    method: Method,
    /// The tool, where the rule is about one.
    name: Option<String>,
    scopes: Vec<String>,
}

impl ScopeGuard {
    pub(super) fn new(auth: Auth) -> Self {
        Self { auth, rules: Vec::new() }
    }

    /// Calling this tool takes these scopes.
    pub fn tool(
        self,
        name: impl Into<String>,
        scopes: impl IntoIterator<Item = impl Into<String>>,
    ) -> Result<Self, ConfigError> {
        self.rule(Method::ToolsCall, Some(name.into()), scopes)
    }

    /// This method takes these scopes.
    pub fn method(
        self,
        method: Method,
        scopes: impl IntoIterator<Item = impl Into<String>>,
    ) -> Result<Self, ConfigError> {
        self.rule(method, None, scopes)
    }

    fn rule(
        mut self,
        method: Method,
        name: Option<String>,
        scopes: impl IntoIterator<Item = impl Into<String>>,
    ) -> Result<Self, ConfigError> {
        let scopes: Vec<String> = scopes.into_iter().map(Into::into).collect();
        scopes.iter().try_for_each(|scope| check_required(scope))?;
        self.rules.push(Rule { method, name, scopes });
        Ok(self)
    }

    /// What a message takes beside what every request does.
    fn scopes(&self, method: Method, message: &Invocation) -> Vec<String> {
        let named = method.mirrored_field().and_then(|field| name_of(message, field));
        let applies = |rule: &&Rule| rule.method == method && (rule.name.is_none() || rule.name == named);
        self.rules.iter().filter(applies).flat_map(|rule| rule.scopes.iter().cloned()).collect()
    }

    fn check(&self, cx: &Context, method: Method, message: &Invocation) -> Result<(), McpError> {
        let scopes = self.scopes(method, message);
        if scopes.is_empty() {
            return Ok(());
        }
        let refusal = match cx.principal() {
            Some(principal) => self.auth.missing(principal, &scopes),
            None if cx.transport().kind == STDIO => None,
            None => Some(unauthenticated()),
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

fn name_of(message: &Invocation, field: &str) -> Option<String> {
    message
        .params()
        .and_then(|params| find_member(params, field))
        .and_then(|name| serde_json::from_str(name).ok())
}

impl Middleware for ScopeGuard {
    fn handle(
        &self,
        cx: Context,
        message: Invocation,
        next: Next,
    ) -> BoxFuture<'static, Result<Outcome, McpError>> {
        let Some(method) = Method::parse(message.method()) else { return next.run(cx, message) };
        if let Err(error) = self.check(&cx, method, &message) {
            return Box::pin(std::future::ready(Err(error)));
        }
        let ends = cx.principal().and_then(|principal| principal.expires_at);
        match ends.filter(|_| method.is_standing()) {
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
