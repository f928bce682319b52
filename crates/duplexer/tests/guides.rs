//! The guides as documents: configuration snippets can be read, and every guide is listed where one looks for it.

#![allow(clippy::unwrap_used, reason = "helpers of tests fail like tests")]

use std::fs;
use std::path::Path;

use serde_json::Value;

const PROGRAM: &str = "/home/me/calculator/target/release/calculator";
/// Rust snippets that a doctest does not run: the guide, the first line, and how they are tested instead.
const NOT_RUN: [(&str, &str, &str); 1] = [(
    "first_server.md",
    "//! A server with one tool.",
    "it is `examples/hello`, which is tested as a process",
)];
const URL: &str = "http://127.0.0.1:8000/mcp";

fn guide(name: &str) -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("guide").join(name)).unwrap()
}

/// Returns the file names of all guides.
fn guides() -> Vec<String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("guide");
    let names = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<String> = names.collect();
    names.sort();
    names
}

/// Returns the blocks of a language, each with the heading above it.
fn blocks<'a>(page: &'a str, language: &str) -> Vec<(&'a str, &'a str)> {
    let begin = format!("```{language}\n");
    let mut found = Vec::new();
    for section in page.split("\n## ").skip(1) {
        let heading = section.lines().next().unwrap();
        for block in section.split(&begin).skip(1) {
            found.push((heading, block.split_once("\n```").unwrap().0));
        }
    }
    found
}

#[test]
fn the_json_of_every_host_is_json_of_the_shape_that_the_host_reads() {
    let page = guide("hosts.md");
    let mut hosts = Vec::new();
    for (host, text) in blocks(&page, "json") {
        let config: Value = serde_json::from_str(text).unwrap_or_else(|error| panic!("{host}: {error}"));
        let (servers, url) = match host {
            "VS Code" => ("servers", "url"),
            "Gemini CLI" => ("mcpServers", "httpUrl"),
            _ => ("mcpServers", "url"),
        };
        assert_eq!(config[servers]["calculator"]["command"], PROGRAM, "{host}");
        assert!(config[servers]["calculator"]["args"].is_array(), "{host}");
        // Claude Desktop takes URLs in its settings.
        if host != "Claude Desktop" {
            assert_eq!(config[servers]["shared-calculator"][url], URL, "{host}");
        }
        hosts.push(host);
    }
    assert_eq!(hosts, ["Claude Desktop", "Claude Code", "Cursor", "VS Code", "Gemini CLI"]);
}

#[test]
fn the_toml_of_codex_is_toml_of_the_shape_that_it_reads() {
    let page = guide("hosts.md");
    let [("Codex", text)] = blocks(&page, "toml")[..] else { panic!("not one block, or not of Codex") };
    let config: toml::Table = text.parse().unwrap();
    let servers = config["mcp_servers"].as_table().unwrap();
    assert_eq!(servers["calculator"]["command"].as_str(), Some(PROGRAM));
    assert_eq!(servers["shared-calculator"]["url"].as_str(), Some(URL));
    // Codex refuses a token in this file.
    assert!(servers["shared-calculator"].get("bearer_token").is_none());
}

#[test]
fn snippets_run_in_doctests_unless_they_are_listed_with_a_reason() {
    let mut not_run = Vec::new();
    for file in guides() {
        let page = guide(&file);
        let parts: Vec<&str> = page.split("\n```").collect();
        assert_eq!(parts.len() % 2, 1, "{file}: a block is not closed");
        for block in parts.iter().skip(1).step_by(2) {
            let (fence, code) = block.split_once('\n').unwrap();
            match fence {
                "" | "text" | "json" | "toml" => {}
                _ => not_run.push((file.clone(), code.lines().next().unwrap().to_owned())),
            }
            // Values are used, not only built. A `text` block is not Rust.
            assert!(!code.contains("# let _ = "), "{file}: a hidden line keeps a value from being used");
        }
    }
    let listed = NOT_RUN.map(|(file, line, _)| (file.to_owned(), line.to_owned()));
    assert_eq!(
        not_run, listed,
        "let the snippet run, with hidden lines, or list it in `NOT_RUN` with the reason"
    );
}

#[test]
fn every_guide_is_in_the_index_and_in_the_readme() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let readme = fs::read_to_string(root.join("../../README.md")).unwrap();
    let index = include_str!("../guide.md");
    let guides = guides();
    for file in &guides {
        let name = file.strip_suffix(".md").unwrap();
        assert!(readme.contains(&format!("crates/duplexer/guide/{file}")), "the README does not name {file}");
        assert!(index.contains(&format!("]({name})")), "the index does not list {name}");
    }
    assert!(guides.len() >= 18, "{} guides", guides.len());
}
