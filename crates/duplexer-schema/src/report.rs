//! What is wrong with a value.

use std::fmt;

/// One thing that is wrong with a value: its place, what was expected there and what was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    pointer: String,
    kind: Kind,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Kind {
    Mismatch { expected: String, found: String },
    Missing,
    Unknown { noun: &'static str, found: String },
    TooComplex,
}

impl Violation {
    pub(crate) fn mismatch(pointer: String, expected: String, found: String) -> Self {
        Self { pointer, kind: Kind::Mismatch { expected, found } }
    }

    pub(crate) fn missing(pointer: String) -> Self {
        Self { pointer, kind: Kind::Missing }
    }

    pub(crate) fn unknown(pointer: String, noun: &'static str, found: String) -> Self {
        Self { pointer, kind: Kind::Unknown { noun, found } }
    }

    pub(crate) fn too_complex() -> Self {
        Self { pointer: String::new(), kind: Kind::TooComplex }
    }

    /// Returns the place in the value as a JSON pointer; empty for the whole.
    pub fn pointer(&self) -> &str {
        &self.pointer
    }

    /// Returns what the schema expects at that place, such as `at most 5`.
    pub fn expected(&self) -> &str {
        match &self.kind {
            Kind::Mismatch { expected, .. } => expected,
            Kind::Missing => "a value",
            Kind::Unknown { .. } => "nothing",
            Kind::TooComplex => "a value that can be checked",
        }
    }

    /// Returns what is there: the value as JSON, cut where it gets long.
    pub fn found(&self) -> &str {
        match &self.kind {
            Kind::Mismatch { found, .. } | Kind::Unknown { found, .. } => found,
            Kind::Missing => "nothing",
            Kind::TooComplex => "too many steps",
        }
    }

    /// Returns whether the check ended because it reached its limit of steps.
    pub fn is_too_complex(&self) -> bool {
        self.kind == Kind::TooComplex
    }

    /// Returns the text without its place: `expected at most 5, got 6`.
    pub fn message(&self) -> String {
        match &self.kind {
            Kind::Mismatch { expected, found } => format!("expected {expected}, got {found}"),
            Kind::Missing => "required, but missing".to_owned(),
            Kind::Unknown { noun, .. } => format!("there is no such {noun}; leave it out"),
            Kind::TooComplex => "too complex to check".to_owned(),
        }
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let pointer = if self.pointer.is_empty() { "(the whole)" } else { &self.pointer };
        write!(f, "{pointer}: {}", self.message())
    }
}

/// Everything that is wrong with one value, in a bounded list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    pub(crate) violations: Vec<Violation>,
    pub(crate) is_cut: bool,
    pub(crate) steps: u64,
    pub(crate) verdicts: usize,
}

impl Report {
    /// Returns whether nothing is wrong.
    pub fn is_empty(&self) -> bool {
        self.violations.is_empty()
    }

    /// Returns what is wrong.
    pub fn violations(&self) -> &[Violation] {
        &self.violations
    }

    /// Returns whether there is more than the list holds.
    pub fn is_cut(&self) -> bool {
        self.is_cut
    }

    /// Returns how many steps the check took.
    pub fn steps(&self) -> u64 {
        self.steps
    }

    /// Returns how many verdicts the check kept in memory.
    pub fn verdicts(&self) -> usize {
        self.verdicts
    }
}

/// One line per violation, each behind `- `, and a last line `- and more` if the list was cut.
impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, violation) in self.violations.iter().enumerate() {
            let newline = if index > 0 { "\n" } else { "" };
            write!(f, "{newline}- {violation}")?;
        }
        if self.is_cut { f.write_str("\n- and more") } else { Ok(()) }
    }
}
