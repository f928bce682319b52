//! Identity of one life of a server process.

use std::fmt;
use std::hash::{BuildHasher as _, RandomState};
use std::num::ParseIntError;
use std::str::FromStr;

/// Identifies one run of a node: one life of a server process that shares a store with others. A restart is another run.
///
/// The text form has 16 hexadecimal digits.
///
/// ```
/// use duplexer_core::run::RunId;
///
/// let run = RunId(0xbeef);
/// assert_eq!(run.to_string(), "000000000000beef");
/// assert_eq!("000000000000beef".parse::<RunId>()?, run);
/// # Ok::<(), std::num::ParseIntError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RunId(pub u64);

impl RunId {
    /// Returns the id of a new run. It identifies and gives no rights, so it need not be a secret.
    pub fn random() -> Self {
        // The keys of each hasher are different, and come from the random source of the system.
        Self(RandomState::new().hash_one(()))
    }
}

impl fmt::Display for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

impl FromStr for RunId {
    type Err = ParseIntError;

    /// Reads hexadecimal digits.
    ///
    /// # Errors
    ///
    /// Fails if the text has other characters, or more digits than 64 bits have.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        u64::from_str_radix(text, 16).map(Self)
    }
}
