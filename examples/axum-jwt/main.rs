//! An axum application with an MCP endpoint that accepts the tokens of an issuer and requires scopes per tool.
//!
//! Run: `cargo run -p duplexer-examples --bin axum-jwt -- 127.0.0.1:8000 https://login.example.com`
//! Try: `curl -i http://127.0.0.1:8000/`, which is public, and the same with `/mcp`, which names the issuer.
//! Then, with a token: `duplexer call http://127.0.0.1:8000/mcp notes -H "Authorization: Bearer $TOKEN"`
//! A token needs the audience `http://ADDRESS/mcp`, the scope `notes`, and `notes:write` for the tool `add_note`.

use std::sync::{Mutex, PoisonError};

use axum::Router;
use axum::routing::get;
use duplexer::Context;
use duplexer::auth::Auth;
use duplexer::http::StreamableHttp;
use duplexer::prelude::*;

/// Notes, each with its author.
#[derive(Default)]
struct Notes(Mutex<Vec<(String, String)>>);

/// Returns the notes of the caller.
#[tool(read_only)]
async fn notes(cx: Context<Notes>) -> Vec<String> {
    let who = caller(&cx);
    let notes = cx.state().0.lock().unwrap_or_else(PoisonError::into_inner);
    notes.iter().filter(|(author, _)| *author == who).map(|(_, text)| text.clone()).collect()
}

/// Adds a note of the caller.
#[tool]
async fn add_note(cx: Context<Notes>, text: String) {
    let note = (caller(&cx), text);
    cx.state().0.lock().unwrap_or_else(PoisonError::into_inner).push(note);
}

/// Returns the subject of the token. Without a token no request gets here.
fn caller(cx: &Context<Notes>) -> String {
    cx.principal().and_then(|who| who.subject.clone()).unwrap_or_default()
}

#[tokio::main]
async fn main() -> Result<(), BoxError> {
    let mut arguments = std::env::args().skip(1);
    let address = arguments.next().ok_or("give an address, such as 127.0.0.1:8000")?;
    let issuer = arguments.next().ok_or("give an issuer, such as https://login.example.com")?;

    let auth =
        Auth::jwt(&issuer).audience(format!("http://{address}/mcp")).require_scopes(["notes"]).build()?;
    let server = Server::builder("notes", "1.0.0")
        .middleware(auth.guard().tool("add_note", ["notes:write"]).build()?)
        .state(Notes::default())
        .tool(notes)
        .tool(add_note)
        .build()?;
    let mcp = StreamableHttp::new(server);
    let handle = mcp.handle();

    // The protected endpoint also serves the metadata that tells clients where to get a token.
    let protected = auth.protect(mcp);
    let app = auth
        .metadata_paths()
        .iter()
        .fold(Router::new(), |app, path| app.route_service(path, protected.clone()));
    let app = app.route_service("/mcp", protected).route("/", get(|| async { "Notes for your assistant." }));

    let listener = tokio::net::TcpListener::bind(address).await?;
    // On Ctrl-C or SIGTERM calls in flight end first; then axum stops.
    axum::serve(listener, app).with_graceful_shutdown(handle.on_signal()?).await?;
    Ok(())
}
