//! Which faults happened when, and which failures they explain.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// Time after which the requests of a node that cannot reach the store are given up, with some tolerance.
const LEASE: Duration = Duration::from_secs(14);
/// Time after which a node notices that its lease is lost, with some tolerance.
const RENEWAL: Duration = Duration::from_secs(4);

/// A kind of fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fault {
    /// Nothing fails.
    None,
    /// A node is killed, and started again.
    Kill,
    /// All nodes are terminated and started again, one after the other.
    Rolling,
    /// The store stops for three seconds.
    Pause,
    /// The store is restarted with its append-only file.
    Restart,
    /// The store is restarted empty.
    Empty,
    /// The connections of a node to the store are closed, for six seconds.
    Cut,
    /// Nothing passes on the connections of a node to the store, for six seconds.
    Hold,
}

impl Fault {
    /// All faults of a round.
    pub const ALL: [Self; 7] =
        [Self::Kill, Self::Rolling, Self::Pause, Self::Restart, Self::Empty, Self::Cut, Self::Hold];

    /// Returns what the fault is called in tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Kill => "a node killed (`kill -9`) and started",
            Self::Rolling => "all nodes restarted in turn (SIGTERM)",
            Self::Pause => "store paused for 3 s",
            Self::Restart => "store restarted with its file",
            Self::Empty => "store restarted empty",
            Self::Cut => "one node's connections to the store closed for 6 s",
            Self::Hold => "one node's connections to the store silent for 6 s",
        }
    }

    /// Returns a short name, for the plot.
    pub fn label(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Kill => "kill",
            Self::Rolling => "rolling",
            Self::Pause => "pause",
            Self::Restart => "restart",
            Self::Empty => "empty",
            Self::Cut => "cut",
            Self::Hold => "silent",
        }
    }
}

/// One fault that has happened.
#[derive(Clone, Copy, Debug)]
pub struct Hit {
    /// Its kind.
    pub fault: Fault,
    /// The node, if it concerns one.
    pub node: Option<usize>,
    /// Its start.
    pub from: Instant,
    /// Its end, if it has ended.
    pub until: Option<Instant>,
}

impl Hit {
    fn concerns(&self, node: Option<usize>) -> bool {
        node.is_none() || self.node == node
    }

    /// Returns whether it lasted, or had effects, after a time.
    fn lasted(&self, after: Instant, effects: Duration) -> bool {
        self.until.is_none_or(|until| until + effects >= after)
    }
}

/// The faults of a run.
#[derive(Debug, Default)]
pub struct History(Mutex<Vec<Hit>>);

impl History {
    fn hits(&self) -> MutexGuard<'_, Vec<Hit>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records the start of a fault, and returns its number.
    pub fn begin(&self, fault: Fault, node: Option<usize>) -> usize {
        let mut hits = self.hits();
        hits.push(Hit { fault, node, from: Instant::now(), until: None });
        hits.len() - 1
    }

    /// Records the end of a fault.
    pub fn end(&self, hit: usize) {
        self.hits()[hit].until = Some(Instant::now());
    }

    /// Returns the fault that began last.
    pub fn latest(&self) -> Fault {
        self.hits().last().map_or(Fault::None, |hit| hit.fault)
    }

    /// Returns all faults.
    pub fn all(&self) -> Vec<Hit> {
        self.hits().clone()
    }

    /// Returns whether a node was killed after a time. `None`: any node.
    pub fn was_killed(&self, node: Option<usize>, after: Instant) -> bool {
        self.hits()
            .iter()
            .any(|hit| hit.fault == Fault::Kill && hit.concerns(node) && hit.lasted(after, Duration::ZERO))
    }

    /// Returns whether a node was separated from the store after a time, for long enough to lose its lease.
    pub fn was_separated(&self, node: Option<usize>, after: Instant) -> bool {
        let separates = |hit: &Hit| matches!(hit.fault, Fault::Cut | Fault::Hold);
        self.hits().iter().any(|hit| separates(hit) && hit.concerns(node) && hit.lasted(after, LEASE))
    }

    /// Returns whether the store has lost the log of changes.
    pub fn has_lost_changes(&self) -> bool {
        self.hits().iter().any(|hit| hit.fault == Fault::Empty)
    }

    /// Returns whether the store has lost the sessions after a time.
    pub fn was_emptied(&self, after: Instant) -> bool {
        self.hits().iter().any(|hit| hit.fault == Fault::Empty && hit.lasted(after, Duration::from_secs(1)))
    }

    /// Returns whether all nodes have lost their leases after a time. Until a node notices, it admits requests under the name
    /// that it has lost.
    pub fn have_lost_leases(&self, after: Instant) -> bool {
        self.hits().iter().any(|hit| hit.fault == Fault::Empty && hit.lasted(after, RENEWAL))
    }
}
