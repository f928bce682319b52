//! `cargo xtask cluster-test`: three nodes on a store under load, while nodes, connections and the store fail.
//!
//! The program `cluster-test` of the package `duplexer-tests` runs the processes, the load and the checks. This command
//! builds the programs, provides a store, and with `--record` writes the table and the plot into `docs`.

mod plot;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::process::{self, root};
use crate::{Failure, scale, valkey};

const PACKAGE: &str = "duplexer-tests";
const DOCUMENT: &str = "docs/scale-out.md";
/// Marker before the table of the faults, and before that of the costs.
const FAULTS: &str = "<!-- cluster-test -->\n";
const COSTS: &str = "<!-- cluster-costs -->\n";
const USAGE: &str = "cluster-test takes --seeds N, --seed N, --seconds N, --balancer own|nginx|haproxy and --record, or \
    --costs [--record]";

pub(crate) fn command(arguments: &[String]) -> Result<(), Failure> {
    let options = options(arguments)?;
    options.run().map_err(|reason| {
        eprintln!("error: cargo xtask cluster-test: {reason}");
        Failure::Failed
    })
}

/// Runs the seed that is part of the test command.
pub(crate) fn one_seed() -> Result<(), String> {
    Options::default().run()
}

/// What is run.
#[derive(Debug, Default, PartialEq, Eq)]
struct Options {
    mode: Mode,
    keep: Keep,
    /// Options of the program.
    arguments: Vec<String>,
}

#[derive(Debug, Default, PartialEq, Eq)]
enum Mode {
    #[default]
    Faults,
    Costs,
}

/// Whether the figures are written into the document.
#[derive(Debug, Default, PartialEq, Eq)]
enum Keep {
    Yes,
    #[default]
    No,
}

fn options(arguments: &[String]) -> Result<Options, Failure> {
    let mut options = Options::default();
    let mut words = arguments.iter();
    while let Some(word) = words.next() {
        match word.as_str() {
            "--record" => options.keep = Keep::Yes,
            "--costs" => options.mode = Mode::Costs,
            "--seeds" | "--seed" | "--seconds" | "--balancer" => {
                let value = words.next().ok_or_else(|| Failure::Usage(format!("{word} needs a value")))?;
                options.arguments.extend([word.clone(), value.clone()]);
            }
            other => return Err(Failure::Usage(format!("unknown option `{other}`: {USAGE}"))),
        }
    }
    if options.mode == Mode::Costs && !options.arguments.is_empty() {
        return Err(Failure::Usage(USAGE.to_owned()));
    }
    Ok(options)
}

impl Options {
    fn run(&self) -> Result<(), String> {
        match self.mode {
            Mode::Faults => self.faults(),
            Mode::Costs => self.costs(),
        }
    }

    fn faults(&self) -> Result<(), String> {
        let node = process::built(PACKAGE, "scale-server")?;
        let mut program = Command::new(process::built(PACKAGE, "cluster-test")?);
        program.arg("--node").arg(node).args(&self.arguments);
        let output = output()?;
        program.arg("--write").arg(&output);
        valkey::provide(&mut program);
        process::run(&mut program)?;
        if self.keep == Keep::No {
            return Ok(());
        }
        let timeline = read(&output.join("timeline.csv"))?;
        write(&folder().join("cluster.csv"), &timeline)?;
        write(&folder().join("cluster.svg"), &plot::svg(&timeline)?)?;
        record(FAULTS, &read(&output.join("table.md"))?)
    }

    fn costs(&self) -> Result<(), String> {
        let programs = process::released(PACKAGE, &["scale-server", "cluster-costs"])?;
        let mut program = Command::new(programs.join("cluster-costs"));
        let output = output()?;
        let table = output.join("costs.md");
        // That of an earlier run must not be recorded.
        let _ = fs::remove_file(&table);
        program.arg("--node").arg(programs.join("scale-server")).arg("--write").arg(&output);
        valkey::provide(&mut program);
        // A bar that is missed is a failure, and is recorded as what it is.
        let outcome = process::run(&mut program);
        if self.keep == Keep::Yes && table.is_file() {
            record(COSTS, &read(&table)?)?;
        }
        outcome
    }
}

/// Returns a folder for what the programs write.
fn output() -> Result<PathBuf, String> {
    let folder = process::target().join("cluster-test");
    fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    Ok(folder)
}

fn folder() -> PathBuf {
    root().join("docs").join("scale")
}

/// Writes a table into the document.
fn record(marker: &str, table: &str) -> Result<(), String> {
    let document = root().join(DOCUMENT);
    let text = scale::with_table(&read(&document)?, marker, table.trim())
        .ok_or_else(|| format!("{DOCUMENT} has no place for the table"))?;
    write(&document, &text)?;
    println!("renewed: {DOCUMENT}");
    Ok(())
}

fn read(path: &Path) -> Result<String, String> {
    fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))
}

fn write(path: &Path, text: &str) -> Result<(), String> {
    fs::write(path, text).map_err(|error| format!("{}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::{COSTS, DOCUMENT, FAULTS, Keep, Mode, Options, folder, options, plot, read, root, scale};
    use crate::Failure;

    fn parsed(words: &[&str]) -> Result<Options, Failure> {
        options(&words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>())
    }

    #[test]
    fn options_of_the_program_are_passed_on() {
        let options = parsed(&["--seeds", "3", "--record", "--balancer", "nginx"]).unwrap();
        assert_eq!(options.arguments, ["--seeds", "3", "--balancer", "nginx"]);
        assert_eq!((options.mode, options.keep), (Mode::Faults, Keep::Yes));
        assert_eq!(parsed(&["--costs"]).unwrap().mode, Mode::Costs);
    }

    #[test]
    fn a_wrong_option_is_a_usage_error_that_names_it() {
        for (words, part) in [
            (&["--sedes", "3"][..], "--sedes"),
            (&["--seeds"][..], "--seeds needs a value"),
            (&["--costs", "--seeds", "3"][..], "--costs"),
        ] {
            assert!(matches!(parsed(words), Err(Failure::Usage(text)) if text.contains(part)), "{words:?}");
        }
    }

    #[test]
    fn the_document_has_a_place_for_the_tables() {
        let document = read(&root().join(DOCUMENT)).unwrap();
        for marker in [FAULTS, COSTS] {
            assert!(scale::with_table(&document, marker, "| a |").is_some(), "{marker}");
        }
    }

    #[test]
    fn the_recorded_time_line_is_drawn() {
        let timeline = read(&folder().join("cluster.csv")).unwrap();
        let drawn = read(&folder().join("cluster.svg")).unwrap();
        assert!(drawn == plot::svg(&timeline).unwrap(), "run `cargo xtask cluster-test --record`");
    }
}
