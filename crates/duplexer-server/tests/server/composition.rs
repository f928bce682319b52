//! Servers merged into and nested in other servers.

use std::sync::{Arc, Mutex};

use duplexer::apps::{Apps, View};
use duplexer::client::ServerNotification;
use duplexer::completion::CompletionRequest;
use duplexer::server::CatalogItem;
use duplexer::testing::TestClient;
use duplexer::{Context, McpError, Prompt, Resource, Server, ServerBuilder, Tool, ToolError};
use duplexer_core::dispatch::{Message, OutboundRequest};
use duplexer_server::middleware::Next;
use duplexer_server::request_state::RequestState;
use duplexer_server::subscriptions::MemoryBus;
use duplexer_types::completion::{CompleteParams, CompletionArgument, CompletionReference, PromptReference};
use duplexer_types::json::{Json, JsonObject};
use duplexer_types::prompt::GetPromptParams;
use duplexer_types::version::Era;
use duplexer_types::wire::CacheScope;
use duplexer_types::{methods, tool};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::common::{both, call, options, refusal, text, try_call};

struct Db(&'static str);

#[derive(Deserialize, JsonSchema)]
struct Ask {
    what: String,
}

fn database(name: &'static str) -> ServerBuilder<Db> {
    Server::builder("database", "0")
        .state(Db(name))
        .tool(Tool::new("name", |cx: Context<Db>| async move { cx.state().0 }))
}

fn greeter() -> ServerBuilder<String> {
    let greeting =
        Prompt::new(
            "greet",
            |cx: Context<String>, Ask { what }| async move { format!("{} {what}", cx.state()) },
        )
        .complete("what", |request: CompletionRequest| async move { request.filter(["world", "moon"]) });
    Server::builder("greeter", "0")
        .tool(Tool::new("plain", || async { "plain" }))
        .lifespan(|| async { Ok::<_, McpError>("hello".to_owned()) })
        .prompt(greeting)
        .resource(Resource::new("greet://one", |cx: Context<String>| async move { cx.state().clone() }))
        .on_custom("greeter/greet", |cx: Context<String>, _: Value| async move {
            Ok::<_, McpError>(json!({ "said": cx.state() }))
        })
}

async fn names(client: &TestClient) -> Vec<String> {
    client.all_tools().await.unwrap().into_iter().map(|tool| tool.name).collect()
}

#[tokio::test]
async fn servers_with_different_states_become_one() {
    let server = Server::builder("all", "0")
        .tool(Tool::new("own", || async { "own" }))
        .merge(database("first"))
        .nest("second", database("second"))
        .nest("third", Server::builder("deep", "0").nest("inner", database("third")))
        .merge(greeter())
        .state(7_u8)
        .tool(Tool::new("seven", |cx: Context<u8>| async move { cx.state().to_string() }))
        .build()
        .unwrap();
    both(&server, async |client, _| {
        let expected = ["own", "name", "second_name", "third_inner_name", "plain", "seven"];
        assert_eq!(names(client).await, expected);
        let answers = [("own", "own"), ("name", "first"), ("second_name", "second"), ("seven", "7")];
        for (tool, answer) in answers.into_iter().chain([("third_inner_name", "third"), ("plain", "plain")]) {
            assert_eq!(text(&call(client, tool, json!({})).await), answer);
        }
        assert_eq!(client.server_info().map(|info| &*info.name), Some("all"));
        let custom = OutboundRequest::new("greeter/greet").params(Json::object());
        assert!(client.request_custom(custom).await.unwrap().as_str().contains(r#""said":"hello""#));
    })
    .await;
}

/// URIs and custom methods are unchanged; completions follow their prompt; capabilities follow from all servers together.
#[tokio::test]
async fn a_prefix_applies_to_names_and_nothing_else() {
    let server = Server::builder("all", "0").nest("g", greeter().logging()).build().unwrap();
    both(&server, async |client, era| {
        let capabilities = client.server_capabilities();
        assert!(capabilities.prompts.is_some() && capabilities.completions.is_some());
        assert!(capabilities.resources.is_some() && capabilities.tools.is_some());
        assert!(capabilities.logging.is_some(), "{era:?}");
        let params =
            GetPromptParams::new("g_greet").arguments(JsonObject::new().with("what", "world".to_owned()));
        let filled = client.get_prompt_with(params).await.unwrap();
        assert_eq!(filled.messages[0].content.as_text(), Some("hello world"));
        let reference = CompletionReference::Prompt(PromptReference::new("g_greet"));
        let params = CompleteParams::new(reference, CompletionArgument::new("what", "w"));
        assert_eq!(client.complete_with(params).await.unwrap().completion.values, ["world"]);
        assert_eq!(client.all_resources().await.unwrap()[0].uri, "greet://one");
        assert_eq!(client.read_resource("greet://one").await.unwrap().contents.len(), 1);
    })
    .await;
}

/// The lifespans of merged servers surround the server's own.
#[tokio::test]
async fn lifespans_of_all_servers_start_and_end() {
    let diary = Arc::new(Mutex::new(Vec::new()));
    let keep = |builder: ServerBuilder<()>, name: &'static str| {
        let (begin, end) = (Arc::clone(&diary), Arc::clone(&diary));
        let start = move || {
            begin.lock().unwrap().push(format!("+{name}"));
            async { Ok::<_, McpError>(()) }
        };
        builder.lifespan(start).on_shutdown(move |_| {
            end.lock().unwrap().push(format!("-{name}"));
            async {}
        })
    };
    let part = |name| keep(Server::builder(name, "0"), name);
    let server =
        keep(Server::builder("own", "0").merge(part("one")), "own").nest("x", part("two")).build().unwrap();
    server.start().await.unwrap().shutdown().await;
    assert_eq!(*diary.lock().unwrap(), ["+one", "+two", "+own", "-own", "-two", "-one"]);
}

/// The reason why a composition cannot be built.
#[track_caller]
fn fails<S: Send + Sync + 'static>(builder: ServerBuilder<S>, expected: &str) {
    let error = builder.build().unwrap_err().to_string();
    assert!(error.contains(expected), "{error}");
}

#[test]
fn whatever_there_can_be_only_one_of_fails_the_build() {
    let new = || Server::builder("x", "0");
    fails(database("a").merge(database("b")), "there are two tools 'name': rename one of them");
    let prefixed = new().tool(Tool::new("a_name", || async {}));
    fails(prefixed.nest("a", database("b")), "there are two tools 'a_name'");
    fails(new().nest("a", greeter()).nest("b", greeter()), "'greeter/greet'");
    let resource = || new().resource(Resource::text("a://b", ""));
    fails(resource().nest("x", resource()), "there are two resources 'a://b'");
    fails(new().nest("two words", database("a")), "'two words_name' cannot be called so");
    fails(new().nest("x".repeat(128), database("a")), "at most 128 characters");
    let bus = || new().subscriptions(MemoryBus::new());
    fails(bus().merge(bus()), "have the bus 'subscriptions'");
    let speaks = |settings: Value| new().extension("a.b/c", settings);
    fails(speaks(json!({})).merge(speaks(json!({"d": 1}))), "have the extension 'a.b/c'");
    assert!(speaks(json!({})).merge(speaks(json!({}))).build().is_ok());
    let view = |uri: &str| new().extend(Apps::new().view(View::new(uri, "<!doctype html><html></html>")));
    assert!(view("ui://a").merge(view("ui://b")).build().is_ok());
}

/// An item that would silently become unreachable fails the build.
#[test]
fn what_a_composition_would_lose_fails_the_build() {
    let pass = |cx: Context, message: Message, next: Next| async move { next.run(cx, message).await };
    let new = || Server::builder("inner", "0");
    fails(database("a").merge(new().middleware(pass)), "'inner' has middleware");
    let sealed = new().request_state(RequestState::ephemeral());
    fails(database("a").merge(sealed), "seals request states");
    let by_hand = || {
        new().on(methods::ToolsCall, |_: tool::CallToolParams| async {
            Ok::<_, McpError>(tool::CallToolResult::text(""))
        })
    };
    fails(by_hand().merge(database("a")), "the handler of 'tools/call' would hide");
    fails(database("a").merge(by_hand()), "the handler of 'tools/call' would hide");
    fails(new().nest("x", by_hand()), "'tools/call' has a handler of its own, which a prefix does not reach");
    fails(by_hand().merge(by_hand()), "have the handler of 'tools/call'");
    assert!(new().merge(by_hand()).build().is_ok());
}

/// The filter of each server applies to its own items, by the names it knows; hidden items stay hidden, and lists are private.
#[tokio::test]
async fn visibility_goes_by_the_names_of_its_server() {
    let tool = |name: &str| Tool::new(name, || async { "seen" });
    let hides = |name: &'static str| {
        move |_: &Context, offered: CatalogItem<'_>| match offered {
            CatalogItem::Tool(tool) => tool.name != name,
            CatalogItem::Prompt(prompt) => prompt.name != name,
            _ => true,
        }
    };
    let inner = Server::builder("inner", "0")
        .tool(tool("admin"))
        .tool(tool("open"))
        .tool(tool("locked"))
        .prompt(Prompt::new("admin", || async { "" }))
        .visible(hides("admin"));
    let server = Server::builder("outer", "0")
        .tool(tool("admin"))
        .nest("in", inner)
        .visible(hides("in_locked"))
        .build()
        .unwrap();
    both(&server, async |client, era| {
        assert_eq!(names(client).await, ["admin", "in_open"]);
        assert!(client.all_prompts().await.unwrap().is_empty());
        for hidden in ["in_admin", "in_locked"] {
            let error = refusal(try_call(client, hidden, json!({})).await);
            assert_eq!(error.message, format!("Unknown tool: {hidden}"));
        }
        assert_eq!(text(&call(client, "in_open", json!({})).await), "seen");
        if era == Era::Envelope {
            assert_eq!(client.list_tools().await.unwrap().cache_scope, Some(CacheScope::Private));
        }
    })
    .await;
}

/// A nested server edits its items by its own names, with its own state; clients of the outer server are notified.
#[tokio::test]
async fn a_nested_server_edits_its_own_items() {
    let extra = || Tool::new("extra", |cx: Context<Db>| async move { cx.state().0 });
    let grow = || {
        Tool::new("grow", move |cx: Context<Db>| async move {
            let catalog = cx.catalog()?;
            let changed = catalog.edit(|edit| {
                edit.add_tool(extra())?;
                edit.add_prompt(Prompt::new("new", || async { "new" }))?;
                edit.add_resource(Resource::new("new://one", |cx: Context<Db>| async move { cx.state().0 }))?;
                edit.disable_tool("name").map_err(ToolError::from)
            });
            changed.await
        })
    };
    let shrink = || {
        Tool::new("shrink", |cx: Context<Db>| async move {
            cx.catalog()?.edit(|edit| edit.remove_tool("absent")).await.map_err(ToolError::from)
        })
    };
    let build = || {
        let inner = database("inner").dynamic().tool(grow()).tool(shrink());
        Server::builder("outer", "0")
            .state(Db("outer"))
            .nest("in", inner)
            .merge(database("other"))
            .build()
            .unwrap()
    };
    for era in [Era::Handshake, Era::Envelope] {
        let (sender, mut notifications) = tokio::sync::mpsc::channel(8);
        let options = options(era).on_notification(move |notification: ServerNotification| {
            let _ = sender.try_send(format!("{notification:?}"));
        });
        let client = &TestClient::connect(&build(), options).await.unwrap();
        assert_eq!(call(client, "in_grow", json!({})).await.is_error, None);
        assert_eq!(names(client).await, ["in_grow", "in_shrink", "name", "in_extra"]);
        assert_eq!(text(&call(client, "in_extra", json!({})).await), "inner");
        assert_eq!(client.all_prompts().await.unwrap()[0].name, "in_new");
        let read = client.read_resource("new://one").await.unwrap();
        assert!(format!("{:?}", read.contents).contains("inner"));
        let absent = call(client, "in_shrink", json!({})).await;
        assert_eq!((absent.is_error, text(&absent)), (Some(true), "there is no tool 'absent'"));
        if era == Era::Handshake {
            assert!(notifications.recv().await.unwrap().contains("Tools"));
        }
    }
}
