//! The authoring interface as clients see it, in both eras.

extern crate duplexer_author as duplexer;

#[path = "author/common.rs"]
mod common;
#[path = "author/macros.rs"]
mod macros;
#[path = "author/prompts.rs"]
mod prompts;
#[path = "author/resources.rs"]
mod resources;
#[path = "author/tools.rs"]
mod tools;
