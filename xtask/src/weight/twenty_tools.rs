//! A server of twenty tools, written as a user would: what a developer rebuilds after each change.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use crate::process;

const TOOLS: usize = 20;

/// Writes the package into `folder` and returns its folder.
pub(super) fn write(folder: &Path) -> Result<PathBuf, String> {
    let package = folder.join("twenty-tools");
    let write = |name: &str, text: &str| {
        fs::write(package.join(name), text).map_err(|error| format!("{name}: {error}"))
    };
    fs::create_dir_all(package.join("src")).map_err(|error| error.to_string())?;
    write("Cargo.toml", &manifest())?;
    write("src/main.rs", &source())?;
    Ok(package)
}

fn manifest() -> String {
    let duplexer = process::root().join("crates").join("duplexer");
    let duplexer = duplexer.display();
    format!(
        "[package]\nname = \"twenty-tools\"\nversion = \"0.0.0\"\nedition = \"2024\"\n\n[workspace]\n\n\
         [dependencies]\nduplexer = {{ path = \"{duplexer}\" }}\nschemars = \"1\"\nserde = {{ version = \"1\", features = [\"derive\"] }}\n"
    )
}

/// Every tool has types of its own, so that nothing is shared between their code.
fn source() -> String {
    let mut text = "use duplexer::prelude::*;\n".to_owned();
    let mut registered = String::new();
    for number in 0..TOOLS {
        let _ = write!(
            text,
            "
#[derive(serde::Serialize, schemars::JsonSchema)]
struct Found{number} {{
    names: Vec<String>,
    count: u64,
}}

/// Finds what matches.
#[tool]
async fn find_{number}(
    /// What to look for.
    text: String,
    /// Where to look.
    place: Option<String>,
    /// At most so many.
    limit: u32,
) -> Result<Found{number}, ToolError> {{
    if text.is_empty() {{
        return Err(ToolError::new(\"nothing to look for\"));
    }}
    let names = vec![text; limit.min(3) as usize];
    Ok(Found{number} {{ count: names.len() as u64 + place.is_some() as u64, names }})
}}
"
        );
        let _ = write!(registered, "\n        .tool(find_{number})");
    }
    let _ = write!(
        text,
        "
fn main() -> Result<(), BoxError> {{
    let server = Server::builder(\"twenty-tools\", \"0\"){registered}
        .build()?;
    Ok(run_stdio(&server)?)
}}
"
    );
    text
}
