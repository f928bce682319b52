//! The schedule: rounds of all faults, in an order and at nodes that the seed decides.

use std::time::Duration;

use tokio::time::{Instant, sleep};

use super::client::Front;
use super::history::Fault;
use super::nodes::Node;
use super::report::Kind;
use super::store::Store;
use crate::proxy;
use crate::random::Random;

/// Time without a fault at the start.
const CALM: Duration = Duration::from_secs(4);
/// How long a store is stopped (SCL-62), and how long a node is cut off (SCL-66).
const PAUSE: Duration = Duration::from_secs(3);
const SEPARATION: Duration = Duration::from_secs(6);

/// What can fail.
pub struct Targets<'a> {
    /// The store.
    pub store: &'a mut Store,
    /// The nodes.
    pub nodes: &'a mut [Node],
    /// Where faults are recorded.
    pub front: &'a Front,
}

/// Runs faults until the end. No fault begins that would last longer.
pub async fn run(targets: &mut Targets<'_>, random: &mut Random, end: Instant) {
    sleep(CALM).await;
    loop {
        let mut order = Fault::ALL;
        for last in (1..order.len()).rev() {
            order.swap(last, random.below(last + 1));
        }
        for fault in order {
            if Instant::now() + length(fault) > end {
                return;
            }
            println!("  {:>5.1} s left: {}", (end - Instant::now()).as_secs_f64(), fault.name());
            targets.inject(fault, random).await;
            sleep(Duration::from_millis(1000 + random.below(1500) as u64)).await;
        }
    }
}

/// Returns how long a fault lasts, about.
fn length(fault: Fault) -> Duration {
    Duration::from_secs(match fault {
        Fault::None | Fault::Restart | Fault::Empty => 2,
        Fault::Kill => 3,
        Fault::Pause => 4,
        Fault::Cut | Fault::Hold => 7,
        Fault::Rolling => 10,
    })
}

impl Targets<'_> {
    async fn inject(&mut self, fault: Fault, random: &mut Random) {
        let node = random.below(self.nodes.len());
        match fault {
            Fault::None => {}
            Fault::Kill => self.kill(node, random).await,
            Fault::Rolling => self.roll().await,
            Fault::Pause => {
                let hit = self.front.history.begin(fault, None);
                self.store.pause();
                sleep(PAUSE).await;
                self.store.resume();
                self.front.history.end(hit);
            }
            Fault::Restart => {
                let hit = self.front.history.begin(fault, None);
                self.store.shut_down().await;
                sleep(Duration::from_millis(random.below(1500) as u64)).await;
                self.store.boot().await;
                self.front.history.end(hit);
            }
            Fault::Empty => {
                let hit = self.front.history.begin(fault, None);
                self.store.wipe().await;
                sleep(Duration::from_millis(random.below(1000) as u64)).await;
                self.store.boot().await;
                self.front.history.end(hit);
            }
            Fault::Cut => self.separate(fault, node, proxy::Fault::Cut).await,
            Fault::Hold => self.separate(fault, node, proxy::Fault::Hold).await,
        }
    }

    async fn kill(&mut self, node: usize, random: &mut Random) {
        let hit = self.front.history.begin(Fault::Kill, Some(node));
        self.nodes[node].kill().await;
        sleep(Duration::from_millis(500 + random.below(1500) as u64)).await;
        assert!(self.nodes[node].boot().await, "node {node} does not start again");
        self.front.history.end(hit);
    }

    /// SCL-44: every process is gone in time.
    async fn roll(&mut self) {
        for node in 0..self.nodes.len() {
            let hit = self.front.history.begin(Fault::Rolling, Some(node));
            if !self.nodes[node].terminate().await {
                self.front.report.found(Kind::Stuck, format!("node {node} did not end in good order"));
            }
            assert!(self.nodes[node].boot().await, "node {node} does not start again");
            self.front.history.end(hit);
        }
    }

    async fn separate(&mut self, fault: Fault, node: usize, kind: proxy::Fault) {
        let hit = self.front.history.begin(fault, Some(node));
        self.nodes[node].proxy.set(kind);
        sleep(SEPARATION).await;
        self.nodes[node].proxy.set(proxy::Fault::None);
        self.front.history.end(hit);
    }
}
