//! Log messages of a server.

use serde::{Deserialize, Serialize};

use crate::json::Json;
use crate::model::model;
use crate::wire::same_everywhere;

/// [Severity](https://modelcontextprotocol.io/specification/2026-07-28/server/utilities/logging#log-levels) of a log message (RFC 5424), in ascending order.
///
/// The set is closed: an unknown level could not be compared with the others.
///
/// ```
/// use duplexer_types::logging::LoggingLevel;
///
/// assert!(LoggingLevel::Warning < LoggingLevel::Error);
/// assert_eq!(LoggingLevel::Warning.as_str(), "warning");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[cfg_attr(test, derive(arbitrary::Arbitrary))]
pub enum LoggingLevel {
    /// Detailed debugging information.
    Debug,
    /// General informational messages.
    Info,
    /// Normal but significant events.
    Notice,
    /// Warning conditions.
    Warning,
    /// Error conditions.
    Error,
    /// Critical conditions, such as the failure of a component.
    Critical,
    /// Action is required immediately.
    Alert,
    /// The system is unusable.
    Emergency,
}

same_everywhere!(LoggingLevel);

impl LoggingLevel {
    /// All levels, in ascending order.
    pub const ALL: [Self; 8] = [
        Self::Debug,
        Self::Info,
        Self::Notice,
        Self::Warning,
        Self::Error,
        Self::Critical,
        Self::Alert,
        Self::Emergency,
    ];

    /// Returns the protocol's name of the level.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Debug => "debug",
            Self::Info => "info",
            Self::Notice => "notice",
            Self::Warning => "warning",
            Self::Error => "error",
            Self::Critical => "critical",
            Self::Alert => "alert",
            Self::Emergency => "emergency",
        }
    }
}

model! {
    /// Parameters of a [`logging/setLevel`](https://modelcontextprotocol.io/specification/2025-11-25/server/utilities/logging#setting-log-level) request (handshake era).
    #[doc(alias = "logging/setLevel")]
    pub struct SetLevelParams {
        /// Minimum level of the messages that the server sends.
        level: LoggingLevel = "level",
    }
}

model! {
    /// Parameters of a [`notifications/message`](https://modelcontextprotocol.io/specification/2026-07-28/server/utilities/logging#log-message-notifications) notification.
    #[doc(alias = "notifications/message")]
    pub struct LoggingMessageParams {
        /// Severity of the message.
        level: LoggingLevel = "level",
        /// The data to log: any JSON.
        data: Json = "data",
    } optional {
        /// Name of the logger.
        logger: String = "logger",
    }
}
