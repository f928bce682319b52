//! Servers written with the authoring interface, of few tools and of many: calling one of them, and listing them all.

use duplexer::types::content::Content;
use duplexer::{Server, Tool};
use duplexer_types::version::ProtocolVersion;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::kernel::Kernel;

/// What is asked of the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ask {
    /// One of the tools is called.
    Call,
    /// All are listed.
    List,
}

/// The kernel that is asked this of a server, in a revision.
pub fn asked(server: &Server, version: ProtocolVersion, ask: Ask) -> Option<Kernel> {
    match ask {
        Ask::Call => {
            Kernel::new(server, version, "tools/call", r#""name":"tool_7","arguments":{"text":"hello"}"#)
        }
        Ask::List => Kernel::new(server, version, "tools/list", ""),
    }
}

#[derive(Deserialize, JsonSchema)]
struct Arguments {
    /// What is said again.
    text: String,
}

/// A server with this many tools. What it offers may change.
pub fn server(tools: usize) -> Option<Server> {
    let builder = Server::builder("bench-server").version("1.0.0").dynamic();
    let offered = (0..tools).fold(builder, |builder, number| builder.tool(tool(number)));
    offered.build().ok()
}

/// One of the tools.
pub fn tool(number: usize) -> Tool<()> {
    let echo = |Arguments { text }| async move { Content::text(text) };
    Tool::new(format!("tool_{number}"), echo).description("Says it again.")
}
