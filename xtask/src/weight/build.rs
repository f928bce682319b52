//! Clean builds and rebuilds: their CPU time, and the size of the command.
//!
//! CPU time is that of cargo and all compilers it starts. It is the sum over all threads, so it does not depend on the
//! number of cores, and only a little on other load.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::twenty_tools;
use crate::process;

/// Prints the CPU time of builds of the command and of a server of twenty tools, and of the packages in `beside`.
pub(super) fn print_table(beside: &[PathBuf]) -> Result<(), String> {
    let folder = process::target().join("weight");
    println!("\n{:<48}{:>10}", "clean builds", "CPU s");
    let release = clean(&process::root(), &folder.join("release"), &["--release"])?;
    println!("{:<48}{release:>10.1}", "the command, release (`cargo run --release`)");
    let dist = folder.join("dist");
    let taken = clean(&process::root(), &dist, &["--profile", "dist"])?;
    println!("{:<48}{taken:>10.1}", "the command, dist");
    let size = fs::metadata(dist.join("dist").join("duplexer")).map_err(|error| error.to_string())?.len();
    println!("{:<48}{:>7.1} MB", "size of the command, dist", megabytes(size));
    println!("\n{:<48}{:>10}{:>10}", "debug builds", "clean", "rebuild");
    let ours = twenty_tools::write(&folder)?;
    for package in std::iter::once(&ours).chain(beside) {
        let name = package.file_name().map_or_else(String::new, |name| name.display().to_string());
        let target = folder.join("debug").join(&name);
        let whole = clean(package, &target, &[])?;
        let again = rebuild(package, &target)?;
        println!("{name:<48}{whole:>10.1}{again:>10.1}");
    }
    Ok(())
}

#[expect(clippy::cast_precision_loss, reason = "a file size, shown with one decimal")]
fn megabytes(bytes: u64) -> f64 {
    bytes as f64 / 1e6
}

/// Builds the package in `folder` without anything that was built before.
fn clean(folder: &Path, target: &Path, options: &[&str]) -> Result<f64, String> {
    match fs::remove_dir_all(target) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error.to_string()),
        _ => {}
    }
    // Downloads are no part of the build.
    cargo(folder, target, &["fetch"])?;
    let mut arguments = vec!["build"];
    arguments.extend(options);
    timed(|| cargo(folder, target, &arguments))
}

/// Builds the package again after its main file was saved.
fn rebuild(folder: &Path, target: &Path) -> Result<f64, String> {
    let main = folder.join("src").join("main.rs");
    let text = fs::read(&main).map_err(|error| format!("{}: {error}", main.display()))?;
    fs::write(&main, text).map_err(|error| format!("{}: {error}", main.display()))?;
    timed(|| cargo(folder, target, &["build"]))
}

fn cargo(folder: &Path, target: &Path, arguments: &[&str]) -> Result<(), String> {
    let mut cargo = Command::new(process::program("cargo"));
    cargo.args(arguments).arg("--quiet").current_dir(folder).env("CARGO_TARGET_DIR", target);
    match cargo.status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("cargo {} in {}: {status}", arguments.join(" "), folder.display())),
        Err(error) => Err(format!("cargo: {error}")),
    }
}

/// Returns the CPU seconds of the processes that `work` starts and waits for.
fn timed(work: impl FnOnce() -> Result<(), String>) -> Result<f64, String> {
    let before = cpu_of_children()?;
    work()?;
    Ok(cpu_of_children()? - before)
}

/// Returns the CPU seconds of all child processes that have ended, and of theirs.
fn cpu_of_children() -> Result<f64, String> {
    let stat = fs::read_to_string("/proc/self/stat").map_err(|error| format!("/proc/self/stat: {error}"))?;
    children_ticks(&stat).ok_or_else(|| "/proc/self/stat cannot be read".to_owned())
}

/// Reads `cutime` and `cstime`, in hundredths of a second: the clock tick of Linux, seen from programs.
fn children_ticks(stat: &str) -> Option<f64> {
    // The name of the program, in parentheses, can contain spaces.
    let (_, fields) = stat.rsplit_once(')')?;
    let fields: Vec<_> = fields.split_whitespace().collect();
    let [user, system] = [fields.get(13)?, fields.get(14)?].map(|field| field.parse::<u32>().ok());
    Some(f64::from(user? + system?) / 100.0)
}

#[cfg(test)]
mod tests {
    use super::children_ticks;

    #[test]
    fn the_times_of_children_are_found_behind_a_name_with_spaces() {
        let stat = "12 (a b) c) S 1 12 12 0 -1 4194560 1 2 3 4 50 60 700 130 20 0 1 0 99 1 1";
        assert_eq!(children_ticks(stat), Some(8.3));
        assert_eq!(children_ticks("12 (a) S 1"), None);
    }
}
