//! Extensions, and MCP Apps as the first one.

use duplexer::{Apps, Context, Extension, Json, McpError, Server, ServerBuilder, ServerExt, Tool};
use duplexer_core::dispatch::OutboundRequest;
use duplexer_core::testing::TestClient;
use duplexer_types::resource::ResourceContents;
use duplexer_types::version::Era;
use serde_json::{Value, json};

use crate::common::{both, call, options, text};

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

/// APP-01, APP-03, P-UI-1, P-UI-2, P-UI-3, P-UI-4: a tool and its view; whether the client can show it.
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
        let read = client.read_resource(&*view.uri).await.unwrap();
        let [ResourceContents::Text(page)] = &*read.contents else { panic!("{read:?}") };
        assert_eq!(
            (&*page.text, page.mime_type.as_deref()),
            ("<p>", Some("text/html;profile=mcp-app")),
            "what the tool names can be read"
        );
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
