//! `duplexer gateway`: all servers of an `mcp.json` as one. The file is read again when it changes.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use duplexer::client::{ClientBuilder, ConfigError, McpConfig, OpenWith as _, ServerEntry};
use duplexer::proxy::{BackendSettings, Gateway, GatewayHandle, Health, Remote};

use crate::arguments::{GatewayArguments, LoginArguments};
use crate::failure::{Failure, chain};
use crate::login;
use crate::proxy::{Streams, Verb, on_http, on_stdio};
use crate::terminal::Terminal;

/// Interval in which the file is compared with what was read.
const RELOAD_INTERVAL: Duration = Duration::from_secs(1);

/// Serves until the client leaves, or a shutdown signal.
pub(crate) fn serve(arguments: &GatewayArguments) -> Result<(), Failure> {
    let terminal = Arc::new(Terminal::new());
    let file = arguments.config.clone();
    let seen = modified(&file);
    let backends = read(&file, &terminal)?;
    let mut gateway = Gateway::new("duplexer-gateway", env!("CARGO_PKG_VERSION"));
    for (settings, remote) in backends {
        gateway = gateway.backend(settings, remote);
    }
    let (server, handle) = gateway.server().map_err(|error| Failure::usage(error.to_string()))?;
    let beside = Beside { file, seen, reloads: !arguments.no_reload, handle, terminal };
    if let Some(address) = arguments.listen {
        return on_http(server, address, Streams::Plain, Verb::Gateway, beside.run());
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
    let runtime = runtime.map_err(|error| Failure::usage(error.to_string()))?;
    let mut watching = tokio::task::JoinSet::new();
    watching.spawn_on(beside.run(), runtime.handle());
    let ended = on_stdio(&server);
    drop(watching);
    runtime.shutdown_background();
    ended
}

/// What runs next to the server: reports of health, and reloads.
struct Beside {
    file: PathBuf,
    seen: Option<Seen>,
    reloads: bool,
    handle: GatewayHandle,
    terminal: Arc<Terminal>,
}

impl Beside {
    async fn run(mut self) {
        let mut shown: Vec<Health> = Vec::new();
        loop {
            for health in self.handle.health() {
                if (health.is_up || health.failure.is_some()) && !shown.contains(&health) {
                    self.terminal.note(&described(&health));
                }
            }
            shown = self.handle.health();
            let health = self.handle.clone();
            tokio::select! {
                () = health.health_changed() => {}
                () = tokio::time::sleep(RELOAD_INTERVAL) => self.reload().await,
            }
        }
    }

    /// Reads the file again, if it has changed. A fault leaves everything as it is.
    async fn reload(&mut self) {
        if !self.reloads {
            return;
        }
        let now = modified(&self.file);
        if now.is_none() || now == self.seen {
            return;
        }
        self.seen = now;
        match read(&self.file, &self.terminal) {
            Ok(backends) => {
                self.terminal.note(&format!("{} has changed and was read again", self.file.display()));
                self.handle.replace(backends).await;
            }
            Err(failure) => {
                self.terminal.error(&format!("{failure}; the servers stay as they were"));
            }
        }
    }
}

/// What tells one version of the file from another: its time, and its length, because two writes can have the same time.
type Seen = (SystemTime, u64);

fn modified(file: &Path) -> Option<Seen> {
    let metadata = file.metadata().ok()?;
    Some((metadata.modified().ok()?, metadata.len()))
}

fn described(health: &Health) -> String {
    match &health.failure {
        Some(reason) => format!("{}: {reason}", health.name),
        None => format!("{}: up, with {} tools, prompts and resources", health.name, health.items),
    }
}

/// Reads the servers of a file.
fn read(file: &Path, terminal: &Arc<Terminal>) -> Result<Vec<(BackendSettings, Remote)>, Failure> {
    let broken = |error: ConfigError| Failure::usage(chain(&error));
    let config = McpConfig::read(file).map_err(broken)?;
    let entries = config.entries().iter().map(|entry| {
        let settings = settings(entry).map_err(broken)?;
        Ok((settings, remote(entry, terminal)?))
    });
    entries.collect()
}

fn settings(entry: &ServerEntry) -> Result<BackendSettings, ConfigError> {
    let names = "a list of names, which can end in *";
    let mut settings = BackendSettings::new(entry.name()).fingerprint(entry.fingerprint());
    if let Some(prefix) = entry.member::<String>("prefix", "a string")? {
        settings = settings.prefix(prefix);
    }
    if let Some(allow) = entry.member::<Vec<String>>("allow", names)? {
        settings = settings.allow(allow);
    }
    if let Some(deny) = entry.member::<Vec<String>>("deny", names)? {
        settings = settings.deny(deny);
    }
    Ok(settings)
}

fn remote(entry: &ServerEntry, terminal: &Arc<Terminal>) -> Result<Remote, Failure> {
    let (name, shown) = (entry.name().to_owned(), Arc::clone(terminal));
    let oauth = login::of_proxy(&LoginArguments::default(), terminal)?;
    let entry = entry
        .clone()
        .on_stderr(move |line| shown.note(&format!("[{name}] {line}")))
        .authorization(Arc::new(oauth));
    Ok(Remote::new(move |builder: ClientBuilder| {
        let entry = entry.clone();
        async move { Box::pin(builder.open(entry)).await }
    }))
}
