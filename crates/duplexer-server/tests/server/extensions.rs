//! Extensions, and MCP Apps as the first one.

use std::sync::{Arc, Mutex};

use duplexer::apps::{Apps, Permission, View};
use duplexer::server::Extension;
use duplexer::testing::TestClient;
use duplexer::tool::ToolCall;
use duplexer::types::content::Content;
use duplexer::types::tool::CallToolResult;
use duplexer::{Context, Json, McpError, Resource, Server, ServerBuilder, Tool};
use duplexer_core::dispatch::OutboundRequest;
use duplexer_server::Outcome;
use duplexer_types::error::ErrorCode;
use duplexer_types::resource::ResourceContents;
use duplexer_types::version::{Era, Window};
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
            .tool(Tool::new("echo", || async { "echo" }))
    }
}

/// EXF-05, EXT-01, EXT-02, EXT-03: settings, tools and methods; ids are checked.
#[tokio::test]
async fn an_extension_contributes_settings_tools_and_methods() {
    let server = Server::builder("test", "0").extend(Echo("com.example/echo")).build().unwrap();
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
        assert!(Server::builder("test", "0").extend(Echo(id)).build().is_err(), "{id}");
    }
    let twice = Server::builder("test", "0").extend(Echo("a.b/c")).extend(Echo("a.b/c"));
    assert!(twice.build().unwrap_err().to_string().contains("twice"));
    let method = |builder: ServerBuilder<()>| {
        builder.on_custom("com.example/echo", |_: Value| async { Ok::<_, McpError>(()) })
    };
    let taken = method(Server::builder("test", "0")).extend(Echo("a.b/c")).build();
    assert!(taken.unwrap_err().to_string().contains("the custom method 'com.example/echo'"));
    assert!(
        method(Server::builder("test", "0").extend(Echo("a.b/c"))).build().is_ok(),
        "SRV-03: replaced on purpose"
    );
}

/// Records every call before and after it runs, and applies a change to it.
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
        builder.tool_middleware(move |cx: Context, call: ToolCall| {
            let diary = Arc::clone(&diary);
            let note = move |what: String| diary.lock().unwrap().push(what);
            async move {
                note(format!("{id} > {} {}", call.name(), call.arguments()));
                let mut outcome = call.run(cx).await?;
                // Results are shaped further out: the outcome still holds the value that the tool returned.
                let result = outcome.downcast_mut::<CallToolResult>().unwrap();
                note(format!("{id} < {}", text(result)));
                result.content.push(Content::text(id));
                Ok(outcome)
            }
        })
    }
}

/// EXT-04, EXT-02: the first extension is outermost, around the tool alone; the middleware of each server wraps its own
/// tools, by the names it knows.
#[tokio::test]
async fn tool_middleware_nests_around_the_tool() {
    let diary = Arc::new(Mutex::new(Vec::new()));
    let witness = |id| Witness { id, diary: Arc::clone(&diary) };
    let double = || Tool::new("double", |Number { n }| async move { (2 * n).to_string() });
    let inner = Server::builder("inner", "0").tool(double()).extend(witness("x/inner"));
    let server = Server::builder("test", "0")
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

/// EXT-04: the tool gets the arguments of the call, not those of the context it runs in; middleware can replace them,
/// and the new ones are validated, or respond by itself.
#[tokio::test]
async fn tool_middleware_determines_the_arguments_and_not_the_context() {
    let earlier: Arc<Mutex<Option<Context>>> = Arc::default();
    let server = Server::builder("test", "0")
        .tool(Tool::new("double", |Number { n }| async move { (2 * n).to_string() }))
        .tool_middleware(move |cx: Context, call: ToolCall| {
            let other = earlier.lock().unwrap().replace(cx.clone());
            async move {
                match call.arguments().decode::<Value>().unwrap()["n"].as_i64() {
                    // In the context of the previous call.
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

/// The smallest page.
const PAGE: &str = "<!doctype html><html></html>";

/// APP-01, APP-03, APP-05, APP-06, APP-07, APP-10, APP-D1, APP-D6, P-UI-1, P-UI-2, P-UI-3, P-UI-4: a tool and its view; whether the client can show it.
#[tokio::test]
async fn a_tool_brings_its_view() {
    let clock = Tool::new("clock", |cx: Context| async move { Apps::shown_by(&cx) }).view("ui://clock");
    let helper = Tool::new("helper", || async {}).app_only();
    let page = View::new("ui://clock", PAGE)
        .title("Clock")
        .description("What time it is.")
        .connect_domains(["https://time.example"])
        .resource_domains(["https://a.example", "https://b.example"])
        .frame_domains(["https://c.example"])
        .base_uri_domains(["https://d.example"])
        .permission(Permission::Geolocation)
        .permission(Permission::ClipboardWrite)
        .domain("clock.example")
        .borderless();
    let plain = View::new("ui://plain", PAGE);
    let server = Server::builder("test", "0")
        .extend(Apps::new().view(page).view(plain))
        .tool(clock)
        .tool(helper)
        .tool(Tool::new("shown", || async {}).view("ui://plain").model_only())
        .build()
        .unwrap();
    both(&server, async |client, era| {
        let tools = client.all_tools().await.unwrap();
        let ui = |tool: usize| tools[tool].meta.as_ref().unwrap().get("ui").unwrap().as_str();
        assert_eq!(ui(0), r#"{"resourceUri":"ui://clock"}"#);
        assert_eq!(ui(1), r#"{"visibility":["app"]}"#);
        assert_eq!(ui(2), r#"{"resourceUri":"ui://plain","visibility":["model"]}"#);
        let views = client.all_resources().await.unwrap();
        assert_eq!(views[0].mime_type.as_deref(), Some("text/html;profile=mcp-app"));
        assert_eq!(views[0].title.as_deref(), Some("Clock"));
        let bare: Value = views[1].meta.as_ref().unwrap().get("ui").unwrap().decode().unwrap();
        let nothing =
            json!({"connectDomains": [], "resourceDomains": [], "frameDomains": [], "baseUriDomains": []});
        assert_eq!(bare, json!({"csp": nothing}), "APP-06: empty lists are sent");
        let expected = json!({
            "csp": {
                "connectDomains": ["https://time.example"],
                "resourceDomains": ["https://a.example", "https://b.example"],
                "frameDomains": ["https://c.example"],
                "baseUriDomains": ["https://d.example"],
            },
            "permissions": {"geolocation": {}, "clipboardWrite": {}},
            "domain": "clock.example",
            "prefersBorder": false,
        });
        let said: Value = views[0].meta.as_ref().unwrap().get("ui").unwrap().decode().unwrap();
        assert_eq!(said, expected);
        let read = client.read_resource("ui://clock").await.unwrap();
        let [ResourceContents::Text(page)] = &*read.contents else { panic!("{read:?}") };
        assert_eq!((&*page.text, page.mime_type.as_deref()), (PAGE, Some("text/html;profile=mcp-app")));
        assert!(format!("{page:?}").contains("clock.example"), "the contents say it too");
        assert_eq!(text(&call(client, "clock", json!({})).await), "false");
        let extensions = client.server_capabilities().extensions.as_ref().unwrap();
        assert_eq!(extensions.get("io.modelcontextprotocol/ui").unwrap().as_str(), "{}", "{era:?}");
    })
    .await;
    let settings = Json::from(json!({"mimeTypes": ["text/html;profile=mcp-app"]}));
    for era in [Era::Handshake, Era::Envelope] {
        let options =
            options(era).extension_in("io.modelcontextprotocol/ui", settings.clone(), Window::ALWAYS);
        let client = TestClient::connect(&server, options).await.unwrap();
        assert_eq!(text(&call(&client, "clock", json!({})).await), "true", "{era:?}");
        client.close().await;
    }
}

/// APP-02: a view that is missing, or is no view, fails the build; so does a manual `ui` member.
#[test]
fn views_are_checked() {
    let tool = || Tool::new("x", || async {});
    let fails = |builder: ServerBuilder<()>, expected: &str| {
        let error = builder.build().unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    };
    let new = || Server::builder("test", "0");
    let view = |uri| new().extend(Apps::new().view(View::new(uri, PAGE)));
    fails(new().tool(tool().view("ui://x")), "'ui://x' is not registered");
    fails(view("https://x"), "begins with 'ui://'");
    fails(view("ui://x").tool(tool().meta("ui", json!({})).view("ui://x")), "`ui` already");
    fails(view("ui://x").tool(tool().view("ui://x").meta("ui", json!({}))), "`ui` already");
    let page = Resource::text("ui://x", "").mime_type("text/html");
    fails(new().resource(page).tool(tool().view("ui://x")), "of the type 'text/html'");
    assert!(view("ui://x").tool(tool().view("ui://x")).build().is_ok());
    // APP-D2: the page is a whole document, and origins are origins.
    let page = |view: View<()>| new().extend(Apps::new().view(view));
    fails(page(View::new("ui://x", "<p>")), "<!doctype html>");
    fails(page(View::new("ui://x", PAGE).connect_domains(["*"])), "is not an origin");
    fails(page(View::new("ui://x", PAGE).resource_domains(["https://a;b"])), "more than a scheme");
    fails(page(View::file("ui://x", "no/such/file.html")), "cannot be read");
    fails(new().extend(Apps::new().directory("ui://pages", "no/such/folder")), "cannot be read");
}

/// APP-D2: a page of the crate is served as it is, from the file in debug builds and from the program in others.
#[tokio::test]
async fn a_page_can_be_a_file_of_the_crate() {
    let page = duplexer_server::view_file!("ui://clock", "tests/server/pages/clock.html").title("Clock");
    let tool = Tool::new("clock", || async {}).view("ui://clock");
    let server = Server::builder("test", "0").extend(Apps::new().view(page)).tool(tool).build().unwrap();
    both(&server, async |client, _| {
        let views = client.all_resources().await.unwrap();
        assert_eq!((&*views[0].uri, views[0].title.as_deref()), ("ui://clock", Some("Clock")));
        let read = client.read_resource("ui://clock").await.unwrap();
        let [ResourceContents::Text(page)] = &*read.contents else { panic!("{read:?}") };
        assert_eq!(page.text, include_str!("pages/clock.html"));
        assert_eq!(page.mime_type.as_deref(), Some("text/html;profile=mcp-app"));
    })
    .await;
}

/// APP-D2, APP-D3, APP-D4, APP-08, APP-11: pages from files and made per read, unlisted ones, the flat key, and the bridge.
#[tokio::test]
async fn pages_come_from_files_or_are_made_for_each_read() {
    let folder = std::env::temp_dir().join(format!("duplexer-{}-pages", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("a.html"), PAGE).unwrap();
    std::fs::write(folder.join("notes.txt"), "no page").unwrap();
    let made = View::dynamic("ui://made", |cx: Context<()>| async move {
        let page = PAGE.replace("</html>", &format!("<body>{}</body></html>", cx.protocol_version()));
        Ok(View::new("ui://other", page).connect_domains(["https://made.example"]))
    });
    let broken = View::dynamic("ui://broken", |_: Context<()>| async { Ok(View::new("ui://x", "<p>")) });
    let apps = Apps::new()
        .view(made)
        .view(broken)
        .view(View::new("ui://hidden", PAGE).unlisted().with_bridge())
        .directory("ui://pages/", &folder);
    let server = Server::builder("test", "0")
        .extend(apps)
        .tool(Tool::new("x", || async {}).view("ui://hidden").flat_view_key())
        .build()
        .unwrap();
    both(&server, async |client, _| {
        let listed = client.all_resources().await.unwrap();
        let uris: Vec<_> = listed.iter().map(|page| page.uri.as_str()).collect();
        assert_eq!(uris, ["ui://made", "ui://broken", "ui://pages/a"]);
        let read = async |uri: &str| match &*client.read_resource(uri).await.unwrap().contents {
            [ResourceContents::Text(page)] => (page.text.clone(), format!("{:?}", page.meta)),
            other => panic!("{other:?}"),
        };
        let (html, meta) = read("ui://made").await;
        assert!(html.contains(client.protocol_version().as_str()) && meta.contains("made.example"), "{meta}");
        let (html, _) = read("ui://hidden").await;
        assert!(html.contains("window.mcpApp"), "{html}");
        assert_eq!(read("ui://pages/a").await.0, PAGE);
        std::fs::write(folder.join("a.html"), format!("{PAGE}<!-- changed -->")).unwrap();
        assert!(read("ui://pages/a").await.0.contains("changed"), "files are read anew");
        std::fs::write(folder.join("a.html"), PAGE).unwrap();
        assert!(client.read_resource("ui://broken").await.is_err());
        let tools = client.all_tools().await.unwrap();
        let flat = tools[0].meta.as_ref().unwrap().get("ui/resourceUri").unwrap().as_str();
        assert_eq!(flat, r#""ui://hidden""#);
    })
    .await;
    std::fs::remove_dir_all(&folder).unwrap();
}

#[derive(Deserialize, JsonSchema)]
#[expect(dead_code, reason = "only its schema is of interest")]
struct Search {
    words: Vec<String>,
    #[schemars(range(min = 1, max = 9))]
    limit: u8,
}

/// A custom method lists every fault of its params, like a tool.
#[tokio::test]
async fn every_fault_of_the_params_of_a_custom_method_is_listed() {
    let search = |_: Search| async { Ok::<_, McpError>(()) };
    let server = Server::builder("test", "0").on_custom("com.example/search", search).build().unwrap();
    both(&server, async |client, _| {
        let ask = async |params: Value| {
            client.request_custom(OutboundRequest::new("com.example/search").params(Json::from(params))).await
        };
        let error = refusal(ask(json!({"words": "a", "limit": 0})).await);
        assert_eq!(error.code, ErrorCode::INVALID_PARAMS);
        let text = &*error.message;
        assert!(text.starts_with("The params do not fit this method:"), "{text}");
        assert!(text.contains("\n- /words: expected an array"), "{text}");
        assert!(text.contains("\n- /limit: expected at least 1, got 0"), "{text}");
        let error = refusal(ask(json!({"words": [], "limit": 10})).await);
        assert!(error.message.contains("/limit: expected at most 9, got 10"), "{}", error.message);
        assert!(ask(json!({"words": ["a"], "limit": 9})).await.is_ok());
    })
    .await;
}
