//! The counters: by method, by tool and by kind of error. Their number is bounded: the methods of the protocol, the first tools
//! that were called, the kinds of errors.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, PoisonError, RwLock};
use std::time::Duration;

use duplexer_core::metrics::Histogram;
use duplexer_types::methods::{METHODS, Method};
use duplexer_types::version::ProtocolVersion;

use super::error_kind::ErrorKind;
use super::{ERROR, METHOD, Sink, TOOL};

/// Maximum number of tools with a label of their own. A catalog that changes can have any number of them over time.
const MAX_TOOLS: usize = 512;
/// Label of all other methods and tools.
const OTHER: &str = "_OTHER";

/// Durations by kind of error, each made when it first occurs.
#[derive(Default)]
struct Durations([OnceLock<Box<Histogram>>; ErrorKind::COUNT]);

#[derive(Default)]
struct OfMethod {
    durations: Durations,
    received: AtomicU64,
    sent: AtomicU64,
}

/// All counters of a server.
pub(super) struct Series {
    /// By the row of the method; the last is for custom and unknown methods.
    methods: Vec<OfMethod>,
    tools: RwLock<HashMap<Box<str>, Arc<Durations>, foldhash::fast::RandomState>>,
    /// Of tools beyond the limit.
    other_tools: Durations,
    sessions: Vec<Histogram>,
}

impl Default for Series {
    fn default() -> Self {
        Self {
            methods: (0..=METHODS.len()).map(|_| OfMethod::default()).collect(),
            tools: RwLock::default(),
            other_tools: Durations::default(),
            sessions: ProtocolVersion::ALL.iter().map(|_| Histogram::default()).collect(),
        }
    }
}

impl Durations {
    fn record(&self, error: ErrorKind, elapsed: Duration) {
        if let Some(cell) = self.0.get(error.index()) {
            cell.get_or_init(Box::default).record(elapsed);
        }
    }

    fn read(&self, method: &str, tool: Option<&str>, sink: &mut Sink<'_>) {
        for (index, cell) in self.0.iter().enumerate() {
            let Some(histogram) = cell.get() else { continue };
            let labels = [Some((METHOD, method)), tool.map(|tool| (TOOL, tool)), error_label(index)];
            let labels: Vec<_> = labels.into_iter().flatten().collect();
            sink.operation(&labels, &histogram.read());
        }
    }
}

fn error_label(index: usize) -> Option<(&'static str, &'static str)> {
    ErrorKind::label(index).map(|label| (ERROR, label))
}

impl Series {
    fn method(&self, method: Option<Method>) -> Option<&OfMethod> {
        self.methods.get(method.map_or(METHODS.len(), |method| method as usize))
    }

    pub(super) fn received(&self, method: Option<Method>, bytes: usize) {
        if let Some(series) = self.method(method) {
            series.received.fetch_add(bytes as u64, Ordering::Relaxed);
        }
    }

    pub(super) fn sent(&self, method: Option<Method>, bytes: usize) {
        if let Some(series) = self.method(method) {
            series.sent.fetch_add(bytes as u64, Ordering::Relaxed);
        }
    }

    pub(super) fn session(&self, version: ProtocolVersion, elapsed: Duration) {
        let at = ProtocolVersion::ALL.iter().position(|known| *known == version);
        if let Some(histogram) = at.and_then(|at| self.sessions.get(at)) {
            histogram.record(elapsed);
        }
    }

    /// Counts a message that has ended.
    pub(super) fn ended(
        &self,
        method: Option<Method>,
        tool: Option<&str>,
        error: ErrorKind,
        elapsed: Duration,
    ) {
        let Some(tool) = tool else {
            if let Some(series) = self.method(method) {
                series.durations.record(error, elapsed);
            }
            return;
        };
        if let Some(durations) = self.tools.read().unwrap_or_else(PoisonError::into_inner).get(tool) {
            durations.record(error, elapsed);
            return;
        }
        self.first_call(tool).as_deref().unwrap_or(&self.other_tools).record(error, elapsed);
    }

    /// Gives a tool counters of its own, unless there are too many.
    #[cold]
    fn first_call(&self, tool: &str) -> Option<Arc<Durations>> {
        let mut tools = self.tools.write().unwrap_or_else(PoisonError::into_inner);
        if tools.len() >= MAX_TOOLS && !tools.contains_key(tool) {
            return None;
        }
        Some(Arc::clone(tools.entry(tool.into()).or_default()))
    }

    /// Returns the label of a tool that was counted.
    pub(super) fn label<'a>(&self, tool: Option<&'a str>) -> Option<Cow<'a, str>> {
        let tools = self.tools.read().unwrap_or_else(PoisonError::into_inner);
        tool.map(|tool| if tools.contains_key(tool) { tool.into() } else { OTHER.into() })
    }

    pub(super) fn read(&self, sink: &mut Sink<'_>) {
        let names = METHODS.iter().map(|row| row.method.name()).chain([OTHER]);
        for (name, series) in names.zip(&self.methods) {
            series.durations.read(name, None, sink);
            let bytes = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
            let (received, sent) = (bytes(&series.received), bytes(&series.sent));
            if received > 0 || sent > 0 {
                sink.bytes(name, received, sent);
            }
        }
        let call = Method::ToolsCall.name();
        let mut tools: Vec<(Box<str>, Arc<Durations>)> = {
            let tools = self.tools.read().unwrap_or_else(PoisonError::into_inner);
            tools.iter().map(|(name, durations)| (name.clone(), Arc::clone(durations))).collect()
        };
        tools.sort_by(|(one, _), (other, _)| one.cmp(other));
        for (name, durations) in tools {
            durations.read(call, Some(&name), sink);
        }
        self.other_tools.read(call, Some(OTHER), sink);
        for (version, histogram) in ProtocolVersion::ALL.iter().zip(&self.sessions) {
            if !histogram.is_empty() {
                sink.session(version.as_str(), &histogram.read());
            }
        }
    }
}
