//! What one check can cost.

/// Bounds of one check.
///
/// A step is one visit of a schema node, one keyword, one member or item, or a few bytes of text that a pattern reads.
/// A check takes at most `steps + steps_per_byte * n` steps, where `n` is the length of the value's JSON text, and never
/// more than `max_steps`. It keeps at most four verdicts per byte, and 4096 besides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CheckLimits {
    steps: u64,
    steps_per_byte: u64,
    max_steps: u64,
    violations: usize,
}

impl CheckLimits {
    /// Maximum depth of schema nodes below each other in one check, the root being 1.
    ///
    /// A message is at most 128 deep, and a recursive type takes two or three nodes per level.
    pub(crate) const DEPTH: usize = 768;

    /// Sets how many steps a check can take: a constant, and so many per byte of the value. 32 768 and 128 by default.
    #[must_use]
    pub fn steps(mut self, constant: u64, per_byte: u64) -> Self {
        (self.steps, self.steps_per_byte) = (constant, per_byte);
        self
    }

    /// Sets how many steps a check can take whatever the length of the value: 67 108 864 by default, which take about a
    /// second. Ordinary schemas need a few steps per byte, so values of several megabytes stay below.
    #[must_use]
    pub fn max_steps(mut self, most: u64) -> Self {
        self.max_steps = most;
        self
    }

    /// Sets how many violations a report lists at most: 32 by default, and never less than one.
    #[must_use]
    pub fn violations(mut self, most: usize) -> Self {
        self.violations = most.max(1);
        self
    }

    /// Returns how many steps a value of `bytes` bytes of JSON text can take.
    pub fn steps_for(&self, bytes: usize) -> u64 {
        let bytes = u64::try_from(bytes).unwrap_or(u64::MAX);
        self.steps.saturating_add(self.steps_per_byte.saturating_mul(bytes)).min(self.max_steps)
    }

    pub(crate) fn most_violations(&self) -> usize {
        self.violations
    }

    /// How many verdicts are kept. A verdict takes up to 96 bytes while the table grows, which is less than 1 MiB per kB of
    /// input.
    pub(crate) fn verdicts_for(bytes: usize) -> usize {
        bytes.saturating_mul(4).saturating_add(4096)
    }
}

impl Default for CheckLimits {
    fn default() -> Self {
        Self { steps: 32_768, steps_per_byte: 128, max_steps: 64 << 20, violations: 32 }
    }
}
