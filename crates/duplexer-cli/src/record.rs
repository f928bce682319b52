//! `duplexer record` and `duplexer replay`: transcripts of connections.
//!
//! A recorder passes messages on as they are. Over HTTP it is a reverse proxy that reads along; between standard input and a
//! program it copies lines. Where client and server have different transports, `duplexer proxy` is between them.

mod forward;
mod lines;
mod observed;

use std::fs::File;
use std::io::BufWriter;
use std::sync::{Arc, Mutex};

use duplexer::Server;
use duplexer::dispatch::lock;
use duplexer::server::driver;
use duplexer::shutdown_signal::ShutdownSignals;
use duplexer::testing::{Sender, Transcript, TranscriptWriter};
use duplexer::transport::stdio::Stdio;
use duplexer::transport::{FrameDirection, Tap};

use crate::arguments::{ProxyArguments, RecordArguments, ReplayArguments};
use crate::failure::{Exit, Failure, chain};
use crate::proxy::{self, Streams, Verb, on_http, on_stdio};
use crate::target::Target;
use crate::terminal::Terminal;

/// The file of a recording.
#[derive(Clone)]
struct Recorder {
    writer: Arc<Mutex<TranscriptWriter<BufWriter<File>>>>,
    terminal: Arc<Terminal>,
}

impl Recorder {
    fn create(
        arguments: &RecordArguments,
        target: &Target,
        terminal: &Arc<Terminal>,
    ) -> Result<Self, Failure> {
        let path = &arguments.output;
        let failed =
            |error: std::io::Error| Failure::usage(format!("{} cannot be written: {error}", path.display()));
        let mut options = File::options();
        options.write(true);
        if arguments.force {
            options.create(true).truncate(true)
        } else {
            options.create_new(true)
        };
        let file = options.open(path).map_err(|error| match error.kind() {
            std::io::ErrorKind::AlreadyExists => {
                Failure::usage(format!("{} exists; --force overwrites it", path.display()))
            }
            _ => failed(error),
        })?;
        let transport = if arguments.listen.is_some() { "http" } else { "stdio" };
        let writer = TranscriptWriter::new(BufWriter::new(file), Some(transport), Some(&target.to_string()));
        let mut writer = writer.map_err(failed)?;
        writer.flush().map_err(failed)?;
        Ok(Self { writer: Arc::new(Mutex::new(writer)), terminal: Arc::clone(terminal) })
    }

    /// Writes a message. A file that cannot be written does not stop the connection.
    fn write(&self, from: Sender, connection: u64, text: &str) {
        let mut writer = lock(&self.writer);
        // What has been recorded is in the file even if this program is killed.
        let written = writer.write(from, connection, text).and_then(|_| writer.flush());
        if let Err(error) = written {
            drop(writer);
            self.terminal.note(&format!("the transcript is incomplete: {error}"));
        }
    }
}

/// Records until the client leaves, or a shutdown signal.
pub(crate) async fn record(arguments: &RecordArguments) -> Result<(), Failure> {
    let terminal = Arc::new(Terminal::new());
    let target = Target::of_either(arguments.target.as_deref(), &arguments.command)?;
    let recorder = Recorder::create(arguments, &target, &terminal)?;
    let signals = ShutdownSignals::listen();
    let mut signals = signals.map_err(|error| Failure::new(Exit::Connect, error.to_string()))?;
    let serving = async {
        match (&target, arguments.listen) {
            (Target::Command(program), None) => lines::copy(program, &arguments.env, &recorder).await,
            (Target::Url(_), None) => translated(arguments, &recorder, &terminal).await,
            (Target::Url(endpoint), Some(address)) => {
                let headers = forward::headers(endpoint, arguments)?;
                forward::serve(&endpoint.url, headers, address, recorder.clone()).await
            }
            (Target::Command(_), Some(address)) => {
                let server = proxied(arguments, &terminal)?;
                forward::serve_program(server, address, recorder.clone()).await
            }
        }
    };
    tokio::select! {
        done = serving => done,
        () = signals.next() => Ok(()),
    }
}

/// Returns the server that offers the target over another transport.
fn proxied(arguments: &RecordArguments, terminal: &Arc<Terminal>) -> Result<Server, Failure> {
    let RecordArguments { target, command, headers, login, env, .. } = arguments.clone();
    let proxy = ProxyArguments {
        url: target,
        command,
        headers,
        login,
        env,
        listen: None,
        resumable: false,
        shared: false,
        timeout: None,
    };
    proxy::server(&proxy, terminal)
}

/// Serves standard input and output from a URL.
async fn translated(
    arguments: &RecordArguments,
    recorder: &Recorder,
    terminal: &Arc<Terminal>,
) -> Result<(), Failure> {
    let broken = |error: &(dyn std::error::Error + 'static)| Failure::new(Exit::Connect, chain(error));
    let server = proxied(arguments, terminal)?;
    let running = server.start().await.map_err(|error| broken(&error))?;
    let stdio = Stdio::claim().map_err(|error| broken(&error))?;
    let recorder = recorder.clone();
    let stdio = Tap::new(stdio, move |direction, text| {
        let from = match direction {
            FrameDirection::In => Sender::Client,
            FrameDirection::Out => Sender::Server,
        };
        recorder.write(from, 1, text);
    });
    let ended = driver::serve(&running, stdio).await;
    running.shutdown().await;
    ended.map_err(|error| broken(&error))
}

/// Serves a transcript until the client leaves, or a shutdown signal.
pub(crate) fn replay(arguments: &ReplayArguments) -> Result<(), Failure> {
    let transcript = Transcript::read(&arguments.file).map_err(|error| Failure::usage(chain(&error)))?;
    let server = transcript.server().map_err(|error| Failure::usage(chain(&error)))?;
    match arguments.listen {
        None => on_stdio(&server),
        Some(address) => on_http(server, address, Streams::Plain, Verb::Replay, std::future::pending()),
    }
}
