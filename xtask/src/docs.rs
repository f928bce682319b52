//! `cargo xtask docs`: the documentation as a site, made from the same files that are tests and documents of the repository.
//!
//! `stage` writes the sources of the book below the build folder, mdBook makes the pages, `check` follows every link in
//! them, and `interop/browser/site.js` opens them in Chromium at two widths, light and dark. Nothing is written for the site only, except the list of documents below.

mod check;
mod errors;
mod stage;

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use self::stage::Page;
use crate::{Failure, browser, no_arguments, process};

/// The version of mdBook that is installed where none is on `PATH`.
const MDBOOK: &str = "0.5.4";

/// A document of the repository, its title, and what it is for.
pub(crate) struct Document {
    path: &'static str,
    title: &'static str,
    about: &'static str,
}

/// Documents behind the guides, in their order. Those that do not exist are left out.
const DOCUMENTS: &[Document] = &[
    document("docs/cli.md", "The command", "every verb of `duplexer`, and how it looks"),
    document("docs/comparison.md", "Comparison", "Duplexer beside the official SDKs, with sources"),
    document(
        "docs/performance.md",
        "Performance",
        "what calls, sessions and builds cost, and how it was measured",
    ),
    document(
        "docs/scale-out.md",
        "Scale-out",
        "several nodes while nodes and store fail, and what the store costs",
    ),
    document("docs/reliability.md", "Reliability", "long runs, fuzzing, seeds and mutation tests"),
    document("docs/transcripts.md", "Transcripts", "the format of recorded sessions"),
    document(
        "docs/deviations.md",
        "Deviations",
        "where we differ from the reference implementation, and why",
    ),
    document(
        "ARCHITECTURE.md",
        "Architecture and glossary",
        "the layers, the code map, where to change what",
    ),
    document("SECURITY.md", "Security", "what is promised, and how to report a problem"),
    document("VERSIONING.md", "Versions", "what is public, and what may change when"),
    document("CONTRIBUTING.md", "Contributing", "commands, style, tests"),
    document("CHANGELOG.md", "Changelog", "what changed, for people who use the crates"),
];

const fn document(path: &'static str, title: &'static str, about: &'static str) -> Document {
    Document { path, title, about }
}

/// Builds the site, checks its links, and visits its pages in a browser.
pub(crate) fn command(arguments: &[String]) -> Result<(), Failure> {
    no_arguments("docs", arguments)?;
    build().map_err(|reason| {
        eprintln!("error: {reason}");
        Failure::Failed
    })
}

fn build() -> Result<(), String> {
    let root = process::root();
    let book = process::target().join("book");
    let pages = stage::pages(&root)?;
    write(&root, &book, &pages)?;
    let mdbook = mdbook()?;
    process::run(Command::new(&mdbook).arg("build").arg(&book))?;
    let site = book.join("html");
    save(&site.join("llms.txt"), &llms(&pages))?;
    let broken = check::links(&site)?;
    for link in &broken {
        eprintln!("error: {link}");
    }
    println!("{} pages in {}", pages.len(), site.display());
    println!("{} broken links", broken.len());
    if !broken.is_empty() {
        return Err("the site has broken links".to_owned());
    }
    if !process::is_installed("npm") {
        println!("LEFT OUT  the pages in a browser: npm is missing");
        return Ok(());
    }
    browser::site(&site).map_err(|reason| format!("the pages in a browser: {reason}"))
}

/// Writes the sources of the book.
fn write(root: &Path, book: &Path, pages: &[Page]) -> Result<(), String> {
    let _ = fs::remove_dir_all(book);
    let source = book.join("src");
    for page in pages {
        save(&source.join(&page.file), &stage::rewritten(page, pages))?;
    }
    save(&source.join("SUMMARY.md"), &stage::summary(pages))?;
    for folder in ["docs/scale", "docs/screenshots", "docs/reliability"] {
        copy_pictures(&root.join(folder), &source.join(folder))?;
    }
    save(&book.join("site.css"), STYLE)?;
    save(&book.join("book.toml"), SETTINGS)
}

/// What the site adds to the style of mdBook.
const STYLE: &str = include_str!("docs/site.css");

const SETTINGS: &str = "[book]\ntitle = \"Duplexer\"\nlanguage = \"en\"\n\n[build]\nbuild-dir = \"html\"\n\n\
    [output.html]\ndefault-theme = \"light\"\npreferred-dark-theme = \"navy\"\nno-section-label = true\n\
    additional-css = [\"site.css\"]\n\n\
    [output.html.playground]\nrunnable = false\n\n[output.html.fold]\nenable = true\nlevel = 0\n\n\
    [output.html.search]\nlimit-results = 20\n";

/// Copies the pictures of a folder, if there is one.
fn copy_pictures(from: &Path, to: &Path) -> Result<(), String> {
    let Ok(entries) = fs::read_dir(from) else { return Ok(()) };
    fs::create_dir_all(to).map_err(|error| format!("{}: {error}", to.display()))?;
    for entry in entries.flatten() {
        let path = entry.path();
        if path.extension().is_some_and(|extension| extension == "svg" || extension == "png") {
            fs::copy(&path, to.join(entry.file_name()))
                .map_err(|error| format!("{}: {error}", path.display()))?;
        }
    }
    Ok(())
}

/// Returns the list of pages for language models: one line each.
fn llms(pages: &[Page]) -> String {
    let mut text =
        "# Duplexer\n\n> A Rust SDK for the Model Context Protocol: servers and clients, all revisions.\n"
            .to_owned();
    let mut part = "";
    for page in pages.iter().filter(|page| !page.is_error()) {
        if page.part != part {
            part = &page.part;
            let _ = write!(text, "\n## {part}\n\n");
        }
        let address = Path::new(&page.file).with_extension("html");
        let _ = writeln!(text, "- [{}]({}): {}", page.title, address.display(), page.about);
    }
    text
}

fn save(path: &Path, text: &str) -> Result<(), String> {
    let unwritable = |error: std::io::Error| format!("{}: {error}", path.display());
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).map_err(unwritable)?;
    }
    fs::write(path, text).map_err(unwritable)
}

/// Returns mdBook: that of `PATH`, or one that is installed into the build folder.
fn mdbook() -> Result<PathBuf, String> {
    if process::is_installed("mdbook") {
        return Ok("mdbook".into());
    }
    process::tool("mdbook", MDBOOK)
}
