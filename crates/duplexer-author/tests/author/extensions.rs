//! Extensions, and MCP Apps as the first one.

use std::sync::{Arc, Mutex};

use duplexer::{
    Apps, CallToolResult, Content, Context, Extension, Json, McpError, Server, ServerBuilder, ServerExt,
    Tool, ToolCall,
};
use duplexer_core::dispatch::OutboundRequest;
use duplexer_core::server::Outcome;
use duplexer_core::testing::TestClient;
use duplexer_types::error::ErrorCode;
use duplexer_types::version::Era;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::common::{both, call, options, refusal, text, try_call};

struct Echo(&'static str);

impl Extension<()> for Echo {
    fn id(&self) -> &str {
        self.0
    }

    fn settings(&self) -> Json {
        json!({"loud": true}).into()
    }

    fn install(self, builder: ServerBuilder<()>) -> ServerBuilder<()> {
        builder
            .on_custom("com.example/echo", |params: Value| async move { Ok::<_, McpError>(params) })
            .tool(Tool::new("echo").handler(|| async { "echo" }))
    }
}

/// EXT-01, EXT-02, EXT-03: settings, tools and methods; ids are checked.
#[tokio::test]
async fn an_extension_contributes_settings_tools_and_methods() {
    let server = Server::builder("test").extend(Echo("com.example/echo")).build().unwrap();
    both(&server, async |client, era| {
        assert_eq!(text(&call(client, "echo", json!({})).await), "echo");
        let request = OutboundRequest::new("com.example/echo").params(Json::from(json!({"a": 1})));
        assert_eq!(client.request_custom(request).await.unwrap().decode::<Value>().unwrap()["a"], 1);
        if era == Era::Envelope {
            let extensions = client.server_capabilities().extensions.as_ref().unwrap();
            assert_eq!(extensions.get("com.example/echo").unwrap().as_str(), r#"{"loud":true}"#);
        }
    })
    .await;
    for id in ["echo", "-x/echo", "com.example/"] {
        assert!(Server::builder("test").extend(Echo(id)).build().is_err(), "{id}");
    }
    let twice = Server::builder("test").extend(Echo("a.b/c")).extend(Echo("a.b/c"));
    assert!(twice.build().unwrap_err().to_string().contains("twice"));
}

/// Writes down what passes through it, before and after; changes what it is told to.
struct Witness {
    id: &'static str,
    diary: Arc<Mutex<Vec<String>>>,
}

impl Extension<()> for Witness {
    fn id(&self) -> &str {
        self.id
    }

    fn install(self, builder: ServerBuilder<()>) -> ServerBuilder<()> {
        let Self { id, diary } = self;
        builder.intercept(move |cx: Context, call: ToolCall| {
            let diary = Arc::clone(&diary);
            let note = move |what: String| diary.lock().unwrap().push(what);
            async move {
                note(format!("{id} > {} {}", call.name(), call.arguments()));
                let mut outcome = call.run(cx).await?;
                // Below the shaping of results: what comes back is still what the tool has made.
                let result = outcome.downcast_mut::<CallToolResult>().unwrap();
                note(format!("{id} < {}", text(result)));
                result.content.push(Content::text(id));
                Ok(outcome)
            }
        })
    }
}

/// EXT-04, EXT-02: the first extension is outermost, around the tool alone; each server's interceptors stay around its own
/// tools, by the names it knows.
#[tokio::test]
async fn interceptors_nest_around_the_tool() {
    let diary = Arc::new(Mutex::new(Vec::new()));
    let witness = |id| Witness { id, diary: Arc::clone(&diary) };
    let double = || Tool::new("double").handler(|Number { n }| async move { (2 * n).to_string() });
    let inner = Server::builder("inner").tool(double()).extend(witness("x/inner"));
    let server = Server::builder("test")
        .tool(double())
        .extend(witness("x/one"))
        .extend(witness("x/two"))
        .nest("in", inner)
        .build()
        .unwrap();
    both(&server, async |client, _| {
        diary.lock().unwrap().clear();
        let result = call(client, "double", json!({"n": 2})).await;
        let said: Vec<_> = result.content.iter().filter_map(Content::as_text).collect();
        assert_eq!(said, ["4", "x/two", "x/one"]);
        let expected = [r#"x/one > double {"n":2}"#, r#"x/two > double {"n":2}"#, "x/two < 4", "x/one < 4"];
        assert_eq!(*diary.lock().unwrap(), expected);
        diary.lock().unwrap().clear();
        call(client, "in_double", json!({"n": 3})).await;
        let seen: Vec<_> = diary.lock().unwrap().iter().take(3).cloned().collect();
        assert_eq!(seen[0], r#"x/one > in_double {"n":3}"#);
        assert_eq!(seen[2], r#"x/inner > double {"n":3}"#);
        diary.lock().unwrap().clear();
        assert!(try_call(client, "absent", json!({})).await.is_err());
        client.all_tools().await.unwrap();
        assert!(diary.lock().unwrap().is_empty(), "nothing but calls of tools that are there");
    })
    .await;
}

#[derive(Deserialize, JsonSchema)]
struct Number {
    n: i64,
}

/// EXT-04: the tool gets the arguments of the call, not those of the context it is run in; an interceptor may give others,
/// which are checked, or answer by itself.
#[tokio::test]
async fn an_interceptor_decides_about_arguments_and_not_the_context() {
    let earlier: Arc<Mutex<Option<Context>>> = Arc::default();
    let server = Server::builder("test")
        .tool(Tool::new("double").handler(|Number { n }| async move { (2 * n).to_string() }))
        .intercept(move |cx: Context, call: ToolCall| {
            let other = earlier.lock().unwrap().replace(cx.clone());
            async move {
                match call.arguments().decode::<Value>().unwrap()["n"].as_i64() {
                    // In the context of the call before.
                    Some(1) => call.run(other.unwrap()).await,
                    Some(2) => call.with_arguments(json!({"n": 20})).run(cx).await,
                    Some(3) => call.with_arguments(json!({"n": "three"})).run(cx).await,
                    Some(4) => Ok(Outcome::of(CallToolResult::text("no need"))),
                    Some(5) => Err(McpError::new(ErrorCode(5), "refused")),
                    _ => call.run(cx).await,
                }
            }
        })
        .build()
        .unwrap();
    both(&server, async |client, _| {
        let double = async |n: i64| call(client, "double", json!({"n": n})).await;
        assert_eq!(text(&double(50).await), "100");
        assert_eq!(text(&double(1).await), "2", "not 100");
        assert_eq!(text(&double(2).await), "40");
        let unfit = double(3).await;
        assert!(unfit.is_error == Some(true) && text(&unfit).contains("/n"), "{unfit:?}");
        assert_eq!(text(&double(4).await), "no need");
        assert_eq!(refusal(try_call(client, "double", json!({"n": 5})).await).code, ErrorCode(5));
    })
    .await;
}

/// APP-01, APP-03: a tool and its view; whether the client can show it.
#[tokio::test]
async fn a_tool_brings_its_view() {
    let clock =
        Tool::new("clock").handler(|cx: Context| async move { Apps::shown_by(&cx) }).view("ui://clock");
    let server =
        Server::builder("test").extend(Apps::new().view("ui://clock", "<p>")).tool(clock).build().unwrap();
    both(&server, async |client, _| {
        let tool = client.all_tools().await.unwrap().remove(0);
        assert_eq!(tool.meta.unwrap().get("ui").unwrap().as_str(), r#"{"resourceUri":"ui://clock"}"#);
        let view = client.all_resources().await.unwrap().remove(0);
        assert_eq!(view.mime_type.as_deref(), Some("text/html;profile=mcp-app"));
        assert_eq!(text(&call(client, "clock", json!({})).await), "false");
    })
    .await;
    let settings = Json::from(json!({"mimeTypes": ["text/html;profile=mcp-app"]}));
    let options = options(Era::Envelope).extension("io.modelcontextprotocol/ui", settings);
    let client = TestClient::with_options(&server, options).await.unwrap();
    assert_eq!(text(&call(&client, "clock", json!({})).await), "true");
    client.close().await;
}

/// APP-02: a view that is not there, or is no view, fails the build.
#[test]
fn views_are_checked() {
    let tool = || Tool::new("x").handler(|| async {});
    let missing = Server::builder("test").tool(tool().view("ui://x")).build();
    assert!(missing.unwrap_err().to_string().contains("'ui://x' is not registered"));
    let odd = Server::builder("test").extend(Apps::new().view("https://x", "")).build();
    assert!(odd.unwrap_err().to_string().contains("begins with 'ui://'"));
    let twice = tool().meta("ui", json!({})).view("ui://x");
    let twice = Server::builder("test").extend(Apps::new().view("ui://x", "")).tool(twice).build();
    assert!(twice.unwrap_err().to_string().contains("`ui` already"));
}
