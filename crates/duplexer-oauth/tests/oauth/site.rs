//! A protected server with the authorization server of this project, a person with a browser, and clients.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use duplexer_auth::{
    Auth, AuthBuilder, AuthorizationServer, AuthorizationServerBuilder, DevBackend, MemoryStore,
};
use duplexer_client::{Client, ConnectError};
use duplexer_core::error::{BoxError, McpError};
use duplexer_http::StreamableHttp;
use duplexer_http_client::HttpTransport;
use duplexer_oauth::{OAuth, OAuthError};
use duplexer_server::{Context, Server};
use duplexer_types::methods;
use duplexer_types::tool::{CallToolParams, CallToolResult};
use reqwest::redirect::Policy;
use tokio::net::TcpListener;
use tokio::task::JoinSet;

/// A clock that tests advance.
#[derive(Clone)]
pub(crate) struct Time(Arc<AtomicU64>);

impl Time {
    pub(crate) fn new() -> Self {
        Self(Arc::new(AtomicU64::new(1_800_000_000)))
    }

    pub(crate) fn pass(&self, seconds: u64) {
        self.0.fetch_add(seconds, Ordering::SeqCst);
    }

    pub(crate) fn clock(&self) -> impl Fn() -> SystemTime + Send + Sync + 'static {
        let time = Arc::clone(&self.0);
        move || UNIX_EPOCH + Duration::from_secs(time.load(Ordering::SeqCst))
    }
}

/// A listening server, which stops when it is dropped.
pub(crate) struct Site {
    pub(crate) base: String,
    _serving: JoinSet<()>,
}

async fn call(cx: Context<()>, params: CallToolParams) -> Result<CallToolResult, McpError> {
    let principal = cx.principal().expect("a principal in every context");
    Ok(CallToolResult::text(format!("{} {}", params.name, principal.scopes.join(" "))))
}

impl Site {
    pub(crate) async fn new(
        time: &Time,
        configure: impl FnOnce(AuthorizationServerBuilder) -> AuthorizationServerBuilder,
    ) -> Self {
        Self::with(time, configure, |auth| auth).await
    }

    /// The scopes are `read`, which every request requires, and `write`, which the tool `write` requires.
    pub(crate) async fn with(
        time: &Time,
        configure: impl FnOnce(AuthorizationServerBuilder) -> AuthorizationServerBuilder,
        protect: impl FnOnce(AuthBuilder) -> AuthBuilder,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let base = format!("http://{}", listener.local_addr().unwrap());
        let backend = DevBackend::new("ada").keep_in(MemoryStore::new().clock(time.clock()));
        let builder = AuthorizationServer::builder(&base, backend)
            .resource(format!("{base}/mcp"))
            .scopes(["read", "write"])
            .clock(time.clock());
        let auth = protect(Auth::authorization_server(configure(builder).build().unwrap()))
            .audience(format!("{base}/mcp"))
            .require_scopes(["read"])
            .clock(time.clock())
            .build()
            .unwrap();
        let guard = auth.guard().tool("write", ["write"]).build().unwrap();
        let server =
            Server::builder("test", "0").middleware(guard).on(methods::ToolsCall, call).build().unwrap();
        let bound = StreamableHttp::new(server).with_listener(listener).layer(auth);
        let mut serving = JoinSet::new();
        serving.spawn(bound.serve_until(std::future::pending()));
        Self { base, _serving: serving }
    }

    pub(crate) fn url(&self) -> String {
        format!("{}/mcp", self.base)
    }
}

pub(crate) fn http() -> reqwest::Client {
    reqwest::Client::builder().redirect(Policy::none()).no_proxy().build().unwrap()
}

/// Future of a presenter.
type Presenting = std::pin::Pin<Box<dyn Future<Output = Result<Option<String>, BoxError>> + Send>>;

/// A person who decides the same always, and how often they were asked.
#[derive(Clone, Default)]
pub(crate) struct Person {
    pub(crate) asked: Arc<AtomicUsize>,
    declines: bool,
}

impl Person {
    pub(crate) fn declining() -> Self {
        Self { declines: true, ..Self::default() }
    }

    pub(crate) fn times(&self) -> usize {
        self.asked.load(Ordering::SeqCst)
    }

    /// Opens the login page, decides, and returns where the browser is redirected to.
    pub(crate) async fn decide(&self, url: &str) -> String {
        self.asked.fetch_add(1, Ordering::SeqCst);
        let page = http().get(url).send().await.unwrap();
        let location =
            |response: &reqwest::Response| response.headers()["location"].to_str().unwrap().to_owned();
        if page.status() == 302 {
            return location(&page);
        }
        let cookie = page.headers()["set-cookie"].to_str().unwrap().split(';').next().unwrap().to_owned();
        let origin = url::Url::parse(url).unwrap().origin().ascii_serialization();
        let text = page.text().await.unwrap();
        let (_, rest) = text.split_once("name=\"request\" value=\"").expect(&text);
        let handle = rest.split('"').next().unwrap();
        let decision = if self.declines { "deny" } else { "allow" };
        let done = http()
            .post(format!("{origin}/authorize/consent"))
            .header("cookie", cookie)
            .header("content-type", "application/x-www-form-urlencoded")
            .body(format!("request={handle}&decision={decision}"))
            .send()
            .await
            .unwrap();
        location(&done)
    }

    /// Returns a presenter that lets the browser follow the redirect.
    pub(crate) fn browser(&self) -> impl Fn(String) -> Presenting + Send + Sync + 'static {
        let person = self.clone();
        move |url| {
            let person = person.clone();
            Box::pin(async move {
                let target = person.decide(&url).await;
                assert_eq!(http().get(target).send().await?.status(), 200);
                Ok(None)
            })
        }
    }
}

/// Connects a session whose requests `oauth` authorizes.
pub(crate) async fn connect(url: &str, oauth: &OAuth) -> Result<Client, OAuthError> {
    let transport = HttpTransport::builder(url).authorization(Arc::new(oauth.clone())).build().unwrap();
    Client::builder("test", "1").connect(transport).await.map_err(|error| failure(&error))
}

/// Returns the OAuth failure of a session that could not be opened.
pub(crate) fn failure(error: &ConnectError) -> OAuthError {
    let ConnectError::Call(call) = error else { panic!("{error:?}") };
    OAuthError::find(call).unwrap_or_else(|| panic!("{error:?}")).clone()
}

/// Calls a tool and returns its text.
pub(crate) async fn tool(client: &Client, name: &str) -> Result<String, OAuthError> {
    match client.call_tool(name, ()).await {
        Ok(result) => {
            Ok(serde_json::to_value(&result).unwrap()["content"][0]["text"].as_str().unwrap().to_owned())
        }
        Err(error) => Err(OAuthError::find(&error).unwrap_or_else(|| panic!("{error:?}")).clone()),
    }
}
