//! `duplexer dev`: a server that is built and started again when its sources change, while its clients stay connected.
//!
//! It is a proxy in front of the program. A build that fails changes nothing: the earlier program goes on. After one that
//! succeeds all sessions with the program end; the proxy opens them again and reports changed lists to the clients.

mod build;
mod watch;

use std::env;
use std::ffi::OsString;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use duplexer::client::{Client, ClientBuilder, OpenWith as _};
use duplexer::dispatch::lock;
use duplexer::error::BoxError;
use duplexer::proxy::Remote;
use duplexer::transport::child::ChildCommand;
use tokio::sync::watch as channel;
use tokio::task::JoinSet;
use tokio::time::sleep;

use self::build::Build;
use self::watch::{Snapshot, Watch};
use crate::arguments::DevArguments;
use crate::failure::{Exit, Failure};
use crate::install::program_in;
use crate::proxy::{Streams, Verb, on_http, on_stdio};
use crate::terminal::Terminal;

/// Interval in which files are compared with what they were.
const POLL: Duration = Duration::from_millis(400);
/// Time without another change before a build: editors write several files.
const SETTLE: Duration = Duration::from_millis(150);
/// Maximum time in which a session opens; the first build can be long.
const OPENING: Duration = Duration::from_secs(20 * 60);
/// Maximum number of clients without a connection, and of sessions.
const MAX_CLIENTS: usize = 32;
const MAX_SESSIONS: usize = 64;

const NEVER_BUILT: &str = "it has not been built yet: the output of the build is on the standard error of \
    `duplexer dev`, which tries again when a file changes";

/// Serves until the client leaves, or a shutdown signal.
pub(crate) fn serve(arguments: &DevArguments) -> Result<(), Failure> {
    let terminal = Arc::new(Terminal::new());
    // Hosts start it in another directory than that of the project.
    let project = build::project_of(&arguments.command).filter(|_| arguments.watched.is_empty());
    let watch = Watch::of(project.as_ref().map_or(&arguments.watched[..], std::slice::from_ref))?;
    let build = Build::of(arguments)?;
    let seen = watch.snapshot()?;
    let program = Arc::new(Program {
        words: arguments.command.clone(),
        env: arguments.env.clone(),
        state: channel::Sender::new(State::default()),
        sessions: Mutex::default(),
    });
    // A build can make it; without one, nothing will.
    if !build.is_needed() {
        program.check_exists()?;
    }
    let opening = Arc::clone(&program);
    let remote = Remote::new(move |builder: ClientBuilder| {
        let program = Arc::clone(&opening);
        async move { Box::pin(program.open(builder)).await }
    });
    let remote = remote.open_timeout(OPENING).max_clients(MAX_CLIENTS);
    let server = remote.server().map_err(|error| Failure::usage(error.to_string()))?;
    let beside = Beside { program, build, watch, seen, terminal };
    if let Some(address) = arguments.listen {
        return on_http(server, address, Streams::Plain, Verb::Dev, beside.run());
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
    let runtime = runtime.map_err(|error| Failure::new(Exit::Connect, error.to_string()))?;
    let mut watching = JoinSet::new();
    watching.spawn_on(beside.run(), runtime.handle());
    let ended = on_stdio(&server);
    drop(watching);
    runtime.shutdown_background();
    ended
}

/// The program, and the sessions with it.
struct Program {
    words: Vec<OsString>,
    env: Vec<(String, String)>,
    state: channel::Sender<State>,
    sessions: Mutex<Vec<Client>>,
}

/// Whether the program can be started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct State {
    phase: Phase,
    /// Number of builds that have succeeded.
    generation: u64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Phase {
    /// A build runs, and there was no earlier one; or sessions with the earlier program are being closed.
    #[default]
    Waiting,
    /// The first build has failed.
    Failed,
    Ready,
}

impl Program {
    /// Starts the program and opens a session with it.
    async fn open(&self, builder: ClientBuilder) -> Result<Client, BoxError> {
        let mut states = self.state.subscribe();
        let state = *states.wait_for(|state| state.phase != Phase::Waiting).await?;
        if state.phase == Phase::Failed {
            return Err(NEVER_BUILT.into());
        }
        let client = builder.open(self.command()?).await?;
        if self.keep(&client, state.generation).await {
            return Ok(client);
        }
        // It was built again meanwhile.
        let _ = client.close().await;
        Err("it has been built again; the next request starts the new program".into())
    }

    /// Fails if the file of the program is missing.
    fn check_exists(&self) -> Result<(), Failure> {
        let Some(program) = self.words.first() else { return Ok(()) };
        let given = self.env.iter().rev().find(|(name, _)| name == "PATH");
        let paths = given.map(|(_, paths)| paths.into()).or_else(|| env::var_os("PATH")).unwrap_or_default();
        program_in(program, env::split_paths(&paths)).map(drop)
    }

    fn command(&self) -> Result<ChildCommand, BoxError> {
        let (program, rest) = self.words.split_first().ok_or("no program was given")?;
        let command = ChildCommand::new(program).args(rest);
        // A build tool needs what the developer has set.
        let command = env::vars_os().fold(command, |command, (name, value)| command.env(name, value));
        Ok(self.env.iter().fold(command, |command, (name, value)| command.env(name, value)))
    }

    /// Remembers a session, if its program is still the current one.
    async fn keep(&self, client: &Client, generation: u64) -> bool {
        let surplus = {
            let mut sessions = lock(&self.sessions);
            if self.state.borrow().generation != generation {
                return false;
            }
            sessions.retain(|session| !session.is_closed());
            sessions.push(client.clone());
            (sessions.len() > MAX_SESSIONS).then(|| sessions.remove(0))
        };
        if let Some(oldest) = surplus {
            let _ = oldest.close().await;
        }
        true
    }

    /// Ends all sessions; the next ones are with the new program.
    async fn replace(&self) {
        let sessions = {
            let mut sessions = lock(&self.sessions);
            self.state.send_modify(|state| {
                state.phase = Phase::Waiting;
                state.generation += 1;
            });
            std::mem::take(&mut *sessions)
        };
        let mut closing = JoinSet::new();
        for session in sessions {
            closing.spawn(async move { session.close().await });
        }
        while closing.join_next().await.is_some() {}
        self.state.send_modify(|state| state.phase = Phase::Ready);
    }
}

/// What runs next to the server: it watches, builds and replaces.
struct Beside {
    program: Arc<Program>,
    build: Build,
    watch: Watch,
    seen: Snapshot,
    terminal: Arc<Terminal>,
}

impl Beside {
    async fn run(mut self) {
        self.build().await;
        loop {
            sleep(POLL).await;
            if let Some(changed) = self.changed().await {
                self.terminal.note(&format!("{changed} has changed"));
                self.build().await;
            }
        }
    }

    /// Returns the name of a file that has changed, once no more follow.
    async fn changed(&mut self) -> Option<String> {
        let mut now = self.scan().await?;
        let changed = now.difference(&self.seen)?;
        loop {
            sleep(SETTLE).await;
            let later = self.scan().await?;
            let is_settled = later == now;
            now = later;
            if is_settled {
                break;
            }
        }
        self.seen = now;
        Some(changed.display().to_string())
    }

    async fn scan(&self) -> Option<Snapshot> {
        let watch = self.watch.clone();
        let scanned = tokio::task::spawn_blocking(move || watch.snapshot()).await.ok()?;
        scanned.inspect_err(|failure| self.terminal.error(&failure.to_string())).ok()
    }

    async fn build(&mut self) {
        let state = *self.program.state.borrow();
        match self.build.run(&self.terminal).await {
            Ok(()) => {
                let note = match (state.generation, self.build.is_needed()) {
                    (0, _) => None,
                    (_, true) => Some("built; the server is started again"),
                    (_, false) => Some("the server is started again"),
                };
                match (self.program.check_exists(), note) {
                    (Err(failure), _) => self.terminal.error(&failure.to_string()),
                    (Ok(()), Some(note)) => self.terminal.note(note),
                    (Ok(()), None) => {}
                }
                self.program.replace().await;
            }
            Err(reason) => {
                let goes_on = if state.generation == 0 { "" } else { "; the earlier server goes on" };
                self.terminal.error(&format!("the build failed: {reason}{goes_on}"));
                if state.generation == 0 {
                    self.program.state.send_modify(|state| state.phase = Phase::Failed);
                }
            }
        }
    }
}
