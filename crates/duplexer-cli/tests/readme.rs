//! Runs the README: its `sh` and `rust` blocks in their order, in an empty folder, and what they have built.
//!
//! Where the README says `../duplexer`, the blocks get this clone and the command under test. The build shares the
//! target directory and the lock file of the clone, so that it neither needs the network nor compiles dependencies anew.

#![allow(clippy::unwrap_used, reason = "helpers of tests fail like tests")]

use std::fmt::Write as _;
use std::fs;
use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::Value;
use tokio::time::Instant;

const DUPLEXER: &str = env!("CARGO_BIN_EXE_duplexer");
/// A workspace that a recipe must leave alone: `cargo new` inside it would add a member.
const WORKSPACE: &str = "[workspace]\nresolver = \"3\"\n";

fn clone() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// One fenced block, and the text before it.
struct Block<'a> {
    language: &'a str,
    before: &'a str,
    code: &'a str,
}

fn blocks(readme: &str) -> Vec<Block<'_>> {
    let parts: Vec<&str> = readme.split("```").collect();
    assert_eq!(parts.len() % 2, 1, "a block of the README is not closed");
    parts
        .windows(2)
        .step_by(2)
        .map(|pair| {
            let (language, code) = pair[1].split_once('\n').unwrap();
            Block { language, before: pair[0], code }
        })
        .collect()
}

/// Returns the path of a source file that the text before a block names last.
fn named_file(text: &str) -> Option<&str> {
    text.rsplit('`').find(|name| name.starts_with("src/"))
}

/// Returns one script for all blocks. A `rust` block is written to the file that the text names before or after it.
fn script(readme: &str) -> String {
    let blocks = blocks(readme);
    let mut script = String::from("set -eu\n");
    let mut unnamed = None;
    for block in &blocks {
        match block.language {
            "rust" => match named_file(block.before) {
                Some(file) => write_file(&mut script, file, block.code),
                None => unnamed = Some(block.code),
            },
            "sh" => {
                if let Some(file) = named_file(block.before) {
                    unnamed.take().into_iter().for_each(|code| write_file(&mut script, file, code));
                }
                script.push_str(block.code);
                script.push_str("share_the_build\n");
            }
            _ => {}
        }
    }
    assert!(unnamed.is_none(), "the README does not say into which file the first program belongs");
    script
}

fn write_file(script: &mut String, file: &str, code: &str) {
    writeln!(script, "mkdir -p \"$(dirname {file})\"\ncat > {file} <<'END_OF_PROGRAM'\n{code}END_OF_PROGRAM")
        .unwrap();
}

fn run(script: &str, folder: &Path, target: &Path) {
    let clone = clone();
    let prelude = format!(
        "share_the_build() {{\n  [ -e target ] || ln -s '{target}' target\n  [ -e Cargo.lock ] || cp '{clone}/Cargo.lock' .\n}}\n",
        target = target.display(),
        clone = clone.display(),
    );
    let output = Command::new("sh")
        .args(["-c", &(prelude + script)])
        .current_dir(folder)
        .env("CARGO_NET_OFFLINE", "true")
        // As the clone's own profile, so that dependencies are shared.
        .env("CARGO_PROFILE_DEV_DEBUG", "line-tables-only")
        .env_remove("CARGO_TARGET_DIR")
        .output()
        .unwrap();
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{script}\n{out}\n{err}");
    assert!(out.lines().any(|line| line.trim() == "5"), "the call of the README prints 5, not:\n{out}");
}

/// A process that ends with the test.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn list(arguments: &[&str]) -> Value {
    let output = Command::new(DUPLEXER).args(["list", "--json"]).args(arguments).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// Starts a program and waits until it listens.
fn listening(program: &Path, address: &str) -> Running {
    let mut running = Running(Command::new(program).stdin(Stdio::null()).spawn().unwrap());
    let deadline = Instant::now() + Duration::from_secs(30);
    while TcpStream::connect(address).is_err() {
        assert!(Instant::now() < deadline, "nothing listens on {address}");
        assert_eq!(running.0.try_wait().unwrap(), None, "the program has ended");
        std::thread::yield_now();
    }
    running
}

#[test]
fn the_blocks_of_the_readme_work_in_their_order() {
    let readme = fs::read_to_string(clone().join("README.md")).unwrap();
    assert!(readme.lines().count() <= 120, "the README has {} lines", readme.lines().count());
    let target = Path::new(DUPLEXER).parent().unwrap().parent().unwrap();
    let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
    let script = script(&readme)
        .replace("../duplexer/target/release/duplexer", DUPLEXER)
        .replace("../duplexer", clone().to_str().unwrap())
        .replace("127.0.0.1:8000", &address);

    let folder = Folder::new();
    let standing_in = folder.0.join("duplexer");
    fs::create_dir(&standing_in).unwrap();
    fs::write(standing_in.join("Cargo.toml"), WORKSPACE).unwrap();
    run(&(script + "cargo build --bins\n"), &standing_in, target);
    assert_eq!(fs::read_to_string(standing_in.join("Cargo.toml")).unwrap(), WORKSPACE);

    let project = folder.0.join("calculator");
    let hosts: Value = serde_json::from_slice(&fs::read(project.join(".mcp.json")).unwrap()).unwrap();
    let command = hosts["mcpServers"]["calculator"]["command"].as_str().unwrap();
    assert!(Path::new(command).is_absolute(), "a host starts {command} in a folder of its own");
    assert_eq!(list(&["--", command])["tools"][0]["name"], "add");

    let _web = listening(&target.join("debug/web"), &address);
    assert_eq!(list(&[&format!("http://{address}/mcp")])["tools"][0]["name"], "greet");

    let client = Command::new(target.join("debug/client")).current_dir(&project).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&client.stdout), "5\n", "{}", String::from_utf8_lossy(&client.stderr));
}

/// A folder outside every workspace, removed at the end of the test. A clone always uses the same one: builds in it
/// replace each other in the target directory.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Self {
        let clone = BuildHasherDefault::<DefaultHasher>::default().hash_one(clone());
        let folder = Self(std::env::temp_dir().join(format!("duplexer-readme-{clone:x}")));
        folder.remove();
        fs::create_dir(&folder.0).unwrap();
        folder
    }

    /// A folder that does not exist is as good as removed.
    fn remove(&self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        self.remove();
    }
}
