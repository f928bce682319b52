//! The figures in `figures.txt`: reads, writes and compares them.
//!
//! One more allocation is a fault, and so are five percent more instructions. An improvement is only reported.

use std::fmt::Write as _;

/// Cost of one call of a case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Figure {
    /// Name of the case.
    pub name: String,
    /// Allocations and reallocations.
    pub allocations: u64,
    /// Instructions, if they were counted.
    pub instructions: Option<u64>,
}

/// Result of a comparison.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Findings {
    /// Regressions, which fail the comparison.
    pub faults: Vec<String>,
    /// Improvements, which can be recorded.
    pub advice: Vec<String>,
}

/// Tolerance of instructions, in percent.
const TOLERANCE: u64 = 5;
const RECORD: &str = "`cargo xtask bench --record`";

/// Reads recorded figures. Fails with the number of the first malformed line.
pub fn read(text: &str) -> Result<Vec<Figure>, String> {
    let lines =
        text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty() && !line.starts_with('#'));
    let mut figures: Vec<Figure> = Vec::new();
    for (at, line) in lines {
        let figure = figure(line).ok_or_else(|| {
            format!("line {}: `{line}` is not a case, its allocations and its instructions", at + 1)
        })?;
        if figures.iter().any(|known| known.name == figure.name) {
            return Err(format!("line {}: `{}` is there twice", at + 1, figure.name));
        }
        figures.push(figure);
    }
    Ok(figures)
}

fn figure(line: &str) -> Option<Figure> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let [name, allocations, instructions] = words[..] else { return None };
    Some(Figure {
        name: name.to_owned(),
        allocations: allocations.parse().ok()?,
        instructions: Some(instructions.parse().ok()?),
    })
}

/// Formats the file; `None` if something was not counted. `made_with` names the compiler of the counts.
pub fn write(figures: &[Figure], made_with: &str) -> Option<String> {
    let mut text = format!(
        "# What one call of each case costs. Written by {RECORD}, compared by `cargo xtask bench`.\n\
         # Made with {made_with}\n\
         # {:<20} {:>12} {:>14}\n",
        "case", "allocations", "instructions"
    );
    for Figure { name, allocations, instructions } in figures {
        writeln!(text, "{name:<22} {allocations:>12} {:>14}", (*instructions)?).ok()?;
    }
    Some(text)
}

/// Compares measured with recorded figures. Ignores instructions that were not counted.
pub fn compare(recorded: &[Figure], measured: &[Figure]) -> Findings {
    let mut findings = Findings::default();
    for new in measured {
        if let Some(known) = recorded.iter().find(|known| known.name == new.name) {
            findings.weigh(known, new);
            continue;
        }
        let fault = format!("{}: no figures are recorded for this case: add them with {RECORD}", new.name);
        findings.faults.push(fault);
    }
    for known in recorded.iter().filter(|known| measured.iter().all(|new| new.name != known.name)) {
        let fault =
            format!("{}: recorded, but there is no such case: take it away with {RECORD}", known.name);
        findings.faults.push(fault);
    }
    findings
}

/// Returns the instructions of one case in percent of another, if both were counted.
pub fn percent_of(measured: &[Figure], name: &str, other: &str) -> Option<u64> {
    let of = |name: &str| measured.iter().find(|figure| figure.name == name)?.instructions;
    (of(name)? * 100).checked_div(of(other)?)
}

impl Findings {
    fn weigh(&mut self, known: &Figure, new: &Figure) {
        let (was, is) = (known.allocations, new.allocations);
        let text = format!("{}: {is} allocations, {was} are recorded", new.name);
        if is > was {
            self.faults.push(text);
        } else if is < was {
            self.advice.push(text);
        }
        let (Some(was), Some(is)) = (known.instructions, new.instructions) else { return };
        let text = || format!("{}: {is} instructions, {was} are recorded ({})", new.name, change(was, is));
        if is * 100 > was * (100 + TOLERANCE) {
            self.faults.push(text());
        } else if is * 100 < was * (100 - TOLERANCE) {
            self.advice.push(text());
        }
    }
}

/// Formats the change in percent, with its sign.
fn change(was: u64, is: u64) -> String {
    let tenths = is.abs_diff(was) * 1000 / was.max(1);
    format!("{}{}.{} %", if is < was { '-' } else { '+' }, tenths / 10, tenths % 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figure(name: &str, allocations: u64, instructions: impl Into<Option<u64>>) -> Figure {
        Figure { name: name.to_owned(), allocations, instructions: instructions.into() }
    }

    /// Compares one case and checks faults and advice.
    fn check(was: Figure, is: Figure, faults: &[&str], advice: &[&str]) {
        let found = compare(&[was], &[is]);
        assert_eq!(found.faults, faults);
        assert_eq!(found.advice, advice);
    }

    #[test]
    fn more_than_five_percent_more_instructions_is_a_fault() {
        check(figure("a", 4, 10_000), figure("a", 4, 10_500), &[], &[]);
        let text = ["a: 10501 instructions, 10000 are recorded (+5.0 %)"];
        check(figure("a", 4, 10_000), figure("a", 4, 10_501), &text, &[]);
    }

    #[test]
    fn less_than_that_is_worth_recording() {
        check(figure("a", 4, 10_000), figure("a", 4, 9_500), &[], &[]);
        let text = ["a: 9000 instructions, 10000 are recorded (-10.0 %)"];
        check(figure("a", 4, 10_000), figure("a", 4, 9_000), &[], &text);
    }

    #[test]
    fn one_allocation_more_is_a_fault_and_one_less_is_reported() {
        check(figure("a", 4, 100), figure("a", 5, 100), &["a: 5 allocations, 4 are recorded"], &[]);
        check(figure("a", 4, 100), figure("a", 3, 100), &[], &["a: 3 allocations, 4 are recorded"]);
    }

    #[test]
    fn uncounted_instructions_are_not_compared() {
        check(figure("a", 4, 100), figure("a", 4, None), &[], &[]);
        check(figure("a", 4, 100), figure("a", 5, None), &["a: 5 allocations, 4 are recorded"], &[]);
    }

    #[test]
    fn a_case_is_so_many_percent_of_another() {
        let measured = [figure("ours", 4, 1_439), figure("plain", 6, 1_000), figure("other", 1, None)];
        assert_eq!(percent_of(&measured, "ours", "plain"), Some(143));
        assert_eq!(percent_of(&measured, "ours", "other"), None);
        assert_eq!(percent_of(&measured, "ours", "absent"), None);
    }

    #[test]
    fn a_case_on_one_side_only_is_a_fault_that_says_what_to_do() {
        let found = compare(&[figure("gone", 1, 1)], &[figure("new", 1, 1)]);
        assert_eq!(found.faults.len(), 2);
        assert!(
            found.faults[0].starts_with("new: no figures") && found.faults[1].starts_with("gone: recorded")
        );
        assert!(found.faults.iter().all(|fault| fault.contains(RECORD)), "{found:?}");
    }

    #[test]
    fn what_is_written_can_be_read() {
        let figures = [figure("short", 0, 7), figure("a-case-with-a-long-name", 1_000, 12_345_678)];
        let text = write(&figures, "rustc 1.0").unwrap();
        assert_eq!(read(&text).unwrap(), figures);
        assert!(text.contains("rustc 1.0"));
        assert_eq!(write(&[figure("a", 1, None)], "rustc 1.0"), None);
    }

    #[test]
    fn a_line_that_says_something_else_is_named() {
        for (text, reason) in [
            ("# so\n\na 4", "line 3: `a 4` is not"),
            ("a 4 many", "line 1: `a 4 many` is not"),
            ("a 4 5\na 4 5", "line 2: `a` is there twice"),
        ] {
            assert!(read(text).unwrap_err().starts_with(reason), "{text}");
        }
    }
}
