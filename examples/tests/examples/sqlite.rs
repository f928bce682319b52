//! Drives the `SQLite` explorer over its standard streams, in both eras, and holds it to its size.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::{Value, json};

/// A database that is removed when it is dropped.
struct Database(PathBuf);

impl Database {
    fn new(name: &str) -> Self {
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}-{}.db", std::process::id()));
        let _ = std::fs::remove_file(&path);
        let db = rusqlite::Connection::open(&path).unwrap();
        let tables = "create table users (name text, age integer, photo blob, height real);
            insert into users values ('Ada', 36, x'0102', 1.5), ('Grace', null, null, 2.0);
            create table \"odd \"\"name\" (x);";
        db.execute_batch(tables).unwrap();
        Self(path)
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

/// Sends requests of the envelope era to the explorer. Returns the responses by id, and all notifications.
fn explore(database: &Database, requests: &[(&str, Value)]) -> (Vec<Value>, Vec<Value>) {
    let mut server = Command::new(env!("CARGO_BIN_EXE_sqlite"))
        .arg(&database.0)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = server.stdin.take().unwrap();
    for (id, (method, params)) in requests.iter().enumerate() {
        let mut params = params.clone();
        params["_meta"] = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {},
            "progressToken": id,
        });
        let request = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
        writeln!(input, "{request}").unwrap();
    }
    drop(input);
    let output = server.wait_with_output().unwrap();
    assert!(output.status.success());
    let text = String::from_utf8(output.stdout).unwrap();
    let frames = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let (mut answers, notifications): (Vec<_>, Vec<_>) = frames.partition(|frame| frame.get("id").is_some());
    answers.sort_by_key(|answer| answer["id"].as_u64());
    (answers, notifications)
}

#[expect(clippy::needless_pass_by_value, reason = "tests read better without references")]
fn call(tool: &str, arguments: Value) -> (&'static str, Value) {
    ("tools/call", json!({ "name": tool, "arguments": arguments }))
}

#[test]
fn the_explorer_lists_queries_and_counts() {
    let database = Database::new("tools");
    let (answers, notifications) = explore(
        &database,
        &[
            call("list_tables", json!({})),
            call("query", json!({ "sql": "select * from users order by name", "limit": 1 })),
            call("query", json!({ "sql": "select name, age from users order by name" })),
            call("count_rows", json!({})),
        ],
    );
    let structured = |id: usize| &answers[id]["result"]["structuredContent"];
    assert_eq!(structured(0), &json!(["odd \"name", "users"]));
    let first = json!({ "columns": ["name", "age", "photo", "height"],
        "rows": [["Ada", 36, "<2 bytes>", 1.5]], "truncated": true });
    assert_eq!(structured(1), &first);
    assert_eq!(structured(2)["rows"], json!([["Ada", 36], ["Grace", null]]));
    assert_eq!(structured(2)["truncated"], false);
    assert_eq!(structured(3), &json!({ "odd \"name": 0, "users": 2 }));
    let reports: Vec<_> = notifications.iter().map(|one| &one["params"]["message"]).collect();
    assert_eq!(reports, ["odd \"name", "users"]);
    assert_eq!(notifications[1]["params"]["total"], 2.0);
}

#[test]
fn the_explorer_says_what_is_wrong_and_writes_nothing() {
    let database = Database::new("faults");
    let (answers, _) = explore(
        &database,
        &[
            call("query", json!({ "sql": "select colour from users" })),
            call("query", json!({ "sql": "delete from users" })),
            call("query", json!({ "sql": "select 1", "limit": 1001 })),
            call("query", json!({ "sql": "select 1", "limit": 0 })),
        ],
    );
    let text = |id: usize| {
        assert_eq!(answers[id]["result"]["isError"], true, "{}", answers[id]);
        answers[id]["result"]["content"][0]["text"].as_str().unwrap()
    };
    assert!(text(0).contains("no such column: colour"), "{}", text(0));
    assert_eq!(text(1), "Only statements that read are allowed.");
    assert!(text(2).contains("/limit: expected at most 1000, got 1001"), "{}", text(2));
    assert!(text(3).contains("/limit: expected at least 1, got 0"), "{}", text(3));
    let db = rusqlite::Connection::open(&database.0).unwrap();
    assert_eq!(db.query_row("select count(*) from users", [], |row| row.get::<_, i64>(0)).unwrap(), 2);
}

#[test]
fn the_explorer_has_resources_with_completion() {
    let database = Database::new("resources");
    let template = json!({ "type": "ref/resource", "uri": "sqlite://tables/{table}" });
    let (answers, _) = explore(
        &database,
        &[
            ("resources/read", json!({ "uri": "sqlite://tables" })),
            ("resources/read", json!({ "uri": "sqlite://tables/users" })),
            ("resources/read", json!({ "uri": "sqlite://tables/nothing" })),
            (
                "completion/complete",
                json!({ "ref": template, "argument": { "name": "table", "value": "U" } }),
            ),
        ],
    );
    let text = |id: usize| answers[id]["result"]["contents"][0]["text"].as_str().unwrap();
    assert_eq!(serde_json::from_str::<Value>(text(0)).unwrap(), json!(["odd \"name", "users"]));
    assert!(text(1).starts_with("CREATE TABLE users"), "{}", text(1));
    assert_eq!(answers[1]["result"]["contents"][0]["mimeType"], "application/sql");
    assert_eq!(answers[2]["error"]["message"], "Unknown resource: sqlite://tables/nothing");
    assert_eq!(answers[3]["result"]["completion"]["values"], json!(["users"]));
}

/// A user copies this program: it shows how little a server needs.
#[test]
fn the_explorer_needs_at_most_90_lines_and_converts_no_error_by_hand() {
    let source = include_str!("../../sqlite/main.rs");
    let is_code = |line: &&str| !line.trim().is_empty() && !line.trim_start().starts_with("//");
    let lines = source.lines().filter(is_code).count();
    assert!(lines <= 90, "{lines} lines");
    assert!(!source.contains("map_err"));
}
