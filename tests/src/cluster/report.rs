//! What the clients have seen: findings, explained failures, and counts per fault and per second.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::{self, Write as _};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use super::history::{Fault, History, Hit};
use super::summary::Summary;

/// What must never happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// A message, an answer, an event or a change did not arrive, or a cancellation had no effect.
    Lost,
    /// Something arrived or was run twice.
    Doubled,
    /// An event arrived after a later one.
    Reordered,
    /// Something arrived where it does not belong, or a session served another principal or outlived its end.
    Foreign,
    /// No outcome in time.
    Stuck,
    /// A failure that no fault explains.
    Refused,
}

impl Kind {
    /// All kinds.
    pub const ALL: [Self; 6] =
        [Self::Lost, Self::Doubled, Self::Reordered, Self::Foreign, Self::Stuck, Self::Refused];

    /// Returns the name of the counter.
    pub fn name(self) -> &'static str {
        match self {
            Self::Lost => "lost",
            Self::Doubled => "doubled",
            Self::Reordered => "reordered",
            Self::Foreign => "foreign",
            Self::Stuck => "stuck",
            Self::Refused => "unexplained failures",
        }
    }
}

/// Something that must never happen, and has.
#[derive(Clone, Debug)]
pub struct Finding {
    /// Its kind.
    pub kind: Kind,
    /// What was seen.
    pub text: String,
}

impl Finding {
    /// Creates a finding.
    pub fn new(kind: Kind, text: impl Into<String>) -> Self {
        Self { kind, text: text.into() }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.kind.name(), self.text)
    }
}

/// Why an action did not succeed. All but a finding need a fault that explains them.
#[derive(Clone, Debug)]
pub enum Failure {
    /// Must never happen.
    Finding(Finding),
    /// The response says that the node of the request is gone.
    NodeLost {
        /// The node of the request.
        node: Option<usize>,
        /// When the request was sent.
        from: Instant,
    },
    /// The connection broke, and nothing can be resumed.
    Broken {
        /// The node of the request.
        node: Option<usize>,
        /// When the request was sent.
        from: Instant,
    },
    /// The response says that the store could not be reached.
    NotStored {
        /// The node of the request.
        node: Option<usize>,
        /// When the request was sent.
        from: Instant,
    },
    /// No node knows the session.
    SessionGone {
        /// When it was opened.
        opened: Instant,
        /// Whose it was.
        name: String,
    },
}

impl From<Finding> for Failure {
    fn from(finding: Finding) -> Self {
        Self::Finding(finding)
    }
}

/// A failure that a fault explains.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Explained {
    /// The node of the request is gone.
    NodeLost,
    /// The connection broke with its node, so the outcome is unknown.
    Broken,
    /// The store was out of reach of the node.
    NotStored,
    /// The store has lost the session.
    SessionGone,
}

impl Failure {
    /// Finds the fault that explains this failure.
    pub fn judge(self, history: &History) -> Result<Explained, Finding> {
        let (is_explained, explained, text) = match self {
            Self::Finding(finding) => return Err(finding),
            Self::NodeLost { node, from } => {
                let lost = history.was_killed(node, from) || history.was_separated(node, from);
                // The leases of all nodes were lost with the data of the store.
                let text = format!("node_lost for a request of node {node:?}");
                (lost || history.have_lost_leases(from), Explained::NodeLost, text)
            }
            Self::Broken { node, from } => {
                let text = format!("the connection to node {node:?} broke");
                (history.was_killed(node, from), Explained::Broken, text)
            }
            Self::NotStored { node, from } => {
                let text = format!("node {node:?} could not store a change");
                (history.was_separated(node, from), Explained::NotStored, text)
            }
            Self::SessionGone { opened, name } => {
                let text = format!("a session of {name} is gone");
                (history.was_emptied(opened), Explained::SessionGone, text)
            }
        };
        if is_explained { Ok(explained) } else { Err(Finding::new(Kind::Refused, text)) }
    }
}

/// The outcome of an action.
pub type Outcome<T = ()> = Result<T, Failure>;

/// Fails with a finding unless a condition holds.
pub fn ensure(condition: bool, kind: Kind, text: impl FnOnce() -> String) -> Outcome {
    if condition { Ok(()) } else { Err(Finding::new(kind, text()).into()) }
}

/// How often a line must be in the ledger.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Runs {
    /// The outcome is unknown.
    AtMostOnce,
    /// The client has received the answer.
    Once,
}

/// Counts while one fault was the latest.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    /// How often the fault happened.
    pub times: usize,
    /// Actions that succeeded.
    pub completed: usize,
    /// Requests that a node has refused with 503, and that were sent again.
    pub refused: usize,
    /// Failures that a fault explains.
    pub explained: BTreeMap<Explained, usize>,
    /// The slowest `echo` in a session, and in the envelope era.
    pub slowest: [Duration; 2],
}

impl Tally {
    pub(super) fn add(&mut self, other: &Self) {
        self.times += other.times;
        self.completed += other.completed;
        self.refused += other.refused;
        for (kind, count) in &other.explained {
            *self.explained.entry(*kind).or_default() += count;
        }
        for (slowest, other) in self.slowest.iter_mut().zip(other.slowest) {
            *slowest = (*slowest).max(other);
        }
    }

    pub(super) fn explained(&self, kind: Explained) -> usize {
        self.explained.get(&kind).copied().unwrap_or_default()
    }
}

/// Counts of one second.
#[derive(Clone, Copy, Debug, Default)]
pub struct Second {
    /// Actions that succeeded.
    pub completed: usize,
    /// Requests refused with 503.
    pub refused: usize,
    /// Failures that a fault explains.
    pub failed: usize,
}

/// The report of one seed.
pub struct Report {
    seed: u64,
    start: Instant,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    findings: Vec<Finding>,
    lines: BTreeMap<String, Runs>,
    tallies: BTreeMap<Fault, Tally>,
    seconds: Vec<Second>,
    hits: Vec<Hit>,
    /// Times that effects took at other nodes, by what they are.
    times: BTreeMap<&'static str, Vec<Duration>>,
}

impl State {
    fn second(&mut self, start: Instant) -> &mut Second {
        let index = usize::try_from(start.elapsed().as_secs()).unwrap_or_default();
        if self.seconds.len() <= index {
            self.seconds.resize(index + 1, Second::default());
        }
        &mut self.seconds[index]
    }
}

impl Report {
    /// Starts an empty report.
    pub fn new(seed: u64) -> Self {
        Self { seed, start: Instant::now(), state: Mutex::default() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records the outcome of an action. Returns whether it failed.
    pub fn record(&self, what: &str, outcome: Outcome, history: &History) -> bool {
        let judged = outcome.map_err(|failure| failure.judge(history));
        let (latest, mut state) = (history.latest(), self.state());
        let failed = judged.is_err();
        match judged {
            Ok(()) => {
                state.tallies.entry(latest).or_default().completed += 1;
                state.second(self.start).completed += 1;
            }
            Err(Ok(explained)) => {
                *state.tallies.entry(latest).or_default().explained.entry(explained).or_default() += 1;
                state.second(self.start).failed += 1;
            }
            Err(Err(finding)) => {
                let at = self.start.elapsed().as_secs_f64();
                let text = format!("at {at:.1} s, after {latest:?}: {what}: {}", finding.text);
                state.findings.push(Finding::new(finding.kind, text));
            }
        }
        failed
    }

    /// Records a request that was refused with 503.
    pub fn refused(&self, history: &History) {
        let (latest, mut state) = (history.latest(), self.state());
        state.tallies.entry(latest).or_default().refused += 1;
        state.second(self.start).refused += 1;
    }

    /// Records how long an `echo` took.
    pub fn echo_took(&self, era: usize, time: Duration, history: &History) {
        let (latest, mut state) = (history.latest(), self.state());
        let slowest = &mut state.tallies.entry(latest).or_default().slowest[era];
        *slowest = (*slowest).max(time);
    }

    /// Records how long an effect at another node took.
    pub fn took(&self, what: &'static str, time: Duration) {
        self.state().times.entry(what).or_default().push(time);
    }

    /// Records something that must never happen.
    pub fn found(&self, kind: Kind, text: impl Into<String>) {
        self.state().findings.push(Finding::new(kind, text));
    }

    /// Says how often a line must be in the ledger.
    pub fn expect_line(&self, line: String, runs: Runs) {
        self.state().lines.insert(line, runs);
    }

    /// SCL-02: compares the lines that the tools have written with those that they must have.
    pub fn check_ledger(&self, ledger: &str) {
        let mut state = self.state();
        let (mut written, mut findings) = (BTreeSet::new(), Vec::new());
        for line in ledger.lines() {
            if !written.insert(line) {
                findings.push(Finding::new(Kind::Doubled, format!("{line:?} ran twice")));
            }
            if !state.lines.contains_key(line) {
                findings.push(Finding::new(Kind::Foreign, format!("{line:?} ran although it was refused")));
            }
        }
        let missing = state
            .lines
            .iter()
            .filter(|(line, runs)| **runs == Runs::Once && !written.contains(line.as_str()));
        findings.extend(missing.map(|(line, _)| Finding::new(Kind::Lost, format!("{line:?} did not run"))));
        state.findings.extend(findings);
    }

    /// Takes over the faults.
    pub fn faults(&self, history: &History) {
        let mut state = self.state();
        state.hits = history.all();
        for hit in history
            .all()
            .iter()
            .filter(|hit| hit.node.is_none_or(|node| node == 0 || hit.fault != Fault::Rolling))
        {
            state.tallies.entry(hit.fault).or_default().times += 1;
        }
    }

    /// Adds what this seed has shown to a summary.
    pub(super) fn add_to(&self, summary: &mut Summary) {
        let state = self.state();
        summary.seeds.push(self.seed);
        for (fault, tally) in &state.tallies {
            summary.tallies.entry(*fault).or_default().add(tally);
        }
        for finding in &state.findings {
            *summary.findings.entry(finding.kind).or_default() += 1;
        }
        for (what, times) in &state.times {
            summary.times.entry(what).or_default().extend(times);
        }
    }

    /// Returns the findings.
    pub fn findings(&self) -> Vec<Finding> {
        self.state().findings.clone()
    }

    /// Returns the seconds and the faults as comma-separated text, for the plot.
    pub fn timeline(&self) -> String {
        let state = self.state();
        let mut text = String::from("what,from,to,value\n");
        for hit in &state.hits {
            let from = hit.from.saturating_duration_since(self.start).as_secs_f64();
            let until = hit.until.unwrap_or(hit.from).saturating_duration_since(self.start).as_secs_f64();
            let _ = writeln!(text, "{},{from:.1},{until:.1},", hit.fault.label());
        }
        for (second, counts) in state.seconds.iter().enumerate() {
            let values =
                [("completed", counts.completed), ("refused", counts.refused), ("failed", counts.failed)];
            for (what, value) in values {
                let _ = writeln!(text, "{what},{second},{},{value}", second + 1);
            }
        }
        text
    }
}
