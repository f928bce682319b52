//! Members that the envelope era adds to a result. The handshake era adds none.

use serde_json::{Value, json};

use crate::error::ErrorObject;
use crate::input::InputRequiredResult;
use crate::json::{Json, JsonObject};
use crate::lifecycle::EmptyResult;
use crate::meta::key::SERVER_INFO;
use crate::task::{CreateTaskResult, Task, TaskStatus};
use crate::tool::{CallToolResult, ListToolsResult};
use crate::version::ProtocolVersion as V;
use crate::wire::{CacheScope, Freshness, ResultBody, ResultMeta, write_result};

fn written<R: ResultBody>(version: V, result: &R, added: ResultMeta<'_>) -> Value {
    let mut out = Vec::new();
    write_result(&mut out, result, version, added).unwrap();
    serde_json::from_slice(&out).unwrap()
}

fn info() -> Json {
    json!({"name": "s", "version": "1"}).into()
}

/// RUN-15, TYP-19: every result has a `resultType`.
#[test]
fn every_result_has_its_type() {
    let check = |result: Value, expected: Value| assert_eq!(result, expected);
    check(
        written(V::V2026_07_28, &EmptyResult::new(), ResultMeta::default()),
        json!({"resultType": "complete"}),
    );
    check(
        written(V::V2026_07_28, &InputRequiredResult::resuming("s"), ResultMeta::default()),
        json!({"requestState": "s", "resultType": "input_required"}),
    );
    let task = Task::new("t", TaskStatus::Working, "", "", 5_u64);
    let result = written(V::V2026_07_28, &CreateTaskResult::new(task), ResultMeta::default());
    check(result["resultType"].clone(), "task".into());
}

/// RUN-16: the identity of the server is added; one that the handler set takes precedence, its `null` does not, and the
/// rest stays.
#[test]
fn every_result_has_the_identity_of_the_server() {
    let info = info();
    let check = |meta: Option<Value>, expected: Value| {
        let mut result = EmptyResult::new();
        result.meta = meta.map(|meta| serde_json::from_value(meta).unwrap());
        let added = ResultMeta { server_info: Some(&info), hint: None };
        assert_eq!(written(V::V2026_07_28, &result, added)["_meta"], expected);
    };
    let ours = || json!({"name": "s", "version": "1"});
    check(None, json!({SERVER_INFO: ours()}));
    check(Some(json!({"k": 1})), json!({"k": 1, SERVER_INFO: ours()}));
    check(Some(json!({SERVER_INFO: null, "k": null})), json!({"k": null, SERVER_INFO: ours()}));
    check(
        Some(json!({SERVER_INFO: {"name": "o", "version": "2"}})),
        json!({SERVER_INFO: {"name": "o", "version": "2"}}),
    );
}

/// CACHE-02: each member that the handler set takes precedence, even if it is the default.
#[test]
fn freshness_is_filled_member_by_member() {
    let hint = Freshness { ttl_ms: Some(60_000), scope: Some(CacheScope::Public) };
    let check = |result: ListToolsResult, hint: Freshness, ttl: u64, scope: &str| {
        let written = written(V::V2026_07_28, &result, ResultMeta { server_info: None, hint: Some(hint) });
        assert_eq!((&written["ttlMs"], &written["cacheScope"]), (&json!(ttl), &json!(scope)), "{result:?}");
    };
    let empty = || ListToolsResult::new([]);
    check(empty(), Freshness::default(), 0, "private");
    check(empty(), hint, 60_000, "public");
    check(empty().ttl_ms(0_u64), hint, 0, "public");
    check(empty().cache_scope(CacheScope::Private), hint, 60_000, "private");
    check(empty().ttl_ms(1_u64).cache_scope(CacheScope::Private), hint, 1, "private");
}

/// CACHE-03: interim results get no hints, nor do results of methods without hints.
#[test]
fn interim_results_carry_no_freshness() {
    let hint = Some(Freshness { ttl_ms: Some(1), scope: Some(CacheScope::Public) });
    let interim =
        written(V::V2026_07_28, &InputRequiredResult::resuming("s"), ResultMeta { server_info: None, hint });
    assert_eq!(interim, json!({"requestState": "s", "resultType": "input_required"}));
    let call = written(V::V2026_07_28, &CallToolResult::text("t"), ResultMeta::default());
    assert_eq!((call.get("ttlMs"), call.get("cacheScope")), (None, None));
}

/// CACHE-04, TYP-15, P-RES-4: in the handshake era nothing is added and freshness is omitted.
#[test]
fn the_handshake_era_adds_nothing() {
    let info = info();
    let hint = Some(Freshness { ttl_ms: Some(1), scope: Some(CacheScope::Public) });
    let result = ListToolsResult::new([]).ttl_ms(5_u64).cache_scope(CacheScope::Public);
    let with_meta = result.clone().meta(JsonObject::new().with("k", "v"));
    for version in V::HANDSHAKE {
        let added = ResultMeta { server_info: Some(&info), hint };
        assert_eq!(written(*version, &result, added), json!({"tools": []}), "{version}");
        assert_eq!(
            written(*version, &with_meta, added),
            json!({"tools": [], "_meta": {"k": "v"}}),
            "{version}"
        );
    }
}

/// MRTR-03: a result that the handshake era cannot express is an error there.
#[test]
fn interim_results_are_refused_in_the_handshake_era() {
    for version in V::HANDSHAKE {
        let result = InputRequiredResult::resuming("s");
        assert!(
            write_result(&mut Vec::new(), &result, *version, ResultMeta::default()).is_err(),
            "{version}"
        );
    }
}

/// `isError` is part of a result; a failed request has an error object.
#[test]
fn a_tool_failure_is_part_of_the_result() {
    assert!(ResultBody::is_error(&CallToolResult::error("no")));
    assert!(!ResultBody::is_error(&CallToolResult::text("yes").is_error(false)));
    assert!(!ResultBody::is_error(&EmptyResult::new()));
    assert_eq!(ErrorObject::internal().to_string(), "Internal server error");
}
