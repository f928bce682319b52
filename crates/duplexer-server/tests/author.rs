//! The authoring interface as clients see it, in both eras.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "helpers of tests fail like tests"
)]

#[path = "author/asking.rs"]
mod asking;
#[path = "author/common.rs"]
mod common;
#[path = "author/composition.rs"]
mod composition;
#[path = "author/context.rs"]
mod context;
#[path = "author/dynamic.rs"]
mod dynamic;
#[path = "author/extensions.rs"]
mod extensions;
#[path = "author/macros.rs"]
mod macros;
#[path = "author/prompts.rs"]
mod prompts;
#[path = "author/resources.rs"]
mod resources;
#[path = "author/tools.rs"]
mod tools;
