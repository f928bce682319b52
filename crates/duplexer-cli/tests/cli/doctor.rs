//! `duplexer doctor`: it finds what is planted, and no errors on sound servers.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::faulty::faulty;
use crate::support::{Demo, NOWHERE, PROGRAM, Ran, run};

/// Runs `doctor` and returns its report.
fn examined(words: &[&str]) -> (Ran, Value) {
    let ran = run(&[&["doctor", "--json"], words].concat());
    assert_eq!(ran.stdout.lines().count(), 1, "{ran:?}");
    let report = serde_json::from_str(&ran.stdout).unwrap();
    (ran, report)
}

/// Returns the ids of the errors and warnings of a report.
fn found(report: &Value) -> BTreeSet<String> {
    let findings = report["findings"].as_array().unwrap();
    let serious = findings.iter().filter(|finding| finding["severity"] != "info");
    serious.map(|finding| finding["rule"].as_str().unwrap().to_owned()).collect()
}

/// Runs `doctor` and compares what it finds. Returns what is wrong.
fn compared(words: &[&str], expected: &[&str]) -> Result<(), String> {
    let (ran, report) = examined(words);
    let expected: BTreeSet<String> = expected.iter().map(|id| (*id).to_owned()).collect();
    let found = found(&report);
    let code = i32::from(report["errors"].as_u64().unwrap() > 0);
    if found != expected || ran.code != Some(code) || !ran.stderr.is_empty() {
        let (code, stderr, findings) = (ran.code, ran.stderr, &report["findings"]);
        return Err(format!(
            "{words:?}: {found:?} instead of {expected:?}, {code:?}, {stderr:?}, {findings:#}"
        ));
    }
    for finding in report["findings"].as_array().unwrap() {
        let text = |member: &str| finding[member].as_str().unwrap();
        let is_complete =
            !text("seen").is_empty() && !text("change").is_empty() && text("link").starts_with("https://");
        if !is_complete || text("seen").contains('\u{1b}') {
            return Err(format!("{words:?}: {finding:#}"));
        }
    }
    Ok(())
}

#[track_caller]
fn check(words: &[&str], expected: &[&str]) {
    compared(words, expected).unwrap();
}

/// Faults of a server over HTTP: the name of the fault, and the rules that it breaks.
const FAULTS: &[(&str, &[&str])] = &[
    ("none", &[]),
    ("stream", &[]),
    ("redirect", &["redirect"]),
    ("wrong-path", &["endpoint"]),
    ("page", &["era"]),
    ("no-envelope", &[]),
    ("no-handshake", &["handshake-era"]),
    ("rebinding", &["rebinding"]),
    ("host", &["host"]),
    ("origin", &["origin"]),
    ("simple-post", &["origin", "simple-post"]),
    ("media-type", &["media-type"]),
    ("media-type-parameters", &["media-type-parameters"]),
    ("cors-credentials", &["cors-credentials"]),
    ("cors-exposed", &["cors-exposed"]),
    ("content-type", &["content-type"]),
    ("response-id", &["response-id"]),
    ("jsonrpc", &["jsonrpc"]),
    ("unknown-method", &["unknown-method", "unknown-method-status"]),
    ("unknown-method-status", &["unknown-method-status"]),
    ("parse-error", &["parse-error"]),
    ("notification-status", &["notification-status"]),
    ("initialize", &["handshake-result"]),
    ("negotiation", &["negotiation"]),
    ("ping", &["ping-answer"]),
    ("session-id", &["session-id"]),
    ("session-unknown", &["session-unknown"]),
    ("session-required", &["session-required"]),
    ("get-stream", &["get-stream"]),
    ("version-header", &["version-header"]),
    ("discover", &["discover"]),
    ("result-type", &["result-type"]),
    ("header-mismatch", &["header-mismatch"]),
    ("unsupported-version", &["unsupported-version"]),
    ("unsupported-version-list", &["unsupported-version"]),
    ("meta-required", &["meta-required"]),
    ("capabilities", &["capabilities"]),
    ("undeclared", &["undeclared"]),
    ("list-shape", &["list-shape"]),
    ("pages", &["pages", "tool-unique"]),
    ("endless", &["pages", "tool-unique"]),
    ("tool-unique", &["tool-unique"]),
    ("tool-name", &["tool-name"]),
    ("tool-name-long", &["tool-name"]),
    ("hidden-text", &["hidden-text"]),
    ("schema-root", &["schema-root"]),
    ("schema-null", &["schema-root"]),
    ("schema-valid", &["schema-valid"]),
    ("schema-reference", &["schema-reference"]),
    ("schema-union", &["schema-union"]),
    ("schema-boolean", &["schema-boolean"]),
    ("schema-items", &["schema-items"]),
    ("schema-format", &["schema-format"]),
    ("schema-recursion", &["schema-recursion"]),
    ("output-root", &["output-root"]),
    ("login", &[]),
    ("login-no-challenge", &["challenge", "resource-metadata"]),
    ("login-basic", &["challenge", "resource-metadata"]),
    ("login-no-metadata", &["resource-metadata"]),
    ("login-dead-link", &["metadata-link"]),
    ("login-resource", &["resource"]),
    ("login-no-authority", &["authority"]),
    ("login-dead-authority", &["authority"]),
    ("login-issuer", &["issuer"]),
    ("login-pkce", &["pkce"]),
    ("login-registration", &["registration"]),
    ("login-plain-http", &["protected"]),
];

#[test]
fn every_planted_fault_of_a_url_is_found_and_nothing_else() {
    let examine = |(fault, expected): &(&'static str, &[&str])| {
        compared(&[&faulty(fault)], expected).err().map(|wrong| format!("{fault}: {wrong}"))
    };
    let wrong: Vec<String> = FAULTS.iter().filter_map(examine).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    check(&[NOWHERE], &["reachable"]);
    // Once the server is broken everything else fails too.
    let (_, report) = examined(&[&faulty("survives-garbage")]);
    assert!(found(&report).contains("survives-garbage"), "{report:#}");
}

/// A server that accepts parameters of the media type, but no upper case, has no fault that keeps clients out.
#[test]
fn upper_case_in_a_media_type_is_a_note_of_its_own() {
    let (ran, report) = examined(&[&faulty("media-type-case")]);
    assert_eq!(ran.code, Some(0), "{report:#}");
    let rules: Vec<_> = report["findings"].as_array().unwrap().iter().map(|one| &one["rule"]).collect();
    assert!(rules.contains(&&"media-type-case".into()), "{report:#}");
    assert!(!rules.contains(&&"media-type-parameters".into()), "{report:#}");
    let (_, report) = examined(&[&faulty("media-type-parameters")]);
    assert!(!report["findings"].to_string().contains("media-type-case"), "{report:#}");
}

/// Behind a login everything else is checked with a token, and the chain of the login too.
#[test]
fn with_a_token_the_server_behind_a_login_is_checked() {
    let (_, report) = examined(&[&faulty("login")]);
    assert!(report["findings"].to_string().contains("not-checked"), "{report:#}");
    check(&["--token", "sesame", &faulty("login")], &[]);
    check(&["--header", "Authorization: Bearer sesame", &faulty("login-pkce")], &["pkce"]);
    let (_, report) = examined(&["--token", "wrong", &faulty("login")]);
    assert!(report["findings"].to_string().contains("the given token was refused"), "{report:#}");
}

/// Faults of a program: what a shell runs with `$0` being this program, and the rules that it breaks.
const PROGRAMS: &[(&str, &[&str])] = &[
    ("echo 'Starting \u{1b}[2J'; exec $0 demo --stdio", &["stdout"]),
    ("$0 demo --stdio; echo bye", &["stdout"]),
    ("$0 demo --stdio; exec tail -f /dev/null", &["exit-on-eof"]),
    ("trap '' TERM; $0 demo --stdio; cat > /dev/null", &["sigterm"]),
    ("$0 demo --stdio; exit 3", &["exit-status"]),
    ("sed -u '/, $/q' | $0 demo --stdio", &["survives-garbage"]),
    (r#"$0 demo --stdio | sed -u 's/"error":{"code":-32601[^}]*}/"result":{}/'"#, &["unknown-method"]),
    (r#"$0 demo --stdio | sed -u 's/"id":\([0-9][0-9]*\)/"id":"\1"/'"#, &["response-id"]),
    (r#"$0 demo --stdio | sed -u 's/"jsonrpc":"2.0",//'"#, &["jsonrpc"]),
    (r#"$0 demo --stdio | sed -u 's/"resultType":"complete",\{0,1\}//'"#, &["result-type"]),
    ("exit 1", &["reachable"]),
    ("cat", &["era"]),
];

#[test]
fn every_planted_fault_of_a_program_is_found_and_nothing_else() {
    let examine = |(script, expected): &(&str, &[&str])| {
        compared(&["--timeout", "5", "--", "sh", "-c", script, PROGRAM], expected).err()
    };
    let wrong: Vec<String> = PROGRAMS.iter().filter_map(examine).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    check(&["--", "/no/such/program"], &["reachable"]);
}

/// Warnings on our own servers are a recorded list; there are no errors.
#[test]
fn our_own_servers_have_no_errors_and_the_recorded_warnings() {
    let recorded = include_str!("../../../../interop/doctor/duplexer.txt");
    let warnings = |server: &str| -> Vec<&str> {
        let lines = recorded.lines().filter(|line| !line.starts_with('#'));
        lines
            .filter_map(|line| line.split_once(' '))
            .filter(|(name, _)| *name == server)
            .map(|(_, rule)| rule)
            .collect()
    };
    let demo = Demo::start();
    check(&[&demo.url], &warnings("http"));
    check(&[&demo.url.replace("/mcp", "/mcp/")], &warnings("http"));
    check(&["--", PROGRAM, "demo", "--stdio"], &warnings("stdio"));
    let guarded = Demo::with(&["--auth", "dev"]);
    check(&[&guarded.url], &warnings("login"));
}

#[test]
fn a_report_can_be_text_or_junit() {
    let url = faulty("tool-name");
    let text = run(&["doctor", &url]).ok();
    for part in [
        "warning   tool-name: names of tools",
        "  seen    the tool `my tool!`",
        "  change  use 1 to 64",
        "0 errors, 1 warning",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let strict = run(&["doctor", "--strict", &url]);
    assert_eq!((strict.code, strict.stderr.as_str()), (Some(1), ""));
    let xml = run(&["doctor", "--junit", &url]).ok();
    assert!(
        xml.starts_with("<?xml") && xml.contains("failures=\"0\"") && xml.contains("<system-out>warning: "),
        "{xml}"
    );
    let xml = run(&["doctor", "--junit", "--strict", &url]);
    assert!(xml.code == Some(1) && xml.stdout.contains("<failure type=\"warning\""), "{xml:?}");
    let xml = run(&["doctor", "--junit", &faulty("page")]).stdout;
    assert!(xml.contains("&lt;h1&gt;") && !xml.contains('\u{1b}'), "{xml}");
}

/// The outputs in the document are what this program prints, apart from the address and the time.
#[test]
fn the_document_shows_real_reports() {
    let document = include_str!("../../../../docs/cli.md");
    let shown = |command: &str| {
        let (_, rest) = document.split_once(&format!("```\n$ duplexer doctor {command}\n")).unwrap();
        timeless(rest.split("```").next().unwrap())
    };
    let printed = |ran: &Ran, from: &str, to: &str| timeless(&ran.stdout.replace(from, to));
    let demo = Demo::start();
    let ran = run(&["doctor", &demo.url]);
    let url = "http://127.0.0.1:8000/mcp";
    assert_eq!(shown(url), printed(&ran, &demo.url, url));
    let script = "echo Starting; duplexer demo --stdio; exit 3";
    let real = script.replace("duplexer", PROGRAM);
    let ran = run(&["doctor", "--", "sh", "-c", &real]);
    assert_eq!(ran.code, Some(1));
    assert_eq!(shown(&format!("-- sh -c '{script}'")), printed(&ran, &real, script));
}

/// Returns a report without the measured time, which is a note on a busy machine.
fn timeless(report: &str) -> String {
    let parts: Vec<&str> = report.trim_end().split("\n\n").collect();
    let rest: Vec<&str> =
        parts.iter().copied().filter(|part| !part.starts_with("info      latency")).collect();
    let text = rest.join("\n\n");
    let text = text.split(" with a median latency of ").next().unwrap();
    if rest.len() < parts.len() { text.replace("1 note;", "0 notes;") } else { text.to_owned() }
}

/// Many equal findings are counted.
#[test]
fn findings_are_bounded() {
    let (_, report) = examined(&[&faulty("many")]);
    assert_eq!(
        (&report["warnings"], &report["omitted"]["tool-name"]),
        (&30.into(), &22.into()),
        "{report:#}"
    );
    assert!(run(&["doctor", &faulty("many")]).ok().contains("and 22 more"));
}

#[test]
fn wrong_usage_of_doctor_is_2() {
    assert_eq!(run(&["doctor"]).code, Some(2));
    assert_eq!(run(&["doctor", "--json", "--junit", NOWHERE]).code, Some(2));
    run(&["doctor", "--token", "x", "--", PROGRAM])
        .failed(2, "--header and --token are for servers at a URL");
    run(&["doctor", "nothing"]).failed(2, "a name is in mcp.json");
}
