//! How far a request has come, and whether its handler counts upwards.

use std::sync::atomic::{AtomicU64, Ordering};

/// What a request has reported so far.
#[derive(Debug)]
pub(super) struct Reported(AtomicU64);

/// Bits of a number that no report is compared with any more.
const COMPLAINED: u64 = f64::INFINITY.to_bits();

impl Reported {
    pub(super) fn nothing() -> Self {
        Self(AtomicU64::new(f64::NEG_INFINITY.to_bits()))
    }

    /// Notes a report. True for the first one of a request that is not more than the one before.
    pub(super) fn falls_back(&self, progress: f64) -> bool {
        let mut last = self.0.load(Ordering::Relaxed);
        loop {
            if last == COMPLAINED {
                return false;
            }
            let grows = progress > f64::from_bits(last);
            let next = if grows { progress.to_bits() } else { COMPLAINED };
            match self.0.compare_exchange_weak(last, next, Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) => return !grows,
                Err(now) => last = now,
            }
        }
    }
}

#[cfg(test)]
mod tests;
