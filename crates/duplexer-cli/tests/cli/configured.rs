//! Names of configured servers where a URL can be.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::json;

use crate::support::{Demo, PROGRAM, Ran, data_folder};

/// Runs the program in a folder, with the user's own list of servers in another one.
fn run_in(folder: &Path, config: &Path, words: &[&str]) -> Ran {
    let output = Command::new(PROGRAM)
        .args(words)
        .current_dir(folder)
        .env("XDG_CONFIG_HOME", config)
        .env("XDG_DATA_HOME", data_folder())
        .output()
        .unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    Ran { code: output.status.code(), stdout: text(output.stdout), stderr: text(output.stderr) }
}

pub(crate) fn folder(name: &str, file: &str, servers: &serde_json::Value) -> PathBuf {
    let folder = data_folder().join(name);
    let file = folder.join(file);
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    fs::write(file, json!({ "mcpServers": servers }).to_string()).unwrap();
    folder
}

#[test]
fn a_name_can_be_where_a_url_can_be() {
    let demo = Demo::start();
    let here = folder(
        "here",
        ".mcp.json",
        &json!({
            "web": { "url": demo.url, "headers": { "X-Test": "1" } },
            "broken": { "command": "/no/such/program" },
            "variable": { "command": "${DUPLEXER_NO_SUCH_VARIABLE}" },
        }),
    );
    let own = folder(
        "own",
        "duplexer/mcp.json",
        &json!({
            "program": { "command": PROGRAM, "args": ["demo", "--stdio"] },
            "web": { "url": "http://127.0.0.1:1/mcp" },
        }),
    );
    let run = |words: &[&str]| run_in(&here, &own, words);
    for name in ["web", "program"] {
        assert!(run(&["call", name, "add", "a:=2", "b:=3"]).ok().contains("5.0"));
        assert!(run(&["ping", name]).ok().contains("answers in"));
        assert!(run(&["doctor", name]).ok().contains("0 errors"));
        assert!(run(&["bench", "-d", "20ms", "-c", "1", name]).ok().contains("p99"));
        let list = format!("XDG_CONFIG_HOME={}", own.display());
        let proxied = run(&["call", "--env", &list, "add", "a:=2", "b:=3", "--", PROGRAM, "proxy", name]);
        assert!(proxied.ok().contains("5.0"));
    }
    assert_eq!(run(&["status", "web"]).ok(), "not logged in\n");
    run(&["status", "program"]).failed(2, "is a program; this verb is for servers at a URL");
    run(&["ping", "broken"]).failed(3, "cannot be started");
    run(&["ping", "variable"]).failed(2, "DUPLEXER_NO_SUCH_VARIABLE");
    run(&["ping", "programm"]).failed(2, "did you mean the configured server `program`?");
    fs::write(here.join(".mcp.json"), "{").unwrap();
    run(&["ping", "program"]).failed(2, ".mcp.json is not valid JSON");
    run(&["ping", &demo.url]).ok();
}
