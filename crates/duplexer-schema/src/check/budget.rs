//! Counts steps and depth.

use super::Stop;
use crate::limits::CheckLimits;

pub(super) struct Budget {
    steps: u64,
    most: u64,
    /// How many nodes are being judged, one inside the other.
    depth: usize,
    /// How deep in the value the judged part lies.
    level: usize,
}

impl Budget {
    pub(super) fn new(most: u64) -> Self {
        Self { steps: 0, most, depth: 0, level: 0 }
    }

    pub(super) fn steps(&self) -> u64 {
        self.steps
    }

    pub(super) fn level(&self) -> usize {
        self.level
    }

    pub(super) fn step(&mut self) -> Result<(), Stop> {
        self.spend(1)
    }

    pub(super) fn spend(&mut self, steps: usize) -> Result<(), Stop> {
        let steps = self.steps.saturating_add(u64::try_from(steps).unwrap_or(u64::MAX));
        if steps > self.most {
            return Err(Stop::TooComplex);
        }
        self.steps = steps;
        Ok(())
    }

    pub(super) fn enter(&mut self) -> Result<(), Stop> {
        if self.depth >= CheckLimits::DEPTH {
            return Err(Stop::TooComplex);
        }
        self.depth += 1;
        self.step()
    }

    pub(super) fn leave(&mut self) {
        self.depth -= 1;
    }

    pub(super) fn descend(&mut self) {
        self.level += 1;
    }

    pub(super) fn ascend(&mut self) {
        self.level -= 1;
    }
}
