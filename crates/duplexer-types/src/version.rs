//! Protocol revisions, the two eras, and which feature exists in which revision.
//!
//! This is the only module that knows the order of revisions. Everything else asks a [`Window`].

use std::fmt;
use std::str::FromStr;

/// A published revision of the protocol, in order of publication.
///
/// The order of the variants is the order of time, so `<` means "older than".
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

/// How a connection learns who its peer is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Era {
    /// `initialize` opens a connection that remembers what was agreed.
    Handshake,
    /// Every request carries its own `_meta`; nothing is remembered.
    Envelope,
}

impl ProtocolVersion {
    /// Every revision this library knows, oldest first.
    pub const ALL: &[Self] =
        &[Self::V2024_11_05, Self::V2025_03_26, Self::V2025_06_18, Self::V2025_11_25, Self::V2026_07_28];
    /// The revisions that open with `initialize`, oldest first.
    pub const HANDSHAKE: &[Self] =
        &[Self::V2024_11_05, Self::V2025_03_26, Self::V2025_06_18, Self::V2025_11_25];
    /// The revisions in which every request carries its envelope, oldest first.
    pub const ENVELOPE: &[Self] = &[Self::V2026_07_28];
    /// The revisions of the envelope era as they are named to clients.
    pub fn envelope_names() -> Vec<&'static str> {
        Self::ENVELOPE.iter().map(|version| version.as_str()).collect()
    }

    /// The newest revision of the handshake era.
    pub const LATEST_HANDSHAKE: Self = Self::V2025_11_25;
    /// The newest revision of the envelope era.
    pub const LATEST_ENVELOPE: Self = Self::V2026_07_28;
    /// What an HTTP request without a version header is taken to speak.
    pub const ASSUMED: Self = Self::V2025_03_26;

    /// The revision as it is written on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::V2024_11_05 => "2024-11-05",
            Self::V2025_03_26 => "2025-03-26",
            Self::V2025_06_18 => "2025-06-18",
            Self::V2025_11_25 => "2025-11-25",
            Self::V2026_07_28 => "2026-07-28",
        }
    }

    /// The era this revision belongs to.
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

/// A span of revisions: from the first that has something to the last that has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Window {
    first: ProtocolVersion,
    last: ProtocolVersion,
}

impl Window {
    /// Every revision.
    pub const ALWAYS: Self = Self::since(ProtocolVersion::V2024_11_05);
    /// The handshake era.
    pub const HANDSHAKE: Self = Self::until(ProtocolVersion::LATEST_HANDSHAKE);
    /// The envelope era.
    pub const ENVELOPE: Self = Self::since(ProtocolVersion::V2026_07_28);

    /// From `first` on.
    pub const fn since(first: ProtocolVersion) -> Self {
        Self { first, last: ProtocolVersion::LATEST_ENVELOPE }
    }

    /// From the beginning up to and including `last`.
    pub const fn until(last: ProtocolVersion) -> Self {
        Self { first: ProtocolVersion::V2024_11_05, last }
    }

    /// From `first` up to and including `last`.
    pub const fn between(first: ProtocolVersion, last: ProtocolVersion) -> Self {
        Self { first, last }
    }

    /// Whether `version` lies in the window.
    pub const fn contains(self, version: ProtocolVersion) -> bool {
        self.first as u8 <= version as u8 && version as u8 <= self.last as u8
    }

    /// The first revision of the window.
    pub const fn first(self) -> ProtocolVersion {
        self.first
    }

    /// The last revision of the window.
    pub const fn last(self) -> ProtocolVersion {
        self.last
    }
}

/// What came and went with the revisions, apart from methods (see `methods`) and fields (see the models).
pub mod feature {
    use super::{ProtocolVersion as V, Window};

    /// An array of messages is a frame.
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
    /// Enumerations with titles as `oneOf` / `anyOf`, several choices, defaults of every kind.
    pub const TITLED_ENUMS: Window = Window::since(V::V2025_11_25);
    /// Elicitation by URL.
    pub const URL_ELICITATION: Window = Window::since(V::V2025_11_25);
    /// `elicitationId`, `notifications/elicitation/complete` and error -32042.
    pub const ELICITATION_ID: Window = Window::between(V::V2025_11_25, V::V2025_11_25);
    /// A missing resource has an error code of its own (-32002).
    pub const RESOURCE_NOT_FOUND_CODE: Window = Window::HANDSHAKE;
    /// An error response may lack its id.
    pub const ERROR_WITHOUT_ID: Window = Window::since(V::V2025_11_25);
    /// SSE streams open with an empty event, and the server may close them to be polled.
    pub const SSE_POLLING: Window = Window::between(V::V2025_11_25, V::V2025_11_25);
    /// `MCP-Protocol-Version` is sent on requests after the opening.
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
