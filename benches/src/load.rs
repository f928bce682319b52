//! The load generator: loads several running servers in turn in short slices, so that noise of the machine affects all
//! of them alike. Every response is checked.
//!
//! The figure of a server is the CPU time of its process per request, and its ratio to the first server (the floor) in
//! the same round; medians over the rounds. `clients` does the same for client programs against one server.

mod check;
mod clients;
mod options;
mod pipe;
mod response;
mod scenario;
mod server;
mod sockets;
mod stats;
mod summary;

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use tokio::runtime::Builder;
use tokio::time::timeout;

use self::check::Plan;
use self::options::Options;
use self::pipe::Pipe;
use self::scenario::{Kind, Scenario};
use self::server::Server;
use self::sockets::Sockets;
use self::stats::Medians;
use self::summary::Summary;

/// Duration of a slice.
const SLICE: Duration = Duration::from_millis(150);
/// Fraction of the time that is used as a warm-up.
const WARMING: u32 = 16;
/// Time after which a server without a response has failed.
const PATIENCE: Duration = Duration::from_secs(30);

/// Runs the command line. An error is a message for the user.
pub fn run(arguments: &[String]) -> Result<(), String> {
    if let Some(("client", rest)) = arguments.split_first().map(|(first, rest)| (first.as_str(), rest)) {
        return clients::run(rest);
    }
    let options = Options::read(arguments)?;
    let runtime = Builder::new_current_thread().enable_all().build().map_err(|error| error.to_string())?;
    let (mut failures, mut summary) = (0, Summary::default());
    for run in 1..=options.runs {
        if options.runs > 1 {
            println!("run {run} of {}", options.runs);
        }
        println!("{}", stats::HEADER);
        for scenario in &options.scenarios {
            failures += runtime.block_on(compare(scenario, &options, &mut summary));
        }
    }
    if failures > 0 {
        return Err(format!("{failures} failures: what they answered was wrong, or nothing"));
    }
    if options.runs > 1 {
        println!("medians of {} runs\n{}", options.runs, summary.table());
    }
    match &options.write {
        Some(path) => std::fs::write(path, summary.table())
            .map_err(|error| format!("{} could not be written: {error}", path.display())),
        None => Ok(()),
    }
}

/// Runs one scenario for every server with a command for it. Returns the number of failures.
async fn compare(scenario: &Scenario, options: &Options, summary: &mut Summary) -> usize {
    let mut failed = BTreeMap::new();
    let mut targets = Vec::new();
    let servers = options.servers_for(scenario.kind);
    for (name, command) in &servers {
        match Target::start(name, command, scenario).await {
            Ok(target) => targets.push(target),
            Err(reason) => drop(failed.insert((*name).to_owned(), reason)),
        }
    }
    let warming = Duration::from_secs(options.seconds.into()) / WARMING;
    for target in &mut targets {
        if let Err(reason) = target.load(warming, scenario.width).await {
            failed.insert(target.name.clone(), reason);
        }
        target.slices.clear();
    }
    targets.retain(|target| !failed.contains_key(&target.name));
    let rounds = stats::rounds(options.seconds, targets.len(), SLICE);
    for round in 0..rounds {
        for position in 0..targets.len() {
            // The order rotates with every round.
            let at = (round + position) % targets.len();
            if let Err(reason) = targets[at].load(SLICE, scenario.width).await {
                failed.insert(targets[at].name.clone(), reason);
            }
        }
        targets.retain(|target| !failed.contains_key(&target.name));
    }
    // Without the first server there is no ratio.
    let first = targets.iter().find(|target| servers.first().is_some_and(|(name, _)| *name == target.name));
    let first = first.map(Target::cpu).unwrap_or_default();
    for target in &targets {
        let medians = Medians::of(&target.slices, &first);
        println!("{}", stats::row(scenario.name, &target.name, &medians));
        summary.add(scenario.name, &target.name, medians);
    }
    for (name, reason) in &failed {
        println!("{}", stats::failed_row(scenario.name, name, reason));
    }
    failed.len()
}

/// Measurements of one slice.
#[derive(Debug, Default)]
struct Slice {
    /// Latency of each request, to the end of its response.
    latencies: Vec<Duration>,
    /// Duration of the slice.
    took: Duration,
    /// CPU time of the server process.
    cpu: Duration,
    /// Divisor of the cost: requests, or notifications before the responses.
    units: u64,
}

/// A server under load.
struct Target {
    name: String,
    plan: Plan,
    way: Way,
    slices: Vec<Slice>,
}

/// Connection to a server.
enum Way {
    /// The command line: every request goes to a process of its own.
    Starts(String),
    Pipe(Server, Box<Pipe>),
    Sockets(Server, Sockets),
}

impl Target {
    async fn start(name: &str, command: &str, scenario: &Scenario) -> Result<Self, String> {
        let plan = Plan::new(scenario);
        let mut way = match scenario.kind {
            Kind::Start => Way::Starts(command.to_owned()),
            Kind::Stdio => {
                let (server, pipe) = Server::on_pipes(command)?;
                Way::Pipe(server, Box::new(pipe))
            }
            Kind::Envelope | Kind::Sessions | Kind::Stateless => {
                let (server, port) = Server::on_port(command)?;
                Way::Sockets(server, Sockets::new(port, scenario))
            }
        };
        let opened = timeout(PATIENCE, way.open(scenario)).await;
        opened.map_err(|_| "it does not answer".to_owned())??;
        Ok(Self { name: name.to_owned(), plan, way, slices: Vec::new() })
    }

    #[expect(clippy::disallowed_methods, reason = "what is measured is real time")]
    async fn load(&mut self, length: Duration, width: usize) -> Result<(), String> {
        let begun = Instant::now();
        let loaded = timeout(PATIENCE, self.way.load(&self.plan, width, begun + length));
        let (latencies, cpu) = loaded.await.map_err(|_| "it does not answer".to_owned())??;
        let units = latencies.len() as u64 * self.plan.units();
        self.slices.push(Slice { latencies, took: begun.elapsed(), cpu, units });
        Ok(())
    }

    /// Returns the cost of a unit in each slice.
    fn cpu(&self) -> Vec<f64> {
        self.slices.iter().map(Slice::cpu_per_unit).collect()
    }
}

impl Way {
    async fn open(&mut self, scenario: &Scenario) -> Result<(), String> {
        match self {
            Self::Starts(_) => Ok(()),
            Self::Pipe(_, pipe) => pipe.open(scenario.era).await,
            Self::Sockets(server, sockets) => sockets.open(server, scenario).await,
        }
    }

    /// Loads the server until the deadline. Returns the latencies and the CPU time of its process.
    async fn load(
        &mut self,
        plan: &Plan,
        width: usize,
        until: Instant,
    ) -> Result<(Vec<Duration>, Duration), String> {
        let (latencies, server, before) = match self {
            Self::Starts(command) => return starts(command, plan, until).await,
            Self::Pipe(server, pipe) => {
                let before = server.cpu()?;
                (pipe.load(plan, width, until).await?, server, before)
            }
            Self::Sockets(server, sockets) => {
                let before = server.cpu()?;
                (sockets.load(plan, until).await?, server, before)
            }
        };
        Ok((latencies, server.cpu()?.saturating_sub(before)))
    }
}

/// Starts one process after the other until the deadline, and waits for the first response of each. A latency begins before
/// the start.
#[expect(clippy::disallowed_methods, reason = "what is measured is real time")]
async fn starts(command: &str, plan: &Plan, until: Instant) -> Result<(Vec<Duration>, Duration), String> {
    let (mut latencies, mut cpu) = (Vec::new(), Duration::ZERO);
    while Instant::now() < until || latencies.is_empty() {
        let begun = Instant::now();
        let (server, mut pipe) = Server::on_pipes(command)?;
        pipe.once(plan).await?;
        latencies.push(begun.elapsed());
        cpu += server.cpu()?;
    }
    Ok((latencies, cpu))
}
