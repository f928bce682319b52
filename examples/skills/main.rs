//! A directory of skills as a server: instructions for models, which hosts load when a task needs them.
//!
//! Run: `cargo run -p duplexer-examples --bin skills -- DIRECTORY`; without one it serves `examples/skills/skills`.
//! Try: `duplexer skills list -- target/debug/skills`, then `duplexer skills show release-notes -- target/debug/skills`.
//! Then change a file while `duplexer listen -- target/debug/skills` runs.

use std::path::PathBuf;

use duplexer::prelude::*;
use duplexer::skills::Skills;

fn main() -> Result<(), BoxError> {
    let own = concat!(env!("CARGO_MANIFEST_DIR"), "/skills/skills");
    let directory = std::env::args_os().nth(1).map_or_else(|| PathBuf::from(own), PathBuf::from);
    let server = Server::builder("skills", "1.0.0")
        .instructions("Load a skill before a task that its description names.")
        .extend(Skills::new().directory(directory))
        .build()?;
    Ok(run_stdio(&server)?)
}
