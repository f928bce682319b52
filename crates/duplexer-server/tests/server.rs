//! Servers as clients see them, in both eras.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "helpers of tests fail like tests"
)]

#[path = "server/background.rs"]
mod background;
#[path = "server/common.rs"]
mod common;
#[path = "server/composition.rs"]
mod composition;
#[path = "server/context.rs"]
mod context;
#[path = "server/dynamic.rs"]
mod dynamic;
#[path = "server/elicit.rs"]
mod elicit;
#[path = "server/extensions.rs"]
mod extensions;
#[path = "server/macros.rs"]
mod macros;
#[path = "server/prompts.rs"]
mod prompts;
#[path = "server/resources.rs"]
mod resources;
#[path = "server/tasks.rs"]
mod tasks;
#[path = "server/tools.rs"]
mod tools;
