//! Ids of entries in streams of the store: a time in milliseconds, and a number within it.

use std::fmt;
use std::str::FromStr;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use duplexer_core::error::StoreError;
use duplexer_server::subscriptions::Position;

use crate::value::unreadable;

/// Id of an entry. The default is before the first one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct EntryId {
    time: u64,
    number: u64,
}

impl EntryId {
    /// Returns its time, since 1970.
    pub(crate) fn time(self) -> Duration {
        Duration::from_millis(self.time)
    }

    /// Returns the smallest id after this one.
    pub(crate) fn next(self) -> Self {
        match self.number.checked_add(1) {
            Some(number) => Self { number, ..self },
            None => Self { time: self.time.saturating_add(1), number: 0 },
        }
    }

    /// Returns the time since the store added the entry, in milliseconds, by the clock of this node.
    pub(crate) fn age(self) -> u64 {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        u64::try_from(now.as_millis()).unwrap_or(u64::MAX).saturating_sub(self.time)
    }
}

impl fmt::Display for EntryId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.time, self.number)
    }
}

impl FromStr for EntryId {
    type Err = StoreError;

    fn from_str(text: &str) -> Result<Self, StoreError> {
        let (time, number) = text.split_once('-').ok_or_else(|| unreadable("an entry has no number"))?;
        Ok(Self { time: time.parse().map_err(unreadable)?, number: number.parse().map_err(unreadable)? })
    }
}

impl From<Position> for EntryId {
    #[expect(clippy::cast_possible_truncation, reason = "the two halves of the position")]
    fn from(position: Position) -> Self {
        Self { time: (position.0 >> 64) as u64, number: position.0 as u64 }
    }
}

impl From<EntryId> for Position {
    fn from(id: EntryId) -> Self {
        Self(u128::from(id.time) << 64 | u128::from(id.number))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_a_position_and_a_text() {
        let id: EntryId = "1700000000000-7".parse().unwrap();
        assert_eq!(EntryId::from(Position::from(id)), id);
        assert_eq!(id.to_string(), "1700000000000-7");
        assert_eq!(id.next().to_string(), "1700000000000-8");
        let last = EntryId { time: 1, number: u64::MAX };
        assert_eq!(last.next(), EntryId { time: 2, number: 0 });
        assert!(EntryId::default() < id && Position::from(id) < Position::from(id.next()));
        assert!("12".parse::<EntryId>().is_err() && "a-1".parse::<EntryId>().is_err());
    }
}
