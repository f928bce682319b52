//! Samples that break and keep each rule. A rule without a sample that breaks it might never fail.

use super::RULES;
use crate::tidy::Finding;
use crate::tidy::licences::REPORT;
use crate::tidy::tree::Tree;

type Files = &'static [(&'static str, &'static str)];

const DENY_PATH: &str = "deny.toml";
const LOCK: &str = "Cargo.lock";
const CORE: &str = "crates/duplexer-server/src/kernel/context.rs";
const FACADE: &str = "crates/duplexer/src/lib.rs";
const KERNEL: &str = "crates/duplexer-server/src/kernel/runner.rs";

const DENY: &str = r#"
[licenses]
allow = [
    "MIT",
    "Apache-2.0 WITH LLVM-exception",
]
exceptions = [
    { crate = "roots", allow = ["CDLA-Permissive-2.0"] },
]
[bans]
skip = [
    { crate = "twice@0.2", reason = "an old dependency" },
]
"#;
const LOCKED: &str = r#"
name = "roots"
version = "1.0.0"
name = "twice"
version = "0.2.17"
name = "twice"
version = "0.4.3"
"#;

const MANIFEST: &str = "crates/x/Cargo.toml";
const PACKAGED: &str = r#"
[package]
description = "X"
license.workspace = true
readme = "README.md"
keywords.workspace = true
categories.workspace = true
[package.metadata.docs.rs]
"#;

/// The rule, a tree that breaks it, and the line of the finding.
const BROKEN: &[(&str, Files, usize)] = &[
    ("module-edge", &[("crates/duplexer-core/src/transport.rs", "use crate::dispatch::Peer;")], 1),
    ("module-edge", &[("crates/duplexer-core/src/transport/lines.rs", "fn f() { crate::dispatch::g() }")], 1),
    ("module-edge", &[("crates/duplexer-core/src/transport.rs", "use super::dispatch;")], 1),
    ("module-edge", &[("crates/duplexer-server/src/kernel/runner.rs", "use crate::catalog::Catalog;")], 1),
    (
        "module-edge",
        &[("crates/duplexer-server/src/catalog/tool.rs", "use crate::builder::ServerBuilder;")],
        1,
    ),
    ("module-edge", &[("crates/duplexer-server/src/schema.rs", "use crate::catalog::tool::Tool;")], 1),
    (
        "module-edge",
        &[("crates/duplexer-server/src/features.rs", "use crate::{\n  kernel,\n  catalog::X,\n};")],
        3,
    ),
    (
        "module-edge",
        &[("crates/duplexer-core/src/dispatch/call.rs", "use duplexer_types::methods::CallTool;")],
        1,
    ),
    ("module-edge", &[("crates/duplexer-core/src/dispatch/call.rs", "use duplexer_types::methods;")], 1),
    (
        "module-edge",
        &[("crates/duplexer-core/src/dispatch/call.rs", "if known == Some(Method::ToolsCall) {}")],
        1,
    ),
    ("module-edge", &[("crates/duplexer-server/src/kernel/input.rs", "use super::super::catalog::X;")], 1),
    (
        "module-edge",
        &[
            ("crates/duplexer-server/src/lib.rs", "pub mod catalog;\npub use catalog::Catalog;"),
            ("crates/duplexer-server/src/kernel.rs", "\nuse crate::Catalog;"),
        ],
        2,
    ),
    (
        "module-edge",
        &[
            ("crates/duplexer-types/src/lib.rs", "pub mod methods;\npub use methods::CallTool;"),
            ("crates/duplexer-core/src/dispatch.rs", "use duplexer_types::CallTool;"),
        ],
        1,
    ),
    ("module-edge", &[("crates/duplexer-types/src/version.rs", "use crate::error::ErrorCode;")], 1),
    ("module-edge", &[("crates/duplexer-types/src/tool.rs", "use crate::methods::CallTool;")], 1),
    (
        "module-edge",
        &[
            ("crates/duplexer-server/src/lib.rs", "mod catalog;\npub use catalog::tool;"),
            ("crates/duplexer-http/src/server.rs", "use duplexer_server::tool::Tool;"),
        ],
        1,
    ),
    (
        "crate-edge",
        &[("crates/duplexer-client/Cargo.toml", "[dependencies]\nduplexer-server.workspace = true")],
        2,
    ),
    ("crate-edge", &[("crates/duplexer-types/Cargo.toml", "[dependencies]\ntokio.workspace = true")], 2),
    ("crate-edge", &[("crates/duplexer-types/Cargo.toml", "[dependencies.tokio]\nversion = \"1\"")], 1),
    (
        "crate-edge",
        &[("crates/duplexer-core/Cargo.toml", "[target.'cfg(unix)'.dependencies]\nhyper = \"1\"")],
        2,
    ),
    ("http-sees-no-registry", &[("crates/duplexer-http/src/server.rs", "fn f(r: &ToolRegistry) {}")], 1),
    ("kernel-is-blind", &[(KERNEL, "if method == Method::CallTool {}")], 1),
    ("kernel-is-blind", &[(KERNEL, "fn f(h: &http::HeaderMap) {}")], 1),
    ("kernel-is-blind", &[(KERNEL, "use hyper::Request;")], 1),
    ("stray-method", &[(CORE, "let a = 1;\nlet m = \"tools/call\";")], 2),
    ("stray-method", &[(CORE, "let m = r#\"{\"method\":\"notifications/resources/updated\"}\"#;")], 1),
    ("stray-method", &[(CORE, "let m = \"initialize\";")], 1),
    ("stray-version", &[(CORE, "if v >= ProtocolVersion::V2025_06_18 {}")], 1),
    ("stray-version", &[(CORE, "use ProtocolVersion::{V2026_07_28 as New};")], 1),
    ("stray-version", &[(CORE, "if v == \"2025-11-25\" {}")], 1),
    ("machine-path", &[(CORE, "let p = \"/tmp/socket\";")], 1),
    ("machine-path", &[(CORE, "let p = \"file:/work/x\";")], 1),
    ("stands-alone", &[("docs/guide.md", concat!("see\n", "..", "/shared/notes"))], 2),
    ("no-mod-rs", &[("crates/duplexer-server/src/kernel/mod.rs", "")], 0),
    ("module-header", &[(CORE, "use std::fmt;\n//! Too late.")], 1),
    ("module-header", &[(CORE, "//!\n//!\n//!\n//!\n//!\n//!\n//!\n//!\n//!\n//!\n//!\n")], 1),
    ("todo-has-issue", &[(CORE, "f(); // TODO: later")], 1),
    ("todo-has-issue", &[(CORE, "/* FIXME(soon) */")], 1),
    ("todo-has-issue", &[("xtask/src/main.rs", "/// TODO(#)")], 1),
    ("type-name", &[(CORE, "pub struct SessionManager<S> {}")], 1),
    ("type-name", &[(CORE, "pub(crate) enum StringUtils {}")], 1),
    ("type-name", &[(CORE, "pub trait BaseHandler {}")], 1),
    (
        "one-wire-boundary",
        &[
            (CORE, "pub(crate) fn to_wire() {}"),
            ("crates/duplexer-core/src/dispatch.rs", "fn error_to_wire() {}"),
        ],
        1,
    ),
    (
        "type-example",
        &[(FACADE, "pub use a::{\n    Server,\n};"), (CORE, "/// A server.\npub struct Server;")],
        2,
    ),
    (
        "type-example",
        &[
            (
                "crates/duplexer/src/client.rs",
                "pub use b::Hidden;\npub mod prelude {\n    pub use b::Client;\n}",
            ),
            (CORE, "/// ```\npub struct ClientBuilder {\n}\n\npub struct Client {}\n\npub enum Hidden {}"),
        ],
        3,
    ),
    ("phrase", &[(CORE, "// Sent to whoever waits.")], 1),
    ("phrase", &[(CORE, "\n/// Nobody's business.")], 2),
    ("phrase", &[(CORE, "//! One.\n//! A request under\n//! way.")], 2),
    ("phrase", &[(CORE, "fn a_call_that_is_called_off() {}")], 1),
    ("phrase", &[(CORE, "self.call_off(id);")], 1),
    ("phrase", &[(CORE, "struct UnderWay;")], 1),
    ("phrase", &[(CORE, "const UNDER_WAY: usize = 1;")], 1),
    ("phrase", &[(CORE, "fn guests_let_in() {}")], 1),
    ("phrase", &[(CORE, "let a = \"the client was told\";")], 1),
    ("phrase", &[("crates/duplexer-core/tests/it.rs", "let told = 1;")], 1),
    ("phrase", &[("README.md", "# Streams\n\nA stream is taken up\nagain, as it stands.")], 3),
    ("phrase", &[("docs/guide.md", "Only those with a token are Let in; others are passed over.")], 1),
    ("dependency-licence", &[(DENY_PATH, DENY), (LOCK, LOCKED), (REPORT, "a v1|MIT\nb v1|GPL-3.0")], 2),
    ("dependency-licence", &[(DENY_PATH, DENY), (LOCK, LOCKED), (REPORT, "a v1|")], 1),
    ("dependency-licence", &[(DENY_PATH, DENY), (LOCK, LOCKED), (REPORT, "a v1|MIT AND GPL-3.0")], 1),
    ("dependency-licence", &[(DENY_PATH, DENY), (LOCK, LOCKED), (REPORT, "a v1|(MIT OR X) AND (X OR Y)")], 1),
    ("dependency-licence", &[(DENY_PATH, DENY), (LOCK, LOCKED), (REPORT, "a v1|(MIT")], 1),
    ("dependency-licence", &[(DENY_PATH, DENY), (LOCK, LOCKED), (REPORT, "a v1|MIT WITH X")], 1),
    ("dependency-licence", &[(DENY_PATH, DENY), (LOCK, LOCKED), (REPORT, "a v1|CDLA-Permissive-2.0")], 1),
    ("dependency-licence", &[(DENY_PATH, DENY), (LOCK, ""), (REPORT, "a v1|MIT")], 8),
    ("dependency-source", &[(LOCK, "name = \"a\"\nsource = \"git+https://a.example/a\"")], 2),
    ("dependency-source", &[("fuzz/Cargo.lock", "source = \"registry+https://a.example/index\"")], 1),
    (
        "dependency-versions",
        &[
            (DENY_PATH, DENY),
            (
                LOCK,
                "name = \"twice\"\nversion = \"0.2.1\"\nname = \"b\"\nversion = \"1\"\nname = \"b\"\nversion = \"2\"",
            ),
        ],
        5,
    ),
    (
        "dependency-versions",
        &[
            (DENY_PATH, DENY),
            (
                LOCK,
                "name = \"twice\"\nversion = \"0.2.1\"\nname = \"twice\"\nversion = \"0.20.1\"\nname = \"twice\"\nversion = \"2\"",
            ),
        ],
        5,
    ),
    ("dependency-versions", &[(DENY_PATH, DENY), (LOCK, "name = \"twice\"\nversion = \"0.4.3\"")], 12),
    (
        "dependency-versions",
        &[(DENY_PATH, "[bans]\nskip = [\n  { crate = \"twice@0.2\" },\n]"), (LOCK, LOCKED)],
        3,
    ),
    ("package", &[(MANIFEST, PACKAGED), ("crates/x/README.md", ""), ("crates/x/LICENSE-MIT", "")], 0),
    (
        "package",
        &[
            (MANIFEST, "[package]\nlicense.workspace = true"),
            ("crates/x/README.md", ""),
            ("crates/x/LICENSE-MIT", ""),
            ("crates/x/LICENSE-APACHE", ""),
        ],
        0,
    ),
];

/// The rule and a tree that keeps it, for possible false positives.
const KEPT: &[(&str, Files)] = &[
    ("module-edge", &[("crates/duplexer-core/src/dispatch.rs", "use crate::transport::Lines;")]),
    (
        "module-edge",
        &[("crates/duplexer-core/src/dispatch.rs", "use duplexer_types::methods::{Cancelled, Progress};")],
    ),
    (
        "module-edge",
        &[(
            "crates/duplexer-core/src/dispatch.rs",
            "use duplexer_types::methods::Method;\nlet known = Method::parse(name);",
        )],
    ),
    (
        "module-edge",
        &[("crates/duplexer-server/src/kernel.rs", "// crate::catalog\nlet s = \"crate::catalog\";")],
    ),
    (
        "module-edge",
        &[("crates/duplexer-server/src/kernel.rs", "#[cfg(test)]\nmod tests {\n  use crate::catalog::X;\n}")],
    ),
    ("module-edge", &[("crates/duplexer-server/src/builder.rs", "use crate::{catalog::A, kernel::B};")]),
    ("module-edge", &[("crates/duplexer-server/src/lib.rs", "pub use crate::catalog::Catalog;")]),
    ("module-edge", &[("crates/duplexer-types/src/wire.rs", "use crate::methods::Method;")]),
    (
        "module-edge",
        &[("crates/duplexer-types/src/methods.rs", "use crate::{tool::CallToolParams, version::Era};")],
    ),
    (
        "crate-edge",
        &[(
            "crates/duplexer-types/Cargo.toml",
            "[dependencies]\nserde = \"1\"\n[dev-dependencies]\ntokio = \"1\"",
        )],
    ),
    ("crate-edge", &[("crates/duplexer-types/Cargo.toml", "[dev-dependencies.tokio]\nversion = \"1\"")]),
    (
        "http-sees-no-registry",
        &[("crates/duplexer-http/src/server.rs", "// no registry here\nfn f(r: &RunningServer) {}")],
    ),
    ("kernel-is-blind", &[(KERNEL, "let m = Method::parse(name); for m in Method::ALL {} let https::x;")]),
    ("kernel-is-blind", &[(CORE, "if method == Method::CallTool {}")]),
    ("stray-method", &[("crates/duplexer-types/src/methods.rs", "\"tools/call\"")]),
    ("stray-method", &[("crates/duplexer-types/src/tool.rs", "\n#[doc(alias = \"tools/call\")]")]),
    (
        "stray-method",
        &[(CORE, "/// Answers `tools/call`.\n#[cfg(test)]\nmod tests { const A: &str = \"tools/call\"; }")],
    ),
    (
        "stray-method",
        &[(
            CORE,
            "let t = (\"text/html\", \"the ping was late\", \"https://a.example/tools/list\", \"tools/\");",
        )],
    ),
    ("stray-method", &[("crates/duplexer-server/src/kernel/tests.rs", "let m = \"tools/call\";")]),
    ("stray-method", &[("crates/duplexer-core/tests/it.rs", "let m = \"tools/call\";")]),
    ("stray-version", &[("crates/duplexer-server/src/kernel/lifecycle.rs", "ProtocolVersion::V2025_06_18")]),
    ("stray-version", &[("crates/duplexer-types/src/tool.rs", "title since V2025_06_18")]),
    ("stray-version", &[(CORE, "// V2025_06_18\nlet a = (ProtocolVersion::LATEST, \"2025-6-18\", V2);")]),
    (
        "machine-path",
        &[(
            CORE,
            "let p = \"https://a.example/tmp/x\"; // /tmp/x\n#[cfg(test)]\nconst A: &str = \"/tmp/x\";",
        )],
    ),
    ("stands-alone", &[("docs/guide.md", "a shared folder ../share")]),
    ("no-mod-rs", &[("crates/duplexer-server/src/kernel/xmod.rs", "")]),
    ("module-header", &[(CORE, "//! Contexts.\n//!\n//! They know their connection.\n\nuse std::fmt;")]),
    (
        "module-header",
        &[("crates/a/src/lib.rs", "//!\n//!\n//!\n//!\n//!\n//!\n//!\n//!\n//!\n//!\n//!\n//!\n")],
    ),
    ("todo-has-issue", &[(CORE, "// TODO(#12): later, in AUTODOC\nlet t = \"TODO\";")]),
    (
        "type-name",
        &[(CORE, "struct Base64Value; enum Session {} // struct FooManager\nfn manager() -> Manager {}")],
    ),
    (
        "one-wire-boundary",
        &[
            (CORE, "fn to_wire() {}\n#[cfg(test)]\nfn fake_to_wire() {}"),
            ("crates/duplexer-types/src/wire.rs", "fn to_wire() {}"),
        ],
    ),
    (
        "type-example",
        &[
            (FACADE, "pub use a::{Server, Error, run};\npub mod low {\n    pub use a::Rare;\n}"),
            (
                CORE,
                "/// ```\n/// ```\n#[must_use]\npub struct Server<T> {\n}\n\npub type Error = u8;\n\npub trait Rare {}",
            ),
        ],
    ),
    (
        "type-example",
        &[
            (FACADE, "pub use a::{Open, Page};"),
            (
                CORE,
                "pub trait Open {\n    /// ```\n    fn open();\n}\n\nmodel! {\n    /// ```\n    pub cacheable result Page {}\n}",
            ),
        ],
    ),
    ("phrase", &[(CORE, "// Untold; a call, off the record. `let in_flight = 1` goes underway.")]),
    ("phrase", &[(CORE, "let inner = let_inner(under, way); let in_flight = call(off);")]),
    ("phrase", &[(CORE, "// They call.\n\n// Off they go.")]),
    ("phrase", &[("CHANGELOG.md", "`call_off` is now `cancel`: whoever used it has to rename it.")]),
    ("phrase", &[("interop/drive.py", "nobody = 1")]),
    (
        "dependency-licence",
        &[
            (DENY_PATH, DENY),
            (LOCK, LOCKED),
            (
                REPORT,
                "a v1|MIT\n\nb v1 (/b)|Apache-2.0/MIT (*)\nc v1|X OR (MIT AND MIT)\nroots v1|CDLA-Permissive-2.0\n\
                 d v1|X OR Apache-2.0 WITH LLVM-exception OR Y",
            ),
        ],
    ),
    ("dependency-licence", &[(DENY_PATH, DENY), (LOCK, "")]),
    (
        "dependency-source",
        &[(LOCK, "name = \"a\"\nsource = \"registry+https://github.com/rust-lang/crates.io-index\"")],
    ),
    ("dependency-versions", &[(DENY_PATH, DENY), (LOCK, LOCKED)]),
    (
        "package",
        &[
            (MANIFEST, PACKAGED),
            ("crates/x/README.md", ""),
            ("crates/x/LICENSE-MIT", ""),
            ("crates/x/LICENSE-APACHE", ""),
        ],
    ),
    ("package", &[(MANIFEST, "[package]\npublish = false")]),
];

fn check(rule: &str, files: &[(&str, &str)]) -> Vec<Finding> {
    let rule = RULES.iter().find(|candidate| candidate.name == rule).expect("the sample names a rule");
    (rule.check)(&Tree::of(files))
}

#[test]
fn a_broken_rule_is_found_where_it_is_broken() {
    for (rule, files, line) in BROKEN {
        let findings = check(rule, files);
        assert_eq!(findings.first().map(|finding| finding.line), Some(*line), "{rule}: {files:?}");
    }
}

#[test]
fn a_rule_that_is_kept_finds_nothing() {
    for (rule, files) in KEPT {
        let findings: Vec<String> = check(rule, files).iter().map(ToString::to_string).collect();
        assert_eq!(findings, Vec::<String>::new(), "{rule}: {files:?}");
    }
}

#[test]
fn every_rule_has_a_sample_that_breaks_it_and_one_that_keeps_it() {
    // The size rule needs long files; its tests are below.
    for rule in RULES.iter().filter(|rule| rule.name != "file-size") {
        assert!(BROKEN.iter().any(|(name, ..)| *name == rule.name), "nothing breaks {}", rule.name);
        assert!(KEPT.iter().any(|(name, _)| *name == rule.name), "nothing keeps {}", rule.name);
    }
}

#[test]
fn a_file_fails_above_400_lines() {
    let is_broken = |path: &str, lines| !check("file-size", &[(path, &"x;\n".repeat(lines))]).is_empty();
    assert!(!is_broken(CORE, 400));
    assert!(is_broken(CORE, 401));
    assert!(is_broken("xtask/src/main.rs", 401));
}

#[test]
fn tests_and_tables_may_be_long() {
    let long = "x;\n".repeat(601);
    let tail = format!("a;\n#[cfg(test)]\nmod tests {{\n{long}}}\n");
    for (path, text) in [
        (CORE, &tail),
        ("crates/duplexer-types/src/methods.rs", &long),
        ("crates/duplexer-server/src/kernel/tests.rs", &long),
        ("crates/duplexer-core/tests/it.rs", &long),
        ("benches/src/main.rs", &long),
        ("examples/a/main.rs", &long),
        ("fuzz/fuzz_targets/frame.rs", &long),
    ] {
        assert!(check("file-size", &[(path, text)]).is_empty(), "{path}");
    }
    let nested = format!("mod a {{\n    #[cfg(test)]\n    mod b;\n}}\n{long}");
    assert!(!check("file-size", &[(CORE, &nested)]).is_empty(), "only a mark at the margin ends the count");
}
