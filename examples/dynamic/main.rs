//! Tools that differ per caller and change while the server runs.
//!
//! Run: `cargo run -p duplexer-examples --bin dynamic`; another address is its argument.
//! Try: `duplexer list http://127.0.0.1:8000/mcp -H 'Authorization: Bearer reader-token'`, and with `admin-token`.
//! Then, as admin, call `learn name=hello text=Hi` and list again: there is a new tool, for everyone.
//! Clients that listen for changes are notified: `duplexer listen URL -H ..`.

use duplexer::Context;
use duplexer::auth::{Auth, StaticToken};
use duplexer::http::StreamableHttp;
use duplexer::prelude::*;
use duplexer::server::CatalogItem;
use duplexer::server::subscriptions::MemoryBus;

/// Returns the name of the caller.
#[tool(read_only)]
async fn whoami(cx: Context) -> String {
    cx.principal().map(|who| who.client_id.clone()).unwrap_or_default()
}

/// Adds a tool that returns a text.
#[tool]
async fn learn(cx: Context, name: String, text: String) -> Result<(), ToolError> {
    let tool = Tool::new(name, move || {
        let text = text.clone();
        async move { text }
    });
    cx.catalog()?.edit(|edit| edit.replace_tool(tool)).await?;
    Ok(())
}

/// Removes a tool.
#[tool(destructive)]
async fn forget(cx: Context, name: String) -> Result<(), ToolError> {
    cx.catalog()?.edit(|edit| edit.remove_tool(&name)).await?;
    Ok(())
}

#[tokio::main]
async fn main() -> Result<(), BoxError> {
    let address = std::env::args().nth(1).unwrap_or_else(|| "127.0.0.1:8000".into());
    let url = format!("http://{address}/mcp");
    let token = |token: &str, name: &str, scopes: &[&str]| {
        StaticToken::new(token).client_id(name).audience(&url).scopes(scopes.iter().copied())
    };
    let tokens =
        [token("reader-token", "reader", &["read"]), token("admin-token", "admin", &["read", "admin"])];
    let auth = Auth::static_tokens(tokens).audience(&url).require_scopes(["read"]).build()?;

    let server = Server::builder("school", "1.0.0")
        .dynamic()
        .subscriptions(MemoryBus::new())
        // A hidden tool is neither listed nor callable.
        .visible(|cx, item| match item {
            CatalogItem::Tool(tool) if ["learn", "forget"].contains(&tool.name.as_str()) => {
                cx.principal().is_some_and(|who| who.has_scope("admin"))
            }
            _ => true,
        })
        .tool(whoami)
        .tool(learn)
        .tool(forget)
        .build()?;
    StreamableHttp::new(server).bind(&address).await?.layer(auth).serve().await?;
    Ok(())
}
