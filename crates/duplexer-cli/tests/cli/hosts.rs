//! `install`, `uninstall` and `servers`, with the files of hosts in a home directory of their own.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::support::{PROGRAM, Ran, data_folder};

/// The file of each host below the home directory on Linux, and a realistic content.
#[cfg(target_os = "linux")]
const FILES: [(&str, &str, &str); 8] = [
    (
        "claude-desktop",
        ".config/Claude/claude_desktop_config.json",
        include_str!("../fixtures/hosts/claude-desktop.json"),
    ),
    ("claude-code", ".claude.json", include_str!("../fixtures/hosts/claude-code.json")),
    ("cursor", ".cursor/mcp.json", include_str!("../fixtures/hosts/cursor.json")),
    ("vscode", ".config/Code/User/mcp.json", include_str!("../fixtures/hosts/vscode.json")),
    ("codex", ".codex/config.toml", include_str!("../fixtures/hosts/codex.toml")),
    ("gemini", ".gemini/settings.json", include_str!("../fixtures/hosts/gemini.json")),
    ("goose", ".config/goose/config.yaml", include_str!("../fixtures/hosts/goose.yaml")),
    ("zed", ".config/zed/settings.json", include_str!("../fixtures/hosts/zed.json")),
];

/// A home directory with a project in it.
pub(crate) struct Home(pub(crate) PathBuf);

impl Home {
    pub(crate) fn new(name: &str) -> Self {
        let home = data_folder().join(name);
        fs::create_dir_all(home.join("project")).unwrap();
        Self(home)
    }

    pub(crate) fn write(&self, path: &str, text: &str) -> PathBuf {
        let path = self.0.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        path
    }

    pub(crate) fn read(&self, path: &str) -> String {
        fs::read_to_string(self.0.join(path)).unwrap()
    }

    /// Returns the command in the project of this home.
    pub(crate) fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(PROGRAM);
        command.args(words).current_dir(self.0.join("project")).env("HOME", &self.0);
        for name in ["XDG_CONFIG_HOME", "APPDATA", "CODEX_HOME"] {
            command.env_remove(name);
        }
        command.env("XDG_DATA_HOME", data_folder()).stdin(Stdio::null());
        command
    }

    pub(crate) fn run(&self, words: &[&str]) -> Ran {
        let output = self.command(words).output().unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        Ran { code: output.status.code(), stdout: text(output.stdout), stderr: text(output.stderr) }
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn backup(path: &Path) -> PathBuf {
    let name = format!("{}.duplexer-backup", path.file_name().unwrap().to_str().unwrap());
    path.with_file_name(name)
}

#[cfg(target_os = "linux")]
#[test]
fn a_server_is_installed_into_every_host_and_leaves_no_trace() {
    let home = Home::new("every-host");
    for (_, path, text) in FILES {
        home.write(path, text);
    }
    let printed =
        home.run(&["install", "calculator", "--env", "RUST_LOG=info", "--", PROGRAM, "demo", "--stdio"]).ok();
    assert_eq!(printed.lines().count(), FILES.len(), "{printed}");
    let listed = home.run(&["servers", "--json"]).json();
    for (host, path, text) in FILES {
        assert_ne!(home.read(path), text, "{host}");
        assert_eq!(fs::read_to_string(backup(&home.0.join(path))).unwrap(), text, "{host}");
        let file = listed.as_array().unwrap().iter().find(|file| file["host"] == host).unwrap();
        assert_eq!(file["file"], home.0.join(path).to_str().unwrap());
        let servers = file["servers"].as_array().unwrap();
        let calculator = servers.iter().find(|server| server["name"] == "calculator").unwrap();
        assert_eq!(calculator["at"], format!("{PROGRAM} demo --stdio"), "{host}");
    }
    let again =
        home.run(&["install", "calculator", "--env", "RUST_LOG=info", "--", PROGRAM, "demo", "--stdio"]).ok();
    assert_eq!(again.matches("is there already").count(), FILES.len(), "{again}");
    home.run(&["uninstall", "calculator"]).ok();
    for (host, path, text) in FILES {
        assert_eq!(home.read(path), text, "{host}");
    }
    home.run(&["uninstall", "calculator"]).failed(2, "no host has a server `calculator`");
}

#[cfg(target_os = "linux")]
#[test]
fn a_url_gets_the_words_of_each_host() {
    let home = Home::new("url");
    for (host, ..) in FILES {
        home.run(&["install", "notes", "https://mcp.example.com/mcp", "-H", "X-Key: abc", "--host", host])
            .ok();
    }
    let json = |path: &str| -> Value { serde_json::from_str(&home.read(path)).unwrap() };
    let code = json(".claude.json");
    assert_eq!(code["mcpServers"]["notes"]["type"], "http");
    assert_eq!(code["mcpServers"]["notes"]["headers"]["X-Key"], "abc");
    assert_eq!(json(".cursor/mcp.json")["mcpServers"]["notes"]["url"], "https://mcp.example.com/mcp");
    assert_eq!(json(".config/Code/User/mcp.json")["servers"]["notes"]["type"], "http");
    assert_eq!(
        json(".gemini/settings.json")["mcpServers"]["notes"]["httpUrl"],
        "https://mcp.example.com/mcp"
    );
    assert_eq!(
        json(".config/zed/settings.json")["context_servers"]["notes"]["url"],
        "https://mcp.example.com/mcp"
    );
    // It starts programs only, so this command is between.
    let desktop = json(".config/Claude/claude_desktop_config.json");
    assert_eq!(desktop["mcpServers"]["notes"]["command"], PROGRAM);
    assert_eq!(desktop["mcpServers"]["notes"]["args"][1], "https://mcp.example.com/mcp");
    let codex: toml::Table = home.read(".codex/config.toml").parse().unwrap();
    assert_eq!(codex["mcp_servers"]["notes"]["http_headers"]["X-Key"].as_str(), Some("abc"));
    let goose = home.read(".config/goose/config.yaml");
    assert!(
        goose.contains("uri: \"https://mcp.example.com/mcp\"") && goose.contains("type: streamable_http"),
        "{goose}"
    );
    // The header is an argument there, and a secret everywhere.
    for listed in [home.run(&["servers"]).ok(), home.run(&["servers", "--json"]).ok()] {
        assert!(listed.contains("proxy https://mcp.example.com/mcp --header …"), "{listed}");
        assert!(!listed.contains("abc"), "{listed}");
    }
    home.run(&["uninstall", "notes"]).ok();
    for (host, path, _) in FILES {
        assert!(!home.0.join(path).exists(), "{host}: a file that was created is removed again");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_fault_in_one_file_changes_none() {
    let home = Home::new("fault");
    for (_, path, text) in FILES {
        home.write(path, text);
    }
    let broken = home.write(".config/zed/settings.json", "{\n  \"a\": 1\n  \"b\": 2\n}\n");
    let line = format!("{}:3: `,` or `}}` is expected here; the file was not changed", broken.display());
    home.run(&["install", "calculator", "--", PROGRAM]).failed(2, &line);
    for (host, path, text) in FILES.iter().filter(|(host, ..)| *host != "zed") {
        assert_eq!(home.read(path), *text, "{host}");
        assert!(!backup(&home.0.join(path)).exists(), "{host}");
    }
    home.write(".codex/config.toml", "a = 1\nb = = 2\n");
    home.run(&["install", "calculator", "--host", "codex", "--", PROGRAM]).failed(2, "config.toml:2: ");
    fs::write(home.0.join(".cursor/mcp.json"), b"{\n\"a\": \"\xff\"}").unwrap();
    home.run(&["install", "calculator", "--host", "cursor", "--", PROGRAM])
        .failed(2, "mcp.json:2: not UTF-8");
    let large = fs::File::create(home.0.join(".gemini/settings.json")).unwrap();
    large.set_len(33 << 20).unwrap();
    home.run(&["install", "calculator", "--host", "gemini", "--", PROGRAM]).failed(2, "larger than 32 MiB");
    fs::remove_file(home.0.join(".claude.json")).unwrap();
    fs::create_dir(home.0.join(".claude.json")).unwrap();
    home.run(&["install", "calculator", "--host", "claude-code", "--", PROGRAM]).failed(2, "cannot be read");
    // The others are listed nevertheless.
    let listed = home.run(&["servers"]);
    assert_eq!(listed.code, Some(2), "{listed:?}");
    assert!(listed.stdout.contains("playwright") && listed.stderr.contains("settings.json:3:"), "{listed:?}");
}

#[cfg(unix)]
#[test]
fn links_and_permissions_stay() {
    use std::os::unix::fs::{PermissionsExt, symlink};
    let home = Home::new("links");
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    let real = home.write("dotfiles/cursor.json", "{}\n");
    fs::set_permissions(&real, fs::Permissions::from_mode(0o640)).unwrap();
    fs::create_dir(home.0.join(".cursor")).unwrap();
    let link = home.0.join(".cursor/mcp.json");
    symlink("../dotfiles/cursor.json", &link).unwrap();
    home.run(&["install", "calculator", "--host", "cursor", "--", PROGRAM]).ok();
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    assert!(fs::read_to_string(&real).unwrap().contains("calculator"));
    assert_eq!(mode(&real), 0o640);
    home.run(&["uninstall", "calculator"]).ok();
    assert_eq!(fs::read_to_string(&real).unwrap(), "{}\n");

    // A link to a file that does not exist yet.
    symlink("../dotfiles/new.json", home.0.join("project/config.json")).unwrap();
    fs::create_dir_all(home.0.join("dotfiles")).unwrap();
    home.run(&["install", "calculator", "--host", "cursor", "--config", "config.json", "--", PROGRAM]).ok();
    assert!(home.read("dotfiles/new.json").contains("calculator"));
    assert_eq!(mode(&home.0.join("dotfiles/new.json")), 0o600, "entries can hold secrets");

    let fixed = home.write("project/fixed.json", "{}");
    fs::set_permissions(&fixed, fs::Permissions::from_mode(0o444)).unwrap();
    home.run(&["install", "calculator", "--host", "cursor", "--config", "fixed.json", "--", PROGRAM])
        .failed(2, "fixed.json is read-only");
    assert_eq!(home.read("project/fixed.json"), "{}");
    let left: Vec<_> =
        fs::read_dir(home.0.join("project")).unwrap().map(|one| one.unwrap().file_name()).collect();
    assert_eq!(left.len(), 2, "{left:?}");
}

#[test]
fn an_entry_of_another_server_is_replaced_on_request_only() {
    let home = Home::new("replace");
    let install = |more: &[&str]| {
        home.run(&[&["install", "calculator", "--host", "cursor", "--config", "mcp.json"], more].concat())
    };
    install(&["http://127.0.0.1:1/mcp"]).ok();
    let before = home.read("project/mcp.json");
    install(&["http://127.0.0.1:2/mcp"]).failed(2, "--force replaces it");
    assert_eq!(home.read("project/mcp.json"), before);
    install(&["http://127.0.0.1:2/mcp", "--force"]).ok();
    assert_eq!(home.read("project/mcp.json"), before.replace(":1/", ":2/"));
}

#[test]
fn paths_become_absolute_and_what_is_wrong_is_refused() {
    let home = Home::new("paths");
    home.write("project/server.py", "");
    home.write("project/run", "");
    let printed = home.run(&[
        "install",
        "a",
        "--host",
        "cursor",
        "--print",
        "--",
        "sh",
        "server.py",
        "./run",
        "run",
        "none.py",
        "--flag",
    ]);
    let json: Value = serde_json::from_str(&printed.ok()).unwrap();
    let entry = &json["mcpServers"]["a"];
    let program = entry["command"].as_str().unwrap();
    assert!(Path::new(program).is_absolute() && program.ends_with("/sh"), "{program}");
    let project = fs::canonicalize(home.0.join("project")).unwrap();
    let args: Vec<_> = entry["args"].as_array().unwrap().iter().map(|arg| arg.as_str().unwrap()).collect();
    let path = |name: &str| project.join(name).to_str().unwrap().to_owned();
    assert_eq!(args, [&path("server.py"), &path("run"), "run", "none.py", "--flag"]);
    assert!(!home.0.join(".cursor").exists(), "--print writes nothing");

    // A program that this command starts is found by the host too.
    let printed =
        home.run(&["install", "a", "--host", "cursor", "--print", "--", PROGRAM, "dev", "--", "sh", "./run"]);
    assert_eq!(printed.stderr, "", "{printed:?}");
    let json: Value = serde_json::from_str(&printed.ok()).unwrap();
    assert_eq!(json["mcpServers"]["a"]["args"][2], program);
    assert_eq!(json["mcpServers"]["a"]["args"][3], path("run").as_str());
    let noted = home
        .run(&["install", "a", "--host", "cursor", "--print", "--", PROGRAM, "dev", "--", "cargo", "run"]);
    assert!(noted.stderr.contains("add --manifest-path"), "{noted:?}");

    let cursor =
        |name: &str, rest: &[&str]| home.run(&[&["install", name, "--host", "cursor"], rest].concat());
    for name in ["", "a b", "a\u{1b}[2J", "a\nb", "../a", "a.b", "é", "\"", &"x".repeat(65)] {
        cursor(name, &["--", "sh"]).failed(2, "cannot be the name of a server");
    }
    cursor("a", &["--", "no-such-program-1"]).failed(2, "there is no program `no-such-program-1`");
    cursor("a", &["--", "./server.py"]).failed(2, "there is no program");
    cursor("a", &["ftp://example.com"]).failed(2, "not the URL of a server");
    home.run(&["install", "a", "--", "sh"])
        .failed(2, "no host was found on this machine; --host names one of claude-desktop");
    home.run(&["install", "a", "--host", "goose", "--project", "--", "sh"])
        .failed(2, "it has no file in projects");
    home.run(&["install", "a", "--host", "goose", "--host", "zed", "--config", "x", "--", "sh"])
        .failed(2, "one --host");
}

#[test]
fn a_project_has_its_own_files() {
    let home = Home::new("project");
    home.run(&["install", "a", "--project", "--host", "claude-code", "--host", "vscode", "--", "sh"]).ok();
    assert!(home.read("project/.mcp.json").contains("mcpServers"));
    assert!(home.read("project/.vscode/mcp.json").contains("\"servers\""));
    let listed = home.run(&["servers"]).ok();
    assert!(
        listed.contains("Claude Code  .mcp.json") && listed.contains("VS Code  .vscode/mcp.json"),
        "{listed}"
    );
    // In the home directory both files of a host are the same one.
    home.write(".cursor/mcp.json", "{}");
    let output = home.command(&["servers", "--host", "cursor"]).current_dir(&home.0).output().unwrap();
    assert_eq!(String::from_utf8(output.stdout).unwrap().matches("Cursor").count(), 1);
    fs::remove_file(home.0.join(".cursor/mcp.json")).unwrap();
    home.run(&["uninstall", "a", "--project", "--host", "claude-code", "--host", "vscode"]).ok();
    assert!(!home.0.join("project/.mcp.json").exists());
    let none = home.run(&["servers"]);
    assert!(none.stdout.is_empty() && none.stderr.contains("No host is configured"), "{none:?}");
}
