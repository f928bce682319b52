//! `duplexer bench`: rate and latency of a server, alone or in turns with another one.

mod cpu;
mod histogram;
mod load;
mod show;

use std::sync::Arc;
use std::time::Duration;

use duplexer::shutdown_signal::ShutdownSignals;

use crate::arguments::{BenchArguments, arguments};
use crate::failure::{Exit, Failure};
use crate::output::Output;
use crate::session::Session;
use crate::target::Target;
use crate::terminal::Terminal;
use crate::text::Text;
use cpu::Processes;
use load::{Counted, Job};

/// Slices of a comparison, for each server. What disturbs the machine disturbs both then.
const SLICES: u32 = 10;

/// A server, and what was measured of it.
struct Measured {
    target: String,
    /// Name and version, as the server says.
    server: Option<String>,
    counted: Counted,
}

impl Measured {
    /// Returns how many cores the server kept busy.
    fn cores(&self) -> Option<f64> {
        Some(self.counted.cpu?.as_secs_f64() / self.counted.time.as_secs_f64().max(f64::MIN_POSITIVE))
    }

    /// Returns the CPU time of an answer, in microseconds.
    #[expect(clippy::cast_precision_loss, reason = "a figure for people")]
    fn cpu_per_answer(&self) -> Option<f64> {
        let answers = self.counted.latencies.total();
        (answers > 0).then(|| self.counted.cpu.map(|cpu| cpu.as_secs_f64() * 1e6 / answers as f64)).flatten()
    }
}

/// A server under load.
struct Side {
    session: Session,
    processes: Option<Processes>,
    measured: Measured,
}

/// Measures one server or two.
pub(crate) async fn run(arguments: &BenchArguments) -> Result<(), Failure> {
    let (target, words) = Target::of(&arguments.request)?;
    let other = arguments.vs.as_deref().map(versus).transpose()?;
    let tool = tool(words)?;
    let signals = ShutdownSignals::listen();
    let mut signals = signals.map_err(|error| Failure::new(Exit::Connect, error.to_string()))?;
    let terminal = Arc::new(Terminal::new());
    let measuring = async {
        let mut sides = vec![Side::open(&target, arguments, &terminal).await?];
        if let Some(other) = &other {
            sides.push(Side::open(other, arguments, &terminal).await?);
        }
        let job = Arc::new(tool.unwrap_or_else(|| default_job(&sides)));
        measure(&mut sides, &job, arguments).await?;
        Ok::<_, Failure>((sides, job))
    };
    let (sides, job) = tokio::select! {
        done = measuring => done?,
        // Dropping the future ends the programs.
        () = signals.next() => {
            terminal.interrupted();
            return Err(Failure::silent(Exit::Interrupted));
        }
    };
    let what = described(&sides, &job, arguments);
    let mut all = Vec::new();
    for side in sides {
        side.session.close().await;
        all.push(side.measured);
    }
    print(&what, &all, arguments)
}

/// Returns the second server of a comparison.
fn versus(text: &str) -> Result<Target, Failure> {
    match text.strip_prefix("-- ") {
        Some(command) => {
            let words: Vec<_> = command.split_whitespace().map(Into::into).collect();
            Target::of_either(None, &words)
        }
        None => Target::parse(text),
    }
}

fn tool(words: &[String]) -> Result<Option<Job>, Failure> {
    let Some((name, rest)) = words.split_first() else { return Ok(None) };
    Ok(Some(Job::Tool { name: name.clone(), arguments: arguments(rest)? }))
}

/// Returns what is measured if no tool is named: what all servers have.
fn default_job(sides: &[Side]) -> Job {
    let have_tools = sides.iter().all(|side| side.session.client.server_capabilities().tools.is_some());
    if have_tools { Job::ListTools } else { Job::Ping }
}

impl Side {
    async fn open(
        target: &Target,
        arguments: &BenchArguments,
        terminal: &Arc<Terminal>,
    ) -> Result<Self, Failure> {
        let session = Session::open(target, &arguments.request, terminal).await?;
        let processes = match target {
            Target::Url(endpoint) => Processes::at(&endpoint.url),
            Target::Command(_) => session.process().map(Processes::Group),
        };
        let server = session.client.server_info().map(|info| format!("{} {}", info.name, info.version));
        let measured = Measured { target: target.to_string(), server, counted: Counted::default() };
        Ok(Self { session, processes, measured })
    }

    async fn slice(&mut self, job: &Arc<Job>, callers: u16, time: Duration) {
        let used = |processes: &Option<Processes>| processes.as_ref().and_then(Processes::used);
        let before = used(&self.processes);
        let mut counted = load::run(&self.session.client, job, callers, time).await;
        counted.cpu = match (before, used(&self.processes)) {
            (Some(before), Some(after)) => Some(after.saturating_sub(before)),
            _ => None,
        };
        self.measured.counted.add(counted);
    }
}

async fn measure(sides: &mut [Side], job: &Arc<Job>, arguments: &BenchArguments) -> Result<(), Failure> {
    // A tool that does not exist is found before anything is measured.
    for side in &*sides {
        job.send(&side.session.client).await?;
    }
    let slices = if sides.len() > 1 { SLICES } else { 1 };
    for _ in 0..slices {
        for side in &mut *sides {
            side.slice(job, arguments.concurrency, arguments.duration / slices).await;
        }
    }
    Ok(())
}

fn described(sides: &[Side], job: &Job, arguments: &BenchArguments) -> String {
    let mut eras: Vec<String> = sides.iter().map(|side| job.describe(side.session.client.era())).collect();
    eras.dedup();
    let turns = if sides.len() > 1 { ", in turns" } else { "" };
    let seconds = arguments.duration.as_secs_f64();
    format!("{}, {} at once, {seconds} s{turns}", eras.join(" and "), arguments.concurrency)
}

fn print(what: &str, all: &[Measured], arguments: &BenchArguments) -> Result<(), Failure> {
    if let Some(file) = &arguments.svg {
        std::fs::write(file, show::svg(what, all))
            .map_err(|error| Failure::usage(format!("{} cannot be written: {error}", file.display())))?;
    }
    let output = Output::of(&arguments.request);
    if output.is_json() {
        output.text(&Text::plain(show::json(what, all).to_string()))?;
    } else {
        output.text(&show::text(what, all))?;
    }
    let failed = all.iter().any(|one| one.counted.failed > 0);
    if failed { Err(Failure::silent(Exit::Tool)) } else { Ok(()) }
}
