//! The whole client: against the authorization server of this project, and against scripted servers.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

#[path = "oauth/discovery.rs"]
mod discovery;
#[path = "oauth/enterprise.rs"]
mod enterprise;
#[path = "oauth/hostile.rs"]
mod hostile;
#[path = "oauth/login.rs"]
mod login;
#[path = "oauth/loopback.rs"]
mod loopback;
#[path = "oauth/machines.rs"]
mod machines;
#[path = "oauth/mock.rs"]
mod mock;
#[path = "oauth/ours.rs"]
mod ours;
#[path = "oauth/processes.rs"]
mod processes;
#[path = "oauth/refresh.rs"]
mod refresh;
#[path = "oauth/refusals.rs"]
mod refusals;
#[path = "oauth/secrets.rs"]
mod secrets;
#[path = "oauth/site.rs"]
mod site;
#[path = "oauth/stores.rs"]
mod stores;
#[path = "oauth/web.rs"]
mod web;
