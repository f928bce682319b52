//! The table against the schemas, and against the lists of the revisions that have none.

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

/// The four unions of each schema name the same methods as the table. The tasks extension has its own schema.
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
                let of_the_extension = method.row().marks.contains(&Extension);
                version.has(Window::HANDSHAKE) || !of_the_extension
            });
            let theirs = union(&schema, name);
            assert_eq!(ours, theirs.keys().map(String::as_str).collect(), "{version} {name}");
        }
    }
}

/// What the schemas say of a message beyond its name: pages, freshness, answers to input requests.
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

/// TYP-11: the requests of a client; task methods are none of the core's.
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

/// TYP-12, TYP-13, TYP-14: what else each side sends.
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

/// Tasks: experimental in 2025-11-25, both ways; an extension in 2026-07-28, for clients.
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

#[test]
fn rows_stand_in_the_order_of_the_methods_and_names_are_unique() {
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

/// RUN-05: bad params are refused whether or not somebody handles the method.
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
