//! `cargo xtask scale`: growth of the cost of one process with its connections, sessions and load.
//!
//! Each part measures a release build of `bench-server` at several sizes. The figures and their plot are stored in
//! `docs/scale` and shown in `docs/performance.md`. A cost that grows too fast fails the command.

mod connections;
mod document;
mod figures;
mod idle;
mod listeners;
mod open_files;
mod panels;
mod plot;
mod rates;
mod storm;

use std::fs;
use std::path::PathBuf;

use self::figures::Figures;
use self::panels::PANELS;
use crate::load::{self, Fault};
use crate::{Failure, process};

pub(crate) use self::document::with_table;
pub(crate) use self::plot::{Axis, STYLE};

/// A part of the measurement that can be repeated alone.
struct Part {
    name: &'static str,
    measure: fn(&mut Figures) -> Result<(), Fault>,
}

const PARTS: &[Part] = &[
    Part { name: "sessions", measure: idle::sessions },
    Part { name: "streams", measure: idle::streams },
    Part { name: "listeners", measure: listeners::measure },
    Part { name: "tools", measure: rates::tools },
    Part { name: "payloads", measure: rates::payloads },
    Part { name: "connections", measure: connections::measure },
    Part { name: "storm", measure: storm::measure },
    Part { name: "at_once", measure: storm::at_once },
];

pub(crate) fn command(arguments: &[String]) -> Result<(), Failure> {
    let done = match arguments {
        [option] if option == "--plot" => kept().and_then(|figures| draw(&figures)),
        names => run(&parts(names)?, names),
    };
    done.map_err(|fault| {
        eprintln!("error: {fault}");
        Failure::Failed
    })
}

/// Returns the parts with these names, or all.
fn parts(names: &[String]) -> Result<Vec<&'static Part>, Failure> {
    if names.is_empty() {
        return Ok(PARTS.iter().collect());
    }
    let known = || PARTS.iter().map(|part| part.name).collect::<Vec<_>>().join(", ");
    let find = |name: &String| {
        PARTS.iter().find(|part| part.name == name.as_str()).ok_or_else(|| {
            Failure::Usage(format!("'{name}' is no part of `cargo xtask scale`; there are {}", known()))
        })
    };
    names.iter().map(find).collect()
}

fn run(parts: &[&Part], names: &[String]) -> Result<(), Fault> {
    if open_files::raised("scale", names)? {
        return Ok(());
    }
    load::build()?;
    // Parts that are not measured keep their figures.
    let mut figures = if names.is_empty() { Figures::default() } else { kept().unwrap_or_default() };
    for part in parts {
        println!("measuring: {}", part.name);
        figures.remove(part.name);
        (part.measure)(&mut figures)?;
    }
    fs::create_dir_all(folder())?;
    fs::write(folder().join("figures.csv"), figures.to_csv())?;
    draw(&figures)?;
    judge(&figures)
}

/// Returns every cost that grows too fast.
fn judge(figures: &Figures) -> Result<(), Fault> {
    let faults: Vec<_> = PANELS.iter().flat_map(|panel| panel.faults(figures)).collect();
    if faults.is_empty() {
        println!("every cost grows as it may");
        return Ok(());
    }
    Err(Fault(faults.join("\nerror: ")))
}

fn kept() -> Result<Figures, Fault> {
    let path = folder().join("figures.csv");
    let text = fs::read_to_string(&path).map_err(|error| Fault(format!("{}: {error}", path.display())))?;
    Figures::from_csv(&text)
}

/// Prints the figures as tables, updates the document and draws the plot.
fn draw(figures: &Figures) -> Result<(), Fault> {
    for panel in PANELS {
        if let Some(table) = figures.table(panel) {
            println!("{} ({})\n\n{table}\n", panel.title, panel.cost);
        }
    }
    let document = process::root().join("docs").join("performance.md");
    let text = fs::read_to_string(&document)?;
    fs::write(&document, document::renewed(&text, figures))?;
    fs::write(folder().join("scale.svg"), plot::svg(figures))?;
    println!("renewed: docs/scale/scale.svg, and the tables in docs/performance.md");
    Ok(())
}

fn folder() -> PathBuf {
    process::root().join("docs").join("scale")
}

#[cfg(test)]
mod tests {
    use super::{PANELS, PARTS, document, kept, parts, plot};
    use crate::Failure;

    #[test]
    fn a_part_that_does_not_exist_is_a_usage_error_that_names_those_that_do() {
        let refused = parts(&["storms".to_owned()]).err();
        assert!(
            matches!(refused, Some(Failure::Usage(text)) if text.contains("storms") && text.contains("tools"))
        );
    }

    #[test]
    fn every_series_belongs_to_a_part() {
        for line in PANELS.iter().flat_map(|panel| panel.lines) {
            assert!(
                PARTS.iter().any(|part| line.series.split('.').next() == Some(part.name)),
                "{}",
                line.series
            );
        }
    }

    /// Plot and tables in the repository match the figures in the repository, and these keep the permitted growth.
    #[test]
    fn the_recorded_figures_are_complete_and_drawn() {
        let figures = kept().unwrap();
        for line in PANELS.iter().flat_map(|panel| panel.lines) {
            assert!(figures.of(line.series).len() >= 3, "{} is not recorded", line.series);
        }
        let faults: Vec<_> = PANELS.iter().flat_map(|panel| panel.faults(&figures)).collect();
        assert!(faults.is_empty(), "{faults:?}");
        let drawn = std::fs::read_to_string(super::folder().join("scale.svg")).unwrap();
        assert!(drawn == plot::svg(&figures), "run `cargo xtask scale --plot`");
        let document = std::fs::read_to_string(crate::process::root().join("docs/performance.md")).unwrap();
        for panel in PANELS {
            assert!(document.contains(&document::place(panel)), "{} is missing", panel.title);
        }
        assert!(document == document::renewed(&document, &figures), "run `cargo xtask scale --plot`");
    }
}
