//! Log messages for the client.

use serde::{Deserialize, Serialize};

use crate::json::Json;
use crate::model::model;
use crate::wire::same_everywhere;

/// How serious a log message is; the order is ascending.
///
/// The set is closed: a level nobody knows cannot be compared with one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[cfg_attr(test, derive(arbitrary::Arbitrary))]
pub enum LoggingLevel {
    /// Details for finding faults.
    Debug,
    /// What happens.
    Info,
    /// What happens and is worth noticing.
    Notice,
    /// What may become a fault.
    Warning,
    /// A fault.
    Error,
    /// A part has failed.
    Critical,
    /// Somebody must act now.
    Alert,
    /// Nothing works.
    Emergency,
}

same_everywhere!(LoggingLevel);

impl LoggingLevel {
    /// Every level, ascending.
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

    /// The level as it is written on the wire.
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
    /// Asks for log messages from `level` on.
    pub struct SetLevelParams {
        /// The lowest level to send.
        level: LoggingLevel = "level",
    }
}

model! {
    /// A log message.
    pub struct LoggingMessageParams {
        /// How serious it is.
        level: LoggingLevel = "level",
        /// Any JSON.
        data: Json = "data",
    } optional {
        /// Who logs.
        logger: String = "logger",
    }
}
