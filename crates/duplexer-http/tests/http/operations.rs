//! For those who operate a service: layers of `tower-http`, addresses of clients, request ids, rate limits, the server card.

use std::io::Read as _;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use duplexer_core::error::McpError;
use duplexer_core::metrics::{Description, Distribution, Label, MetricSource, Visitor};
use duplexer_http::{
    Handshake, HttpServer, MemoryEventStore, ServerCard, StreamableHttp, StreamableHttpBuilder,
};
use duplexer_server::middleware::{Quota, RateLimit};
use duplexer_server::{Context, Server};
use duplexer_types::methods;
use duplexer_types::tool::{CallToolParams, CallToolResult};
use http::StatusCode;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tower_http::compression::CompressionLayer;
use tower_http::timeout::TimeoutLayer;
use tower_http::trace::TraceLayer;

use crate::support::{Client, Post, Site, Stage};

/// Answers with what is known of the caller.
async fn who(cx: Context<()>, _: CallToolParams) -> Result<CallToolResult, McpError> {
    let address = cx.transport().client_address.map(|address| address.to_string());
    let id = cx.transport().header("x-request-id").next().map(str::to_owned);
    Ok(CallToolResult::text(json!({ "address": address, "id": id }).to_string()))
}

async fn site(
    server: Server,
    configure: impl FnOnce(StreamableHttpBuilder) -> StreamableHttpBuilder,
) -> (Site, StreamableHttp) {
    let service = configure(StreamableHttp::builder(server)).build().unwrap();
    let bound: HttpServer<TcpListener> = service.clone().bind("127.0.0.1:0").await.unwrap();
    let address = bound.local_addr().unwrap();
    let (end, ended) = oneshot::channel::<()>();
    #[expect(clippy::disallowed_methods, reason = "the site owns it")]
    let run = tokio::spawn(bound.serve_until(async move {
        let _ = ended.await;
    }));
    (Site { address, stage: Arc::new(Stage::default()), end: Some(end), run: Some(run) }, service)
}

fn asking() -> Server {
    Server::builder("asked", "1").on(methods::ToolsCall, who).build().unwrap()
}

async fn asked(site: &Site, post: &Post) -> (Value, Option<String>) {
    let reply = site.post(post).await;
    let text = reply.json()["result"]["content"][0]["text"].as_str().unwrap().to_owned();
    (serde_json::from_str(&text).unwrap(), reply.header("x-request-id").map(str::to_owned))
}

#[tokio::test]
async fn handlers_know_the_address_of_the_client_also_behind_trusted_proxies() {
    let forwarded = Post::tool("who").header("x-forwarded-for", "203.0.113.7");
    let (direct, _) = site(asking(), |builder| builder).await;
    assert_eq!(asked(&direct, &forwarded).await.0["address"], "127.0.0.1");
    let (behind, _) = site(asking(), |builder| builder.trusted_proxies(["127.0.0.0/8", "::1"])).await;
    assert_eq!(asked(&behind, &forwarded).await.0["address"], "203.0.113.7");
    assert_eq!(asked(&behind, &Post::tool("who")).await.0["address"], "127.0.0.1");
    let wrong = StreamableHttp::builder(asking()).trusted_proxies(["proxy"]).build().unwrap_err();
    assert_eq!(wrong.to_string(), "'proxy' is neither an address nor a range such as 10.0.0.0/8");
}

#[tokio::test]
async fn a_request_has_an_id_that_the_response_and_the_handler_have_too() {
    let (without, _) = site(asking(), |builder| builder).await;
    assert_eq!(
        asked(&without, &Post::tool("who")).await,
        (json!({"address": "127.0.0.1", "id": null}), None)
    );
    let (with, _) = site(asking(), StreamableHttpBuilder::request_ids).await;
    let (known, sent) = asked(&with, &Post::tool("who").header("X-Request-Id", "req-7")).await;
    assert_eq!((known["id"].as_str(), sent.as_deref()), (Some("req-7"), Some("req-7")));
    let (known, sent) = asked(&with, &Post::tool("who")).await;
    assert_eq!(known["id"].as_str(), sent.as_deref());
    assert_eq!(sent.map(|id| id.len()), Some(32));
    let refused = with.post(&Post::body("no JSON").header("x-request-id", "req-8")).await;
    assert_eq!((refused.status, refused.header("x-request-id")), (400, Some("req-8")));
}

/// The limit is of the client: 429 with the time to wait, in every way that requests are served.
#[tokio::test]
async fn a_caller_beyond_its_rate_gets_429_and_the_time_to_wait() {
    let limited = || {
        let limit = RateLimit::of_tools().tool("who", Quota::per_hour(1));
        Server::builder("limited", "1").middleware(limit).on(methods::ToolsCall, who).build().unwrap()
    };
    let (envelope, _) = site(limited(), |builder| builder).await;
    assert_eq!(envelope.post(&Post::tool("who")).await.status, 200);
    let refused = envelope.post(&Post::tool("who")).await;
    assert_eq!((refused.status, refused.code()), (429, -32005));
    let seconds: u64 = refused.header("retry-after").unwrap().parse().unwrap();
    assert!((3590..=3600).contains(&seconds), "{seconds}");
    assert!(refused.json()["error"]["data"]["retryAfter"].as_f64().unwrap() > 3590.0);
    for events in [false, true] {
        let configure = |builder: StreamableHttpBuilder| {
            if events { builder.event_store(MemoryEventStore::new()) } else { builder }
        };
        let (sessions, _) = site(limited(), configure).await;
        let client = Client::open(&sessions).await;
        assert_eq!(client.call(1, "who").await.status, 200);
        let refused = client.call(2, "who").await;
        assert_eq!((refused.status, refused.code()), (429, -32005), "with events: {events}");
        assert!(refused.header("retry-after").is_some());
    }
    let (stateless, _) = site(limited(), |builder| builder.handshake(Handshake::Stateless)).await;
    let call = || {
        let params = json!({"name": "who"});
        Post::body(json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}).to_string())
            .header("mcp-protocol-version", "2025-11-25")
    };
    assert_eq!(stateless.post(&call()).await.status, 200);
    assert_eq!(stateless.post(&call()).await.status, 429);
}

#[tokio::test]
async fn a_compressed_response_is_the_same_after_it_is_unpacked() {
    let site = Site::bound(|builder| builder, |bound| bound.layer(CompressionLayer::new())).await;
    let long = "x".repeat(2000);
    let reply = site.post(&Post::tool(&long).header("accept-encoding", "gzip")).await;
    assert_eq!((reply.status, reply.header("content-encoding")), (200, Some("gzip")));
    assert!(reply.body.len() < 1000, "{} bytes", reply.body.len());
    let mut text = String::new();
    flate2::read::GzDecoder::new(&*reply.body).read_to_string(&mut text).unwrap();
    let unpacked: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(unpacked["result"]["content"][0]["text"], long);
    // Event streams are not compressed: clients wait for each event.
    let stream = site.post(&Post::tool("tell").header("accept-encoding", "gzip")).await;
    assert_eq!(stream.header("content-encoding"), None);
    assert_eq!(stream.events().len(), 4);
    // A client that does not ask for compression gets none.
    assert_eq!(site.post(&Post::tool(&long)).await.json()["result"]["content"][0]["text"], long);
}

#[tokio::test]
async fn a_request_beyond_the_time_of_a_timeout_layer_gets_its_status() {
    let layer = TimeoutLayer::with_status_code(StatusCode::GATEWAY_TIMEOUT, Duration::from_millis(200));
    let site = Site::bound(|builder| builder, |bound| bound.layer(layer)).await;
    assert_eq!(site.post(&Post::tool("echo")).await.status, 200);
    assert_eq!(site.post(&Post::tool("wait")).await.status, 504);
    // The handler is dropped with its request.
    site.stage.until(&site.stage.ended, 2).await;
}

#[tokio::test]
async fn a_tracing_layer_sees_every_response() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let on_response = Arc::clone(&seen);
    let layer = TraceLayer::new_for_http().on_response(
        move |response: &http::Response<_>, _: Duration, _: &tracing::Span| {
            on_response.lock().unwrap().push(response.status().to_string());
        },
    );
    let site = Site::bound(|builder| builder, |bound| bound.layer(layer)).await;
    assert_eq!(site.post(&Post::tool("echo")).await.json()["result"]["content"][0]["text"], "echo");
    assert_eq!(site.post(&Post::tool("tell")).await.events().len(), 4);
    assert_eq!(site.post(&Post::body("{")).await.status, 400);
    assert_eq!(*seen.lock().unwrap(), ["200 OK", "200 OK", "400 Bad Request"]);
}

fn described() -> Server {
    Server::builder("weather", "1.4.0").title("Weather").website_url("https://example.com").build().unwrap()
}

fn card() -> ServerCard {
    ServerCard::new("com.example/weather")
        .description("Forecasts")
        .url("https://mcp.example.com/mcp")
        .in_catalog()
}

fn get(path: &str) -> Post {
    let mut get = Post::body("").method("GET").path(path).without("content-type").without("accept");
    get.body.clear();
    get
}

/// AUX-05: card and catalog are public, cached, and agree with the server.
#[tokio::test]
async fn a_server_card_describes_the_server_to_everyone() {
    let (site, _) = site(described(), |builder| builder.server_card(card())).await;
    let reply = site.post(&get("/mcp/server-card").header("origin", "https://elsewhere.example")).await;
    assert_eq!((reply.status, reply.header("content-type")), (200, Some("application/mcp-server-card+json")));
    assert_eq!(reply.header("access-control-allow-origin"), Some("*"));
    assert!(reply.header("cache-control").unwrap().contains("max-age"));
    let card = reply.json();
    assert_eq!((&card["name"], &card["version"]), (&json!("com.example/weather"), &json!("1.4.0")));
    assert_eq!((&card["title"], &card["websiteUrl"]), (&json!("Weather"), &json!("https://example.com")));
    assert_eq!(card["remotes"][0]["url"], "https://mcp.example.com/mcp");
    assert_eq!(card["remotes"][0]["supportedProtocolVersions"].as_array().map(Vec::len), Some(5));
    assert!(card.get("tools").is_none());
    let tag = reply.header("etag").unwrap();
    let again = site.post(&get("/mcp/server-card").header("if-none-match", tag)).await;
    assert_eq!((again.status, again.text().as_str(), again.header("etag")), (304, "", Some(tag)));
    assert_eq!(site.post(&get("/mcp/server-card").method("POST")).await.status, 405);
    let catalog = site.post(&get("/.well-known/ai-catalog.json")).await;
    assert_eq!(catalog.header("content-type"), Some("application/ai-catalog+json"));
    let entry = &catalog.json()["entries"][0];
    assert_eq!(entry["identifier"], "urn:air:example.com:mcp:weather");
    assert_eq!(entry["url"], "https://mcp.example.com/mcp/server-card");
    assert_eq!(
        site.post(&Post::envelope("ping", json!({}))).await.status,
        404,
        "the endpoint is served as before"
    );
}

/// AUX-05: off by default, and a card that clients would reject is found at start.
#[tokio::test]
async fn a_card_is_opt_in_and_checked() {
    let (plain, _) = site(described(), |builder| builder).await;
    assert_eq!(plain.post(&get("/mcp/server-card")).await.status, 404);
    assert_eq!(plain.post(&get("/.well-known/ai-catalog.json")).await.status, 404);
    let check = |card: ServerCard, expected: &str| {
        let error = StreamableHttp::builder(described()).server_card(card).build().unwrap_err().to_string();
        assert_eq!(error, format!("the server card cannot be served: {expected}"));
    };
    check(ServerCard::new("weather"), "'weather' is not a name such as com.example/weather");
    check(ServerCard::new("com.example/weather"), "it needs a description, of the card or of the server");
    let long = ServerCard::new("a/b").description("x".repeat(101));
    check(long, "its description has more than 100 characters");
    check(card().url("http://mcp.example.com/mcp"), "'http://mcp.example.com/mcp' is not an https URL");
    let unplaced = ServerCard::new("a/b").description("x").in_catalog();
    check(unplaced, "a catalog needs the URL of the endpoint");
    let modern = StreamableHttp::builder(described()).server_card(card()).handshake(Handshake::Disabled);
    assert!(modern.build().is_ok());
}

#[derive(Default)]
struct Values(Vec<(&'static str, f64)>);

impl Visitor for Values {
    fn value(&mut self, of: &Description, _: &[Label<'_>], value: f64) {
        self.0.push((of.name, value));
    }

    fn histogram(&mut self, _: &Description, _: &[Label<'_>], _: &Distribution) {}
}

#[tokio::test]
async fn a_service_counts_its_sessions_streams_and_requests() {
    let (site, service) = site(asking(), |builder| builder).await;
    let read = || {
        let mut values = Values::default();
        service.read(&mut values);
        assert_eq!(values.0.len(), service.descriptions().len());
        values.0.into_iter().map(|(_, value)| format!("{value}")).collect::<Vec<_>>()
    };
    assert_eq!(read(), ["0", "0", "0", "0", "1"]);
    let client = Client::open(&site).await;
    let _stream = client.listen().await;
    assert_eq!(read(), ["1", "1", "0", "1", "1"]);
}
