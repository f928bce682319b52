//! Names of keys and channels. All keys of a session are in one slot of a cluster. Ids of sessions are secrets, so keys
//! contain their digests.

use std::fmt::Display;
use std::sync::Arc;

use duplexer_core::run::RunId;
use duplexer_http::{SessionDigest, StreamId, StreamKey};

/// Layout of the records. A change that earlier versions cannot read raises it.
pub(crate) const LAYOUT: &str = "1";

/// Names of one namespace.
#[derive(Clone, Debug)]
pub(crate) struct Keys {
    prefix: Arc<str>,
}

impl Keys {
    pub(crate) fn new(namespace: &str) -> Self {
        Self { prefix: format!("dpx{LAYOUT}:{namespace}:").into() }
    }

    /// Returns the namespace.
    pub(crate) fn namespace(&self) -> &str {
        self.prefix.split(':').nth(1).unwrap_or_default()
    }

    pub(crate) fn session(&self, id: &str) -> SessionKeys {
        SessionKeys { base: format!("{}{{{}}}:", self.prefix, SessionDigest::of(id)) }
    }

    pub(crate) fn lease(&self, run: RunId) -> String {
        self.tagged(format_args!("n:{run}"), "a")
    }

    pub(crate) fn inbox(&self, run: RunId) -> String {
        self.tagged(format_args!("n:{run}"), "i")
    }

    /// Number of bytes in the inbox.
    pub(crate) fn inbox_bytes(&self, run: RunId) -> String {
        self.tagged(format_args!("n:{run}"), "c")
    }

    /// Channel on which a run is woken.
    pub(crate) fn run_channel(&self, run: RunId) -> String {
        self.tagged(format_args!("n:{run}"), "b")
    }

    pub(crate) fn changes(&self) -> String {
        self.tagged("bus", "l")
    }

    /// Channel on which all runs are woken to read the log of changes.
    pub(crate) fn changes_channel(&self) -> String {
        self.tagged("bus", "b")
    }

    /// Keys of all tasks, in the order of the scripts.
    pub(crate) fn tasks(&self) -> [String; 10] {
        ["d", "m", "o", "l", "r", "u", "x", "e", "w", "b"].map(|suffix| self.tagged("t", suffix))
    }

    #[cfg(feature = "auth")]
    pub(crate) fn record(&self, kind: &str, id: &str) -> String {
        format!("{}{{o:{kind}:{id}}}", self.prefix)
    }

    /// Key of the requests of a caller, or of its calls of one tool. All keys of a caller are in one slot.
    pub(crate) fn rate_limit(&self, caller: &str, tool: Option<&str>) -> String {
        let tag = format_args!("r:{caller}");
        tool.map_or_else(|| self.tagged(tag, "g"), |tool| self.tagged(tag, &format!("g:{tool}")))
    }

    /// Key that the check at start writes.
    pub(crate) fn check(&self) -> String {
        self.tagged("check", "k")
    }

    fn tagged(&self, tag: impl Display, suffix: &str) -> String {
        format!("{}{{{tag}}}:{suffix}", self.prefix)
    }
}

/// Keys of one session.
pub(crate) struct SessionKeys {
    base: String,
}

impl SessionKeys {
    /// Hash with the record.
    pub(crate) fn record(&self) -> String {
        format!("{}h", self.base)
    }

    /// Hash of the requests in flight.
    pub(crate) fn in_flight(&self) -> String {
        format!("{}f", self.base)
    }

    /// Sorted set of the streams, by the time at which they were opened.
    pub(crate) fn streams(&self) -> String {
        format!("{}o", self.base)
    }

    /// Exists after the session was deleted.
    pub(crate) fn deleted(&self) -> String {
        format!("{}x", self.base)
    }

    /// Hash with the state of a stream.
    pub(crate) fn stream(&self, stream: StreamId) -> String {
        format!("{}m:{stream}", self.base)
    }

    /// List of the events of a stream.
    pub(crate) fn events(&self, stream: StreamId) -> String {
        format!("{}e:{stream}", self.base)
    }

    /// Prefix of [`stream`](Self::stream) and [`events`](Self::events), for scripts that walk over all streams.
    pub(crate) fn base(&self) -> &str {
        &self.base
    }
}

/// Name of a stream in wake-ups: no secret.
pub(crate) fn wake_name(stream: &StreamKey) -> String {
    format!("{}:{}", SessionDigest::of(&stream.session), stream.stream)
}
