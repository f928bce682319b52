//! Protocol revisions, the two eras, and the features of each revision.
//!
//! Only this module knows the order of revisions. All other code queries a [`Window`].

use std::fmt;
use std::str::FromStr;

/// Published [revision](https://modelcontextprotocol.io/specification/2026-07-28/basic/versioning) of the protocol.
///
/// The variants are in order of publication, so `<` means "older than".
///
/// ```
/// use duplexer_types::version::{Era, ProtocolVersion};
///
/// let version: ProtocolVersion = "2025-11-25".parse()?;
/// assert_eq!(version.era(), Era::Handshake);
/// assert!(version < ProtocolVersion::LATEST_ENVELOPE);
/// # Ok::<_, duplexer_types::version::UnknownVersion>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum ProtocolVersion {
    /// The first revision.
    V2024_11_05,
    /// Streamable HTTP, batches, audio, tool annotations.
    V2025_03_26,
    /// Structured output, elicitation, resource links, titles.
    V2025_06_18,
    /// Icons, URL elicitation, sampling with tools.
    V2025_11_25,
    /// Self-contained requests: the envelope era.
    V2026_07_28,
}

/// How the peers negotiate revision, identity and capabilities.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Era {
    /// `initialize` opens a connection that stores the negotiated values.
    Handshake,
    /// Every request carries the values in its own `_meta`; the connection stores nothing.
    Envelope,
}

impl ProtocolVersion {
    /// All revisions, oldest first.
    pub const ALL: &[Self] =
        &[Self::V2024_11_05, Self::V2025_03_26, Self::V2025_06_18, Self::V2025_11_25, Self::V2026_07_28];
    /// The revisions of the handshake era, oldest first.
    pub const HANDSHAKE: &[Self] =
        &[Self::V2024_11_05, Self::V2025_03_26, Self::V2025_06_18, Self::V2025_11_25];
    /// The revisions of the envelope era, oldest first.
    pub const ENVELOPE: &[Self] = &[Self::V2026_07_28];
    /// Returns the names of the revisions of the envelope era.
    pub fn envelope_names() -> Vec<&'static str> {
        Self::ENVELOPE.iter().map(|version| version.as_str()).collect()
    }

    /// The newest revision of the handshake era.
    pub const LATEST_HANDSHAKE: Self = Self::V2025_11_25;
    /// The newest revision of the envelope era.
    pub const LATEST_ENVELOPE: Self = Self::V2026_07_28;
    /// The revision of an HTTP request without a version header.
    pub const ASSUMED: Self = Self::V2025_03_26;

    /// Returns the protocol's name of the revision.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::V2024_11_05 => "2024-11-05",
            Self::V2025_03_26 => "2025-03-26",
            Self::V2025_06_18 => "2025-06-18",
            Self::V2025_11_25 => "2025-11-25",
            Self::V2026_07_28 => "2026-07-28",
        }
    }

    /// Returns the era of this revision.
    pub const fn era(self) -> Era {
        match self {
            Self::V2024_11_05 | Self::V2025_03_26 | Self::V2025_06_18 | Self::V2025_11_25 => Era::Handshake,
            Self::V2026_07_28 => Era::Envelope,
        }
    }

    /// Whether this revision has a feature.
    pub const fn has(self, feature: Window) -> bool {
        feature.contains(self)
    }
}

impl fmt::Display for ProtocolVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The text is not a revision this library knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnknownVersion;

impl fmt::Display for UnknownVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("unknown protocol version")
    }
}

impl std::error::Error for UnknownVersion {}

impl FromStr for ProtocolVersion {
    type Err = UnknownVersion;

    fn from_str(text: &str) -> Result<Self, UnknownVersion> {
        Self::ALL.iter().copied().find(|version| version.as_str() == text).ok_or(UnknownVersion)
    }
}

/// Inclusive range of revisions, such as those that have a feature.
///
/// ```
/// use duplexer_types::version::{ProtocolVersion, Window};
///
/// let window = Window::since(ProtocolVersion::V2025_06_18);
/// assert!(ProtocolVersion::V2025_11_25.has(window));
/// assert!(!ProtocolVersion::V2025_03_26.has(window));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Window {
    first: ProtocolVersion,
    last: ProtocolVersion,
}

impl Window {
    /// All revisions.
    pub const ALWAYS: Self = Self::since(ProtocolVersion::V2024_11_05);
    /// The handshake era.
    pub const HANDSHAKE: Self = Self::until(ProtocolVersion::LATEST_HANDSHAKE);
    /// The envelope era.
    pub const ENVELOPE: Self = Self::since(ProtocolVersion::V2026_07_28);

    /// Creates the window from `first` on.
    pub const fn since(first: ProtocolVersion) -> Self {
        Self { first, last: ProtocolVersion::LATEST_ENVELOPE }
    }

    /// Creates the window up to and including `last`.
    pub const fn until(last: ProtocolVersion) -> Self {
        Self { first: ProtocolVersion::V2024_11_05, last }
    }

    /// Creates the window from `first` up to and including `last`.
    pub const fn between(first: ProtocolVersion, last: ProtocolVersion) -> Self {
        Self { first, last }
    }

    /// Whether the window contains `version`.
    pub const fn contains(self, version: ProtocolVersion) -> bool {
        self.first as u8 <= version as u8 && version as u8 <= self.last as u8
    }

    /// Returns the first revision of the window.
    pub const fn first(self) -> ProtocolVersion {
        self.first
    }

    /// Returns the last revision of the window.
    pub const fn last(self) -> ProtocolVersion {
        self.last
    }
}

/// Windows of features, apart from methods (see `methods`) and fields (see the models).
pub mod feature {
    use super::{ProtocolVersion as V, Window};

    /// JSON-RPC batches.
    pub const BATCHES: Window = Window::between(V::V2025_03_26, V::V2025_03_26);
    /// `initialize`, sessions, and requests from server to client.
    pub const HANDSHAKE: Window = Window::HANDSHAKE;
    /// `_meta` of every request carries version, identity and capabilities.
    pub const ENVELOPE: Window = Window::ENVELOPE;
    /// Audio content.
    pub const AUDIO: Window = Window::since(V::V2025_03_26);
    /// `resource_link` content.
    pub const RESOURCE_LINK: Window = Window::since(V::V2025_06_18);
    /// `structuredContent` and `outputSchema`, objects only.
    pub const STRUCTURED_OBJECT: Window = Window::since(V::V2025_06_18);
    /// `structuredContent` and `outputSchema` of any type.
    pub const STRUCTURED_ANY: Window = Window::since(V::V2026_07_28);
    /// Sampling messages with tool use, tool results and several content blocks.
    pub const SAMPLING_TOOLS: Window = Window::since(V::V2025_11_25);
    /// Enumerations with titles as `oneOf` / `anyOf`, multiple choice, defaults of every kind.
    pub const TITLED_ENUMS: Window = Window::since(V::V2025_11_25);
    /// Elicitation by URL.
    pub const URL_ELICITATION: Window = Window::since(V::V2025_11_25);
    /// `elicitationId`, `notifications/elicitation/complete` and error -32042.
    pub const ELICITATION_ID: Window = Window::between(V::V2025_11_25, V::V2025_11_25);
    /// The error code -32002 for a missing resource.
    pub const RESOURCE_NOT_FOUND_CODE: Window = Window::HANDSHAKE;
    /// Error responses without an id.
    pub const ERROR_WITHOUT_ID: Window = Window::since(V::V2025_11_25);
    /// SSE streams start with an empty event, and the server can close them to make the client poll.
    pub const SSE_POLLING: Window = Window::between(V::V2025_11_25, V::V2025_11_25);
    /// Tasks that the client asks for: an experiment of one revision, before they became an extension.
    pub const TASK_EXPERIMENT: Window = Window::between(V::V2025_11_25, V::V2025_11_25);
    /// The header `MCP-Protocol-Version` on requests after `initialize`.
    pub const VERSION_HEADER: Window = Window::since(V::V2025_06_18);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// TYP-09: order is by position, text round-trips, unknown text is refused.
    #[test]
    fn versions_are_ordered_by_publication_and_round_trip() {
        assert!(ProtocolVersion::ALL.is_sorted());
        for version in ProtocolVersion::ALL {
            assert_eq!(version.as_str().parse(), Ok(*version));
        }
        for unknown in ["", "2025-11-26", "2025-11-25 ", "v999.0.0", "draft"] {
            assert_eq!(unknown.parse::<ProtocolVersion>(), Err(UnknownVersion), "{unknown}");
        }
    }

    #[test]
    fn the_eras_partition_the_versions() {
        let joined: Vec<_> = [ProtocolVersion::HANDSHAKE, ProtocolVersion::ENVELOPE].concat();
        assert_eq!(joined, ProtocolVersion::ALL);
        assert!(ProtocolVersion::HANDSHAKE.iter().all(|v| v.era() == Era::Handshake));
        assert!(ProtocolVersion::ENVELOPE.iter().all(|v| v.era() == Era::Envelope));
        assert_eq!(ProtocolVersion::HANDSHAKE.last(), Some(&ProtocolVersion::LATEST_HANDSHAKE));
        assert_eq!(ProtocolVersion::ENVELOPE.last(), Some(&ProtocolVersion::LATEST_ENVELOPE));
    }

    #[test]
    fn windows_include_both_ends() {
        let one = feature::BATCHES;
        let inside: Vec<_> = ProtocolVersion::ALL.iter().filter(|v| v.has(one)).collect();
        assert_eq!(inside, [&ProtocolVersion::V2025_03_26]);
        assert!(ProtocolVersion::ALL.iter().all(|v| v.has(Window::ALWAYS)));
        assert!(!ProtocolVersion::LATEST_ENVELOPE.has(Window::HANDSHAKE));
    }
}
