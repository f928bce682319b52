//! The table against the schemas, the lists of the revisions without a schema, and the documentation of the types.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::*;
use crate::version::ProtocolVersion as V;

const C2S: Direction = Direction::ClientToServer;
const S2C: Direction = Direction::ServerToClient;

/// The names in a direction at a revision, by kind.
fn names(
    version: V,
    direction: Direction,
    kind: Kind,
    keep: impl Fn(Method) -> bool,
) -> BTreeSet<&'static str> {
    let rows = METHODS.iter().filter(|row| row.kind == kind && row.method.exists(direction, version));
    rows.filter(|row| keep(row.method)).map(|row| row.name).collect()
}

/// The methods of a union such as `ClientRequest`, each with the definition of its message.
fn union(schema: &Value, name: &str) -> BTreeMap<String, String> {
    let defs = &schema["$defs"];
    let Some(union) = defs.get(name) else { return BTreeMap::new() };
    let method = |def: &Value| def["properties"]["method"]["const"].as_str().expect("a method").to_owned();
    match union["anyOf"].as_array() {
        None => BTreeMap::from([(method(union), name.to_owned())]),
        Some(messages) => messages
            .iter()
            .map(|message| message["$ref"].as_str().and_then(|path| path.rsplit('/').next()).expect("a name"))
            .map(|message| (method(&defs[message]), message.to_owned()))
            .collect(),
    }
}

/// The four unions of each schema name the same methods as the table. Extensions have their own schemas; the tasks of
/// 2025-11-25 are no extension.
#[test]
fn the_table_agrees_with_the_schemas() {
    for version in [V::V2025_11_25, V::V2026_07_28] {
        let schema = crate::wire::tests::official(version);
        for (name, direction, kind) in [
            ("ClientRequest", C2S, Kind::Request),
            ("ServerRequest", S2C, Kind::Request),
            ("ClientNotification", C2S, Kind::Notification),
            ("ServerNotification", S2C, Kind::Notification),
        ] {
            let ours = names(version, direction, kind, |method| {
                let is_extension = method.row().marks.contains(&Extension);
                !is_extension || version.has(Window::HANDSHAKE) && method.name().contains("tasks/")
            });
            let theirs = union(&schema, name);
            assert_eq!(ours, theirs.keys().map(String::as_str).collect(), "{version} {name}");
        }
    }
}

/// Further properties of a message in the schemas: pagination, freshness, input requests.
#[test]
fn the_marks_agree_with_the_schema_of_2026_07_28() {
    let schema = crate::wire::tests::official(V::V2026_07_28);
    let defs = &schema["$defs"];
    for (method, message) in union(&schema, "ClientRequest") {
        let method = Method::parse(&method).expect("the table has it");
        let params =
            defs[&message]["properties"]["params"]["$ref"].as_str().and_then(|path| path.rsplit('/').next());
        let has_param = |name: &str| !defs[params.expect("a name")]["properties"][name].is_null();
        let result = &defs[message.replace("Request", "Result")];
        assert_eq!(method.is_paginated(), has_param("cursor"), "{method}");
        assert_eq!(method.asks_for_input(), has_param("requestState"), "{method}");
        assert_eq!(method.is_cacheable(), !result["properties"]["ttlMs"].is_null(), "{method}");
    }
}

/// TYP-20, P-TASK-17.
#[test]
fn marks_are_where_they_belong() {
    let marked = |has: fn(Method) -> bool| -> BTreeSet<&str> {
        METHODS.iter().filter(|row| has(row.method)).map(|row| row.name).collect()
    };
    assert_eq!(
        marked(Method::is_cacheable),
        BTreeSet::from([
            "prompts/list",
            "resources/list",
            "resources/read",
            "resources/templates/list",
            "server/discover",
            "skills/get",
            "skills/list",
            "tools/list",
        ])
    );
    assert_eq!(
        marked(Method::asks_for_input),
        BTreeSet::from(["tools/call", "prompts/get", "resources/read"])
    );
    let mirrored: Vec<_> =
        METHODS.iter().filter_map(|row| Some((row.name, row.method.mirrored_field()?))).collect();
    assert_eq!(
        mirrored,
        [
            ("tools/call", "name"),
            ("resources/read", "uri"),
            ("prompts/get", "name"),
            ("tasks/get", "taskId"),
            ("tasks/cancel", "taskId"),
            ("tasks/update", "taskId"),
        ]
    );
    let always: Vec<_> =
        METHODS.iter().filter(|row| row.kind == Kind::Request && row.phase == Phase::Always).collect();
    assert_eq!(always.iter().map(|row| row.name).collect::<Vec<_>>(), ["ping"]);
}

/// TYP-11: the requests of a client; task methods are not part of the core.
#[test]
fn clients_send_these_requests() {
    let check = |version: V, expected: &[&str]| {
        let expected: BTreeSet<&str> = expected.iter().copied().collect();
        assert_eq!(names(version, C2S, Kind::Request, Method::is_core), expected, "{version}");
    };
    for version in V::HANDSHAKE {
        check(
            *version,
            &[
                "initialize",
                "ping",
                "completion/complete",
                "logging/setLevel",
                "prompts/get",
                "prompts/list",
                "resources/list",
                "resources/read",
                "resources/templates/list",
                "resources/subscribe",
                "resources/unsubscribe",
                "tools/call",
                "tools/list",
            ],
        );
    }
    check(
        V::V2026_07_28,
        &[
            "completion/complete",
            "prompts/get",
            "prompts/list",
            "resources/list",
            "resources/read",
            "resources/templates/list",
            "server/discover",
            "subscriptions/listen",
            "tools/call",
            "tools/list",
        ],
    );
}

/// TYP-12, TYP-13, TYP-14: the other messages of each side.
#[test]
fn the_other_lists_are_these() {
    let check = |version: V, direction, kind, expected: &[&str]| {
        let expected: BTreeSet<&str> = expected.iter().copied().collect();
        assert_eq!(
            names(version, direction, kind, Method::is_core),
            expected,
            "{version} {direction:?} {kind:?}"
        );
    };
    for version in V::HANDSHAKE.iter().copied() {
        check(
            version,
            C2S,
            Kind::Notification,
            &[
                "notifications/cancelled",
                "notifications/initialized",
                "notifications/progress",
                "notifications/roots/list_changed",
            ],
        );
        let mut requests = vec!["ping", "roots/list", "sampling/createMessage"];
        let mut notifications = vec![
            "notifications/cancelled",
            "notifications/message",
            "notifications/progress",
            "notifications/prompts/list_changed",
            "notifications/resources/list_changed",
            "notifications/resources/updated",
            "notifications/tools/list_changed",
        ];
        if version >= V::V2025_06_18 {
            requests.push("elicitation/create");
        }
        if version == V::V2025_11_25 {
            notifications.push("notifications/elicitation/complete");
        }
        check(version, S2C, Kind::Request, &requests);
        check(version, S2C, Kind::Notification, &notifications);
    }
    check(V::V2026_07_28, C2S, Kind::Notification, &["notifications/cancelled"]);
    check(V::V2026_07_28, S2C, Kind::Request, &[]);
    check(
        V::V2026_07_28,
        S2C,
        Kind::Notification,
        &[
            "notifications/cancelled",
            "notifications/message",
            "notifications/progress",
            "notifications/prompts/list_changed",
            "notifications/resources/list_changed",
            "notifications/resources/updated",
            "notifications/subscriptions/acknowledged",
            "notifications/tools/list_changed",
        ],
    );
}

/// Tasks: experimental in 2025-11-25, in both directions; an extension in 2026-07-28, sent by clients.
#[test]
fn tasks_are_known_but_not_core() {
    let check = |name: &str, expected: [(Direction, V); 2], extra: &[(Direction, V)]| {
        let method = Method::parse(name).expect(name);
        assert!(!method.is_core(), "{name}");
        let found: Vec<_> = [C2S, S2C]
            .into_iter()
            .flat_map(|direction| V::ALL.iter().map(move |version| (direction, *version)))
            .filter(|(direction, version)| method.exists(*direction, *version))
            .collect();
        let expected: Vec<_> = expected.into_iter().chain(extra.iter().copied()).collect();
        assert_eq!(found.len(), expected.len(), "{name}");
        assert!(expected.iter().all(|place| found.contains(place)), "{name}");
    };
    let both = [(C2S, V::V2025_11_25), (S2C, V::V2025_11_25)];
    for name in ["tasks/get", "tasks/cancel"] {
        check(name, both, &[(C2S, V::V2026_07_28)]);
    }
    for name in ["tasks/result", "tasks/list", "notifications/tasks/status"] {
        check(name, both, &[]);
    }
    for (name, direction) in [("tasks/update", C2S), ("notifications/tasks", S2C)] {
        let method = Method::parse(name).expect(name);
        assert_eq!(method.window(direction), Some(Window::ENVELOPE), "{name}");
        assert!(!method.is_core(), "{name}");
    }
}

/// SKL-01: an extension of every revision, which only clients call.
#[test]
fn skills_are_known_in_every_revision_but_not_core() {
    for name in ["skills/list", "skills/get", "resources/directory/read"] {
        let method = Method::parse(name).expect(name);
        assert_eq!(method.window(C2S), Some(Window::ALWAYS), "{name}");
        assert_eq!(method.window(S2C), None, "{name}");
        assert!(!method.is_core(), "{name}");
    }
}

#[test]
fn rows_are_in_the_order_of_the_methods_and_names_are_unique() {
    for row in METHODS {
        assert_eq!(row.method.row().name, row.name);
        assert_eq!(Method::parse(row.name), Some(row.method));
        assert_eq!(row.name.starts_with("notifications/"), row.kind == Kind::Notification, "{}", row.name);
        assert!(row.client.is_some() || row.server.is_some(), "{}", row.name);
    }
    for unknown in ["", "tools", "tools/call ", "Tools/call", "tools/calls", "notifications/cancelled/"] {
        assert_eq!(Method::parse(unknown), None, "{unknown}");
    }
}

/// RUN-05: invalid params are refused whether or not the method has a handler.
#[test]
fn params_are_checked_against_the_table() {
    let check = |method: Method, params: Option<&str>, good: bool| {
        assert_eq!(method.check(params).is_ok(), good, "{method} {params:?}");
    };
    check(Method::Ping, None, true);
    check(Method::ToolsList, None, true);
    check(Method::ToolsList, Some(r#"{"cursor":""}"#), true);
    check(Method::ToolsList, Some(r#"{"cursor":7}"#), false);
    check(Method::ToolsCall, None, false);
    check(Method::ToolsCall, Some(r#"{"name":"t","arguments":{},"unknown":[],"_meta":{}}"#), true);
    check(Method::ToolsCall, Some(r#"{"name":"t","arguments":null}"#), true);
    check(Method::ToolsCall, Some(r#"{"name":"t","arguments":[]}"#), false);
    check(Method::ToolsCall, Some(r#"{"name":"t","name":"u"}"#), false);
    check(Method::PromptsGet, Some(r#"{"name":"p","arguments":{"n":7}}"#), false);
    check(Method::LoggingSetLevel, Some(r#"{"level":"warning"}"#), true);
    check(Method::LoggingSetLevel, Some(r#"{"level":"verbose"}"#), false);
    check(Method::TasksResult, Some(r#"{"taskId":"t"}"#), true);
}

/// The types in the row of a method, from the source of the table.
fn types_of(method: &str) -> Vec<&'static str> {
    let table = include_str!("../methods.rs");
    let quoted = format!("\"{method}\"");
    let row = table.lines().find(|line| line.contains(&quoted)).expect(method);
    row.split_whitespace()
        .skip(1)
        .map(|word| word.trim_end_matches(';'))
        .filter(|word| is_type(word))
        .collect()
}

/// Whether a word of a row is a params or result type.
fn is_type(word: &str) -> bool {
    ["Params", "Result", "Task"].iter().any(|suffix| word.ends_with(suffix))
}

/// Doc comments and attributes of the types of this crate, by name.
fn documentation() -> BTreeMap<String, String> {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut found = BTreeMap::new();
    for entry in std::fs::read_dir(root).expect("the sources") {
        let path = entry.expect("a file").path();
        let Ok(text) = std::fs::read_to_string(&path) else { continue };
        let mut docs = String::new();
        for line in text.lines().map(str::trim) {
            if line.starts_with("///") || line.starts_with("#[") {
                docs.push_str(line);
                docs.push('\n');
            } else {
                // `pub struct X {`, `pub enum X {`, `pub result X {`, `pub cacheable result X {`, `X(Task) = ..`.
                let is_declaration =
                    !docs.is_empty() && (line.starts_with("pub ") || line.contains("Task) = "));
                // What a tuple holds is not what the line declares.
                let declared = line.split('(').next().unwrap_or_default();
                let mut words = declared.split(|c: char| !c.is_alphanumeric());
                if let Some(name) = words.find(|word| is_declaration && is_type(word)) {
                    // Fields of the type follow its declaration.
                    found.entry(name.to_owned()).or_insert_with(|| docs.clone());
                }
                docs.clear();
            }
        }
    }
    found
}

/// A search for a method in the documentation finds its params and its result.
#[test]
fn every_type_of_the_table_is_documented_with_its_methods() {
    let documentation = documentation();
    for row in METHODS {
        let types = types_of(row.name);
        let expected = if row.kind == Kind::Request { 2 } else { 1 };
        assert_eq!(types.len(), expected, "{} {types:?}", row.name);
        for name in types {
            let docs = documentation.get(name).unwrap_or_else(|| panic!("{name} is not documented"));
            let alias = format!("#[doc(alias = \"{}\")]", row.name);
            assert!(docs.contains(&alias), "{name} lacks {alias}");
            assert!(docs.contains(&format!("`{}`", row.name)), "the text of {name} lacks `{}`", row.name);
            assert!(docs.contains("https://modelcontextprotocol.io/"), "{name} lacks a link");
        }
    }
}
