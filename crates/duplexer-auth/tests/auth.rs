//! Authorization over a socket: a protected server and an authorization server, as a client observes them.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

#[path = "auth/assertions.rs"]
mod assertions;
#[path = "auth/authorize.rs"]
mod authorize;
#[path = "auth/bearer.rs"]
mod bearer;
#[path = "auth/binding.rs"]
mod binding;
#[path = "auth/introspection.rs"]
mod introspection;
#[path = "auth/issuer.rs"]
mod issuer;
#[path = "auth/jwt.rs"]
mod jwt;
#[path = "auth/logs.rs"]
mod logs;
#[path = "auth/races.rs"]
mod races;
#[path = "auth/register.rs"]
mod register;
#[path = "auth/revoke.rs"]
mod revoke;
#[path = "auth/routes.rs"]
mod routes;
#[path = "auth/scopes.rs"]
mod scopes;
#[path = "auth/slow_bodies.rs"]
mod slow_bodies;
#[path = "auth/support.rs"]
mod support;
#[path = "auth/tokens.rs"]
mod tokens;
