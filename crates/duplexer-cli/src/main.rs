//! The command `duplexer`. Without arguments it starts the demo server.

#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a command talks to a person; over stdio it prints nothing but errors, and those to stderr"
)]

mod demo;

use std::process::ExitCode;

use duplexer::prelude::{BoxError, run_stdio};
use duplexer::transport::signal::ShutdownSignals;
use duplexer::types::methods::Method;
use duplexer_http::StreamableHttp;

const USAGE: &str = "\
Usage: duplexer [demo] [--stdio] [--port PORT]

  demo          start the demo server (this is the default)
  --stdio       serve standard input and output instead of HTTP
  --port PORT   listen on this port of 127.0.0.1 (8000 unless told)
  --help        print this";

/// What was asked for on the command line.
#[derive(Debug, PartialEq, Eq)]
enum Command {
    Stdio,
    Http(u16),
    Help,
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let command = match parse(&arguments) {
        Ok(command) => command,
        Err(complaint) => {
            eprintln!("duplexer: {complaint}\n\n{USAGE}");
            return ExitCode::from(2);
        }
    };
    match carry_out(&command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("duplexer: {}", chain(&*error));
            ExitCode::FAILURE
        }
    }
}

fn parse(arguments: &[String]) -> Result<Command, String> {
    let mut command = Command::Http(8000);
    let mut rest = arguments.iter().map(String::as_str).peekable();
    rest.next_if_eq(&"demo");
    while let Some(argument) = rest.next() {
        match argument {
            "--stdio" => command = Command::Stdio,
            "--port" => {
                let port = rest.next().ok_or("--port needs a number")?;
                command = Command::Http(port.parse().map_err(|_| format!("`{port}` is not a port"))?);
            }
            "--help" | "-h" => return Ok(Command::Help),
            other => return Err(format!("`{other}` is not understood")),
        }
    }
    Ok(command)
}

fn carry_out(command: &Command) -> Result<(), BoxError> {
    match command {
        Command::Help => println!("{USAGE}"),
        Command::Stdio => run_stdio(&demo::server()?)?,
        Command::Http(port) => serve(*port)?,
    }
    Ok(())
}

fn serve(port: u16) -> Result<(), BoxError> {
    let server = demo::server()?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        let service = StreamableHttp::new(server);
        let bound = service.bind(("127.0.0.1", port)).await.map_err(|error| busy(port, error))?;
        println!("{}", welcome(port));
        let mut signals = ShutdownSignals::listen()?;
        bound.run(async move { signals.next().await }).await;
        Ok(())
    })
}

fn busy(port: u16, error: impl std::error::Error + Send + Sync + 'static) -> BoxError {
    let hint =
        format!("127.0.0.1:{port} cannot be listened on; another port: duplexer demo --port {}", port ^ 1);
    format!("{hint} ({})", chain(&error)).into()
}

fn welcome(port: u16) -> String {
    let (call, list, ping) = (Method::ToolsCall, Method::ToolsList, Method::Ping);
    format!(
        "\
The demo server listens at http://127.0.0.1:{port}/mcp and speaks every revision of MCP:
2026-07-28 with self-contained requests, the older ones without sessions. Ctrl-C ends it.

Try it:
  curl -s http://127.0.0.1:{port}/mcp -H 'Content-Type: application/json' -H 'Accept: application/json, text/event-stream' \\
    -d '{{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"{call}\",\"params\":{{\"name\":\"add\",\"arguments\":{{\"a\":2,\"b\":3}}}}}}'
  npx @modelcontextprotocol/inspector --cli http://127.0.0.1:{port}/mcp --transport http --method {list}
  echo '{{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"{ping}\"}}' | cargo run --release -- --stdio"
    )
}

/// An error with its causes, on one line.
fn chain(error: &(dyn std::error::Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_line_is_understood_or_complained_about() {
        let check = |line: &str, expected: Result<Command, &str>| {
            let words: Vec<String> = line.split_whitespace().map(Into::into).collect();
            assert_eq!(parse(&words), expected.map_err(Into::into), "{line}");
        };
        check("", Ok(Command::Http(8000)));
        check("demo", Ok(Command::Http(8000)));
        check("demo --port 8001", Ok(Command::Http(8001)));
        check("--stdio", Ok(Command::Stdio));
        check("demo --help", Ok(Command::Help));
        check("--port", Err("--port needs a number"));
        check("--port x", Err("`x` is not a port"));
        check("serve", Err("`serve` is not understood"));
    }
}
