//! `new`, `dev`, `bundle`, `completions` and `man`.

use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;

use duplexer::client::prelude::*;
use duplexer::client::{Client, Negotiation, ServerNotification};
use duplexer::transport::child::{ChildCommand, Stderr};
use serde_json::{Value, json};
use tokio::sync::{Notify, mpsc};

use crate::hosts::Home;
use crate::support::{Demo, PROGRAM};

fn clone() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

/// Every kind is well-formed and formatted; the one on the network is built, and its tests pass. It has the features of the
/// project in the README, so both tests share a build.
#[test]
fn a_new_project_builds_and_its_tests_pass() {
    let home = Home::new("new");
    // The style of a project is that of rustfmt, and not that of the clone around the target folder.
    home.write("project/rustfmt.toml", "");
    for kind in ["stdio", "http", "auth"] {
        let name = format!("my-{kind}");
        let printed = home.run(&["new", &name, &format!("--{kind}")]).ok();
        assert!(
            printed.contains(&format!("{name} is in {name}")) && printed.contains("cargo test"),
            "{printed}"
        );
        let folder = home.0.join("project").join(&name);
        let manifest: toml::Table = fs::read_to_string(folder.join("Cargo.toml")).unwrap().parse().unwrap();
        let library = manifest["dependencies"]["duplexer"]["path"].as_str().unwrap();
        assert_eq!(
            fs::canonicalize(library).unwrap(),
            fs::canonicalize(clone().join("crates/duplexer")).unwrap()
        );
        let formatted = Command::new("rustfmt")
            .args(["--check", "--edition", "2024"])
            .args([folder.join("src/main.rs"), folder.join("src/tests.rs")])
            .output()
            .unwrap();
        assert!(formatted.status.success(), "{}", String::from_utf8_lossy(&formatted.stdout));
    }
    home.run(&["new", "my-http"]).failed(2, "my-http exists and is not empty");
    home.run(&["new", "2nd"]).failed(2, "cannot be the name of a package");
    home.run(&["new", "a", "--http", "--auth"]).code.filter(|code| *code == 2).expect("one kind at a time");
    home.run(&["new", "a", "--path", "/"]).failed(2, "is no clone of Duplexer");

    let folder = home.0.join("project/my-http");
    fs::copy(clone().join("Cargo.lock"), folder.join("Cargo.lock")).unwrap();
    let target = Path::new(PROGRAM).parent().unwrap().parent().unwrap();
    let output = Command::new("cargo")
        .args(["test", "--offline", "--target-dir"])
        .arg(target)
        .current_dir(&folder)
        .env("CARGO_PROFILE_DEV_DEBUG", "line-tables-only")
        .env_remove("CARGO_TARGET_DIR")
        .output()
        .unwrap();
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success() && out.contains("2 passed"), "{out}\n{err}");
}

/// `cargo install` puts the command outside of the clone that it is built from.
#[test]
fn an_installed_command_finds_its_clone() {
    // The folder of tests is within the clone, and this one is not.
    let elsewhere = std::env::temp_dir().join(format!("duplexer-installed-{}", std::process::id()));
    fs::create_dir_all(&elsewhere).unwrap();
    let installed = elsewhere.join("duplexer");
    // Not with `fs::copy`: a file that this process has open for writing cannot be started by another thread's child.
    let copied = Command::new("cp").args([Path::new(PROGRAM), &installed]).status().unwrap();
    assert!(copied.success());
    let made = Command::new(&installed).args(["new", "notes"]).current_dir(&elsewhere).output().unwrap();
    let manifest = fs::read_to_string(elsewhere.join("notes/Cargo.toml"));
    fs::remove_dir_all(elsewhere).unwrap();
    assert!(made.status.success(), "{made:?}");
    let manifest: toml::Table = manifest.unwrap().parse().unwrap();
    let library = manifest["dependencies"]["duplexer"].get("path").expect("a path").as_str().unwrap();
    assert_eq!(
        fs::canonicalize(library).unwrap(),
        fs::canonicalize(clone().join("crates/duplexer")).unwrap()
    );
}

/// The build copies a script, which is the server; a second one makes another server of it.
fn scripts(home: &Home) {
    let program = PROGRAM;
    home.write("project/src/server.sh", &format!("exec {program} demo --stdio\n"));
    home.write(
        "project/skills/greeting/SKILL.md",
        "---\nname: greeting\ndescription: Greets.\n---\nSay hello.\n",
    );
    home.write(
        "project/build.sh",
        "if grep -q broken src/server.sh; then echo cannot build; exit 7; fi\ncp src/server.sh built.sh\n",
    );
}

fn dev(home: &Home, more: &[&str]) -> Vec<String> {
    let project = home.0.join("project");
    let build = format!("cd '{}' && sh build.sh", project.display());
    let source = project.join("src");
    let words = ["dev", "--watch", source.to_str().unwrap(), "--build", &build];
    let server = format!("cd '{}' && . ./built.sh", project.display());
    let words = words.iter().chain(more).copied().chain(["--", "sh", "-c", &server]);
    words.map(str::to_owned).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_is_built_again_while_its_client_stays_connected() {
    let home = Home::new("dev");
    scripts(&home);
    let (lines, mut notes) = mpsc::channel(256);
    let changed = Arc::new(Notify::new());
    let (seen, sender) = (Arc::clone(&changed), lines);
    let command = ChildCommand::new(PROGRAM).args(dev(&home, &[])).stderr(Stderr::lines(move |line| {
        let _ = sender.try_send(line.to_owned());
    }));
    let client = Client::builder("test", "1").negotiation(Negotiation::Handshake);
    let client = client.on_notification(move |notification| {
        if matches!(notification, ServerNotification::ToolsListChanged) {
            seen.notify_one();
        }
    });
    let client = client.open(command).await.unwrap();
    let sum = client.call_tool("add", json!({ "a": 2, "b": 3 })).await.unwrap();
    assert!(sum.to_text().contains('5'));

    // A build that fails is shown, and the earlier server goes on.
    home.write("project/src/server.sh", "broken\n");
    let mut shown = Vec::new();
    while !shown.last().is_some_and(|line: &String| line.contains("the build failed")) {
        shown.push(notes.recv().await.unwrap());
    }
    assert!(shown.iter().any(|line| line.contains("cannot build")), "{shown:?}");
    assert!(shown.last().unwrap().contains("exit status: 7; the earlier server goes on"), "{shown:?}");
    assert!(client.call_tool("add", json!({ "a": 2, "b": 3 })).await.is_ok());

    // One that succeeds replaces the server: other resources, no tools, and a notification.
    home.write("project/src/server.sh", &format!("exec {PROGRAM} skills serve skills --stdio\n"));
    changed.notified().await;
    let resources = client.all_resources().await.unwrap();
    assert!(resources.iter().any(|resource| resource.uri.contains("greeting")), "{resources:?}");
    assert!(client.call_tool("add", json!({ "a": 2, "b": 3 })).await.is_err());
    client.close().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_was_never_built_is_an_error_until_it_is() {
    let home = Home::new("dev-http");
    scripts(&home);
    home.write("project/src/server.sh", "broken\n");
    let mut child = home
        .command(&[])
        .args(dev(&home, &["--listen", "0"]))
        .stderr(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stderr = std::io::BufReader::new(child.stderr.take().unwrap());
    let mut url = None;
    loop {
        let mut line = String::new();
        std::io::BufRead::read_line(&mut stderr, &mut line).unwrap();
        assert!(!line.is_empty(), "it has ended");
        url = url
            .or_else(|| line.split_whitespace().find(|word| word.starts_with("http://")).map(str::to_owned));
        if line.contains("the build failed") && url.is_some() {
            break;
        }
    }
    let url = url.unwrap();
    let url = url.trim_end_matches('.');
    let refused = Client::builder("test", "1").open(url).await.unwrap_err().to_string();
    home.write("project/src/server.sh", &format!("exec {PROGRAM} demo --stdio\n"));
    let client = loop {
        if let Ok(client) = Client::builder("test", "1").open(url).await {
            break client;
        }
        tokio::task::yield_now().await;
    };
    assert!(client.call_tool("add", json!({ "a": 2, "b": 3 })).await.is_ok(), "{refused}");
    client.close().await.unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
}

/// The command says so before a client connects, where no build can make the program.
#[test]
fn a_program_that_does_not_exist_is_not_developed() {
    let home = Home::new("dev-missing");
    home.run(&["dev", "--", "no-such-program"]).failed(2, "there is no program `no-such-program`");
    home.run(&["dev", "--listen", "0", "--", "./server"]).failed(2, "there is no program `./server`");
    let mut child = home
        .command(&["dev", "--listen", "0", "--build", "echo built", "--", "./server"])
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = std::io::BufRead::lines(std::io::BufReader::new(child.stderr.take().unwrap()));
    let named = lines.map_while(Result::ok).find(|line| line.contains("there is no program `./server`"));
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(named.is_some(), "the program is not named after the build");
}

#[cfg(unix)]
fn script(home: &Home, path: &str) {
    use std::os::unix::fs::PermissionsExt;
    let path = home.write(path, &format!("#!/bin/sh\nexec {PROGRAM} demo --stdio\n"));
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

/// Reads the entries of an archive through its directory: name, permissions and content.
fn unzipped(bytes: &[u8]) -> Vec<(String, u32, Vec<u8>)> {
    let short = |at: usize| usize::from(u16::from_le_bytes(bytes[at..at + 2].try_into().unwrap()));
    let long = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap());
    let end = bytes.len() - 22;
    assert_eq!(&bytes[end..end + 4], b"PK\x05\x06");
    let mut at = long(end + 16) as usize;
    let mut entries = Vec::new();
    for _ in 0..short(end + 10) {
        assert_eq!(&bytes[at..at + 4], b"PK\x01\x02");
        let (crc, length, name_length) = (long(at + 16), long(at + 20) as usize, short(at + 28));
        let name = String::from_utf8(bytes[at + 46..at + 46 + name_length].to_vec()).unwrap();
        let local = long(at + 42) as usize;
        assert_eq!(&bytes[local..local + 4], b"PK\x03\x04");
        // Both headers have the same fields.
        assert_eq!(bytes[local + 4..local + 30], bytes[at + 6..at + 32]);
        let start = local + 30 + name_length;
        let content = miniz_oxide::inflate::decompress_to_vec(&bytes[start..start + length]).unwrap();
        assert_eq!(crc32fast::hash(&content), crc);
        entries.push((name, long(at + 38) >> 16, content));
        at += 46 + name_length;
    }
    entries
}

/// AUX-08: name, version and tools are those that the server says.
#[cfg(unix)]
#[test]
fn a_bundle_holds_the_program_and_what_it_says() {
    let home = Home::new("bundle");
    script(&home, "project/bin/server");
    home.write("project/data/deep/a.txt", "hello");
    home.write("project/icon.png", "\u{89}PNG");
    fs::write(home.0.join("project/icon.png"), b"\x89PNG\r\n\x1a\nrest").unwrap();
    let words = [
        "bundle",
        "--author",
        "Ada",
        "--file",
        "data",
        "--icon",
        "icon.png",
        "--env",
        "A=b",
        "--bundle-version",
        "1.2.3",
    ];
    let printed = home.run(&[&words[..], &["--", "bin/server", "data/deep/a.txt"]].concat()).ok();
    let name = printed.split(':').next().unwrap();
    let bytes = fs::read(home.0.join("project").join(name)).unwrap();
    let entries = unzipped(&bytes);
    let names: Vec<_> = entries.iter().map(|(name, mode, _)| (name.as_str(), *mode)).collect();
    assert_eq!(
        names,
        [
            ("manifest.json", 0o100_644),
            ("server/server", 0o100_755),
            ("server/data/deep/a.txt", 0o100_644),
            ("icon.png", 0o100_644)
        ]
    );
    assert_eq!(entries[2].2, b"hello");
    let manifest: Value = serde_json::from_slice(&entries[0].2).unwrap();
    assert_eq!(manifest["manifest_version"], "0.3");
    assert_eq!((&manifest["version"], &manifest["author"]["name"]), (&json!("1.2.3"), &json!("Ada")));
    assert_eq!(manifest["server"]["type"], "binary");
    assert_eq!(manifest["server"]["entry_point"], "server/server");
    let config = &manifest["server"]["mcp_config"];
    assert_eq!(config["command"], "${__dirname}/server/server");
    assert_eq!(config["args"], json!(["${__dirname}/server/data/deep/a.txt"]));
    assert_eq!(config["env"], json!({ "A": "b" }));
    assert!(manifest["tools"].as_array().unwrap().iter().any(|tool| tool["name"] == "add"), "{manifest}");
    assert!(!manifest["description"].as_str().unwrap().is_empty());

    home.run(&["bundle", "--author", "Ada", "--", "bin/server"]).failed(2, "exists; --force replaces it");
    for outside in ["../x", "/etc/hostname", "data/../../x"] {
        home.run(&["bundle", "--author", "Ada", "--file", outside, "--", "bin/server"])
            .failed(2, "is not within the current directory");
    }
    std::os::unix::fs::symlink("/etc/hostname", home.0.join("project/data/link")).unwrap();
    home.run(&["bundle", "--author", "Ada", "--file", "data", "--", "bin/server"]).failed(2, "is a link");
    home.run(&["bundle", "--author", "Ada", "--", "true"]).failed(3, "");
}

/// Returns what a shell offers for a line.
fn offered(line: &str) -> Option<Vec<String>> {
    let script = format!(
        "source <('{PROGRAM}' completions bash)\nCOMP_LINE=$1\nCOMP_POINT=${{#1}}\nCOMP_WORDS=('{PROGRAM}')\n_duplexer\n\
         printf '%s\\n' \"${{COMPREPLY[@]}}\"\n"
    );
    let output = Command::new("bash").args(["-c", &script, "bash", line]).output();
    let output = match output {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            let _ = writeln!(std::io::stderr(), "SKIPPED: bash is not installed");
            return None;
        }
        output => output.unwrap(),
    };
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    Some(text.lines().map(str::to_owned).collect())
}

#[test]
fn a_shell_completes_verbs_tools_and_arguments() {
    let demo = Demo::start();
    let check = |line: &str, expected: &[&str]| {
        let Some(offered) = offered(line) else { return };
        for word in expected {
            assert!(offered.iter().any(|one| one == word), "{line}: {word} is not in {offered:?}");
        }
    };
    check("duplexer li", &["list", "listen"]);
    check("duplexer call --er", &["--era"]);
    check(&format!("duplexer call {} ad", demo.url), &["add"]);
    check(&format!("duplexer call {} add ", demo.url), &["a:=", "b:="]);
    check(&format!("duplexer call {} add a:=1 ", demo.url), &["b:="]);
    // Bash has broken the word at the colon.
    check(&format!("duplexer read {} demo:", demo.url), &["//clock"]);
    check(&format!("duplexer prompt {} ", demo.url), &["greet"]);
    check(&format!("duplexer bench {} ad", demo.url), &["add"]);
    // Behind the sign of an argument nothing is offered, not even a space.
    for line in
        [format!("duplexer call {} add a:=", demo.url), "duplexer call http://127.0.0.1:1/mcp ".to_owned()]
    {
        if let Some(nothing) = offered(&line) {
            assert_eq!(nothing, [""], "{line}");
        }
    }
}

/// Runs a script of a shell that finds the command by its name. `None` if there is no such shell.
fn in_shell(shell: &[&str], script: &str) -> Option<String> {
    let folder = Path::new(PROGRAM).parent().unwrap();
    let path = format!("{}:{}", folder.display(), std::env::var("PATH").unwrap());
    let output = Command::new(shell[0]).args(&shell[1..]).arg(script).env("PATH", path).output();
    match output {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            let _ = writeln!(std::io::stderr(), "SKIPPED: {} is not installed", shell[0]);
            None
        }
        output => {
            let output = output.unwrap();
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
            Some(String::from_utf8(output.stdout).unwrap())
        }
    }
}

/// Fish completes a line by itself; a file is offered only where nothing else is.
#[test]
fn fish_completes_tools_and_arguments() {
    let demo = Demo::start();
    let check = |line: &str, expected: &str| {
        let script = format!("duplexer completions fish | source; cd /; complete -C '{line}'");
        let Some(offered) = in_shell(&["fish", "--no-config", "-c"], &script) else { return };
        let words: Vec<_> = offered.lines().map(|line| line.split('\t').next().unwrap()).collect();
        assert_eq!(words.join(" "), expected, "{line}");
    };
    check("duplexer lis", "list listen");
    check("duplexer completions ", "bash fish powershell zsh");
    check(&format!("duplexer call {} ad", demo.url), "add");
    check(&format!("duplexer call {} add a:=1 ", demo.url), "b:=");
    check("duplexer install a -- /us", "/usr/");
}

/// The function of zsh is called with what its completion system sets; its words are printed instead of added.
#[test]
fn zsh_completes_tools_and_arguments() {
    let demo = Demo::start();
    let check = |words: &str, part: &str, expected: &str| {
        let script = format!(
            "compdef() {{ }}; compadd() {{ local name=${{@[-1]}}; print -r -- ${{(P)name}} }}; _files() {{ print files }}\n\
             source <(duplexer completions zsh)\nwords=({words} {part}rest); CURRENT=$#words; PREFIX={part}\n_duplexer"
        );
        let Some(offered) = in_shell(&["zsh", "-f", "-c"], &script) else { return };
        assert_eq!(offered.split_whitespace().collect::<Vec<_>>().join(" "), expected, "{words} {part}");
    };
    check("duplexer", "lis", "list listen");
    check(&format!("duplexer call {}", demo.url), "ad", "add");
    check(&format!("duplexer call '{}' add 'a:=1'", demo.url), "''", "b:=");
    check("duplexer install a -- ", "/us", "files");
}

/// A server that accepts connections and says nothing does not hold up a shell.
#[test]
fn a_silent_server_completes_nothing_in_bounded_time() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let line = format!("duplexer call http://{}/mcp ", listener.local_addr().unwrap());
    let started = tokio::time::Instant::now();
    if let Some(nothing) = offered(&line) {
        assert_eq!(nothing, [""]);
        // 1.5 s, and the start of two processes on a busy machine.
        assert!(started.elapsed() < std::time::Duration::from_secs(15), "{:?}", started.elapsed());
    }
}

#[test]
fn every_shell_has_a_script_and_every_verb_a_page() {
    let home = Home::new("man");
    for (shell, line) in [
        ("zsh", "#compdef"),
        ("fish", "complete -c"),
        ("powershell", "Register-ArgumentCompleter"),
        ("bash", "complete -o"),
    ] {
        assert!(home.run(&["completions", shell]).ok().contains(line), "{shell}");
    }
    let page = home.run(&["man"]).ok();
    assert!(page.contains(".TH duplexer 1") && page.contains("install"), "{page}");
    home.run(&["man", "--output", "pages"]).ok();
    let names: Vec<_> =
        fs::read_dir(home.0.join("project/pages")).unwrap().map(|one| one.unwrap().file_name()).collect();
    for name in ["duplexer.1", "duplexer-call.1", "duplexer-skills-fetch.1"] {
        assert!(names.iter().any(|one| one == name), "{name} is not in {names:?}");
    }
    assert!(!names.iter().any(|one| one.to_string_lossy().contains("complete-line")), "{names:?}");
    let page = home.read("project/pages/duplexer-call.1");
    let title = format!(".TH duplexer-call 1 \" \" \"duplexer {}\" Duplexer\n", env!("CARGO_PKG_VERSION"));
    assert!(page.contains(&title), "{page}");
}
