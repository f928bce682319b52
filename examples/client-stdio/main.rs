//! A client that starts a server as a child process, lists its tools and calls one of them.
//!
//! Run: `cargo run -p duplexer-examples --bin client-stdio -- target/debug/hello`, after a build of `hello`.
//! Try: another server, such as `client-stdio npx -y some-server`; a tool that does not exist; no arguments at all.
//! It shows `Client::open`, arguments of your own type, decoded results, failures of tools, and an orderly end.

#![expect(clippy::print_stderr, reason = "a program for the terminal")]

use duplexer::client::prelude::*;
use serde::Serialize;

#[derive(Serialize)]
struct Add {
    a: i64,
    b: i64,
}

#[tokio::main]
async fn main() -> Result<(), BoxError> {
    let mut words = std::env::args().skip(1);
    let program = words.next().ok_or("usage: client-stdio PROGRAM [ARGUMENT]...")?;
    let client = Client::open(ChildCommand::new(program).args(words)).await?;
    let mut has_add = false;
    for tool in client.all_tools().await? {
        eprintln!("{}: {}", tool.name, tool.description.unwrap_or_default());
        has_add |= tool.name == "add";
    }
    if has_add {
        let sum: i64 = client.call_tool("add", Add { a: 40, b: 2 }).structured().await?;
        eprintln!("40 + 2 = {sum}");
        match client.call_tool("add", ()).text().await {
            Err(ClientError::ToolFailed(failed)) => eprintln!("without arguments: {failed}"),
            other => return Err(format!("a call without arguments should fail: {other:?}").into()),
        }
    }
    // Ends the session, then the process.
    Ok(client.close().await?)
}
