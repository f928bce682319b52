//! Socket activation: systemd listens and passes the socket on, so that a restart refuses no connection.
//!
//! Run: `cargo build -p duplexer-examples --bin socket-activation && systemd-socket-activate -l 8000 target/debug/socket-activation`
//! Try: `duplexer call http://127.0.0.1:8000/mcp add a:=2 b:=3`, which starts the server.
//! The guide *Deploying* has the two unit files. Without a socket from outside it listens on port 8000 itself.

#![expect(clippy::print_stderr, reason = "a program for the terminal")]

use duplexer::http::StreamableHttp;
use duplexer::prelude::*;
use listenfd::ListenFd;
use tokio::net::TcpListener;

/// Adds two numbers.
#[tool]
async fn add(a: i64, b: i64) -> i64 {
    a + b
}

/// Takes the first socket that was passed on, if there is one.
async fn listener() -> Result<TcpListener, BoxError> {
    let Some(passed) = ListenFd::from_env().take_tcp_listener(0)? else {
        return Ok(TcpListener::bind("127.0.0.1:8000").await?);
    };
    passed.set_nonblocking(true)?;
    Ok(TcpListener::from_std(passed)?)
}

#[tokio::main]
async fn main() -> Result<(), BoxError> {
    let listener = listener().await?;
    eprintln!("http://{}/mcp", listener.local_addr()?);
    let server = Server::builder("calculator", "1.0.0").tool(add).build()?;
    Ok(StreamableHttp::new(server).with_listener(listener).health_routes().serve().await?)
}
