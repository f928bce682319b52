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
    println!("{}", stats::HEADER);
    let mut failures = 0;
    for scenario in &options.scenarios {
        failures += runtime.block_on(compare(scenario, &options));
    }
    if failures > 0 {
        return Err(format!("{failures} failures: what they answered was wrong, or nothing"));
    }
    Ok(())
}

/// Runs one scenario for every server with a command for it. Returns the number of failures.
async fn compare(scenario: &Scenario, options: &Options) -> usize {
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
        println!("{}", stats::row(scenario.name, &target.name, &target.slices, &first));
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
    server: Server,
    slices: Vec<Slice>,
}

/// Connection to a server.
enum Way {
    Pipe(Pipe),
    Sockets(Sockets),
}

impl Target {
    async fn start(name: &str, command: &str, scenario: &Scenario) -> Result<Self, String> {
        let plan = Plan::new(scenario);
        let (server, way) = if scenario.kind == Kind::Stdio {
            let (server, pipe) = Server::on_pipes(command)?;
            (server, Way::Pipe(pipe))
        } else {
            let (server, port) = Server::on_port(command)?;
            (server, Way::Sockets(Sockets::new(port, scenario)))
        };
        let mut target = Self { name: name.to_owned(), plan, way, server, slices: Vec::new() };
        let opened = timeout(PATIENCE, target.open(scenario)).await;
        opened.map_err(|_| "it does not answer".to_owned())??;
        Ok(target)
    }

    async fn open(&mut self, scenario: &Scenario) -> Result<(), String> {
        match &mut self.way {
            Way::Pipe(pipe) => pipe.open(scenario.era).await,
            Way::Sockets(sockets) => sockets.open(&mut self.server, scenario).await,
        }
    }

    #[expect(clippy::disallowed_methods, reason = "what is measured is real time")]
    async fn load(&mut self, length: Duration, width: usize) -> Result<(), String> {
        let (begun, before) = (Instant::now(), self.server.cpu()?);
        let until = begun + length;
        let latencies = timeout(PATIENCE, async {
            match &mut self.way {
                Way::Pipe(pipe) => pipe.load(&self.plan, width, until).await,
                Way::Sockets(sockets) => sockets.load(&self.plan, until).await,
            }
        });
        let latencies = latencies.await.map_err(|_| "it does not answer".to_owned())??;
        let (took, cpu) = (begun.elapsed(), self.server.cpu()?.saturating_sub(before));
        let units = latencies.len() as u64 * self.plan.units();
        self.slices.push(Slice { latencies, took, cpu, units });
        Ok(())
    }

    /// Returns the cost of a unit in each slice.
    fn cpu(&self) -> Vec<f64> {
        self.slices.iter().map(Slice::cpu_per_unit).collect()
    }
}
