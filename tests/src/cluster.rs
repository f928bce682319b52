//! Three processes of one server on one store, under load, while processes, connections and the store fail (SCL-99).
//!
//! The clients check everything that they receive: nothing is lost, doubled, reordered, delivered to another client or
//! without an outcome. A failure counts only if no fault explains it. The program `cluster-test` runs this.

mod actions;
pub mod balancer;
mod client;
mod envelope;
mod external;
mod faults;
mod history;
mod listeners;
mod nodes;
mod report;
pub(crate) mod store;
mod stream;
mod summary;
mod workers;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, sleep};

pub use external::Balancer;
pub use history::Fault;
pub use report::Report;
pub use summary::Summary;

use crate::random::Random;
use client::Front;
use history::History;
use listeners::Listeners;
use nodes::Node;
use store::Store;
use workers::Workers;

/// Number of nodes.
const NODES: usize = 3;
/// Time for the end of everything that runs when the load ends.
const SETTLE: Duration = Duration::from_secs(60);

/// What is run.
#[derive(Clone, Debug)]
pub struct Options {
    /// Decides the schedule of the faults.
    pub seed: u64,
    /// Length of the load.
    pub length: Duration,
    /// What distributes the requests.
    pub balancer: Balancer,
    /// The program of the nodes.
    pub node: PathBuf,
    /// The program of the store.
    pub store: PathBuf,
    /// A folder for what the processes write. It is removed after a run without findings.
    pub folder: PathBuf,
}

/// SCL-06, SCL-44, SCL-60 to SCL-66, SCL-99: runs one seed.
pub async fn run(options: &Options) -> Report {
    let folder = &options.folder;
    std::fs::create_dir_all(folder).expect("a folder for the run");
    let ledger = folder.join("ledger");
    std::fs::write(&ledger, "").expect("a ledger");
    let mut random = Random::new(options.seed);
    let (mut schedule, balancing) = (random.fork(), random.fork());
    let mut store = Store::start(&options.store, &folder.join("store")).await;
    let mut nodes = start_nodes(options, &store, &ledger).await;
    let ports: Vec<u16> = nodes.iter().map(|node| node.port).collect();
    let balancer = options.balancer.start(&ports, balancing, folder).await;
    let history = Arc::new(History::default());
    let report = Arc::new(Report::new(options.seed));
    let front = Front::new(balancer.address(), ports, Arc::clone(&history), Arc::clone(&report));
    let workers = Workers::start(&front, &mut random);
    let listeners = Listeners::start(&front, &mut random);
    let end = Instant::now() + options.length;
    faults::run(
        &mut faults::Targets { store: &mut store, nodes: &mut nodes, front: &front },
        &mut schedule,
        end,
    )
    .await;
    sleep(end.saturating_duration_since(Instant::now())).await;
    listeners.stop(SETTLE).await;
    workers.stop(SETTLE).await;
    report.check_ledger(&std::fs::read_to_string(&ledger).expect("the ledger"));
    report.faults(&history);
    drop((balancer, nodes, front));
    Arc::into_inner(report).expect("everything that reports has ended")
}

async fn start_nodes(options: &Options, store: &Store, ledger: &Path) -> Vec<Node> {
    let mut nodes = Vec::new();
    for number in 0..NODES {
        nodes.push(Node::start(options, number, store.port, ledger).await);
    }
    nodes
}
