//! `cargo xtask requirements`: the requirements of `tests/manifest` with their tests, exclusions and gaps.

mod evidence;

use std::fmt;

use self::evidence::{Citation, Evidence, Reason, area};
use crate::{Failure, process};

/// Prints the table of all areas, or of those whose name begins with an argument.
pub(crate) fn command(arguments: &[String]) -> Result<(), Failure> {
    let evidence = Evidence::gather(&process::root()).map_err(|reason| {
        eprintln!("requirements: {reason}");
        Failure::Failed
    })?;
    let areas = areas(&evidence);
    let wanted = |area: &&Area<'_>| {
        arguments.is_empty() || arguments.iter().any(|argument| area.name.starts_with(argument.as_str()))
    };
    let areas: Vec<_> = areas.iter().filter(wanted).collect();
    if areas.is_empty() {
        return Err(Failure::Usage(format!("no area begins with `{}`", arguments.join("` or `"))));
    }
    for area in &areas {
        print!("{area}");
    }
    println!("{}", Totals(&areas));
    let faults = evidence.faults();
    for fault in &faults {
        eprintln!("requirements: {fault}");
    }
    if faults.is_empty() { Ok(()) } else { Err(Failure::Failed) }
}

/// Status of an id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// A test cites it, or a deviation replaces it.
    Covered,
    Excluded,
    Missing,
}

/// Ids with the same prefix.
struct Area<'a> {
    name: &'a str,
    rows: Vec<Row<'a>>,
}

struct Row<'a> {
    id: &'a str,
    reason: Option<&'a Reason>,
    tests: &'a [Citation],
    deviates: bool,
}

fn areas(evidence: &Evidence) -> Vec<Area<'_>> {
    let mut areas: Vec<Area<'_>> = Vec::new();
    for (id, reason) in &evidence.listed {
        let row = Row {
            id,
            reason: reason.as_ref(),
            tests: evidence.tested.get(id).map_or(&[], Vec::as_slice),
            deviates: evidence.deviations.contains(id),
        };
        match areas.iter_mut().find(|known| known.name == area(id)) {
            Some(known) => known.rows.push(row),
            None => areas.push(Area { name: area(id), rows: vec![row] }),
        }
    }
    areas
}

impl Row<'_> {
    fn state(&self) -> State {
        match self.reason {
            _ if self.deviates || !self.tests.is_empty() => State::Covered,
            Some(_) => State::Excluded,
            None => State::Missing,
        }
    }
}

impl Area<'_> {
    fn count(&self, state: State) -> usize {
        self.rows.iter().filter(|row| row.state() == state).count()
    }
}

impl fmt::Display for State {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.pad(match self {
            Self::Covered => "covered",
            Self::Excluded => "excluded",
            Self::Missing => "MISSING",
        })
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Issue(number) => write!(out, "waits for issue {number}"),
            Self::Later => out.write_str("no issue has reached it"),
            Self::Client => out.write_str("a duty of clients"),
            Self::Host => out.write_str("a duty of the application around a client"),
            Self::Author => out.write_str("a duty of the author of the handlers"),
            Self::Absent(why) => write!(out, "absent: {why}"),
        }
    }
}

impl fmt::Display for Area<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [covered, excluded, missing] =
            [State::Covered, State::Excluded, State::Missing].map(|state| self.count(state));
        writeln!(out, "{}: {covered} covered, {excluded} excluded, {missing} missing", self.name)?;
        for row in &self.rows {
            let mut notes: Vec<String> = Vec::new();
            notes.extend(row.deviates.then(|| "docs/deviations.md".to_owned()));
            notes.extend(row.reason.map(ToString::to_string));
            notes.extend(
                row.tests.iter().map(|Citation { test, file }| format!("{test} ({})", file.display())),
            );
            writeln!(
                out,
                "  {:<10} {:<9} {}",
                row.id,
                row.state(),
                notes.first().map_or("", String::as_str)
            )?;
            notes.iter().skip(1).try_for_each(|note| writeln!(out, "  {:<20} {note}", ""))?;
        }
        writeln!(out)
    }
}

/// Formats the totals, in a form that scripts can read.
struct Totals<'a>(&'a [&'a Area<'a>]);

impl fmt::Display for Totals<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(out, "{:<10} {:>8} {:>9} {:>8}", "area", "covered", "excluded", "missing")?;
        let line = |out: &mut fmt::Formatter<'_>, name: &str, count: &dyn Fn(State) -> usize| {
            let [covered, excluded, missing] = [State::Covered, State::Excluded, State::Missing].map(count);
            writeln!(out, "{name:<10} {covered:>8} {excluded:>9} {missing:>8}")
        };
        for area in self.0 {
            line(out, area.name, &|state| area.count(state))?;
        }
        line(out, "all", &|state| self.0.iter().map(|area| area.count(state)).sum())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn evidence() -> Evidence {
        let test = Citation { test: "a_test".into(), file: "tests/a.rs".into() };
        Evidence {
            listed: vec![
                ("RUN-01".into(), None),
                ("RUN-02".into(), Some(Reason::Absent("not implemented".into()))),
                ("ENV-01".into(), None),
                ("ENV-02".into(), None),
            ],
            tested: [("RUN-01".to_owned(), vec![test])].into(),
            mentioned: [].into(),
            deviations: ["ENV-01".to_owned()].into(),
        }
    }

    #[test]
    fn an_area_says_what_shows_each_of_its_ids() {
        let evidence = evidence();
        let shown: String = areas(&evidence).iter().map(ToString::to_string).collect();
        for line in [
            "RUN: 1 covered, 1 excluded, 0 missing\n",
            "  RUN-01     covered   a_test (tests/a.rs)\n",
            "  RUN-02     excluded  absent: not implemented\n",
            "  ENV-01     covered   docs/deviations.md\n",
            "  ENV-02     MISSING   \n",
        ] {
            assert!(shown.contains(line), "{line:?} in {shown}");
        }
    }

    #[test]
    fn the_sums_come_last() {
        let evidence = evidence();
        let areas = areas(&evidence);
        let totals = Totals(&areas.iter().collect::<Vec<_>>()).to_string();
        assert_eq!(totals.lines().last(), Some("all               2         1        1"));
    }
}
