//! The response cache: what is stored, for whom, for how long, and what removes it.

use std::time::Duration;

use serde_json::{Value, json};

use super::{ScriptedServer, builder, envelope_session, handshake_session};
use crate::{Cache, Client};

fn tools(name: &str, ttl: i64, scope: &str) -> Value {
    json!({"resultType": "complete", "tools": [{"name": name, "inputSchema": {}}], "ttlMs": ttl, "cacheScope": scope})
}

fn contents(text: &str, ttl: i64) -> Value {
    json!({"resultType": "complete", "contents": [{"uri": "a", "text": text}], "ttlMs": ttl, "cacheScope": "private"})
}

/// Lists the tools while the server answers with `result`.
async fn list_from_server(client: &Client, server: &mut ScriptedServer, result: Value) -> String {
    let (listed, ()) = tokio::join!(client.list_tools(), async {
        let request = server.expect("tools/list").await;
        server.respond(&request, result).await;
    });
    listed.unwrap().tools[0].name.clone()
}

async fn list_from_cache(client: &Client) -> String {
    client.list_tools().await.unwrap().tools[0].name.clone()
}

/// P-CACHE-4, CCACHE-01: a result is reused while it is fresh, and requested again when it is stale.
#[tokio::test(start_paused = true)]
async fn a_result_is_reused_while_it_is_fresh() {
    let (client, mut server) = envelope_session(builder()).await;
    assert_eq!(list_from_server(&client, &mut server, tools("a", 1000, "private")).await, "a");
    tokio::time::advance(Duration::from_millis(999)).await;
    assert_eq!(list_from_cache(&client).await, "a");
    tokio::time::advance(Duration::from_millis(1)).await;
    assert_eq!(list_from_server(&client, &mut server, tools("b", 0, "private")).await, "b");
    assert_eq!(list_from_server(&client, &mut server, tools("c", -5, "private")).await, "c");
    let without_hints = json!({"resultType": "complete", "tools": [{"name": "d", "inputSchema": {}}]});
    assert_eq!(list_from_server(&client, &mut server, without_hints).await, "d");
    assert_eq!(list_from_server(&client, &mut server, tools("e", 1000, "private")).await, "e");
}

/// CCACHE-01: hints of the handshake era are not honoured.
#[tokio::test(start_paused = true)]
async fn sessions_of_the_handshake_era_are_not_cached() {
    let (client, mut server) = handshake_session(builder(), "2025-11-25").await;
    assert_eq!(list_from_server(&client, &mut server, tools("a", 1000, "public")).await, "a");
    assert_eq!(list_from_server(&client, &mut server, tools("b", 1000, "public")).await, "b");
}

/// P-CACHE-5: a cached result answers only the same method with the same params, and only first pages are cached.
#[tokio::test(start_paused = true)]
async fn a_result_is_not_reused_for_other_params() {
    let (client, mut server) = envelope_session(builder()).await;
    let check = async |server: &mut ScriptedServer, uri: &str, text: &str| {
        let (read, ()) = tokio::join!(client.read_resource(uri), async {
            let request = server.expect("resources/read").await;
            assert_eq!(request["params"]["uri"], uri);
            server.respond(&request, contents(text, 60_000)).await;
        });
        assert!(format!("{:?}", read.unwrap()).contains(text));
    };
    check(&mut server, "file:///a", "first").await;
    check(&mut server, "file:///b", "second").await;
    assert!(format!("{:?}", client.read_resource("file:///a").await.unwrap()).contains("first"));
    for _ in 0..2 {
        let (page, ()) = tokio::join!(client.list_tools().cursor("2"), async {
            let request = server.expect("tools/list").await;
            server.respond(&request, tools("second page", 60_000, "public")).await;
        });
        page.unwrap();
    }
}

/// P-CACHE-6, CCACHE-01: private results stay in their partition; public ones are shared by clients of one server.
#[tokio::test(start_paused = true)]
async fn private_results_are_not_shared_across_authorizations() {
    let shared = Cache::new().server("https://mcp.example.com");
    let (ada, mut adas) = envelope_session(builder().cache(shared.clone().partition("ada"))).await;
    let (bob, mut bobs) = envelope_session(builder().cache(shared.clone().partition("bob"))).await;
    let (elsewhere, mut others) = envelope_session(builder().cache(Cache::new())).await;
    assert_eq!(list_from_server(&ada, &mut adas, tools("ada's", 60_000, "private")).await, "ada's");
    assert_eq!(list_from_server(&bob, &mut bobs, tools("all", 60_000, "public")).await, "all");
    assert_eq!((list_from_cache(&ada).await, list_from_cache(&bob).await), ("ada's".into(), "all".into()));
    let (carol, _server) = envelope_session(builder().cache(shared.partition("carol"))).await;
    assert_eq!(list_from_cache(&carol).await, "all");
    assert_eq!(list_from_server(&elsewhere, &mut others, tools("other", 0, "public")).await, "other");
}

/// P-CACHE-6: a call with headers of its own can have another authorization; it neither reads nor fills the cache.
#[tokio::test(start_paused = true)]
async fn a_call_with_its_own_headers_is_not_cached() {
    let (client, mut server) = envelope_session(builder()).await;
    list_from_server(&client, &mut server, tools("a", 60_000, "private")).await;
    let call = client.list_tools().header("authorization", "Bearer other");
    let (listed, ()) = tokio::join!(call, async {
        let request = server.expect("tools/list").await;
        server.respond(&request, tools("b", 60_000, "private")).await;
    });
    assert_eq!(listed.unwrap().tools[0].name, "b");
    assert_eq!(list_from_cache(&client).await, "a");
}

/// P-CACHE-7: the result of a request with input responses is for that request only.
#[tokio::test(start_paused = true)]
async fn results_that_depend_on_input_are_not_cached() {
    let (client, mut server) = envelope_session(builder()).await;
    for _ in 0..2 {
        let (read, ()) = tokio::join!(client.read_resource("file:///a"), async {
            let first = server.expect("resources/read").await;
            server.respond(&first, json!({"resultType": "input_required", "requestState": "s"})).await;
            let second = server.expect("resources/read").await;
            assert_eq!(second["params"]["requestState"], "s");
            server.respond(&second, contents("answer", 60_000)).await;
        });
        read.unwrap();
    }
}

/// P-CACHE-8, CCACHE-01: a change notification removes what it concerns and nothing else.
#[tokio::test(start_paused = true)]
async fn a_change_notification_invalidates_the_cache() {
    let (client, mut server) = envelope_session(builder()).await;
    list_from_server(&client, &mut server, tools("a", 60_000, "private")).await;
    server.notify("notifications/prompts/list_changed", json!({})).await;
    server.notify("notifications/resources/updated", json!({"uri": "file:///a"})).await;
    assert_eq!(list_from_cache(&client).await, "a");
    server.notify("notifications/tools/list_changed", json!({})).await;
    settle(&client, &mut server).await;
    assert_eq!(list_from_server(&client, &mut server, tools("b", 60_000, "private")).await, "b");
}

/// CCACHE-01: a result that was requested before a change is not stored after it.
#[tokio::test(start_paused = true)]
async fn a_result_that_a_change_overtakes_is_not_stored() {
    let (client, mut server) = envelope_session(builder()).await;
    let (listed, ()) = tokio::join!(client.list_tools(), async {
        let request = server.expect("tools/list").await;
        server.notify("notifications/tools/list_changed", json!({})).await;
        server.respond(&request, tools("old", 60_000, "private")).await;
    });
    listed.unwrap();
    assert_eq!(list_from_server(&client, &mut server, tools("new", 60_000, "private")).await, "new");
}

/// CCACHE-01: a call can refresh the cache, bypass it, or clear it; a cache can be disabled.
#[tokio::test(start_paused = true)]
async fn a_call_can_ask_for_a_fresh_result() {
    let (client, mut server) = envelope_session(builder()).await;
    let check =
        async |server: &mut ScriptedServer, call: crate::Call<duplexer_types::methods::ToolsList>, name| {
            let (listed, ()) = tokio::join!(call, async {
                let request = server.expect("tools/list").await;
                server.respond(&request, tools(name, 60_000, "private")).await;
            });
            assert_eq!(listed.unwrap().tools[0].name, name);
        };
    check(&mut server, client.list_tools(), "first").await;
    check(&mut server, client.list_tools().uncached(), "aside").await;
    assert_eq!(list_from_cache(&client).await, "first");
    check(&mut server, client.list_tools().fresh(), "second").await;
    assert_eq!(list_from_cache(&client).await, "second");
    client.clear_cache();
    check(&mut server, client.list_tools(), "third").await;
    let (client, mut server) = envelope_session(builder().cache(Cache::disabled())).await;
    check(&mut server, client.list_tools(), "one").await;
    check(&mut server, client.list_tools(), "two").await;
}

/// P-CACHE-10: a refused cursor of a cached first page makes the list begin again, once.
#[tokio::test(start_paused = true)]
async fn a_list_begins_again_if_the_cursor_of_a_cached_page_is_refused() {
    let (client, mut server) = envelope_session(builder()).await;
    let page = |name: &str, cursor: &str| {
        let mut page = tools(name, 60_000, "private");
        page["nextCursor"] = json!(cursor);
        page
    };
    list_from_server(&client, &mut server, page("old", "o")).await;
    let (all, ()) = tokio::join!(client.all_tools(), async {
        let second = server.expect("tools/list").await;
        assert_eq!(second["params"]["cursor"], "o");
        server.respond_with_error(&second, -32602, None).await;
        let first = server.expect("tools/list").await;
        assert_eq!(first["params"].get("cursor"), None);
        server.respond(&first, page("new", "n")).await;
        let second = server.expect("tools/list").await;
        server.respond_with_error(&second, -32602, None).await;
    });
    assert!(all.is_err());
    let (all, ()) = tokio::join!(client.all_tools(), async {
        let second = server.expect("tools/list").await;
        assert_eq!(second["params"]["cursor"], "n");
        server.respond(&second, tools("last", 0, "private")).await;
    });
    let names: Vec<_> = all.unwrap().into_iter().map(|tool| tool.name).collect();
    assert_eq!(names, ["new", "last"]);
}

/// Waits until the client has read what the server sent before.
async fn settle(client: &Client, server: &mut ScriptedServer) {
    let (done, ()) = tokio::join!(client.call_tool("settle", ()), async {
        let request = server.expect("tools/call").await;
        server.respond(&request, json!({"resultType": "complete", "content": []})).await;
    });
    done.unwrap();
}
