//! Servers with few and many tools: calls one tool, or lists all.

use duplexer::types::content::Content;
use duplexer::{Server, ServerBuilder, Tool};
use duplexer_types::version::ProtocolVersion;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::kernel::Kernel;

/// The measured request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ask {
    /// Calls one of the tools.
    Call,
    /// Lists all tools.
    List,
}

/// The tool that is called.
pub const CALLED: &str = "tool_7";

/// Builds the kernel that answers this request, in a revision.
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
    /// The echoed text.
    text: String,
}

/// Builds a server with this many tools, which can change.
pub fn server(tools: usize) -> Option<Server> {
    builder(tools).build().ok()
}

/// Returns the builder of the same server.
pub fn builder(tools: usize) -> ServerBuilder<()> {
    let builder = Server::builder("bench-server", "1.0.0").dynamic();
    (0..tools).fold(builder, |builder, number| builder.tool(tool(number)))
}

/// One of the tools.
pub fn tool(number: usize) -> Tool<()> {
    let echo = |Arguments { text }| async move { Content::text(text) };
    Tool::new(format!("tool_{number}"), echo).description("Says it again.")
}
