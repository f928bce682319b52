//! Calls a server whose tools run as tasks, of another implementation: `interop-tasks URL`. The first difference ends the
//! program with an error.

use std::process::ExitCode;
use std::sync::{Arc, Mutex, PoisonError};

use duplexer_client::{Client, ClientError, Started, TaskHandle, TaskOptions};
use duplexer_core::error::BoxError;
use duplexer_http_client::HttpTransport;
use duplexer_types::elicitation::ElicitResult;
use duplexer_types::task::TaskStatus;
use serde_json::json;

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    let outcome = match std::env::args().nth(1) {
        Some(url) => run(&url).await,
        None => Err("usage: interop-tasks URL".into()),
    };
    #[expect(clippy::print_stderr, reason = "the last word of a program")]
    match outcome {
        Ok(checks) => {
            eprintln!("tasks of another server: {checks} checks passed");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("interop-tasks: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn run(url: &str) -> Result<usize, BoxError> {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let observed = Arc::clone(&seen);
    let note = move |status| observed.lock().unwrap_or_else(PoisonError::into_inner).push(status);
    let options = TaskOptions::new().on_status(move |task| note(task.status.clone()));
    let client = Client::builder("interop", "1.0.0")
        .tasks(options)
        .on_elicitation(|_| std::future::ready(Ok(ElicitResult::accept(json!({"sure": true})))))
        .connect(HttpTransport::new(url)?)
        .await?;
    let mut checks = Checks(0);
    checks.awaited(&client).await?;
    let statuses = seen.lock().unwrap_or_else(PoisonError::into_inner).clone();
    checks.holds("a task has asked", statuses.contains(&TaskStatus::InputRequired))?;
    checks.held(&client).await?;
    checks.without_tasks(url).await?;
    client.close().await?;
    Ok(checks.0)
}

struct Checks(usize);

impl Checks {
    fn holds(&mut self, what: &str, condition: bool) -> Result<(), BoxError> {
        self.0 += 1;
        if condition { Ok(()) } else { Err(format!("in vain: {what}").into()) }
    }

    fn equal(&mut self, what: &str, actual: &str, expected: &str) -> Result<(), BoxError> {
        self.0 += 1;
        if actual == expected {
            return Ok(());
        }
        Err(format!("{what}: expected {expected:?}, got {actual:?}").into())
    }

    /// Calls that are awaited to their end.
    async fn awaited(&mut self, client: &Client) -> Result<(), BoxError> {
        let greeted = client.call_tool("greet", json!({"name": "Ada"})).await?;
        self.equal("a plain call", &greeted.to_text(), "Hello, Ada!")?;
        for (tool, expected) in
            [("render", "rendered"), ("migrate", "migrated"), ("publish", "published: true")]
        {
            let result = client.call_tool(tool, ()).await?;
            self.equal(tool, &result.to_text(), expected)?;
        }
        let refused = client.call_tool("refuse", ()).await?;
        self.holds("a tool error is a result", refused.is_error == Some(true))?;
        self.equal("its text", &refused.to_text(), "There is no paper.")
    }

    /// Tasks that the caller holds.
    async fn held(&mut self, client: &Client) -> Result<(), BoxError> {
        let task = started(client, "render").await?;
        let id = task.id().to_owned();
        drop(task);
        self.equal("a task that is resumed", &client.task(id).result().await?.to_text(), "rendered")?;
        let task = started(client, "wait").await?;
        self.holds("a task that runs", !task.status().await?.task.status.is_final())?;
        task.cancel().await?;
        let cancelled = task.result().await;
        self.holds("a cancelled task", matches!(cancelled, Err(ClientError::TaskCancelled(_))))?;
        let unknown = client.task("never").status().await;
        self.holds("an unknown task", matches!(unknown, Err(ClientError::UnknownTask { .. })))
    }

    /// A client without tasks gets the result itself, unless the tool requires them.
    async fn without_tasks(&mut self, url: &str) -> Result<(), BoxError> {
        let client = Client::builder("interop", "1.0.0").connect(HttpTransport::new(url)?).await?;
        self.equal("without tasks", &client.call_tool("render", ()).await?.to_text(), "rendered")?;
        let refused = client.call_tool("migrate", ()).await;
        self.holds("a tool that requires tasks", refused.is_err())?;
        client.close().await?;
        Ok(())
    }
}

async fn started(client: &Client, tool: &str) -> Result<TaskHandle, BoxError> {
    match client.call_tool(tool, ()).started().await? {
        Started::Task(task) => Ok(task),
        other => Err(format!("{tool} is not a task: {other:?}").into()),
    }
}
