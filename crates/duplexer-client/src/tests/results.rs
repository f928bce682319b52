//! Decoding of results.

use std::sync::Mutex;

use duplexer_types::error::ErrorCode;
use duplexer_types::input::InputRequest;
use duplexer_types::json::Json;
use duplexer_types::methods::Method;
use duplexer_types::wire::CacheScope;
use serde_json::{Value, json};

use super::super::{
    Call, CallResponse, ClaimedResult, Client, ClientError, ClientExtension, CompletedCall, ResultValidator,
};
use super::{ScriptedServer, builder, envelope_session, handshake_session};
use duplexer_core::dispatch::BoxFuture;
use duplexer_core::error::{BoxError, CallError};

/// Sends a call and responds to it.
async fn answered<M: duplexer_types::methods::Request + 'static>(
    server: &mut ScriptedServer,
    call: Call<M>,
    result: Value,
) -> Result<M::Result, ClientError> {
    let (outcome, ()) = tokio::join!(call.into_future(), async {
        let request = server.next_message().await.unwrap();
        server.respond(&request, result).await;
    });
    outcome
}

fn a_tool(name: &str) -> Value {
    json!({"name": name, "inputSchema": {"type": "object"}})
}

/// P-RES-2: without a `resultType` a result is complete.
#[tokio::test(start_paused = true)]
async fn a_result_without_a_type_is_complete() {
    let (client, mut server) = envelope_session(builder()).await;
    let listed = answered(&mut server, client.list_tools(), json!({"tools": [a_tool("t")]})).await.unwrap();
    assert_eq!(listed.tools[0].name, "t");
}

/// P-RES-3: a type that the method does not have is an error, not data.
#[tokio::test(start_paused = true)]
async fn a_result_of_an_unknown_type_is_an_error() {
    let (client, mut server) = envelope_session(builder()).await;
    let result = json!({"resultType": "zzz", "content": [], "tools": []});
    let call = client.call_tool("t", ());
    let error = answered(&mut server, call, result).await.unwrap_err();
    let text = "`tools/call` was answered with a result of the unknown type `zzz`";
    assert_eq!(error.to_string(), text);
    let result = json!({"resultType": "input_required", "tools": [], "requestState": "s"});
    let error = answered(&mut server, client.list_tools(), result).await.unwrap_err();
    assert!(matches!(error, ClientError::ResultType { method: Method::ToolsList, .. }), "{error:?}");
    let result = json!({"resultType": 7, "tools": []});
    let error = answered(&mut server, client.list_tools(), result).await.unwrap_err();
    assert!(matches!(error, ClientError::Call(CallError::Unexpected(_))), "{error:?}");
}

/// Proxies depend on it: members that this library does not know are kept.
#[tokio::test(start_paused = true)]
async fn a_raw_result_is_what_the_server_wrote() {
    let (client, mut server) = envelope_session(builder()).await;
    let result = json!({"resultType": "complete", "tools": [], "unheard": {"of": [1.50]}});
    let (raw, ()) = tokio::join!(client.list_tools().raw(), async {
        let request = server.next_message().await.unwrap();
        server.respond(&request, result.clone()).await;
    });
    assert_eq!(raw.unwrap().decode::<Value>().unwrap(), result);
}

/// D-5: an extension reads the results of its own type, and a typed call fails without losing what the server sent. A
/// validator checks results of the method's own type only.
#[tokio::test(start_paused = true)]
async fn a_result_of_a_type_of_an_extension_is_returned_verbatim() {
    let validator = std::sync::Arc::new(RejectBad(Mutex::new(Vec::new())));
    let extended = builder().extension("io.modelcontextprotocol/tasks", json!({}));
    let (client, mut server) = envelope_session(extended.result_validator(validator)).await;
    let result = json!({"resultType": "task", "task": {"taskId": "t-1", "status": "working"}});
    let (raw, ()) = tokio::join!(client.call_tool("bad", ()).raw(), async {
        let request = server.expect("tools/call").await;
        let capabilities = &request["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"];
        assert_eq!(capabilities["extensions"]["io.modelcontextprotocol/tasks"], json!({}));
        server.respond(&request, result.clone()).await;
    });
    assert_eq!(raw.unwrap().decode::<Value>().unwrap(), result);
    let error = answered(&mut server, client.call_tool("bad", ()), result.clone()).await.unwrap_err();
    let ClientError::ResultType { result_type, result: kept, .. } = error else { panic!("{error:?}") };
    assert_eq!((result_type.as_str(), kept.decode::<Value>().unwrap()), ("task", result));
}

/// Finishes results of the type `later` with the text they carry, and takes the notifications `com.example/..`.
struct Later(std::sync::Arc<Mutex<Vec<String>>>);

impl ClientExtension for Later {
    fn id(&self) -> &'static str {
        "com.example/later"
    }

    fn claims(&self, method: Method, result_type: &str) -> bool {
        method == Method::ToolsCall && result_type == "later"
    }

    fn finish<'a>(&'a self, claimed: ClaimedResult<'a>) -> BoxFuture<'a, Result<Json, ClientError>> {
        let result = claimed.result.decode::<Value>().unwrap()["result"].clone();
        Box::pin(std::future::ready(Ok(result.into())))
    }

    fn notification(&self, method: &str, _: Option<&Json>) -> bool {
        let own = method.starts_with("com.example/");
        if own {
            self.0.lock().unwrap().push(method.to_owned());
        }
        own
    }
}

/// EXF-D1: an extension finishes the results that it claims, validators see the final ones, and other types and methods
/// stay errors.
#[tokio::test(start_paused = true)]
async fn an_extension_finishes_the_results_it_claims() {
    let validator = std::sync::Arc::new(RejectBad(Mutex::new(Vec::new())));
    let extended = builder().extend(Later(std::sync::Arc::default()));
    let (client, mut server) = envelope_session(extended.result_validator(validator)).await;
    let later = |text: &str| {
        let content = json!([{"type": "text", "text": text}]);
        json!({"resultType": "later", "result": {"resultType": "complete", "content": content}})
    };
    let result = answered(&mut server, client.call_tool("good", ()), later("done")).await.unwrap();
    assert_eq!(result.content[0].as_text(), Some("done"));
    let error = answered(&mut server, client.call_tool("bad", ()), later("done")).await.unwrap_err();
    assert!(matches!(error, ClientError::Validation(_)), "{error:?}");
    let error = answered(&mut server, client.list_tools(), later("done")).await.unwrap_err();
    assert!(matches!(error, ClientError::ResultType { .. }), "{error:?}");
}

/// EXF-D1: a notification that an extension has taken does not reach other callbacks; the window of the extension decides
/// whether it takes part.
#[tokio::test(start_paused = true)]
async fn an_extension_takes_its_notifications() {
    for (era, taken_ones) in [("envelope", 1), ("handshake", 0)] {
        let (taken, others) = (std::sync::Arc::default(), std::sync::Arc::new(Mutex::new(0)));
        let count = std::sync::Arc::clone(&others);
        let extended = builder()
            .extend(Later(std::sync::Arc::clone(&taken)))
            .on_notification(move |_| *count.lock().unwrap() += 1);
        let (client, mut server) = match era {
            "envelope" => envelope_session(extended).await,
            _ => handshake_session(extended, "2025-11-25").await,
        };
        for method in ["com.example/changed", "org.example/changed"] {
            server.send(json!({"jsonrpc": "2.0", "method": method})).await;
        }
        let listed = json!({"resultType": "complete", "tools": [], "ttlMs": 0, "cacheScope": "public"});
        answered(&mut server, client.list_tools(), listed).await.unwrap();
        assert_eq!(
            (taken.lock().unwrap().len(), *others.lock().unwrap()),
            (taken_ones, 2 - taken_ones),
            "{era}"
        );
    }
}

/// A result of another type is not a result of the method, so it is not cached.
#[tokio::test(start_paused = true)]
async fn a_result_of_another_type_is_not_cached() {
    let (client, mut server) = envelope_session(builder()).await;
    for kind in ["first", "second"] {
        let result = json!({"resultType": kind, "tools": [], "ttlMs": 60_000, "cacheScope": "public"});
        let (raw, ()) = tokio::join!(client.list_tools().raw(), async {
            let request = server.expect("tools/list").await;
            server.respond(&request, result.clone()).await;
        });
        assert_eq!(raw.unwrap().decode::<Value>().unwrap(), result);
    }
}

/// Callers of `once` answer input requests themselves.
#[tokio::test(start_paused = true)]
async fn once_returns_a_request_for_input() {
    let (client, mut server) = envelope_session(builder()).await;
    let result = json!({"resultType": "input_required", "requestState": "st\u{e4}te",
        "inputRequests": {"where": {"method": "roots/list"}}});
    let (answer, ()) = tokio::join!(client.read_resource("a:b").once(), async {
        let request = server.expect("resources/read").await;
        server.respond(&request, result).await;
    });
    let CallResponse::InputRequired(required) = answer.unwrap() else { panic!("no input request") };
    assert_eq!(required.request_state.as_deref(), Some("st\u{e4}te"));
    assert_eq!(required.input_requests.unwrap().get("where"), Some(&InputRequest::ListRoots));
}

/// CLT-07: in the handshake era `resultType` and freshness members are ignored.
#[tokio::test(start_paused = true)]
async fn members_of_a_later_era_are_dropped() {
    let (client, mut server) = handshake_session(builder(), "2025-11-25").await;
    let result = json!({"resultType": "zzz", "tools": [a_tool("t")], "ttlMs": 5, "cacheScope": "public",
        "nextCursor": "n", "_meta": {"x": 1}});
    let listed = answered(&mut server, client.list_tools(), result).await.unwrap();
    assert_eq!((listed.ttl_ms, listed.cache_scope), (None, None));
    assert_eq!((listed.tools.len(), listed.next_cursor.as_deref()), (1, Some("n")));
    assert!(listed.meta.unwrap().get("x").is_some());
}

/// CLT-07: a negative time to live counts as zero.
#[tokio::test(start_paused = true)]
async fn a_negative_ttl_is_zero() {
    let (client, mut server) = envelope_session(builder()).await;
    let result = json!({"resultType": "complete", "tools": [], "ttlMs": -5, "cacheScope": "public"});
    let listed = answered(&mut server, client.list_tools(), result).await.unwrap();
    assert_eq!((listed.ttl_ms, listed.cache_scope), (Some(0), Some(CacheScope::Public)));
}

/// CLT-07: a result that does not decode as the method's result is an error, in both eras.
#[tokio::test(start_paused = true)]
async fn a_result_that_does_not_fit_is_an_error() {
    let sessions = [envelope_session(builder()).await, handshake_session(builder(), "2025-11-25").await];
    for (client, mut server) in sessions {
        for result in [json!({}), json!({"tools": 7}), json!([]), Value::Null] {
            let error = answered(&mut server, client.list_tools(), result).await.unwrap_err();
            assert!(matches!(error, ClientError::Call(CallError::Unexpected(_))), "{error:?}");
        }
    }
}

/// P-RPC-16: errors of the server are passed on verbatim, also those of another revision.
#[tokio::test(start_paused = true)]
async fn an_error_is_returned_verbatim() {
    let (client, mut server) = envelope_session(builder()).await;
    let (outcome, ()) = tokio::join!(client.read_resource("a:b").into_future(), async {
        let request = server.expect("resources/read").await;
        server.respond_with_error(&request, -32002, Some(json!({"uri": "a:b"}))).await;
    });
    let Err(ClientError::Call(CallError::Rpc(error))) = outcome else { panic!("{outcome:?}") };
    assert_eq!(error.code, ErrorCode::RESOURCE_NOT_FOUND);
    assert_eq!(error.data::<Value>(), Some(json!({"uri": "a:b"})));
}

/// Responds to `tools/list` page by page. A page is its tools and the next cursor.
async fn paged(
    client: &Client,
    server: &mut ScriptedServer,
    pages: &[(&[&str], Option<&str>)],
) -> Result<Vec<String>, ClientError> {
    let (all, ()) = tokio::join!(client.all_tools(), async {
        let mut cursor = None;
        for (names, next) in pages {
            let request = server.expect("tools/list").await;
            assert_eq!(request["params"].get("cursor").and_then(Value::as_str), cursor);
            let mut page = json!({"tools": names.iter().map(|name| a_tool(name)).collect::<Vec<_>>()});
            if let Some(next) = next {
                page["nextCursor"] = (*next).into();
            }
            server.respond(&request, page).await;
            cursor = *next;
        }
    });
    all.map(|tools| tools.into_iter().map(|tool| tool.name).collect())
}

/// P-PAG-2, P-PAG-4: the empty string is a valid cursor, a page can be empty, and only a missing cursor ends the list.
#[tokio::test(start_paused = true)]
async fn pages_end_without_a_next_cursor() {
    let (client, mut server) = handshake_session(builder(), "2025-11-25").await;
    let pages: [(&[&str], _); 4] =
        [(&["a"], Some("")), (&[], Some("x")), (&["b", "c"], Some("y")), (&[], None)];
    assert_eq!(paged(&client, &mut server, &pages).await.unwrap(), ["a", "b", "c"]);
}

/// A server cannot keep a client busy with fresh cursors.
#[tokio::test(start_paused = true)]
async fn lists_with_too_many_pages_are_an_error() {
    let names: Vec<_> = (0..1001).map(|n| n.to_string()).collect();
    let mut pages: Vec<(&[&str], _)> =
        names.iter().map(|name| (&[] as &[&str], Some(name.as_str()))).collect();
    let (client, mut server) = handshake_session(builder(), "2025-11-25").await;
    let error = paged(&client, &mut server, &pages[..1000]).await.unwrap_err();
    assert_eq!(error.to_string(), "`tools/list` has more than 1000 pages");
    pages.truncate(2);
    let (client, mut server) = handshake_session(builder().max_pages(2), "2025-11-25").await;
    let error = paged(&client, &mut server, &pages).await.unwrap_err();
    assert!(matches!(error, ClientError::TooManyPages { pages: 2, .. }), "{error}");
    pages[1].1 = None;
    let (client, mut server) = handshake_session(builder().max_pages(2), "2025-11-25").await;
    paged(&client, &mut server, &pages).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn pages_that_go_in_a_circle_are_an_error() {
    let (client, mut server) = handshake_session(builder(), "2025-11-25").await;
    let pages: [(&[&str], _); 3] = [(&["a"], Some("x")), (&["b"], Some("y")), (&["c"], Some("x"))];
    let error = paged(&client, &mut server, &pages).await.unwrap_err();
    assert_eq!(error.to_string(), "the pages of `tools/list` go in a circle");
}

/// Rejects the results of one tool, and records the calls.
struct RejectBad(Mutex<Vec<(Method, String, String)>>);

impl ResultValidator for std::sync::Arc<RejectBad> {
    fn validate<'a>(&'a self, call: CompletedCall<'a>) -> BoxFuture<'a, Result<(), BoxError>> {
        let CompletedCall { method, params, result, .. } = call;
        self.0.lock().unwrap().push((method, params.to_owned(), result.to_owned()));
        let verdict = if params.contains("bad") { Err("not what was promised".into()) } else { Ok(()) };
        Box::pin(std::future::ready(verdict))
    }
}

/// CLT-07: a validator gets final results with their requests, and can reject them.
#[tokio::test(start_paused = true)]
async fn a_validator_can_reject_a_result() {
    let validator = std::sync::Arc::new(RejectBad(Mutex::default()));
    let (client, mut server) =
        handshake_session(builder().result_validator(validator.clone()), "2025-11-25").await;
    let call = |name: &str| client.call_tool(name, ());
    answered(&mut server, call("good"), json!({"content": []})).await.unwrap();
    let error = answered(&mut server, call("bad"), json!({"content": []})).await.unwrap_err();
    assert!(matches!(error, ClientError::Validation(_)), "{error:?}");
    let seen = validator.0.lock().unwrap();
    let good = (Method::ToolsCall, r#"{"name":"good"}"#.to_owned(), r#"{"content":[]}"#.to_owned());
    assert_eq!((seen.len(), &seen[0]), (2, &good));
}
