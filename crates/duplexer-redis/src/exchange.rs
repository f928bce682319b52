//! Exchanges with one server. Commands that are ready at the same time share one: it costs one write and one read at
//! either side, however many it carries.
//!
//! A command that finds no exchange in preparation starts one, as a task. The task lets the tasks that are ready run
//! before it takes the commands, so a busy node sends many at once, and a command alone does not wait.

use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use duplexer_core::dispatch::lock;
use redis::aio::ConnectionManager;
use redis::{Cmd, Pipeline, RedisError, RedisResult, Value};
use tokio::sync::oneshot;
use tokio::task::{JoinSet, yield_now};
use tokio::time::timeout;

use crate::sentinel::Primary;

/// Maximum number of commands in one exchange: the first of them waits for the answer to the last.
const MAX_COMMANDS: usize = 64;

/// A command, and where its answer is sent.
struct Waiting {
    command: Cmd,
    answer: oneshot::Sender<RedisResult<Value>>,
}

/// The server that commands are sent to.
pub(crate) enum Server {
    One(ConnectionManager),
    Primary(Box<Primary>),
}

impl Server {
    fn manager(&self) -> ConnectionManager {
        match self {
            Self::One(manager) => manager.clone(),
            Self::Primary(primary) => primary.manager(),
        }
    }
}

/// Sends commands to one server. Exchanges in progress end with this value.
pub(crate) struct Exchanges {
    server: Server,
    /// Time for one exchange.
    limit: Duration,
    /// A caller awaits each of them, so there are no more than the node has operations in progress.
    waiting: Arc<Mutex<VecDeque<Waiting>>>,
    /// One task for every [`MAX_COMMANDS`] that wait, and those of the exchanges in progress.
    tasks: Mutex<JoinSet<()>>,
}

impl Exchanges {
    pub(crate) fn new(server: Server, limit: Duration) -> Self {
        Self { server, limit, waiting: Arc::default(), tasks: Mutex::default() }
    }

    /// Returns the primary server, if sentinels know which one it is.
    pub(crate) fn primary(&self) -> Option<&Primary> {
        match &self.server {
            Server::One(_) => None,
            Server::Primary(primary) => Some(primary),
        }
    }

    /// Sends a command, and returns the answer.
    pub(crate) async fn send(&self, command: Cmd) -> RedisResult<Value> {
        answer(self.enqueue(command)).await
    }

    /// Sends commands in one exchange, and returns the answer to the last, or the first error.
    pub(crate) async fn send_all(&self, commands: impl Iterator<Item = Cmd>) -> RedisResult<Value> {
        let answers: Vec<_> = commands.map(|command| self.enqueue(command)).collect();
        let mut last = Value::Nil;
        for answered in answers {
            last = answer(answered).await?;
        }
        Ok(last)
    }

    /// Adds a command to those that wait, and starts an exchange where there is none for it.
    fn enqueue(&self, command: Cmd) -> oneshot::Receiver<RedisResult<Value>> {
        let (answer, answered) = oneshot::channel();
        let count = {
            let mut waiting = lock(&self.waiting);
            waiting.push_back(Waiting { command, answer });
            waiting.len()
        };
        if count % MAX_COMMANDS == 1 {
            self.start();
        }
        answered
    }

    fn start(&self) {
        let exchange = exchange(self.server.manager(), Arc::clone(&self.waiting), self.limit);
        let mut tasks = lock(&self.tasks);
        while tasks.try_join_next().is_some() {}
        tasks.spawn(exchange);
    }
}

async fn answer(answered: oneshot::Receiver<RedisResult<Value>>) -> RedisResult<Value> {
    // Without an answer the task has ended with its runtime.
    answered.await.unwrap_or_else(|_| Err(io::Error::from(io::ErrorKind::ConnectionAborted).into()))
}

/// Sends the commands that wait, and distributes the answers.
async fn exchange(mut manager: ConnectionManager, waiting: Arc<Mutex<VecDeque<Waiting>>>, limit: Duration) {
    yield_now().await;
    let (pipeline, answers) = take(&waiting);
    if answers.is_empty() {
        return;
    }
    let sent = manager.send_packed_commands(&pipeline, 0, answers.len());
    let error = match timeout(limit, sent).await {
        Ok(Ok(values)) => {
            for (answer, value) in answers.into_iter().zip(values) {
                let _ = answer.send(value.extract_error());
            }
            return;
        }
        Ok(Err(error)) => error,
        Err(_) => RedisError::from(io::Error::from(io::ErrorKind::TimedOut)),
    };
    for answer in answers {
        let _ = answer.send(Err(error.clone()));
    }
}

/// Takes the commands of one exchange, but for those that no one awaits any more.
fn take(waiting: &Mutex<VecDeque<Waiting>>) -> (Pipeline, Vec<oneshot::Sender<RedisResult<Value>>>) {
    let mut waiting = lock(waiting);
    let count = waiting.len().min(MAX_COMMANDS);
    let (mut pipeline, mut answers) = (Pipeline::with_capacity(count), Vec::with_capacity(count));
    for Waiting { command, answer } in waiting.drain(..count) {
        if !answer.is_closed() {
            pipeline.add_command(command);
            answers.push(answer);
        }
    }
    (pipeline, answers)
}
