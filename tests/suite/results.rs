//! The shape of results, per era, per revision, per kind.

use duplexer_core::error::McpError;
use duplexer_server::middleware::Next;
use duplexer_server::{Context, Outcome, Reply, Server};
use duplexer_types::methods;
use duplexer_types::page::PaginatedParams;
use duplexer_types::tool::{CallToolParams, CallToolResult, ListToolsResult};
use duplexer_types::wire::{CacheScope, Freshness};
use serde_json::{Value, json};

use crate::matrix::{Link, Needs, everywhere, in_both_eras, over_every_link};
use crate::wire::Wire;
use crate::{ENVELOPE, HANDSHAKE};

fn stamp(name: &str, version: &str) -> Value {
    json!({ "io.modelcontextprotocol/serverInfo": { "name": name, "version": version } })
}

/// RUN-15, RUN-16, P-RES-1, P-META-8, P-RES-4: results of the envelope era have server metadata; handshake results and
/// errors have none.
#[tokio::test]
async fn every_result_of_the_envelope_era_has_server_metadata() {
    over_every_link(ENVELOPE, Needs::Answers, async |mut wire| {
        let result = wire.result("test/nothing", json!({})).await;
        assert_eq!(result, json!({ "resultType": "complete", "_meta": stamp("fixture", "1.2.3") }));
        let result = wire.tool("echo").await["result"].clone();
        assert_eq!(result["_meta"], stamp("fixture", "1.2.3"));
        let last = result.as_object().unwrap().keys().next_back().cloned();
        assert!(wire.transcript().contains(r#""resultType":"complete","_meta":{"#), "{last:?}");
        assert_eq!(wire.tool("refuse").await["error"].get("_meta"), None);
    })
    .await;
    over_every_link(HANDSHAKE, Needs::Answers, async |mut wire| {
        assert_eq!(wire.result("test/nothing", json!({})).await, json!({}));
        let result = wire.tool("echo").await["result"].clone();
        assert_eq!(result, json!({ "content": [{ "type": "text", "text": "nothing" }] }));
    })
    .await;
}

/// RUN-12, SRV-03: a custom method can return any object or nothing; other values are rejected.
#[tokio::test]
async fn a_custom_result_is_an_object() {
    everywhere(Needs::Answers, async |mut wire| {
        let result = wire.result("test/echo", json!({ "a": [null] })).await;
        assert_eq!(result["a"], json!([null]));
        let text = "Handler returned an invalid result".to_owned();
        assert_eq!(wire.error("test/list", json!({})).await, (-32603, text, Value::Null));
    })
    .await;
}

/// CACHE-02, CACHE-04, TYP-19: members that the handler set take precedence one by one; a handshake client sees none of
/// them.
#[tokio::test]
async fn unset_freshness_takes_the_hint() {
    over_every_link(ENVELOPE, Needs::Answers, async |mut wire| {
        let fresh = |result: Value| (result["ttlMs"].clone(), result["cacheScope"].clone());
        let tools = wire.result("tools/list", json!({})).await;
        assert_eq!(fresh(tools), (json!(1000), json!("private")));
        let prompts = wire.result("prompts/list", json!({})).await;
        assert_eq!(fresh(prompts), (json!(0), json!("public")));
        let call = wire.tool("echo").await["result"].clone();
        assert_eq!(fresh(call), (Value::Null, Value::Null));
    })
    .await;
    over_every_link(HANDSHAKE, Needs::Answers, async |mut wire| {
        let tools = wire.result("tools/list", json!({})).await;
        assert_eq!(tools.as_object().unwrap().len(), 1);
    })
    .await;
}

/// MRTR-01, MRTR-03, CACHE-03, P-MRTR-1, P-MRTR-4, P-MRTR-20: input is requested only in the era that supports it,
/// without freshness.
#[tokio::test]
async fn input_is_requested_in_the_envelope_era_only() {
    over_every_link(ENVELOPE, Needs::Answers, async |mut wire| {
        let expected = json!({
            "inputRequests": { "roots": { "method": "roots/list", "params": {} } },
            "resultType": "input_required", "_meta": stamp("fixture", "1.2.3"),
        });
        let meta = json!({ "io.modelcontextprotocol/clientCapabilities": { "roots": {} } });
        let asked = wire.result("tools/call", json!({ "name": "input", "_meta": meta })).await;
        assert_eq!(asked, expected);
        assert_eq!(wire.error("tools/call", json!({ "name": "input" })).await.0, -32021);
        let prompt = wire.result("prompts/get", json!({ "name": "p" })).await;
        assert_eq!((&prompt["requestState"], prompt.get("ttlMs")), (&json!("later"), None));
    })
    .await;
    over_every_link(HANDSHAKE, Needs::Answers, async |mut wire| {
        let text = "Handler returned an invalid result".to_owned();
        let refused = wire.error("tools/call", json!({ "name": "input" })).await;
        assert_eq!(refused, (-32603, text, Value::Null));
    })
    .await;
}

/// P-MRTR-1, TYP-22: a method that cannot request input must not, in any form of result.
#[tokio::test]
async fn input_is_not_requested_by_other_methods() {
    over_every_link(ENVELOPE, Needs::Answers, async |mut wire| {
        let asks = json!({ "resultType": "input_required", "requestState": "x" });
        let text = "Handler returned an invalid result".to_owned();
        assert_eq!(wire.error("test/echo", asks).await, (-32603, text, Value::Null));
    })
    .await;
    over_every_link(HANDSHAKE, Needs::Answers, async |mut wire| {
        let data = json!({ "resultType": "input_required" });
        assert_eq!(wire.result("test/echo", data.clone()).await, data);
    })
    .await;
}

/// RUN-17, TYP-21: a result that the era cannot express is -32603, and no part of it is sent.
#[tokio::test]
async fn a_result_that_cannot_be_expressed_is_an_internal_error() {
    everywhere(Needs::Answers, async |mut wire| {
        let (code, _, data) = wire.error("tools/call", json!({ "name": "unsayable" })).await;
        assert_eq!((code, data), (-32603, Value::Null));
        assert_eq!(wire.tool_text("echo", json!({})).await, "nothing");
    })
    .await;
}

/// RUN-14: a result kind of an extension gets server metadata and is otherwise unchanged; the handshake era has no such
/// kinds.
#[tokio::test]
async fn an_extension_s_kind_of_result_passes_in_the_envelope_era() {
    over_every_link(ENVELOPE, Needs::Answers, async |mut wire| {
        let expected = json!({ "resultType": "odd", "extra": 1, "_meta": stamp("fixture", "1.2.3") });
        assert_eq!(wire.tool("odd").await["result"], expected);
    })
    .await;
    over_every_link(HANDSHAKE, Needs::Answers, async |mut wire| {
        let (code, text, _) = wire.error("tools/call", json!({ "name": "odd" })).await;
        assert_eq!((code, &*text), (-32603, "Handler returned an invalid result"));
    })
    .await;
}

/// RUN-16: a server identity set by the handler takes precedence; null does not.
#[tokio::test]
async fn the_handler_s_own_identity_takes_precedence() {
    let server = || {
        let call = |params: CallToolParams| async move {
            let own = duplexer_types::json::Json::parse(&params.name).unwrap();
            let meta =
                duplexer_types::json::JsonObject::new().with("io.modelcontextprotocol/serverInfo", own);
            Ok::<_, McpError>(CallToolResult::text("x").meta(meta))
        };
        Server::builder("s", "1").on(methods::ToolsCall, call).build().unwrap()
    };
    for link in Link::in_process(ENVELOPE, Needs::Answers) {
        let mut wire = Wire::connect(link, server()).await;
        wire.open(ENVELOPE).await;
        let own = wire.tool(r#"{"name":"own","version":"0"}"#).await;
        assert_eq!(own["result"]["_meta"], stamp("own", "0"));
        assert_eq!(wire.tool("null").await["result"]["_meta"], stamp("s", "1"));
    }
}

/// RUN-13: a raw result is sent verbatim.
#[tokio::test]
async fn raw_text_is_sent_verbatim() {
    let short_circuit = async |cx: Context, message, next: Next| {
        if cx.method() == "tools/list" {
            return Ok(Outcome::raw(r#"{"mine":true}"#));
        }
        next.run(cx, message).await
    };
    let server = move || {
        let list = |_: PaginatedParams| async { Ok::<_, McpError>(ListToolsResult::new(vec![])) };
        Server::builder("s", "0").middleware(short_circuit).on(methods::ToolsList, list).build().unwrap()
    };
    in_both_eras(server, async |mut wire| {
        assert_eq!(wire.result("tools/list", json!({})).await, json!({ "mine": true }));
    })
    .await;
}

/// RUN-13: a result that middleware creates or changes is shaped like any other, for the request that was handled.
#[tokio::test]
async fn a_result_is_shaped_for_the_request_that_was_handled() {
    let rename = async |cx: Context, message: duplexer_core::dispatch::Message, next: Next| {
        if cx.method() != "x/list" {
            return next.run(cx, message).await;
        }
        let mut outcome = next.run(cx, message.with_method("tools/list")).await?;
        if let Some(list) = outcome.downcast_mut::<ListToolsResult>() {
            list.next_cursor = Some("more".to_owned());
        }
        Ok(outcome)
    };
    let server = move || {
        let list =
            |_: PaginatedParams| async { Ok::<_, McpError>(Reply::Complete(ListToolsResult::new(vec![]))) };
        let hint = Freshness { ttl_ms: Some(3), scope: Some(CacheScope::Public) };
        Server::builder("s", "0")
            .middleware(rename)
            .cache_hint("tools/list", hint)
            .on(methods::ToolsList, list)
            .build()
            .unwrap()
    };
    in_both_eras(server, async |mut wire| {
        let result = wire.result("x/list", json!({})).await;
        assert_eq!((&result["tools"], &result["nextCursor"]), (&json!([]), &json!("more")));
        if wire.is_enveloped() {
            assert_eq!((&result["ttlMs"], &result["cacheScope"]), (&json!(3), &json!("public")));
        }
    })
    .await;
}
