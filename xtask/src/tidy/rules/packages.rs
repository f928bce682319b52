//! What every published crate has: a readme, the licence texts, and settings for docs.rs.

use crate::tidy::Finding;
use crate::tidy::tree::Tree;

/// Files that stand beside the manifest.
const FILES: &[&str] = &["README.md", "LICENSE-MIT", "LICENSE-APACHE"];
/// Members of the manifest. The address of the repository is left out until it is known.
const MEMBERS: &[&str] = &[
    "description = ",
    "license.workspace",
    "readme = \"README.md\"",
    "keywords",
    "categories",
    "[package.metadata.docs.rs]",
];

pub(super) fn packages(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for manifest in tree.files() {
        let Some(folder) = manifest.path.strip_suffix("Cargo.toml").filter(|path| is_crate(path)) else {
            continue;
        };
        if manifest.text.contains("publish = false") {
            continue;
        }
        for file in FILES {
            if !tree.files().any(|other| other.path.strip_prefix(folder) == Some(file)) {
                findings.push(Finding::new(&manifest.path, 0, format!("there is no {file} beside it")));
            }
        }
        for member in MEMBERS {
            if !manifest.text.lines().any(|line| line.starts_with(member)) {
                findings.push(Finding::new(
                    &manifest.path,
                    0,
                    format!("it has no `{}`", member.trim_end_matches(" = ")),
                ));
            }
        }
    }
    findings
}

/// Returns whether a folder is that of a crate: `crates/NAME/`.
fn is_crate(folder: &str) -> bool {
    folder
        .strip_prefix("crates/")
        .and_then(|rest| rest.strip_suffix('/'))
        .is_some_and(|name| !name.contains('/'))
}
