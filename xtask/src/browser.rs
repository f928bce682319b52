//! `cargo xtask browser`: the inspector page in a real browser, on the demo, on servers of the official Python package, and
//! on a server that means harm.
//!
//! The browser is the one that `CHROMIUM` names, or else the one of the pinned packages, or one on `PATH` where they have none.

use std::path::{Path, PathBuf};

use crate::interop::python_program;
use crate::process::{built, released, root, run};
use crate::{Failure, npm};

const SUITE: &str = "interop/browser";
/// Pictures that the documentation shows.
const SCREENSHOTS: &str = "docs/screenshots";

/// Runs the tests, or measures the page.
pub(crate) fn command(arguments: &[String]) -> Result<(), Failure> {
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let outcome = match words.as_slice() {
        [] => test(),
        ["--record"] => drive(&root().join(SCREENSHOTS)),
        ["bench"] => bench(),
        _ => return Err(Failure::Usage("browser takes nothing but `--record` or `bench`".into())),
    };
    outcome.map_err(|reason| {
        eprintln!("browser: {reason}");
        Failure::Failed
    })
}

/// Uses the page as a person does. Screenshots are left in the folder of build output.
pub(crate) fn test() -> Result<(), String> {
    drive(&root().join("target").join("browser"))
}

fn drive(screenshots: &PathBuf) -> Result<(), String> {
    let program = built("duplexer-cli", "duplexer")?;
    // Another host for the same view.
    npm::installed("interop/inspector")?;
    let script = root().join(SUITE).join("drive.js");
    run(node()?.node(script).arg(program).arg(python_program()?).arg(screenshots))
}

/// Visits the documentation site on a phone and on a desktop, in light and dark. Screenshots are left beside it.
pub(crate) fn site(site: &Path) -> Result<(), String> {
    let screenshots = site.with_file_name("screenshots");
    run(node()?.node(root().join(SUITE).join("site.js")).arg(site).arg(screenshots))
}

/// Measures first paint, the longest frame and the memory of the page, of an optimised program.
fn bench() -> Result<(), String> {
    let program = released("duplexer-cli", &["duplexer"])?.join("duplexer");
    run(node()?.node(root().join(SUITE).join("bench.js")).arg(program))
}

/// Returns a Node that is new enough, which the conformance suite installs, after the browser is installed.
fn node() -> Result<npm::Packages, String> {
    npm::installed(SUITE)?;
    npm::installed("conformance")
}
