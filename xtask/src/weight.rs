//! `cargo xtask weight`: what a build costs. Crates that it compiles, CPU time of clean builds and of rebuilds, size of the
//! command.
//!
//! The numbers of crates are recorded in `docs/weight.txt`, and a test compares them. CPU times and sizes depend on the
//! toolchain and the machine: they are printed, beside those of other packages with `--beside DIR`.

mod build;
mod crates;
mod twenty_tools;

use std::path::PathBuf;

use crate::Failure;

/// What the command measures.
#[derive(Debug, Default, PartialEq, Eq)]
struct Options {
    /// Only the crates, which takes no build.
    only_crates: bool,
    record: bool,
    /// Folders of other packages that are built and rebuilt as well.
    beside: Vec<PathBuf>,
}

pub(crate) fn command(arguments: &[String]) -> Result<(), Failure> {
    let options = options(arguments)?;
    run(&options).map_err(|reason| {
        eprintln!("error: cargo xtask weight: {reason}");
        Failure::Failed
    })
}

fn options(arguments: &[String]) -> Result<Options, Failure> {
    let mut options = Options::default();
    let mut rest = arguments.iter();
    while let Some(argument) = rest.next() {
        match argument.as_str() {
            "--crates" => options.only_crates = true,
            "--record" => options.record = true,
            "--beside" => {
                let folder =
                    rest.next().ok_or_else(|| Failure::Usage("--beside takes a folder".to_owned()))?;
                options.beside.push(folder.into());
            }
            other => return Err(Failure::Usage(format!("weight takes no `{other}`"))),
        }
    }
    Ok(options)
}

fn run(options: &Options) -> Result<(), String> {
    let counted = crates::count()?;
    if options.record {
        crates::record(&counted)?;
    }
    println!("{}", crates::table(&counted)?);
    if !options.only_crates && !options.record {
        build::print_table(&options.beside)?;
    }
    crates::check(&counted)
}

#[cfg(test)]
mod tests {
    use super::{Options, options};
    use crate::Failure;

    #[test]
    fn options_are_read_and_mistyped_ones_rejected() {
        let read = |line: &str| options(&line.split_whitespace().map(str::to_owned).collect::<Vec<_>>());
        let beside = Options { beside: vec!["a".into(), "b".into()], ..Options::default() };
        assert_eq!(read("--beside a --beside b"), Ok(beside));
        assert_eq!(read("--crates"), Ok(Options { only_crates: true, ..Options::default() }));
        for wrong in ["--crate", "--beside", "x"] {
            assert!(matches!(read(wrong), Err(Failure::Usage(_))), "{wrong}");
        }
    }
}
