//! Edits of realistic files of every host, in every spelling, and of files made up at random.

use std::fs;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};

use proptest::prelude::*;

use super::data::Data;
use super::format::Format;
use super::json::Dialect;
use super::places::{Environment, Platform};
use super::*;

const FILES: [(Host, &str); 9] = [
    (Host::ClaudeDesktop, include_str!("../../tests/fixtures/hosts/claude-desktop.json")),
    (Host::ClaudeCode, include_str!("../../tests/fixtures/hosts/claude-code.json")),
    (Host::Cursor, include_str!("../../tests/fixtures/hosts/cursor.json")),
    (Host::VsCode, include_str!("../../tests/fixtures/hosts/vscode.json")),
    (Host::Codex, include_str!("../../tests/fixtures/hosts/codex.toml")),
    (Host::Gemini, include_str!("../../tests/fixtures/hosts/gemini.json")),
    (Host::Goose, include_str!("../../tests/fixtures/hosts/goose.yaml")),
    (Host::Zed, include_str!("../../tests/fixtures/hosts/zed.json")),
    (Host::Duplexer, include_str!("../../tests/fixtures/hosts/duplexer.json")),
];

/// A file of its own for each use.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Self {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let folder = std::env::temp_dir().join(format!("duplexer-{}-hosts-{number}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        Self(folder)
    }

    fn file(&self) -> PathBuf {
        self.0.join("config")
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn program() -> ConfiguredServer {
    ConfiguredServer::Program {
        command: "/opt/my tools/calc\"ulator".to_owned(),
        args: vec!["--stdio".to_owned(), "a b\\c\n\u{7f}é: # {}".to_owned()],
        env: vec![("RUST_LOG".to_owned(), "info".to_owned()), ("EMPTY".to_owned(), String::new())],
    }
}

fn remote() -> ConfiguredServer {
    let headers = vec![("Authorization".to_owned(), "Bearer ${TOKEN}".to_owned())];
    ConfiguredServer::Url { url: "https://mcp.example.com/mcp?a=1#b".to_owned(), headers }
}

/// Returns the spellings of a text that a file can have.
fn spellings(host: Host, text: &str) -> Vec<String> {
    let crlf = text.replace('\n', "\r\n");
    let unended = text.trim_end().to_owned();
    let mut all = vec![text.to_owned(), format!("\u{feff}{text}"), format!("\u{feff}{crlf}"), crlf, unended];
    all.push(format!("{text}\n\n"));
    if host.format() != Format::Yaml {
        all.push(text.replace("  ", "\t"));
    }
    all
}

/// Checks that each line of the old text is in the new one, in order. A line can have got a comma.
fn keeps_lines(old: &str, new: &str) -> bool {
    let mut lines = new.split('\n').map(|line| line.trim_end_matches('\r'));
    old.trim_end()
        .split('\n')
        .map(|line| line.trim_end_matches('\r'))
        .all(|line| lines.any(|other| other == line || without_new_comma(other, line)))
}

fn without_new_comma(new: &str, old: &str) -> bool {
    let at = new.bytes().zip(old.bytes()).take_while(|(new, old)| new == old).count();
    new.len() == old.len() + 1 && new.as_bytes().get(at) == Some(&b',') && new.get(at + 1..) == old.get(at..)
}

fn entries(host: Host, text: &str) -> Vec<(String, Data)> {
    let data = host.format().parse(text).unwrap();
    data.member(&[host.container()]).map_or_else(Vec::new, |servers| servers.members().to_vec())
}

#[test]
fn every_host_keeps_everything_but_the_entry() {
    for (host, text) in FILES {
        for text in spellings(host, text) {
            for server in [program(), remote()] {
                let entry = server.entry(host, "calculator", "/opt/duplexer");
                let new = host.format().insert(&text, host.container(), ("calculator", &entry)).unwrap();
                // These two have an object on one line.
                if !matches!(host, Host::Gemini | Host::Duplexer) {
                    assert!(keeps_lines(&text, &new), "{host:?}\n{text}\n{new}");
                }
                let (before, after) = (entries(host, &text), entries(host, &new));
                assert_eq!(after.len(), before.len() + 1, "{host:?}\n{new}");
                assert!(
                    after.iter().any(|(name, found)| name == "calculator" && found.same(&entry)),
                    "{new}"
                );
                assert_eq!(text.contains("\r\n"), new.contains("\r\n"));
                assert!(!text.contains("\r\n") || !new.replace("\r\n", "").contains('\n'), "{host:?}\n{new}");
                let again = host.format().insert(&new, host.container(), ("calculator", &entry)).unwrap();
                assert_eq!(entries(host, &again).len(), after.len());
                let removed = host.format().remove(&new, host.container(), "calculator").unwrap().unwrap();
                assert_eq!(entries(host, &removed), before, "{host:?}");
                // Without a container, an empty one stays.
                let had_container = !matches!(host, Host::ClaudeCode | Host::Zed);
                if had_container && text.ends_with('\n') && !text.ends_with("\n\n") {
                    assert_eq!(removed, text, "{host:?}");
                }
            }
        }
    }
}

#[test]
fn installed_and_uninstalled_a_file_is_what_it_was() {
    let empty = ["", "\n", " \r\n", "\u{feff}"];
    for (host, text) in FILES {
        let texts = spellings(host, text).into_iter().chain(empty.map(str::to_owned)).map(Some);
        for text in texts.chain([None]) {
            restores(host, text.as_deref());
        }
    }
}

/// Installs into a file and uninstalls again.
#[track_caller]
fn restores(host: Host, text: Option<&str>) {
    let folder = Folder::new();
    let path = folder.file();
    if let Some(text) = text {
        fs::write(&path, text).unwrap();
    }
    let entry = program().entry(host, "calculator", "/opt/duplexer");
    let file = ConfigurationFile::read(host, &path).unwrap();
    file.replace(Some(&file.with("calculator", &entry).unwrap())).unwrap();
    let file = ConfigurationFile::read(host, &path).unwrap();
    assert!(file.entries().unwrap().iter().any(|(name, found)| name == "calculator" && found.same(&entry)));
    let earlier = file.without("calculator").unwrap().expect("it is there");
    file.replace(earlier.text()).unwrap();
    assert_eq!(fs::read_to_string(&path).ok().as_deref(), text, "{host:?}");
}

#[test]
fn a_file_with_a_fault_is_refused_with_its_line() {
    let check = |host: Host, text: &str, line: usize, reason: &str| {
        let entry = program().entry(host, "calculator", "duplexer");
        let fault = host.format().insert(text, host.container(), ("calculator", &entry)).unwrap_err();
        assert_eq!(fault.line, line, "{text}: {fault:?}");
        assert!(fault.reason.contains(reason), "{text}: {fault:?}");
    };
    check(Host::ClaudeDesktop, "{\n  // no\n}", 2, "comment");
    check(Host::ClaudeDesktop, "{\n  \"a\": 1,\n}", 3, "comma");
    check(Host::Cursor, "{\n  \"a\": [1,],\n}", 2, "comma");
    check(Host::ClaudeCode, "[]", 1, "not an object");
    check(Host::ClaudeCode, "{\n\"mcpServers\": []}", 2, "`mcpServers` is not an object");
    check(Host::ClaudeCode, "{\n\"mcpServers\": {},\n\"mcpServers\": {}}", 3, "occurs twice");
    check(Host::VsCode, "{\n\n\"a\" 1}", 3, "`:`");
    check(Host::VsCode, "{\n\"a\": tru\n}", 2, "value");
    check(Host::VsCode, "{\n\"a\": \"b\n\"}", 2, "no end");
    check(Host::VsCode, "{\"a\": 1 \"b\": 2}", 1, "`,` or `}`");
    check(Host::VsCode, "{} {}", 1, "after the end");
    check(Host::VsCode, "{\n/* a", 2, "comment has no end");
    check(Host::VsCode, &"[".repeat(100_000), 1, "nested too deeply");
    check(Host::VsCode, &"{\"a\":".repeat(100_000), 1, "nested too deeply");
    check(Host::Codex, "a = 1\n[b\nc = 2", 2, "");
    check(Host::Codex, "mcp_servers = 5\n", 1, "");
    check(Host::Codex, "mcp_servers = { a = { command = \"b\" } }\n", 1, "manually");
    check(Host::Goose, "a: 1\nextensions: [a]\n", 2, "not a mapping");
    check(Host::Goose, "a: 1\n b: [\n", 2, "");
    check(Host::Goose, "a: 1\n---\nb: 2\n", 2, "several documents");
    check(Host::Goose, "- a\n", 1, "not an object");
}

#[test]
fn unusual_yaml_is_edited_too() {
    let entry = Data::Map(vec![("cmd".to_owned(), Data::text("calc"))]);
    let check = |text: &str, expected: &str| {
        let new = Format::Yaml.insert(text, "extensions", ("calc", &entry)).unwrap();
        assert_eq!(new, expected);
    };
    check("extensions:\n", "extensions:\n  calc:\n    cmd: calc\n");
    check("extensions: # none\na: 1\n", "extensions: # none\n  calc:\n    cmd: calc\na: 1\n");
    check("extensions: {}\na: 1", "extensions:\n  calc:\n    cmd: calc\na: 1");
    check("extensions: {a: {cmd: b}}\n", "extensions: {a: {cmd: b}, \"calc\": { \"cmd\": \"calc\" }}\n");
    check("---\na: |\n  text\n", "---\na: |\n  text\nextensions:\n  calc:\n    cmd: calc\n");
    check(
        "extensions:\n    a:\n        cmd: b",
        "extensions:\n    a:\n        cmd: b\n    calc:\n        cmd: calc",
    );
}

#[test]
fn an_entry_says_where_its_server_is() {
    for host in Host::ALL {
        let shown = described(&program().entry(host, "calculator", "/opt/duplexer"));
        assert!(shown.starts_with("'/opt/my tools/calc\"ulator' --stdio 'a b"), "{shown}");
        assert!(!shown.contains("info"), "variables can be secrets: {shown}");
        let shown = described(&remote().entry(host, "calculator", "/opt/duplexer"));
        match host {
            // It starts programs only.
            Host::ClaudeDesktop => {
                assert_eq!(shown, "/opt/duplexer proxy https://mcp.example.com/mcp?… --header …");
            }
            _ => assert_eq!(shown, "https://mcp.example.com/mcp?…"),
        }
    }
}

#[test]
fn files_are_where_each_platform_has_them() {
    let environment = |platform| Environment {
        platform,
        home: Some("/home/ada".into()),
        config: Some("/home/ada/.config".into()),
        app_data: Some("/data".into()),
        codex: None,
    };
    let check = |platform, expected: [&str; 9]| {
        let found = Host::ALL.map(|host| environment(platform).file(host, Scope::User).unwrap());
        assert_eq!(found.map(|path| path.to_str().unwrap().to_owned()), expected);
    };
    check(
        Platform::Linux,
        [
            "/home/ada/.config/Claude/claude_desktop_config.json",
            "/home/ada/.claude.json",
            "/home/ada/.cursor/mcp.json",
            "/home/ada/.config/Code/User/mcp.json",
            "/home/ada/.codex/config.toml",
            "/home/ada/.gemini/settings.json",
            "/home/ada/.config/goose/config.yaml",
            "/home/ada/.config/zed/settings.json",
            "/home/ada/.config/duplexer/mcp.json",
        ],
    );
    let mac = environment(Platform::Mac);
    let desktop = mac.file(Host::ClaudeDesktop, Scope::User).unwrap();
    assert_eq!(
        desktop.to_str(),
        Some("/home/ada/Library/Application Support/Claude/claude_desktop_config.json")
    );
    assert_eq!(
        mac.file(Host::Zed, Scope::User).unwrap().to_str(),
        Some("/home/ada/.config/zed/settings.json")
    );
    let windows = environment(Platform::Windows);
    let goose = windows.file(Host::Goose, Scope::User).unwrap();
    assert_eq!(goose.to_str(), Some("/data/Block/goose/config/config.yaml"));
    assert_eq!(windows.file(Host::VsCode, Scope::User).unwrap().to_str(), Some("/data/Code/User/mcp.json"));
    assert_eq!(windows.file(Host::Goose, Scope::Project), None);
}

/// White space and comments between two parts of JSON.
fn gap() -> impl Strategy<Value = String> {
    let part = prop_oneof![
        Just(String::new()),
        Just(" ".to_owned()),
        Just("\n".to_owned()),
        Just("\r\n\t".to_owned()),
        Just("\n    ".to_owned()),
        Just(" // }{\",\n".to_owned()),
        Just("/* \", */".to_owned()),
        Just("\n /* a\n b */ ".to_owned()),
    ];
    prop::collection::vec(part, 0..3).prop_map(|parts| parts.concat())
}

fn json_text() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        Just("1".to_owned()),
        Just("-1.5e3".to_owned()),
        Just("null".to_owned()),
        Just("\"a\\\"{},//\"".to_owned()),
        Just("{}".to_owned()),
        Just("[]".to_owned()),
    ];
    leaf.prop_recursive(3, 24, 4, |inner| {
        prop_oneof![list(inner.clone(), "[", "]", false), list(inner, "{", "}", true)]
    })
}

/// Writes values between brackets, with keys that differ.
fn list(
    inner: impl Strategy<Value = String>,
    open: &'static str,
    close: &'static str,
    has_keys: bool,
) -> impl Strategy<Value = String> {
    let item = (gap(), inner, gap());
    (prop::collection::vec(item, 0..4), any::<bool>(), gap()).prop_map(move |(items, has_comma, last)| {
        let count = items.len();
        let mut text = open.to_owned();
        for (index, (before, value, after)) in items.into_iter().enumerate() {
            let key = if has_keys { format!("\"key{index}\":{before}") } else { String::new() };
            let comma = if index + 1 < count || has_comma { "," } else { "" };
            text.extend([&*before, &*key, &*value, &*after, comma]);
        }
        format!("{text}{last}{close}")
    })
}

/// A file of a host, with its container among other members.
fn json_file() -> impl Strategy<Value = String> {
    let servers = prop_oneof![Just(None), list(json_text(), "{", "}", true).prop_map(Some),];
    (gap(), json_text(), gap(), servers, gap(), any::<bool>(), gap()).prop_map(
        |(start, other, middle, servers, before, has_comma, end)| {
            let comma = if has_comma { "," } else { "" };
            let servers = servers.map(|servers| format!(",{before}\"servers\"{middle}:{middle}{servers}"));
            format!("{start}{{{middle}\"a\":{other}{}{comma}{before}}}{end}", servers.unwrap_or_default())
        },
    )
}

fn toml_file() -> impl Strategy<Value = String> {
    let part = prop_oneof![
        Just("# a [b]\n"),
        Just("\n"),
        Just("[tUNIQUE]\na = \"\"\"\n[mcp_servers.calculator]\n\"\"\"\n"),
        Just("[mcp_servers.sUNIQUE]\ncommand = 'a' # b\nargs = [\n  \"]\", # ]\n]\n"),
        Just(
            "[mcp_servers.uUNIQUE]\r\nurl = \"a\\\"\"\r\n  [mcp_servers.uUNIQUE.env]\r\n  b = '''x'y'''\r\n"
        ),
        Just("[[lUNIQUE]]\nd = 2026-01-02\n\n\n"),
        Just("[tableUNIQUE.\"calculator\"] # mcp_servers\nx = { a = 1, b = [2] }"),
    ];
    prop::collection::vec(part, 0..6).prop_map(|parts| {
        let parts = parts.iter().enumerate();
        let parts = parts.map(|(index, part)| part.replace("UNIQUE", &index.to_string()));
        // Each part begins a line.
        parts.fold(String::new(), |text, part| {
            let gap = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
            format!("{text}{gap}{part}")
        })
    })
}

fn yaml_file() -> impl Strategy<Value = String> {
    let part = prop_oneof![
        Just("# a: b\n"),
        Just("\n"),
        Just("kUNIQUE: [a, {b: c}] # d\n"),
        Just("kUNIQUE: |\n  extensions:\n    calculator: 1\n\n"),
        Just("kUNIQUE:\n- a\n-   b: 'c: d'\n    e: >-\n      f\n"),
        Just("kUNIQUE: &x {a: 1}\nlUNIQUE: *x\n"),
    ];
    let servers = prop_oneof![
        Just(""),
        Just("extensions:\n"),
        Just("extensions: {}\n"),
        Just("extensions:\n  a:\n    cmd: b # c\n  # d\n"),
        Just(
            "extensions:\n      a: {cmd: b}\n\n      'c d':\n          args:\n          - 1\n          text: |\n            e\n\n"
        ),
    ];
    (prop::collection::vec(part.clone(), 0..3), servers, prop::collection::vec(part, 0..3)).prop_map(
        |(before, servers, after)| {
            let parts: Vec<_> = before.into_iter().chain([servers]).chain(after).collect();
            let parts = parts.iter().enumerate();
            parts.map(|(index, part)| part.replace("UNIQUE", &index.to_string())).collect()
        },
    )
}

/// Checks one edit of a text and its reversal.
fn check_edit(host: Host, text: &str) -> Result<(), TestCaseError> {
    let (format, container) = (host.format(), host.container());
    let before = format.parse(text);
    prop_assert!(before.is_ok(), "{before:?}\n{text}");
    let entry = program().entry(host, "calculator", "duplexer");
    let new = format.insert(text, container, ("calculator", &entry));
    prop_assert!(new.is_ok(), "{new:?}\n{text}");
    let new = new.unwrap();
    let removed = format.remove(&new, container, "calculator").unwrap().unwrap();
    prop_assert!(format.parse(&removed).is_ok(), "{removed}");
    let others = before.unwrap().member(&[container]).map_or(0, |servers| servers.members().len());
    // The end of a file of TOML is where the entry is.
    if others > 0 && (format != Format::Toml || text.ends_with('\n') && !text.ends_with("\n\n")) {
        prop_assert_eq!(removed, text);
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn any_json_survives_an_edit(text in json_file()) {
        prop_assert_eq!(Host::VsCode.format(), Format::Json(Dialect::CommentsAndCommas));
        check_edit(Host::VsCode, &text)?;
    }

    #[test]
    fn any_toml_survives_an_edit(text in toml_file()) {
        check_edit(Host::Codex, &text)?;
    }

    #[test]
    fn any_yaml_survives_an_edit(text in yaml_file()) {
        check_edit(Host::Goose, &text)?;
    }

    /// Whatever a file holds, it is edited or refused.
    #[test]
    fn no_text_ends_the_program(text in "[{}\\[\\]\":,#/*a \n\r\t'=|>&*-]{0,60}") {
        for (host, _) in FILES {
            let entry = program().entry(host, "calculator", "duplexer");
            if let Ok(new) = host.format().insert(&text, host.container(), ("calculator", &entry)) {
                prop_assert!(host.format().parse(&new).is_ok());
            }
        }
    }
}

proptest! {
    // Every write waits for the disk.
    #![proptest_config(ProptestConfig { cases: 20, ..ProptestConfig::default() })]

    #[test]
    fn any_file_is_what_it_was(json in json_file(), toml in toml_file(), yaml in yaml_file()) {
        restores(Host::VsCode, Some(&json));
        restores(Host::Codex, Some(&toml));
        restores(Host::Goose, Some(&yaml));
    }
}
