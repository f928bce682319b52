//! Times of tasks: milliseconds since 1970, as records store them and clients read them.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};
use tokio::time::Instant;

/// A point in time: milliseconds since 1970-01-01 in UTC.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct UnixMillis(pub u64);

impl UnixMillis {
    /// Returns the time `duration` later.
    #[must_use]
    pub fn after(self, duration: Duration) -> Self {
        Self(self.0.saturating_add(millis(duration)))
    }

    /// Returns the time from `earlier` to this one; zero if it is not earlier.
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_millis(self.0.saturating_sub(earlier.0))
    }

    /// Returns the text of RFC 3339, with milliseconds.
    pub fn rfc3339(self) -> String {
        let (days, in_day) = (self.0 / 86_400_000, self.0 % 86_400_000);
        let (year, month, day) = civil(days);
        let (seconds, millis) = (in_day / 1000, in_day % 1000);
        let (hour, minute, second) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
        // Two times are written with every task, and formatting them was most of what `tasks/get` cost.
        let mut text = *b"0000-00-00T00:00:00.000Z";
        let parts = [year, month, day, hour, minute, second, millis];
        for (place, part) in [0..4, 5..7, 8..10, 11..13, 14..16, 17..19, 20..23].into_iter().zip(parts) {
            write_digits(text.get_mut(place).unwrap_or_default(), part);
        }
        String::from_utf8_lossy(&text).into_owned()
    }
}

impl From<SystemTime> for UnixMillis {
    fn from(time: SystemTime) -> Self {
        Self(millis(time.duration_since(UNIX_EPOCH).unwrap_or_default()))
    }
}

/// Writes the last digits of a number over all of a text.
fn write_digits(text: &mut [u8], mut number: u64) {
    for digit in text.iter_mut().rev() {
        *digit = b'0' + u8::try_from(number % 10).unwrap_or_default();
        number /= 10;
    }
}

pub(crate) fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// Converts days since 1970-01-01 into a date of the Gregorian calendar. A year begins in March here, so that the leap day
/// is its last one.
fn civil(days: u64) -> (u64, u64, u64) {
    let shifted = days + 719_468;
    let (era, day_of_era) = (shifted / 146_097, shifted % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * from_march + 2) / 5 + 1;
    let month = if from_march < 10 { from_march + 3 } else { from_march - 9 };
    (era * 400 + year_of_era + u64::from(month <= 2), month, day)
}

/// The clock of an engine: the time of the system that never runs backwards, and that tests can advance.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TaskClock {
    started_at: UnixMillis,
    started: Instant,
}

impl TaskClock {
    pub(crate) fn start() -> Self {
        Self { started_at: SystemTime::now().into(), started: Instant::now() }
    }

    pub(crate) fn now(&self) -> UnixMillis {
        // The monotonic clock stops while the system sleeps, so the later of the two counts.
        self.started_at.after(self.started.elapsed()).max(SystemTime::now().into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// TSK-05: RFC 3339 with `T` and seconds.
    #[test]
    fn a_time_is_written_as_rfc3339() {
        let check = |millis, expected| assert_eq!(UnixMillis(millis).rfc3339(), expected);
        check(0, "1970-01-01T00:00:00.000Z");
        check(951_827_696_789, "2000-02-29T12:34:56.789Z");
        check(1_709_251_199_000, "2024-02-29T23:59:59.000Z");
        check(1_709_251_200_001, "2024-03-01T00:00:00.001Z");
        check(4_102_444_799_999, "2099-12-31T23:59:59.999Z");
    }
}
