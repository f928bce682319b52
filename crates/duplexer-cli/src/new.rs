//! `duplexer new`: a project that builds and whose tests pass.

use std::env;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::arguments::NewArguments;
use crate::failure::Failure;
use crate::hosts::quoted;
use crate::terminal::print;
use crate::text::{Style, Text, lines};

const STDIO: &str = include_str!("../templates/stdio.rs.txt");
const HTTP: &str = include_str!("../templates/http.rs.txt");
const AUTH: &str = include_str!("../templates/auth.rs.txt");
const TESTS: &str = include_str!("../templates/tests.rs.txt");

/// Words that cargo does not accept as the name of a package, because a crate cannot have them.
const RESERVED: [&str; 52] = [
    "abstract", "as", "async", "await", "become", "box", "break", "const", "continue", "crate", "do", "dyn",
    "else", "enum", "extern", "false", "final", "fn", "for", "gen", "if", "impl", "in", "let", "loop",
    "macro", "match", "mod", "move", "mut", "override", "priv", "pub", "ref", "return", "self", "static",
    "struct", "super", "test", "trait", "true", "try", "type", "typeof", "unsafe", "unsized", "use",
    "virtual", "where", "while", "yield",
];

/// What a project serves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Stdio,
    Http,
    Auth,
}

/// Writes the project into a new directory.
pub(crate) fn create(arguments: &NewArguments) -> Result<(), Failure> {
    let kind = match (arguments.http, arguments.auth) {
        (_, true) => Kind::Auth,
        (true, _) => Kind::Http,
        _ => Kind::Stdio,
    };
    let directory = &arguments.directory;
    let name = package_name(directory)?;
    let dependency = dependency(arguments.path.as_deref())?;
    let is_nested = std::path::absolute(directory)
        .is_ok_and(|path| path.ancestors().skip(1).any(|folder| is_workspace(&folder.join("Cargo.toml"))));
    let files = [
        ("Cargo.toml", manifest(kind, &name, &dependency, is_nested)),
        (".gitignore", "/target\n".to_owned()),
        ("README.md", readme(kind, &name)),
        ("src/main.rs", main(kind).to_owned()),
        ("src/tests.rs", TESTS.to_owned()),
    ];
    write(directory, &files)?;
    print(&next_steps(kind, &name, directory));
    Ok(())
}

/// Returns the name of the package, by the rules of cargo.
fn package_name(directory: &Path) -> Result<String, Failure> {
    let name = directory.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let is_first = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    let is_name = name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_'));
    if !is_first || !is_name || name.len() > 64 || RESERVED.contains(&name) {
        let name = name.escape_debug();
        return Err(Failure::usage(format!(
            "`{name}` cannot be the name of a package: it has letters, digits, - and _, does not begin with a digit, and \
             is no word of Rust"
        )));
    }
    Ok(name.to_owned())
}

fn main(kind: Kind) -> &'static str {
    match kind {
        Kind::Stdio => STDIO,
        Kind::Http => HTTP,
        Kind::Auth => AUTH,
    }
}

/// Returns where the crate is: in the clone that was given, in the one that has this command or that it was built from, or
/// at the registry.
fn dependency(given: Option<&Path>) -> Result<String, Failure> {
    let library = |clone: &Path| {
        let library = clone.join("crates").join("duplexer");
        library.join("Cargo.toml").is_file().then_some(library)
    };
    // `cargo install`, and a target folder elsewhere, put the command outside of its clone.
    let source = || Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().find_map(library);
    let built = || env::current_exe().ok()?.ancestors().find_map(library).or_else(source);
    let found = match given {
        Some(clone) => {
            let absolute = fs::canonicalize(clone).ok().and_then(|clone| library(&clone));
            let wrong = || Failure::usage(format!("{} is no clone of Duplexer", clone.display()));
            Some(absolute.ok_or_else(wrong)?)
        }
        None => built(),
    };
    match found {
        None => Ok(format!("version = \"{}\"", env!("CARGO_PKG_VERSION"))),
        Some(path) => match path.to_str() {
            Some(path) => Ok(format!("path = {}", quoted(path))),
            None => Err(Failure::usage(format!("{} is not UTF-8, as a manifest is", path.display()))),
        },
    }
}

fn is_workspace(manifest: &Path) -> bool {
    let table = fs::read_to_string(manifest).ok().and_then(|text| text.parse::<toml::Table>().ok());
    table.is_some_and(|table| table.contains_key("workspace"))
}

fn manifest(kind: Kind, name: &str, dependency: &str, is_nested: bool) -> String {
    let features = match kind {
        Kind::Stdio => "",
        Kind::Http => ", features = [\"http\"]",
        Kind::Auth => ", features = [\"auth\", \"http\"]",
    };
    let tokio = "tokio = { version = \"1\", features = [\"macros\", \"rt-multi-thread\"] }\n";
    let (uses, tests) = if kind == Kind::Stdio { ("", tokio) } else { (tokio, "") };
    let workspace = if is_nested {
        "\n# A project of its own, although it is below another one.\n[workspace]\n"
    } else {
        ""
    };
    format!(
        "[package]\nname = \"{name}\"\nversion = \"0.1.0\"\nedition = \"2024\"\n\n\
         [dependencies]\nduplexer = {{ {dependency}{features} }}\n{uses}\n\
         [dev-dependencies]\nduplexer = {{ {dependency}, features = [\"client\"] }}\nserde_json = \"1\"\n{tests}{workspace}"
    )
}

fn readme(kind: Kind, name: &str) -> String {
    let (about, tries) = match kind {
        Kind::Stdio => (
            "An MCP server that hosts start.",
            format!(
                "duplexer call add a:=2 b:=3 -- target/debug/{name}\n\
                 duplexer dev -- cargo run    # builds and starts it again with every change\n\
                 duplexer install {name} -- target/debug/{name}    # adds it to the hosts on this machine\n"
            ),
        ),
        Kind::Http => (
            "An MCP server at `http://127.0.0.1:8000/mcp`.",
            "cargo run\nduplexer call http://127.0.0.1:8000/mcp add a:=2 b:=3\n".to_owned(),
        ),
        Kind::Auth => (
            "An MCP server at `http://127.0.0.1:8000/mcp` that requires a login.",
            "cargo run\nduplexer login http://127.0.0.1:8000/mcp\nduplexer call http://127.0.0.1:8000/mcp whoami\n".to_owned(),
        ),
    };
    format!("# {name}\n\n{about}\n\n```sh\ncargo test\ncargo build\n{tries}```\n")
}

/// Writes all files into a directory that is new or empty.
fn write(directory: &Path, files: &[(&str, String)]) -> Result<(), Failure> {
    let fail = |path: &Path, error: &io::Error| {
        Failure::usage(format!("{} cannot be written: {error}", path.display()))
    };
    match fs::read_dir(directory).map(|mut entries| entries.next().is_some()) {
        Ok(true) => {
            return Err(Failure::usage(format!("{} exists and is not empty", directory.display())));
        }
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(fail(directory, &error)),
        _ => {}
    }
    fs::create_dir_all(directory.join("src")).map_err(|error| fail(directory, &error))?;
    for (name, text) in files {
        let path: PathBuf = directory.join(name);
        fs::write(&path, text).map_err(|error| fail(&path, &error))?;
    }
    Ok(())
}

fn next_steps(kind: Kind, name: &str, directory: &Path) -> Text {
    let command = |line: String| Text::new().then(Style::Name, format!("  {line}"));
    let call = match kind {
        Kind::Stdio => format!("duplexer call add a:=2 b:=3 -- target/debug/{name}"),
        Kind::Http => "duplexer call http://127.0.0.1:8000/mcp add a:=2 b:=3".to_owned(),
        Kind::Auth => "duplexer call http://127.0.0.1:8000/mcp whoami".to_owned(),
    };
    let run = if kind == Kind::Stdio { "cargo build" } else { "cargo run" };
    lines([
        Text::plain(format!("{name} is in {}. Next:", directory.display())),
        command(format!("cd {}", directory.display())),
        command("cargo test".to_owned()),
        command(run.to_owned()),
        command(call),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_package_has_a_name_that_cargo_accepts() {
        let check = |path: &str| package_name(Path::new(path)).ok();
        assert_eq!(check("notes").as_deref(), Some("notes"));
        assert_eq!(check("a/b/my-notes_2").as_deref(), Some("my-notes_2"));
        for wrong in ["", "..", "/", "2notes", "no tes", "n\"o", "a\nb", "async", "é", &"x".repeat(65)] {
            assert_eq!(check(wrong), None, "{wrong}");
        }
    }

    /// Every manifest can be read, and has what its program uses.
    #[test]
    fn each_kind_has_its_manifest() {
        for (kind, features) in [(Kind::Stdio, 0), (Kind::Http, 1), (Kind::Auth, 2)] {
            for is_nested in [false, true] {
                let text = manifest(kind, "notes", "version = \"1\"", is_nested);
                let table: toml::Table = text.parse().unwrap();
                let library = table["dependencies"]["duplexer"].as_table().unwrap();
                assert_eq!(
                    library.get("features").map_or(0, |list| list.as_array().unwrap().len()),
                    features
                );
                let tests = table["dev-dependencies"]["duplexer"]["features"].as_array().unwrap();
                assert_eq!(tests[..], ["client".into()]);
                assert_eq!(table.contains_key("workspace"), is_nested);
                let tokio = if kind == Kind::Stdio { "dev-dependencies" } else { "dependencies" };
                assert!(table[tokio]["tokio"].get("features").is_some(), "{text}");
            }
        }
    }
}
