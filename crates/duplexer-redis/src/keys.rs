//! Names of keys and channels. All keys of a session are in one slot of a cluster. Ids of sessions are secrets, so keys
//! contain their digests.

use std::fmt::{self, Display, Formatter};
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
    pub(crate) fn record(&self) -> SessionKey<'_> {
        self.key("h", None)
    }

    /// Hash of the requests in flight.
    pub(crate) fn in_flight(&self) -> SessionKey<'_> {
        self.key("f", None)
    }

    /// Sorted set of the streams, by the time at which they were opened.
    pub(crate) fn streams(&self) -> SessionKey<'_> {
        self.key("o", None)
    }

    /// Exists after the session was deleted.
    pub(crate) fn deleted(&self) -> SessionKey<'_> {
        self.key("x", None)
    }

    /// Hash with the state of a stream.
    pub(crate) fn stream(&self, stream: StreamId) -> SessionKey<'_> {
        self.key("m:", Some(stream))
    }

    /// List of the events of a stream.
    pub(crate) fn events(&self, stream: StreamId) -> SessionKey<'_> {
        self.key("e:", Some(stream))
    }

    /// Prefix of [`stream`](Self::stream) and [`events`](Self::events), for scripts that walk over all streams.
    pub(crate) fn base(&self) -> &str {
        &self.base
    }

    fn key(&self, kind: &'static str, stream: Option<StreamId>) -> SessionKey<'_> {
        SessionKey { base: &self.base, kind, stream }
    }
}

/// A key of a session, which is written into commands without a copy of its own.
pub(crate) struct SessionKey<'a> {
    base: &'a str,
    kind: &'static str,
    stream: Option<StreamId>,
}

impl Display for SessionKey<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(self.base)?;
        f.write_str(self.kind)?;
        self.stream.map_or(Ok(()), |stream| stream.fmt(f))
    }
}

/// Name of a stream in wake-ups: no secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct WakeName {
    session: SessionDigest,
    stream: StreamId,
}

impl WakeName {
    pub(crate) fn of(stream: &StreamKey) -> Self {
        Self { session: SessionDigest::of(&stream.session), stream: stream.stream }
    }

    /// Reads a message on the channel of a run.
    pub(crate) fn read(message: &[u8]) -> Option<Self> {
        let (session, stream) = std::str::from_utf8(message).ok()?.split_once(':')?;
        let number = |digits| u128::from_str_radix(digits, 16).ok();
        Some(Self { session: SessionDigest(number(session)?), stream: StreamId(number(stream)?) })
    }
}

impl Display for WakeName {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.session, self.stream)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[test]
    fn the_name_of_a_stream_is_read_as_it_was_written() {
        let name = WakeName::of(&StreamKey::new(Arc::from("session"), StreamId(7)));
        assert_eq!(WakeName::read(name.to_string().as_bytes()), Some(name));
        for other in ["", "i", "12", "12:x", "é:1"] {
            assert_eq!(WakeName::read(other.as_bytes()), None, "{other}");
        }
    }
}
