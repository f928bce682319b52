//! A protected server with a login of its own: the whole OAuth flow on one machine, without an account anywhere.
//!
//! Run: `cargo run -p duplexer-examples --bin dev-login`; another address is its argument.
//! Try: add `http://127.0.0.1:8000/mcp` to a host that supports OAuth. It opens a browser, you press "Allow".
//! Or open it in the MCP Inspector: `npx @modelcontextprotocol/inspector`.
//! Everybody who reaches this address is the user `ada`: for development only.

use duplexer::Context;
use duplexer::auth::dev;
use duplexer::http::StreamableHttp;
use duplexer::prelude::*;

/// Returns the name of the user who logged in.
#[tool(read_only)]
async fn whoami(cx: Context) -> String {
    cx.principal().and_then(|who| who.subject.clone()).unwrap_or_default()
}

#[tokio::main]
async fn main() -> Result<(), BoxError> {
    let address = std::env::args().nth(1).unwrap_or_else(|| "127.0.0.1:8000".into());
    let auth = dev::auth(&format!("http://{address}"), "ada")?;
    let server = Server::builder("whoami", "1.0.0").tool(whoami).build()?;
    StreamableHttp::new(server).bind(&address).await?.layer(auth).serve().await?;
    Ok(())
}
