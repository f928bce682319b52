//! A protected server with an authorization server on a socket, and a client of both.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use duplexer_auth::{
    Auth, AuthorizationServer, AuthorizationServerBuilder, DevBackend, MemoryStore, RegisteredClient,
    ScopeGuardBuilder,
};
use duplexer_core::error::McpError;
use duplexer_http::{Handshake, StreamableHttp};
use duplexer_server::{Context, Server};
use duplexer_types::methods;
use duplexer_types::subscription::{
    SubscriptionsAcknowledgedParams, SubscriptionsListenParams, SubscriptionsListenResult,
};
use duplexer_types::tool::{CallToolParams, CallToolResult};
use reqwest::redirect::Policy;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::task::JoinSet;

pub(crate) const REDIRECT: &str = "http://127.0.0.1:9/callback";
/// The verifier and challenge of RFC 7636, appendix B.
pub(crate) const VERIFIER: &str = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk";
pub(crate) const CHALLENGE: &str = "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM";

/// A clock that tests advance.
#[derive(Clone, Default)]
pub(crate) struct Time(Arc<AtomicU64>);

impl Time {
    pub(crate) fn new() -> Self {
        Self(Arc::new(AtomicU64::new(1_800_000_000)))
    }

    pub(crate) fn now(&self) -> SystemTime {
        UNIX_EPOCH + Duration::from_secs(self.seconds())
    }

    pub(crate) fn seconds(&self) -> u64 {
        self.0.load(Ordering::SeqCst)
    }

    pub(crate) fn pass(&self, seconds: u64) {
        self.0.fetch_add(seconds, Ordering::SeqCst);
    }

    pub(crate) fn clock(&self) -> impl Fn() -> SystemTime + Send + Sync + 'static {
        let time = self.clone();
        move || time.now()
    }
}

/// A listening server, which stops when it is dropped.
pub(crate) struct Site {
    pub(crate) base: String,
    pub(crate) http: reqwest::Client,
    _serving: JoinSet<()>,
}

/// The tool `whoami` returns the caller; the other names are those of the guards in tests.
async fn call(cx: Context<()>, params: CallToolParams) -> Result<CallToolResult, McpError> {
    if params.name == "whoami" {
        let principal = cx.principal().expect("a principal in every context");
        let token: Vec<_> = cx.transport().header("authorization").collect();
        let principal = json!({
            "client": principal.client_id,
            "issuer": principal.issuer,
            "subject": principal.subject,
            "scopes": principal.scopes,
            "expires": principal.expires_at.is_some(),
            "name": principal.claims.get("name").map(|name| name.as_str().to_owned()),
            "authorization": token,
        });
        return Ok(CallToolResult::text(principal.to_string()));
    }
    Ok(CallToolResult::text(params.name))
}

async fn listen(
    cx: Context<()>,
    params: SubscriptionsListenParams,
) -> Result<SubscriptionsListenResult, McpError> {
    let acknowledged = SubscriptionsAcknowledgedParams::new(params.notifications);
    cx.notify::<methods::SubscriptionsAcknowledged>(&acknowledged).await;
    cx.closing().cancelled().await;
    Ok(SubscriptionsListenResult::new())
}

pub(crate) fn server(auth: &Auth, configure: impl FnOnce(ScopeGuardBuilder) -> ScopeGuardBuilder) -> Server {
    Server::builder("test", "0")
        .middleware(configure(auth.guard()).build().unwrap())
        .on(methods::ToolsCall, call)
        .on(methods::SubscriptionsListen, listen)
        .build()
        .unwrap()
}

impl Site {
    /// `make` gets the base URL.
    pub(crate) async fn new(make: impl FnOnce(&str) -> Auth) -> Self {
        Self::guarded(make, |guard| guard).await
    }

    /// The handshake era is served without sessions, so that requests are independent.
    pub(crate) async fn guarded(
        make: impl FnOnce(&str) -> Auth,
        configure: impl FnOnce(ScopeGuardBuilder) -> ScopeGuardBuilder,
    ) -> Self {
        let build = |server| StreamableHttp::builder(server).handshake(Handshake::Stateless);
        Self::built(make, configure, build).await
    }

    pub(crate) async fn built(
        make: impl FnOnce(&str) -> Auth,
        configure: impl FnOnce(ScopeGuardBuilder) -> ScopeGuardBuilder,
        build: impl FnOnce(Server) -> duplexer_http::StreamableHttpBuilder,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let base = format!("http://{}", listener.local_addr().unwrap());
        let auth = make(&base);
        let service = build(server(&auth, configure)).build().unwrap();
        let bound = service.with_listener(listener).layer(auth);
        let mut serving = JoinSet::new();
        serving.spawn(bound.serve_until(std::future::pending()));
        Self { base, http: client(), _serving: serving }
    }

    /// An axum application.
    pub(crate) async fn routes(make: impl FnOnce(&str) -> axum::Router) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let base = format!("http://{}", listener.local_addr().unwrap());
        let router = make(&base);
        let mut serving = JoinSet::new();
        serving.spawn(async move { axum::serve(listener, router).await.unwrap() });
        Self { base, http: client(), _serving: serving }
    }

    /// Starts a server with its own authorization server, whose only user is `ada`.
    pub(crate) async fn with_authorization_server(
        time: &Time,
        configure: impl FnOnce(AuthorizationServerBuilder) -> AuthorizationServerBuilder,
    ) -> Self {
        Self::new(|base| {
            let store = MemoryStore::new().max(50).clock(time.clock());
            let backend = DevBackend::new("ada").keep_in(store);
            let builder = AuthorizationServer::builder(base, backend)
                .resource(format!("{base}/mcp"))
                .scopes(["read", "write"])
                .client(RegisteredClient::public("app", [REDIRECT]).name("An <app>"))
                .client(RegisteredClient::confidential("web", "s3cret/+", ["https://web.example/cb?x=1"]))
                .clock(time.clock());
            let authorization_server = configure(builder).build().unwrap();
            Auth::authorization_server(authorization_server)
                .audience(format!("{base}/mcp"))
                .clock(time.clock())
                .build()
                .unwrap()
        })
        .await
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("{}{path}", self.base)
    }

    pub(crate) async fn get(&self, path: &str) -> reqwest::Response {
        self.http.get(self.url(path)).send().await.unwrap()
    }

    pub(crate) async fn form(&self, path: &str, pairs: &[(&str, &str)]) -> reqwest::Response {
        self.post(path, pairs).send().await.unwrap()
    }

    pub(crate) fn post(&self, path: &str, pairs: &[(&str, &str)]) -> reqwest::RequestBuilder {
        let body = url::form_urlencoded::Serializer::new(String::new()).extend_pairs(pairs).finish();
        let kind = "application/x-www-form-urlencoded";
        self.http.post(self.url(path)).header("content-type", kind).body(body)
    }

    /// Calls a tool in the envelope era.
    pub(crate) fn tool(&self, name: &str, token: Option<&str>) -> reqwest::RequestBuilder {
        let params = json!({"name": name, "_meta": {
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {},
        }});
        self.message("tools/call", &params, token)
            .header("MCP-Protocol-Version", "2026-07-28")
            .header("Mcp-Method", "tools/call")
            .header("Mcp-Name", name)
    }

    /// Calls a tool in the handshake era.
    pub(crate) fn old_tool(&self, name: &str, token: Option<&str>) -> reqwest::RequestBuilder {
        self.message("tools/call", &json!({ "name": name }), token)
            .header("MCP-Protocol-Version", "2025-11-25")
    }

    pub(crate) fn message(
        &self,
        method: &str,
        params: &Value,
        token: Option<&str>,
    ) -> reqwest::RequestBuilder {
        let body = json!({"jsonrpc": "2.0", "id": 7, "method": method, "params": params});
        let request = self
            .http
            .post(self.url("/mcp"))
            .header("content-type", "application/json")
            .header("accept", "application/json, text/event-stream")
            .body(body.to_string());
        match token {
            Some(token) => request.header("authorization", format!("Bearer {token}")),
            None => request,
        }
    }

    /// Returns the result of `whoami` with a token, or `None` if the token is rejected.
    pub(crate) async fn whoami(&self, token: &str) -> Option<Value> {
        let response = self.tool("whoami", Some(token)).send().await.unwrap();
        if response.status() != 200 {
            assert_eq!(response.status(), 401);
            return None;
        }
        let answer = json_of(response).await;
        let text = answer["result"]["content"][0]["text"].as_str().unwrap();
        Some(serde_json::from_str(text).unwrap())
    }
}

fn client() -> reqwest::Client {
    let _ = rustls::crypto::ring::default_provider().install_default();
    reqwest::Client::builder().redirect(Policy::none()).no_proxy().build().unwrap()
}

pub(crate) async fn json_of(response: reqwest::Response) -> Value {
    let text = response.text().await.unwrap();
    serde_json::from_str(&text).unwrap_or_else(|_| panic!("{text:?}"))
}

pub(crate) fn header<'a>(response: &'a reqwest::Response, name: &str) -> &'a str {
    response.headers().get(name).map(|value| value.to_str().unwrap()).unwrap_or_default()
}

/// Returns the target and the parameters of a redirect.
pub(crate) fn returned(response: &reqwest::Response) -> (String, Vec<(String, String)>) {
    assert_eq!(response.status(), 302);
    let url = url::Url::parse(header(response, "location")).unwrap();
    let pairs = url.query_pairs().map(|(name, value)| (name.into_owned(), value.into_owned())).collect();
    let mut bare = url;
    bare.set_query(None);
    (bare.into(), pairs)
}

pub(crate) fn value<'a>(pairs: &'a [(String, String)], name: &str) -> &'a str {
    pairs.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str()).unwrap_or_default()
}

/// The default authorization request of the client `app`.
pub(crate) fn question<'a>(more: &[(&'a str, &'a str)]) -> Vec<(&'a str, &'a str)> {
    let mut pairs = vec![
        ("response_type", "code"),
        ("client_id", "app"),
        ("redirect_uri", REDIRECT),
        ("state", "st"),
        ("code_challenge", CHALLENGE),
        ("code_challenge_method", "S256"),
        ("scope", "read"),
    ];
    for (name, value) in more {
        pairs.retain(|(known, _)| known != name);
        if !value.is_empty() {
            pairs.push((name, value));
        }
    }
    pairs
}

/// The part of the browser.
impl Site {
    pub(crate) async fn authorize(&self, pairs: &[(&str, &str)]) -> reqwest::Response {
        let query = url::form_urlencoded::Serializer::new(String::new()).extend_pairs(pairs).finish();
        self.get(&format!("/authorize?{query}")).await
    }

    /// Opens the page and submits a decision.
    pub(crate) async fn decide(&self, pairs: &[(&str, &str)], decision: &str) -> reqwest::Response {
        let page = self.authorize(pairs).await;
        assert_eq!(page.status(), 200, "{}", page.text().await.unwrap());
        let cookie = header(&page, "set-cookie").split(';').next().unwrap().to_owned();
        let handle = handle(&page.text().await.unwrap());
        let form = [("request", handle.as_str()), ("decision", decision)];
        self.post("/authorize/consent", &form).header("cookie", cookie).send().await.unwrap()
    }

    /// Returns a code for the default request.
    pub(crate) async fn code(&self, more: &[(&str, &str)]) -> String {
        let response = self.decide(&question(more), "allow").await;
        value(&returned(&response).1, "code").to_owned()
    }

    /// Redeems a code as the client `app`.
    pub(crate) async fn redeem(&self, code: &str, more: &[(&str, &str)]) -> reqwest::Response {
        let mut pairs = vec![
            ("grant_type", "authorization_code"),
            ("client_id", "app"),
            ("code", code),
            ("redirect_uri", REDIRECT),
            ("code_verifier", VERIFIER),
        ];
        for (name, value) in more {
            pairs.retain(|(known, _)| known != name);
            if !value.is_empty() {
                pairs.push((name, value));
            }
        }
        self.form("/token", &pairs).await
    }

    pub(crate) async fn refresh(&self, token: &str, more: &[(&str, &str)]) -> reqwest::Response {
        let mut pairs = vec![("grant_type", "refresh_token"), ("client_id", "app"), ("refresh_token", token)];
        pairs.extend(more);
        self.form("/token", &pairs).await
    }

    /// Completes a flow and returns its tokens.
    pub(crate) async fn tokens(&self) -> Value {
        let code = self.code(&[]).await;
        let response = self.redeem(&code, &[]).await;
        assert_eq!(response.status(), 200);
        json_of(response).await
    }
}

/// Returns the handle in the form of a page.
pub(crate) fn handle(page: &str) -> String {
    let (_, rest) = page.split_once("name=\"request\" value=\"").expect("a form");
    rest.split('"').next().unwrap().to_owned()
}

pub(crate) async fn refusal(response: reqwest::Response) -> (u16, String, String) {
    let status = response.status().as_u16();
    let body = json_of(response).await;
    let text = |name: &str| body[name].as_str().unwrap_or_default().to_owned();
    (status, text("error"), text("error_description"))
}
