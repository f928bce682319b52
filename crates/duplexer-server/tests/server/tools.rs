//! Tools made with `Tool::new`.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use duplexer::tool::FileContent;
use duplexer::types::content::Content;
use duplexer::types::tool::CallToolResult;
use duplexer::{Context, Json, McpError, Server, Tool, ToolError, WithText};
use duplexer_types::error::ErrorCode;
use duplexer_types::version::Era;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::common::{both, call, refusal, text, try_call};

#[derive(Deserialize, JsonSchema)]
struct Add {
    /// The first number.
    a: i64,
    /// The second number.
    b: i64,
}

fn add() -> Tool<()> {
    Tool::new("add", |Add { a, b }| async move { a + b }).description("Adds two numbers.")
}

/// TOOL-03, P-TOOL-9, P-TOOL-10, P-TOOL-11: numbers are structured content, wrapped where it must be an object; the text
/// is there once.
#[tokio::test]
async fn a_tool_is_a_function_of_its_arguments() {
    let server = Server::builder("test", "0").tool(add()).build().unwrap();
    both(&server, async |client, era| {
        let result = call(client, "add", json!({"a": 1, "b": 2})).await;
        assert_eq!(text(&result), "3");
        assert_eq!(result.content.len(), 1);
        let structured: Value = result.structured_content.unwrap().decode().unwrap();
        let listed = client.all_tools().await.unwrap().remove(0);
        let output: Value = listed.output_schema.unwrap().decode().unwrap();
        match era {
            Era::Handshake => {
                assert_eq!(structured, json!({"result": 3}));
                assert_eq!(output["properties"]["result"]["type"], "integer");
            }
            Era::Envelope => {
                assert_eq!(structured, json!(3));
                assert_eq!(output["type"], "integer");
            }
        }
        assert_eq!(listed.description.as_deref(), Some("Adds two numbers."));
        let input: Value = listed.input_schema.decode().unwrap();
        assert_eq!(input["required"], json!(["a", "b"]));
        assert_eq!(input["properties"]["a"]["description"], "The first number.");
    })
    .await;
}

/// TOOL-01, TOOL-04, P-TOOL-6, peers B6: every violation of the arguments is reported to the model; no coercion.
#[tokio::test]
async fn bad_arguments_are_reported_to_the_model_all_at_once() {
    let server = Server::builder("test", "0").tool(add()).build().unwrap();
    both(&server, async |client, _| {
        let result = call(client, "add", json!({"a": "1"})).await;
        assert_eq!(result.is_error, Some(true));
        let report = text(&result);
        assert!(report.contains(r#"- /a: expected an integer, got "1""#), "{report}");
        assert!(report.contains("- /b: required, but missing"), "{report}");
        assert!(!report.contains("line 1"), "{report}");
    })
    .await;
}

/// TOOL-01 (deviation), P-TOOL-4, protocol 1.16: the name is the client's mistake.
#[tokio::test]
async fn an_unknown_tool_is_a_protocol_error() {
    let server = Server::builder("test", "0").tool(add()).build().unwrap();
    both(&server, async |client, _| {
        let error = refusal(try_call(client, "nope", json!({})).await);
        assert_eq!((error.code, &*error.message), (ErrorCode::INVALID_PARAMS, "Unknown tool: nope"));
    })
    .await;
}

#[derive(Serialize, JsonSchema)]
struct Weather {
    celsius: f64,
    note: Option<String>,
}

/// TOOL-02, TOOL-03, P-TOOL-9, P-TOOL-11: the return type determines the form of the result.
#[tokio::test]
async fn results_take_the_form_of_what_is_returned() {
    let server = Server::builder("test", "0")
        .tool(Tool::new("nothing", || async {}))
        .tool(Tool::new("words", || async { "plain words" }))
        .tool(Tool::new("owned", || async { String::from("owned words") }))
        .tool(Tool::new("weather", || async { Weather { celsius: 21.5, note: None } }))
        .tool(Tool::new("list", || async { vec![1, 2, 3] }))
        .tool(Tool::new("content", || async {
            vec![Content::text("a"), Content::image("AAAA", "image/png")]
        }))
        .tool(Tool::new("own", || async { CallToolResult::text("own") }))
        .build()
        .unwrap();
    both(&server, async |client, era| {
        let nothing = call(client, "nothing", json!({})).await;
        assert!(nothing.content.is_empty() && nothing.structured_content.is_none());
        for (tool, words) in [("words", "plain words"), ("owned", "owned words")] {
            let result = call(client, tool, json!({})).await;
            assert_eq!((text(&result), &result.structured_content), (words, &None));
        }
        let weather = call(client, "weather", json!({})).await;
        assert_eq!(text(&weather), r#"{"celsius":21.5,"note":null}"#);
        assert_eq!(weather.structured_content.as_ref().unwrap().as_str(), text(&weather));
        let list = call(client, "list", json!({})).await.structured_content.unwrap();
        assert_eq!(list.as_str(), if era == Era::Envelope { "[1,2,3]" } else { r#"{"result":[1,2,3]}"# });
        assert_eq!(call(client, "content", json!({})).await.content.len(), 2);
        assert_eq!(text(&call(client, "own", json!({})).await), "own");
        let tools = client.all_tools().await.unwrap();
        let with_schema: Vec<_> =
            tools.iter().filter(|tool| tool.output_schema.is_some()).map(|tool| &*tool.name).collect();
        assert_eq!(with_schema, ["weather", "list"]);
    })
    .await;
}

/// TOOL-02: images and audio from bytes and from files; a file of another kind is an error.
#[tokio::test]
async fn files_become_content() {
    let folder = std::env::temp_dir().join(format!("duplexer-content-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let file = |name: &str, bytes: &[u8]| {
        let path = folder.join(name);
        std::fs::write(&path, bytes).unwrap();
        Content::file(path)
    };
    let shown = file("a.PNG", &[1, 2, 3]).await.unwrap();
    assert_eq!(shown, Content::image("AQID", "image/png"));
    assert_eq!(shown, Content::image_bytes([1, 2, 3], "image/png"));
    assert_eq!(file("a.wav", &[1]).await.unwrap(), Content::audio_bytes([1], "audio/wav"));
    assert_eq!(Content::audio_bytes([1], "audio/wav"), Content::audio("AQ==", "audio/wav"));
    assert_eq!(file("a.md", b"text").await.unwrap(), Content::text("text"));
    let odd = file("a.zip", &[0xff]).await.unwrap_err();
    assert!(odd.to_string().contains("offer it as a resource"));
    assert!(Content::file(folder.join("absent.png")).await.is_err());
    std::fs::remove_dir_all(folder).unwrap();
}

/// TOOL-01, P-TOOL-5: in-band, protocol, and hidden failures.
#[tokio::test]
async fn failures_reach_the_model_the_client_or_the_log() {
    #[derive(Debug)]
    struct Mine;
    impl From<Mine> for ToolError {
        fn from(_: Mine) -> Self {
            Self::new("mine").details(json!({"retry": false}))
        }
    }
    let server = Server::builder("test", "0")
        .tool(Tool::new("known", || async { Err::<i64, _>(ToolError::new("try another city")) }))
        .tool(Tool::new("mine", || async { Err::<i64, _>(Mine) }))
        .tool(Tool::new("io", || async { Ok::<_, ToolError>(std::fs::read_to_string("/no/such/file")?) }))
        .tool(Tool::new("boxed", || async { Err::<String, duplexer::BoxError>("boxed".into()) }))
        .tool(Tool::new("protocol", || async {
            Err::<i64, _>(McpError::new(ErrorCode(-32099), "not for models"))
        }))
        .tool(Tool::new("hidden", || async { Err::<i64, _>(ToolError::internal("the password is 1234")) }))
        .tool(Tool::new("panics", || async { assert!(false_now(), "secret") }))
        .build()
        .unwrap();
    both(&server, async |client, _| {
        for (tool, words) in [("known", "try another city"), ("mine", "mine"), ("boxed", "boxed")] {
            let result = call(client, tool, json!({})).await;
            assert_eq!((result.is_error, text(&result)), (Some(true), words));
        }
        assert!(text(&call(client, "io", json!({})).await).contains("No such file"));
        assert_eq!(refusal(try_call(client, "protocol", json!({})).await).code, ErrorCode(-32099));
        for tool in ["hidden", "panics"] {
            let error = refusal(try_call(client, tool, json!({})).await);
            assert_eq!((error.code, &*error.message), (ErrorCode::INTERNAL_ERROR, "Internal server error"));
        }
    })
    .await;
}

#[tokio::test]
async fn a_context_and_its_state_come_before_the_arguments() {
    let server = Server::builder("test", "0")
        .tool(Tool::new("stateless", |cx: Context| async move { cx.method().len() }))
        .lifespan(|| async { Ok::<_, std::io::Error>(AtomicUsize::new(40)) })
        .tool(Tool::new("count", |cx: Context<AtomicUsize>, args: Add| async move {
            i64::try_from(cx.state().fetch_add(1, Ordering::Relaxed)).unwrap() + args.a + args.b
        }))
        .tool(Tool::new("peek", |cx: Context<AtomicUsize>| async move { cx.state().load(Ordering::Relaxed) }))
        .tool(Tool::new("any", |cx: Context, Add { a, .. }| async move { (cx.method().len(), a) }))
        .build()
        .unwrap();
    both(&server, async |client, _| {
        assert_eq!(text(&call(client, "stateless", json!({})).await), "10");
        assert_eq!(text(&call(client, "count", json!({"a": 1, "b": 1})).await), "42");
        assert_eq!(text(&call(client, "peek", json!({})).await), "41");
        assert_eq!(text(&call(client, "any", json!({"a": 1, "b": 1})).await), "[10,1]");
    })
    .await;
}

/// Peers B32: a blocking tool runs on a thread of its own, and its panic is one failed request.
#[tokio::test]
async fn blocking_tools_do_not_delay_other_calls() {
    // Two calls meet while both block their thread; one after the other they would wait indefinitely.
    let inside = Arc::new((Mutex::new(0_u32), Condvar::new()));
    let server = Server::builder("test", "0")
        .tool(Tool::blocking("block", move |Add { a, b }| {
            let mut count = inside.0.lock().unwrap();
            *count += 1;
            inside.1.notify_all();
            let met = |count: &mut u32| !count.is_multiple_of(2);
            let waited = inside.1.wait_timeout_while(count, Duration::from_secs(10), met).unwrap();
            assert!(!waited.1.timed_out(), "the other call did not start");
            a * b
        }))
        .tool(Tool::blocking("burst", || -> i64 { panic!("on its thread") }))
        .build()
        .unwrap();
    both(&server, async |client, _| {
        let (one, two) = (json!({"a": 2, "b": 3}), json!({"a": 4, "b": 5}));
        let (one, two) = tokio::join!(call(client, "block", one), call(client, "block", two));
        assert_eq!((text(&one), text(&two)), ("6", "20"));
        assert_eq!(refusal(try_call(client, "burst", json!({})).await).code, ErrorCode::INTERNAL_ERROR);
    })
    .await;
}

/// P-CAN-5: a tool has its own timeout, and is dropped after it.
#[tokio::test(start_paused = true)]
async fn a_tool_that_takes_too_long_is_stopped() {
    let dropped = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&dropped);
    let slow = Tool::new("slow", move || {
        let counter = Arc::clone(&counter);
        async move {
            struct Count(Arc<AtomicUsize>);
            impl Drop for Count {
                fn drop(&mut self) {
                    self.0.fetch_add(1, Ordering::Relaxed);
                }
            }
            let _count = Count(counter);
            std::future::pending::<()>().await;
        }
    })
    .timeout(Duration::from_secs(5));
    let server = Server::builder("test", "0").tool(slow).build().unwrap();
    both(&server, async |client, _| {
        let result = call(client, "slow", json!({})).await;
        assert_eq!(result.is_error, Some(true));
        assert!(text(&result).contains("5s"), "{}", text(&result));
    })
    .await;
    assert_eq!(dropped.load(Ordering::Relaxed), 2);
}

/// P-SCH-7, P-SCH-8: a hand-written schema is listed verbatim, and arguments are validated against it.
#[tokio::test]
async fn a_hand_written_schema_is_listed_verbatim() {
    let schema = r##"{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object","properties":{"z":{"$ref":"#/$defs/odd"},"a":{"type":"string","x-mcp-header":"Region"}},"$defs":{"odd":{"type":"integer","not":{"multipleOf":2}}},"required":["z"]}"##;
    let tool = Tool::with_schema("odd", Json::parse(schema).unwrap(), |args: Json| async move {
        CallToolResult::structured(json!({"n": args.decode::<Value>().unwrap()["z"]}))
    })
    .output_schema(json!({"type": "object", "required": ["n"]}));
    let server = Server::builder("test", "0").tool(tool).build().unwrap();
    both(&server, async |client, _| {
        assert_eq!(client.all_tools().await.unwrap()[0].input_schema.as_str(), schema);
        assert_eq!(
            call(client, "odd", json!({"z": 3})).await.structured_content.unwrap().as_str(),
            r#"{"n":3}"#
        );
        for (arguments, fault) in [(json!({"z": 4}), "/z: expected"), (json!({}), "/z: required")] {
            let result = call(client, "odd", arguments).await;
            assert!(result.is_error == Some(true) && text(&result).contains(fault), "{}", text(&result));
        }
    })
    .await;
}

/// P-TOOL-7: a schema that is stricter than the type is enforced although the value decodes.
#[tokio::test]
async fn demands_of_a_schema_are_enforced() {
    #[derive(Deserialize, JsonSchema)]
    struct Rate {
        #[schemars(range(min = 1, max = 5))]
        stars: u8,
    }
    let rate = Tool::new("rate", |Rate { stars }| async move { stars });
    let server = Server::builder("test", "0").tool(rate).build().unwrap();
    both(&server, async |client, _| {
        assert_eq!(text(&call(client, "rate", json!({"stars": 5})).await), "5");
        let result = call(client, "rate", json!({"stars": 6})).await;
        assert!(text(&result).contains("/stars: expected at most 5, got 6"), "{}", text(&result));
    })
    .await;
}

/// TOOL-03, P-TOOL-8: a result that violates its schema, or lacks structured content, is an internal error.
#[tokio::test]
async fn output_is_checked_against_its_schema() {
    fn promised(name: &str, result: fn() -> CallToolResult) -> Tool<()> {
        let schema = json!({"type": "object", "required": ["n"]});
        Tool::new(name, move || async move { result() }).output_schema(schema).check_output()
    }
    let server = Server::builder("test", "0")
        .tool(promised("liar", || CallToolResult::structured(Json::object())))
        .tool(promised("silent", || CallToolResult::text("only text")))
        .tool(promised("failing", || CallToolResult::error("no")))
        .build()
        .unwrap();
    both(&server, async |client, _| {
        for tool in ["liar", "silent"] {
            assert_eq!(refusal(try_call(client, tool, json!({})).await).code, ErrorCode::INTERNAL_ERROR);
        }
        assert_eq!(call(client, "failing", json!({})).await.is_error, Some(true), "a failure owes nothing");
    })
    .await;
}

/// TOOL-05, NAME-01, HDR-04, P-TOOL-13, P-SCH-3, P-SCH-5: mistakes are found when the server is built, and the text says
/// what to change.
#[test]
fn mistakes_fail_the_build() {
    let check = |tool: Tool<()>, expected: &str| {
        // Release builds check schemas on request only.
        let error = Server::builder("test", "0").tool(add()).tool(tool).check_schemas().build().unwrap_err();
        assert!(error.to_string().contains(expected), "{error}");
    };
    check(add(), "there are two tools 'add'");
    check(Tool::new("two words", || async {}), "'two words' cannot be called so");
    check(Tool::new("x", |_: i64| async {}), "its arguments are not an object");
    check(Tool::with_schema("x", json!({"type": "string"}), |_: Json| async {}), "\"type\": \"object\"");
    check(
        Tool::with_schema("x", json!({"type": "object", "$ref": "https://example.com/x"}), |_: Json| async {
        }),
        "cannot be used",
    );
    check(
        Tool::with_schema(
            "x",
            json!({"type": "object", "properties": {"a": {"type": "string", "x-mcp-header": "no good"}}}),
            |_: Json| async {},
        ),
        "x-mcp-header",
    );
}

/// P-SCH-4: a schema at another location is rejected without a request to it.
#[test]
fn a_schema_elsewhere_is_not_fetched() {
    let elsewhere = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    elsewhere.set_nonblocking(true).unwrap();
    let uri = format!("http://{}/schema.json", elsewhere.local_addr().unwrap());
    for schema in [
        json!({"type": "object", "properties": {"a": {"$ref": uri}}}),
        json!({"type": "object", "$schema": uri}),
        json!({"type": "object", "$id": uri, "properties": {"a": {"$ref": "other.json"}}}),
    ] {
        let input = Tool::with_schema("x", schema.clone(), |_: Json| async {});
        let output = Tool::new("x", || async {}).output_schema(schema).check_output();
        for tool in [input, output] {
            let error = Server::builder("test", "0").tool(tool).build().unwrap_err();
            assert!(error.to_string().contains("cannot be used"), "{error}");
        }
    }
    let asked = elsewhere.accept().map(|_| ()).unwrap_err();
    assert_eq!(asked.kind(), std::io::ErrorKind::WouldBlock);
}

/// P-PAG-1, MCPS-02 (deviation): opaque cursors, in the order of registration; a bad one is refused.
#[tokio::test]
async fn lists_come_in_pages() {
    let mut builder = Server::builder("test", "0").page_size(2);
    for name in ["e", "d", "c", "b", "a"] {
        builder = builder.tool(Tool::new(name, || async {}));
    }
    let server = builder.build().unwrap();
    both(&server, async |client, _| {
        let names: Vec<String> =
            client.all_tools().await.unwrap().into_iter().map(|tool| tool.name).collect();
        assert_eq!(names, ["e", "d", "c", "b", "a"]);
        let first = client.list_tools().await.unwrap();
        assert_eq!(first.tools.len(), 2);
        let second = client.list_tools().cursor(first.next_cursor.unwrap()).await.unwrap();
        assert_eq!(second.tools[0].name, "c");
        for bad in ["", "nonsense", "AAAA"] {
            let error = refusal(client.list_tools().cursor(bad).await);
            assert_eq!((error.code, &*error.message), (ErrorCode::INVALID_PARAMS, "Invalid cursor"));
        }
    })
    .await;
}

/// MCPS-01 (deviation): a capability is declared if the server has items of its kind.
#[tokio::test]
async fn capabilities_follow_from_what_is_registered() {
    let server = Server::builder("test", "0").build().unwrap();
    both(&server, async |client, _| {
        assert!(client.server_capabilities().tools.is_none());
        assert_eq!(refusal(try_call(client, "add", json!({})).await).code, ErrorCode::METHOD_NOT_FOUND);
    })
    .await;
}

#[derive(Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
#[expect(dead_code, reason = "only its schema and its decoder are of interest")]
enum Filter {
    And { left: Box<Filter>, right: Box<Filter> },
    Or { left: Box<Filter>, right: Box<Filter> },
    Not { left: Box<Filter> },
    Is { field: String, value: i64 },
}

#[derive(Deserialize, JsonSchema)]
#[expect(dead_code, reason = "only its schema and its decoder are of interest")]
struct Query {
    filter: Filter,
}

/// P-SCH-6, TOOL-01: a value nested as deep as a frame can be, wrong at the bottom, gets the one violation at its place.
/// The cost does not grow with the alternatives at every level.
#[tokio::test]
async fn deeply_nested_alternatives_are_checked_within_a_budget() {
    let server =
        Server::builder("test", "0").tool(Tool::new("query", |_: Query| async { "found" })).build().unwrap();
    let mut filter = json!({"kind": "is", "field": "a", "value": "wrong"});
    for _ in 0..100 {
        filter = json!({"kind": "not", "left": filter});
    }
    both(&server, async |client, _| {
        let result = call(client, "query", json!({"filter": filter})).await;
        assert_eq!(result.is_error, Some(true));
        let place = format!("/filter{}/value", "/left".repeat(100));
        assert!(text(&result).contains(&place), "{}", text(&result));
        assert!(text(&result).contains("expected an integer, got \"wrong\""), "{}", text(&result));
    })
    .await;
}

#[derive(Deserialize, JsonSchema)]
#[serde(untagged)]
#[expect(dead_code, reason = "only its schema is of interest")]
enum Untagged {
    And { left: Box<Untagged>, right: Box<Untagged> },
    Or { left: Box<Untagged>, right: Box<Untagged> },
    Leaf { value: i64 },
}

#[derive(Deserialize, JsonSchema)]
#[expect(dead_code, reason = "only its schema is of interest")]
struct Ambiguous {
    tree: Untagged,
}

#[derive(Deserialize, JsonSchema)]
#[serde(untagged)]
#[expect(dead_code, reason = "only its schema is of interest")]
enum Overlapping {
    Pair { left: Box<Overlapping>, right: Box<Overlapping> },
    Wrapped { left: Box<Overlapping>, note: Option<String> },
    Leaf { value: i64 },
}

#[derive(Deserialize, JsonSchema)]
#[expect(dead_code, reason = "only its schema is of interest")]
struct Doubling {
    tree: Overlapping,
}

/// P-SCH-6: an enum that contains itself and whose forms have the same members, or contain it in the same one, needs a
/// tag, and the build says so. Decoding such a value takes exponential time: 610 bytes took ten seconds.
#[test]
fn a_recursive_enum_without_a_tag_fails_the_build() {
    let walk = Tool::new("walk", |_: Ambiguous| async {});
    let double = Tool::new("double", |_: Doubling| async {});
    for (name, tool) in [("walk", walk), ("double", double)] {
        let error = Server::builder("test", "0").tool(tool).check_schemas().build().unwrap_err().to_string();
        assert!(error.contains(name) && error.contains("give the enum a tag"), "{error}");
    }
}

/// Not known to be false before it runs.
fn false_now() -> bool {
    std::hint::black_box(false)
}

/// Members of results and of nested objects, in an order that is not alphabetical.
#[derive(Deserialize, Serialize, JsonSchema)]
struct Trip {
    to: String,
    from: Option<String>,
    stops: Vec<Stop>,
    at: Stop,
}

#[derive(Deserialize, Serialize, JsonSchema)]
struct Stop {
    name: String,
    track: Option<u8>,
    arrival: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    delay: Option<u8>,
}

/// Hardening, defect 4: members have their declared order everywhere.
#[tokio::test]
async fn members_keep_their_declared_order() {
    let plan = |trip: Trip| async move { trip };
    let server = Server::builder("test", "0").tool(Tool::new("plan", plan)).build().unwrap();
    both(&server, async |client, _| {
        let tool = client.all_tools().await.unwrap().remove(0);
        let check = |schema: &Json| {
            let at = |name: &str| schema.as_str().find(&format!("\"{name}\":{{")).unwrap();
            let names = ["to", "from", "stops", "name", "track", "arrival", "delay", "at"];
            let positions: Vec<_> = names.into_iter().map(at).collect();
            assert!(positions.is_sorted(), "{schema}");
        };
        check(&tool.input_schema);
        check(tool.output_schema.as_ref().unwrap());
    })
    .await;
}

/// A text for the model beside structured content with a schema, in both eras.
#[tokio::test]
async fn a_result_can_have_its_own_text_and_structured_content() {
    let server = Server::builder("test", "0")
        .tool(Tool::new("primes", || async { WithText::new("Three primes.", [2, 3, 5]) }))
        .tool(Tool::new("name", || async {
            Ok::<_, ToolError>(WithText::new("Her name.", "Ada".to_owned()))
        }))
        .build()
        .unwrap();
    both(&server, async |client, era| {
        let wrapped = |value: Value| match era {
            Era::Handshake => json!({ "result": value }),
            Era::Envelope => value,
        };
        let primes = call(client, "primes", json!({})).await;
        assert_eq!(text(&primes), "Three primes.");
        let structured: Value = primes.structured_content.unwrap().decode().unwrap();
        assert_eq!(structured, wrapped(json!([2, 3, 5])));
        let name = call(client, "name", json!({})).await;
        assert_eq!(text(&name), "Her name.");
        let structured: Value = name.structured_content.unwrap().decode().unwrap();
        assert_eq!(structured, wrapped(json!("Ada")));
        let tools = client.all_tools().await.unwrap();
        assert!(tools.iter().all(|tool| tool.output_schema.is_some()));
    })
    .await;
}

/// A blocking tool reports progress without `await`.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_blocking_tool_reports_progress() {
    let count = |cx: Context| {
        for (done, name) in ["a", "b", "c"].iter().enumerate() {
            cx.progress(done).total(3_usize).message(name).blocking_send();
        }
        cx.is_cancelled()
    };
    let server = Server::builder("test", "0").tool(Tool::blocking("count", count)).build().unwrap();
    both(&server, async |client, _| {
        let seen = Arc::new(Mutex::new(Vec::new()));
        let reports = Arc::clone(&seen);
        let call = client.call_tool("count", json!({})).on_progress(move |report| {
            reports.lock().unwrap().push((report.progress, report.total, report.message.clone()));
        });
        assert_eq!(text(&call.await.unwrap()), "false");
        let expected = [(0.0, "a"), (1.0, "b"), (2.0, "c")];
        let expected = expected.map(|(done, name)| (done, Some(3.0), Some(name.to_owned())));
        assert_eq!(*seen.lock().unwrap(), expected);
    })
    .await;
}

/// A blocking tool whose call exceeds its time limit notices it, although nothing interrupts it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_blocking_tool_notices_that_its_call_has_ended() {
    let (stopped, stops) = std::sync::mpsc::sync_channel(1);
    let wait = move |cx: Context| {
        while !cx.is_cancelled() {
            std::thread::yield_now();
        }
        stopped.send(()).unwrap();
    };
    let tool = Tool::blocking("wait", wait).timeout(Duration::from_millis(1));
    let server = Server::builder("test", "0").tool(tool).build().unwrap();
    both(&server, async |client, _| {
        assert_eq!(call(client, "wait", json!({})).await.is_error, Some(true));
        stops.recv_timeout(Duration::from_secs(30)).unwrap();
    })
    .await;
}
