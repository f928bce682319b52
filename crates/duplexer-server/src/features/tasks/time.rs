//! Times of tasks: milliseconds since 1970, as records store them and clients read them.

use std::cell::Cell;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};
use tokio::time::Instant;

/// A point in time: milliseconds since 1970-01-01 in UTC.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct UnixMillis(pub u64);

/// The digits of the numbers below 100.
const DIGITS: [[u8; 2]; 100] = {
    let (mut digits, mut number) = ([[b'0'; 2]; 100], 0_u8);
    while number < 100 {
        digits[number as usize] = [b'0' + number / 10, b'0' + number % 10];
        number += 1;
    }
    digits
};

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
        let [y1, y2, y3, y4, mo1, mo2, d1, d2] = date(days);
        let (seconds, millis) = (in_day / 1000, in_day % 1000);
        let (hour, minute, second) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
        // Two times are written with every task, and `format!` was most of what `tasks/get` cost.
        let ([h1, h2], [mi1, mi2], [s1, s2]) = (two(hour), two(minute), two(second));
        let ([f1, f2], [_, f3]) = (two(millis / 10), two(millis));
        let text = [
            y1, y2, y3, y4, b'-', mo1, mo2, b'-', d1, d2, b'T', h1, h2, b':', mi1, mi2, b':', s1, s2, b'.',
            f1, f2, f3, b'Z',
        ];
        str::from_utf8(&text).unwrap_or_default().to_owned()
    }
}

/// Returns the last two digits.
fn two(number: u64) -> [u8; 2] {
    DIGITS.get(usize::try_from(number % 100).unwrap_or_default()).copied().unwrap_or_default()
}

thread_local! {
    /// The day that this thread has written last, and its digits: most tasks are of one day.
    static LAST_DATE: Cell<(u64, [u8; 8])> = const { Cell::new((0, *b"19700101")) };
}

/// Returns the digits of year, month and day.
fn date(days: u64) -> [u8; 8] {
    let (last, digits) = LAST_DATE.get();
    if last == days {
        return digits;
    }
    let (year, month, day) = civil(days);
    let ([y1, y2], [y3, y4], [m1, m2], [d1, d2]) = (two(year / 100), two(year), two(month), two(day));
    let digits = [y1, y2, y3, y4, m1, m2, d1, d2];
    LAST_DATE.set((days, digits));
    digits
}

impl From<SystemTime> for UnixMillis {
    fn from(time: SystemTime) -> Self {
        Self(millis(time.duration_since(UNIX_EPOCH).unwrap_or_default()))
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
