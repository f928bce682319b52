//! The load scenarios, one row each.

use crate::message::Era;

/// Kind of command that a scenario needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Stdio,
    /// Stdio, with a new process for every request.
    Start,
    /// HTTP in the envelope era.
    Envelope,
    /// HTTP in the handshake era, with sessions.
    Sessions,
    /// HTTP in the handshake era, without sessions.
    Stateless,
}

/// The repeated request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ask {
    /// The tool `echo`, with a text of this many bytes.
    Echo(usize),
    /// The tool `add`, which has a structured result.
    Add,
    /// All tools.
    List,
    /// A resource of this many bytes.
    Read(usize),
    /// The tool `progress`, with this many notifications.
    Progress(u64),
}

/// One row.
#[derive(Clone, Copy, Debug)]
pub(super) struct Scenario {
    pub(super) name: &'static str,
    pub(super) kind: Kind,
    pub(super) era: Era,
    pub(super) ask: Ask,
    /// Concurrent requests on a pipe; connections over HTTP, with one request each.
    pub(super) width: usize,
}

const SMALL: Ask = Ask::Echo(43);
const MANY: Ask = Ask::Progress(1000);
const LARGE: usize = 64 * 1024;

pub(super) const SCENARIOS: &[Scenario] = &[
    Scenario { name: "stdio-start", kind: Kind::Start, era: Era::Envelope, ask: SMALL, width: 1 },
    stdio("stdio-echo-1", Era::Envelope, SMALL, 1),
    stdio("stdio-echo-64", Era::Envelope, SMALL, 64),
    stdio("stdio-echo-256", Era::Handshake, SMALL, 256),
    stdio("stdio-add", Era::Envelope, Ask::Add, 16),
    stdio("stdio-list", Era::Envelope, Ask::List, 4),
    stdio("stdio-read-64k", Era::Envelope, Ask::Read(LARGE), 4),
    stdio("stdio-echo-64k", Era::Envelope, Ask::Echo(LARGE), 4),
    stdio("stdio-echo-1m", Era::Envelope, Ask::Echo(1024 * 1024), 2),
    stdio("stdio-progress", Era::Envelope, MANY, 1),
    http("http-envelope-1", Kind::Envelope, SMALL, 1),
    http("http-envelope-16", Kind::Envelope, SMALL, 16),
    http("http-envelope-64", Kind::Envelope, SMALL, 64),
    http("http-envelope-list", Kind::Envelope, Ask::List, 16),
    http("http-envelope-progress", Kind::Envelope, MANY, 2),
    http("http-sessions-16", Kind::Sessions, SMALL, 16),
    http("http-sessions-64", Kind::Sessions, SMALL, 64),
    http("http-stateless-16", Kind::Stateless, SMALL, 16),
    http("http-connections-1", Kind::Envelope, SMALL, 1),
    http("http-connections-4", Kind::Envelope, SMALL, 4),
    http("http-connections-16", Kind::Envelope, SMALL, 16),
    http("http-connections-64", Kind::Envelope, SMALL, 64),
    http("http-connections-256", Kind::Envelope, SMALL, 256),
    http("http-connections-1024", Kind::Envelope, SMALL, 1024),
    http("http-connections-4096", Kind::Envelope, SMALL, 4096),
];

/// Beginning of the names of scenarios that run only if they are named: `cargo xtask scale` plots them.
pub(super) const ONLY_NAMED: &str = "http-connections";

const fn stdio(name: &'static str, era: Era, ask: Ask, width: usize) -> Scenario {
    Scenario { name, kind: Kind::Stdio, era, ask, width }
}

const fn http(name: &'static str, kind: Kind, ask: Ask, width: usize) -> Scenario {
    let era = if matches!(kind, Kind::Envelope) { Era::Envelope } else { Era::Handshake };
    Scenario { name, kind, era, ask, width }
}

impl Ask {
    pub(super) fn method(self) -> &'static str {
        match self {
            Self::List => "tools/list",
            Self::Read(_) => "resources/read",
            Self::Echo(_) | Self::Add | Self::Progress(_) => "tools/call",
        }
    }

    /// Returns the value of the header `Mcp-Name`.
    pub(super) fn name(self) -> Option<String> {
        match self {
            Self::Echo(_) => Some("echo".to_owned()),
            Self::Add => Some("add".to_owned()),
            Self::Progress(_) => Some("progress".to_owned()),
            Self::Read(size) => Some(format!("bench://blob/{size}")),
            Self::List => None,
        }
    }
}
