//! Sampling: a command of the user answers in place of a model.
//!
//! The command gets the request as JSON on its standard input and prints the answer. It runs in a shell, one request at a
//! time.

use std::process::Stdio;
use std::sync::Arc;

use duplexer::McpError;
use duplexer::types::annotations::Role;
use duplexer::types::error::ErrorCode;
use duplexer::types::sampling::{CreateMessageParams, CreateMessageResult, StopReason};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::process::{ChildStdin, ChildStdout, Command};
use tokio::sync::Semaphore;

use crate::terminal::Terminal;

/// Maximum length of an answer, in bytes.
const MAX_ANSWER: u64 = 4 * 1024 * 1024;

/// Name of the model in the results.
const MODEL: &str = "duplexer --sample";

/// Runs the command of `--sample`.
pub(crate) struct Sampler {
    command: String,
    terminal: Arc<Terminal>,
    /// Serializes concurrent requests.
    turn: Semaphore,
}

impl Sampler {
    pub(crate) fn new(command: String, terminal: Arc<Terminal>) -> Self {
        Self { command, terminal, turn: Semaphore::new(1) }
    }

    /// Answers a request of the server.
    pub(crate) async fn answer(&self, asked: CreateMessageParams) -> Result<CreateMessageResult, McpError> {
        // The semaphore is never closed.
        let _turn = self.turn.acquire().await.ok();
        self.terminal.clear();
        let request = duplexer::Json::encode(&asked).map_err(McpError::internal)?;
        match self.run(request.as_str()).await {
            Ok(answer) => Ok(CreateMessageResult::new(Role::Assistant, answer.trim_end(), MODEL)
                .stop_reason(StopReason::EndTurn)),
            Err(reason) => {
                self.terminal.note(&format!("the command of --sample failed: {reason}"));
                Err(McpError::new(ErrorCode::INTERNAL_ERROR, "The client could not sample a message"))
            }
        }
    }

    async fn run(&self, request: &str) -> Result<String, String> {
        let mut child = shell(&self.command)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .map_err(|error| error.to_string())?;
        let (stdin, stdout) = (child.stdin.take(), child.stdout.take());
        let ((), answer) = tokio::join!(write(stdin, request), read(stdout));
        let answer = answer?;
        match child.wait().await {
            Ok(status) if status.success() => Ok(answer),
            Ok(status) => Err(status.to_string()),
            Err(error) => Err(error.to_string()),
        }
    }
}

fn shell(command: &str) -> Command {
    let (program, option) = if cfg!(windows) { ("cmd", "/C") } else { ("sh", "-c") };
    let mut shell = Command::new(program);
    shell.args([option, command]);
    shell
}

/// Writes the request. A command that does not read it is no failure.
async fn write(stdin: Option<ChildStdin>, request: &str) {
    if let Some(mut stdin) = stdin {
        let _ = stdin.write_all(format!("{request}\n").as_bytes()).await;
    }
}

async fn read(stdout: Option<ChildStdout>) -> Result<String, String> {
    let mut answer = Vec::new();
    if let Some(stdout) = stdout {
        stdout.take(MAX_ANSWER + 1).read_to_end(&mut answer).await.map_err(|error| error.to_string())?;
    }
    if answer.len() as u64 > MAX_ANSWER {
        return Err(format!("its answer is longer than {MAX_ANSWER} bytes"));
    }
    String::from_utf8(answer).map_err(|_| "its answer is not UTF-8".to_owned())
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use super::*;

    async fn run(command: &str, request: &str) -> Result<String, String> {
        Sampler::new(command.to_owned(), Arc::new(Terminal::new())).run(request).await
    }

    #[tokio::test]
    async fn the_command_gets_the_request_and_prints_the_answer() {
        assert_eq!(run("tr a-z A-Z", "{\"a\":1}").await.as_deref(), Ok("{\"A\":1}\n"));
        assert_eq!(run("echo yes", &"x".repeat(1_000_000)).await.as_deref(), Ok("yes\n"));
    }

    #[tokio::test]
    async fn a_command_that_fails_gives_no_answer() {
        assert_eq!(run("echo no; exit 3", "{}").await, Err("exit status: 3".to_owned()));
        assert_eq!(run("printf '\\377'", "{}").await, Err("its answer is not UTF-8".to_owned()));
        let endless = run("yes", "{}").await.unwrap_err();
        assert!(endless.contains("longer than 4194304 bytes"), "{endless}");
    }
}
