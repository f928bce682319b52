//! Permitted dependencies of modules and crates.

use crate::tidy::Finding;
use crate::tidy::paths::{exports, paths, resolve};
use crate::tidy::scan::is_word;
use crate::tidy::tree::{Source, Tree, has_extension};

/// Code at `from` (but not at `but`) must not name items below `never`, `except` these.
struct Edge {
    from: &'static str,
    but: &'static [&'static str],
    never: &'static [&'static str],
    except: &'static [&'static str],
}

/// What the lower layers of the server do not see.
const ABOVE_FEATURES: &[&str] = &[
    "duplexer_server::catalog",
    "duplexer_server::builder",
    "duplexer_server::apps",
    "duplexer_server::tasks",
];

const EDGES: &[Edge] = &[
    edge("duplexer_core::transport", &["duplexer_core::dispatch"]),
    edge("duplexer_server::registry", ABOVE_FEATURES),
    edge("duplexer_server::kernel", ABOVE_FEATURES),
    edge("duplexer_server::middleware", ABOVE_FEATURES),
    edge("duplexer_server::features", ABOVE_FEATURES),
    edge(
        "duplexer_server::catalog",
        &["duplexer_server::builder", "duplexer_server::apps", "duplexer_server::tasks"],
    ),
    edge("duplexer_server::builder", &["duplexer_server::apps", "duplexer_server::tasks"]),
    edge(
        "duplexer_server::schema",
        &[
            "duplexer_server::kernel",
            "duplexer_server::registry",
            "duplexer_server::features",
            "duplexer_server::catalog",
            "duplexer_server::builder",
        ],
    ),
    Edge {
        from: "duplexer_core::dispatch",
        but: &[],
        never: &["duplexer_types::methods"],
        except: &[
            "duplexer_types::methods::Cancelled",
            "duplexer_types::methods::Progress",
            "duplexer_types::methods::Notification",
            "duplexer_types::methods::Method",
        ],
    },
    Edge {
        from: "duplexer_types::version",
        but: &[],
        never: &["duplexer_types"],
        except: &["duplexer_types::version"],
    },
    Edge {
        from: "duplexer_types",
        but: &[
            "duplexer_types::methods",
            "duplexer_types::wire",
            "duplexer_types::headers",
            "duplexer_types::meta",
        ],
        never: &["duplexer_types::methods"],
        except: &[],
    },
    edge("duplexer_http", &["duplexer_server::catalog", "duplexer_server::builder"]),
];

const fn edge(from: &'static str, never: &'static [&'static str]) -> Edge {
    Edge { from, but: &[], never, except: &[] }
}

pub(super) fn modules(tree: &Tree) -> Vec<Finding> {
    let exports = exports(tree);
    let mut findings = Vec::new();
    for source in tree.sources() {
        let Some((krate, module)) = source.module() else {
            continue;
        };
        // The root of a crate may re-export everything below it.
        let here = if module.is_empty() { String::new() } else { format!("{krate}::{}", module.join("::")) };
        let edges: Vec<&Edge> =
            EDGES.iter().filter(|edge| is_below(&here, &[edge.from]) && !is_below(&here, edge.but)).collect();
        if edges.is_empty() {
            continue;
        }
        for found in paths(&source.scan.code).iter().filter(|found| source.is_production(found.line)) {
            let Some(target) = resolve(source, found, &exports) else {
                continue;
            };
            let target = target.join("::");
            if edges.iter().any(|edge| is_below(&target, edge.never) && !is_below(&target, edge.except)) {
                findings.push(Finding::new(&source.path, found.line, format!("`{here}` names `{target}`")));
            }
        }
    }
    findings.extend(rows_in_dispatch(tree));
    findings
}

/// The dispatcher may carry a `Method`, but not name one.
fn rows_in_dispatch(tree: &Tree) -> Vec<Finding> {
    let places = ["crates/duplexer-core/src/dispatch.rs", "crates/duplexer-core/src/dispatch/"];
    let sources = tree.sources().filter(|source| places.iter().any(|place| source.is_at(place)));
    find_lines(sources, |line| row_of(line).map(|row| format!("the dispatcher names the method `{row}`")))
}

fn is_below(path: &str, places: &[&str]) -> bool {
    places
        .iter()
        .any(|place| path.strip_prefix(place).is_some_and(|rest| rest.is_empty() || rest.starts_with("::")))
}

/// What a crate must not depend on, tests aside.
const MANIFESTS: &[(&str, &[&str])] = &[
    ("duplexer-types", &["tokio", "tokio-util", "futures-util", "tracing", "http", "hyper", "duplexer-core"]),
    ("duplexer-schema", &["tokio", "tracing", "http", "schemars", "duplexer-types", "duplexer-core"]),
    (
        "duplexer-core",
        &[
            "http",
            "http-body",
            "hyper",
            "hyper-util",
            "reqwest",
            "schemars",
            "duplexer-schema",
            "aes-gcm",
            "opentelemetry",
            "jsonwebtoken",
            "duplexer-server",
            "duplexer-client",
            "duplexer-auth",
            "duplexer-http",
        ],
    ),
    (
        "duplexer-server",
        &[
            "http",
            "http-body",
            "hyper",
            "hyper-util",
            "reqwest",
            "duplexer-client",
            "duplexer-auth",
            "duplexer-http",
            "duplexer-skills",
        ],
    ),
    // Only this crate has a YAML parser. What a client does with skills is in the facade.
    ("duplexer-skills", &["http", "hyper", "reqwest", "schemars", "duplexer-client", "duplexer-http"]),
    // `duplexer-schema` is behind the feature `schema`.
    (
        "duplexer-client",
        &["http", "hyper", "reqwest", "schemars", "duplexer-server", "duplexer-http", "duplexer-skills"],
    ),
    ("duplexer-auth", &["hyper", "hyper-util", "duplexer-client", "duplexer-http"]),
    (
        "duplexer-http",
        &["reqwest", "schemars", "duplexer-schema", "jsonwebtoken", "duplexer-client", "duplexer-auth"],
    ),
    (
        "duplexer-oauth",
        &["jsonwebtoken", "duplexer-auth", "duplexer-client", "duplexer-http", "duplexer-server"],
    ),
    (
        "duplexer-oauth-base",
        &[
            "hyper",
            "jsonwebtoken",
            "ring",
            "duplexer-core",
            "duplexer-types",
            "duplexer-auth",
            "duplexer-oauth",
        ],
    ),
    // The only library crate that sees server and client. Transports are the caller's.
    ("duplexer-proxy", &["http", "hyper", "reqwest", "schemars", "duplexer-http", "duplexer-http-client"]),
    // A client with a page. Servers and transports are the caller's.
    (
        "duplexer-inspector",
        &[
            "reqwest",
            "schemars",
            "duplexer-server",
            "duplexer-http",
            "duplexer-http-client",
            "duplexer-oauth",
        ],
    ),
    ("duplexer-redis", &["hyper", "reqwest", "duplexer-client", "duplexer-oauth", "duplexer-http-client"]),
    ("duplexer-http-client", &["hyper", "schemars", "duplexer-schema", "duplexer-server", "duplexer-http"]),
];

pub(super) fn manifests(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (package, never) in MANIFESTS {
        let place = format!("crates/{package}/Cargo.toml");
        for file in tree.files().filter(|file| file.is_at(&place)) {
            for (line, name) in dependencies(&file.text) {
                if never.contains(&name) {
                    findings.push(Finding::new(&file.path, line, format!("`{package}` depends on `{name}`")));
                }
            }
        }
    }
    findings
}

/// Names in the dependency tables of a manifest, those of tests and build scripts aside.
fn dependencies(manifest: &str) -> Vec<(usize, &str)> {
    let mut names = Vec::new();
    let mut section = "";
    for (index, line) in manifest.lines().map(str::trim).enumerate() {
        if let Some(header) = line.strip_prefix('[') {
            section = header.trim_end_matches(']');
            let table = section.rsplit_once("dependencies.").filter(|(before, _)| !before.ends_with('-'));
            names.extend(table.map(|(_, name)| (index + 1, name)));
        } else if section == "dependencies" || section.ends_with(".dependencies") {
            let name = line.split(['=', '.', ' ']).next().unwrap_or_default();
            names.push((index + 1, name));
        }
    }
    names
}

fn words(line: &str) -> impl Iterator<Item = &str> {
    line.split(|c| !is_word(c)).filter(|word| !word.is_empty())
}

pub(super) fn http_registry(tree: &Tree) -> Vec<Finding> {
    let sources = tree.sources().filter(|source| source.is_at("crates/duplexer-http/src/"));
    find_lines(sources, |line| {
        words(line)
            .find(|word| word.to_lowercase().contains("registry"))
            .map(|word| format!("names `{word}`"))
    })
}

const KERNEL: &str = "crates/duplexer-server/src/kernel/runner.rs";

pub(super) fn kernel(tree: &Tree) -> Vec<Finding> {
    find_lines(tree.sources().filter(|source| source.is_at(KERNEL)), |line| {
        let http = words(line).any(|word| word == "hyper") || contains_path(line, "http::");
        if http {
            return Some("names an HTTP type".to_owned());
        }
        row_of(line).map(|row| format!("names the method `{row}`"))
    })
}

/// The row of the method table that a line names. `Method::ALL` and `Method::parse` are about the table itself.
fn row_of(line: &str) -> Option<&str> {
    let (_, variant) = line.split_once("Method::")?;
    let variant = words(variant).next().unwrap_or_default();
    let is_row = variant.starts_with(char::is_uppercase) && variant.contains(char::is_lowercase);
    is_row.then_some(variant)
}

fn contains_path(line: &str, path: &str) -> bool {
    line.match_indices(path).any(|(at, _)| !line[..at].ends_with(is_word))
}

fn find_lines<'a>(
    sources: impl Iterator<Item = &'a Source>,
    check: impl Fn(&str) -> Option<String>,
) -> Vec<Finding> {
    let mut findings = Vec::new();
    for source in sources.filter(|source| has_extension(&source.path, "rs")) {
        for (line, code) in source.production() {
            findings.extend(check(code).map(|what| Finding::new(&source.path, line, what)));
        }
    }
    findings
}
