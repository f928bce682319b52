//! The guides as documents: configuration snippets can be read, and every guide is listed where one looks for it.

#![allow(clippy::unwrap_used, reason = "helpers of tests fail like tests")]

use std::fs;
use std::path::Path;

use serde_json::Value;
use yaml_rust2::YamlLoader;

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
            "Zed" => ("context_servers", "url"),
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
    assert_eq!(hosts, ["Claude Desktop", "Claude Code", "Cursor", "VS Code", "Gemini CLI", "Zed"]);
}

#[test]
fn the_yaml_of_goose_is_yaml_of_the_shape_that_it_reads() {
    let page = guide("hosts.md");
    let [("Goose", text)] = blocks(&page, "yaml")[..] else { panic!("not one block, or not of Goose") };
    let config = YamlLoader::load_from_str(text).unwrap();
    let servers = &config[0]["extensions"];
    assert_eq!(servers["calculator"]["cmd"].as_str(), Some(PROGRAM));
    assert_eq!(servers["calculator"]["type"].as_str(), Some("stdio"));
    assert_eq!(servers["shared-calculator"]["uri"].as_str(), Some(URL));
    assert_eq!(servers["shared-calculator"]["type"].as_str(), Some("streamable_http"));
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

/// SCL-93: the manifests are YAML, and have what the text around them says.
#[test]
fn the_manifests_of_several_nodes_are_yaml() {
    let page = guide("scaling_out.md");
    let [("Compose", compose), ("Kubernetes", kubernetes)] = blocks(&page, "yaml")[..] else {
        panic!("not one block for Compose and one for Kubernetes")
    };
    let compose = YamlLoader::load_from_str(compose).unwrap();
    let services = &compose[0]["services"];
    for node in ["node-1", "node-2", "node-3"] {
        assert!(services[node]["command"].as_str().unwrap().contains("--redis redis://store:6379"), "{node}");
    }
    let kubernetes = YamlLoader::load_from_str(kubernetes).unwrap();
    let kinds: Vec<_> = kubernetes.iter().map(|document| document["kind"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["Deployment", "Service"]);
    let spec = &kubernetes[0]["spec"]["template"]["spec"];
    assert!(spec["terminationGracePeriodSeconds"].as_i64().unwrap() > 5 + 10 + 5);
    let container = &spec["containers"][0];
    for (probe, path) in [("readinessProbe", "/readyz"), ("livenessProbe", "/livez")] {
        assert_eq!(container[probe]["httpGet"]["path"].as_str(), Some(path));
    }
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
                "" | "text" | "json" | "toml" | "yaml" | "ini" | "dockerfile" | "nginx" => {}
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

/// F-2: what a client needs has a guide, section by section.
#[test]
fn the_guide_of_clients_has_a_section_for_each_task() {
    let page = guide("client.md");
    let sections: Vec<&str> = page.lines().filter_map(|line| line.strip_prefix("## ")).collect();
    assert_eq!(
        sections,
        [
            "Connect",
            "Call",
            "Errors",
            "Questions of the server",
            "Changes",
            "HTTPS and headers",
            "Child processes",
            "Several servers and mcp.json",
        ]
    );
    assert!(guides().contains(&"logging_in.md".to_owned()));
}

/// F-13: the table of features has all of them, and says for which side each is.
#[test]
fn the_table_of_features_names_the_side_of_each() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let read = |file: &str| fs::read_to_string(root.join(file)).unwrap();
    let manifest: toml::Table = read("Cargo.toml").parse().unwrap();
    let documentation = read("src/lib.rs");
    let rows: Vec<Vec<&str>> = documentation
        .lines()
        .filter_map(|line| line.strip_prefix("//! | `"))
        .map(|row| row.split('|').map(str::trim).collect())
        .collect();
    let features = manifest["features"].as_table().unwrap().keys().filter(|name| *name != "default");
    for feature in features {
        let row = rows.iter().find(|row| row[0].starts_with(&format!("{feature}`")));
        let row = row.unwrap_or_else(|| panic!("the table does not have `{feature}`"));
        assert!(["servers", "clients", "both"].contains(&row[1]), "{row:?}");
    }
    let side = |feature: &str| rows.iter().find(|row| row[0] == format!("{feature}`")).map(|row| row[1]);
    assert_eq!((side("auth"), side("oauth")), (Some("servers"), Some("clients")));
}
