//! A scripted server: MCP endpoint, metadata and authorization server at one origin, with a log of what it was asked.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::task::JoinSet;

/// A request that the server received.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    pub(crate) method: Method,
    pub(crate) path: String,
    pub(crate) query: HashMap<String, String>,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

impl Seen {
    pub(crate) fn form(&self) -> HashMap<String, String> {
        url::form_urlencoded::parse(&self.body).into_owned().collect()
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_default()
    }

    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).map(|value| value.to_str().unwrap()).unwrap_or_default()
    }

    pub(crate) fn is(&self, method: &str, path: &str) -> bool {
        self.method == method && self.path == path
    }
}

/// Decides about a request before the default behaviour does.
type Rule = dyn Fn(&Mock, &Seen) -> Option<Response> + Send + Sync;

#[derive(Clone)]
pub(crate) struct Mock(Arc<Inner>);

struct Inner {
    base: String,
    log: Mutex<Vec<Seen>>,
    rule: Box<Rule>,
    tokens: Mutex<usize>,
    serving: Mutex<JoinSet<()>>,
}

impl Mock {
    /// Starts a server whose default behaviour is that of a correct one.
    pub(crate) async fn new(rule: impl Fn(&Mock, &Seen) -> Option<Response> + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let base = format!("http://{}", listener.local_addr().unwrap());
        let mock = Self(Arc::new(Inner {
            base,
            log: Mutex::default(),
            rule: Box::new(rule),
            tokens: Mutex::new(0),
            serving: Mutex::default(),
        }));
        let router = axum::Router::new().fallback(serve).with_state(mock.clone());
        let accepting = async move { axum::serve(listener, router).await.unwrap() };
        mock.0.serving.lock().unwrap().spawn(accepting);
        mock
    }

    pub(crate) fn base(&self) -> &str {
        &self.0.base
    }

    pub(crate) fn url(&self) -> String {
        format!("{}/mcp", self.0.base)
    }

    pub(crate) fn log(&self) -> Vec<Seen> {
        self.0.log.lock().unwrap().clone()
    }

    /// Returns the requests to a path.
    pub(crate) fn seen(&self, path: &str) -> Vec<Seen> {
        self.log().into_iter().filter(|seen| seen.path == path).collect()
    }

    pub(crate) fn paths(&self) -> Vec<String> {
        self.log().into_iter().map(|seen| format!("{} {}", seen.method, seen.path)).collect()
    }

    pub(crate) fn metadata(&self) -> Value {
        let at = |path: &str| format!("{}{path}", self.0.base);
        json!({
            "issuer": self.0.base,
            "authorization_endpoint": at("/authorize"),
            "token_endpoint": at("/token"),
            "registration_endpoint": at("/register"),
            "code_challenge_methods_supported": ["S256"],
        })
    }

    pub(crate) fn resource(&self) -> Value {
        json!({"resource": self.url(), "authorization_servers": [self.0.base]})
    }

    /// A new token, valid for an hour.
    pub(crate) fn token(&self) -> Value {
        let mut tokens = self.0.tokens.lock().unwrap();
        *tokens += 1;
        json!({
            "access_token": format!("at-{tokens}"),
            "refresh_token": format!("rt-{tokens}"),
            "token_type": "Bearer",
            "expires_in": 3600,
        })
    }

    fn default_answer(&self, seen: &Seen) -> Response {
        match (seen.method.as_str(), seen.path.as_str()) {
            ("GET", "/.well-known/oauth-protected-resource/mcp") => answer(200, &self.resource()),
            ("GET", "/.well-known/oauth-authorization-server") => answer(200, &self.metadata()),
            ("POST", "/register") => answer(201, &json!({"client_id": "registered"})),
            ("GET", "/authorize") => {
                let (to, state) = (&seen.query["redirect_uri"], &seen.query["state"]);
                redirect(&format!("{to}?code=c0de&state={state}"))
            }
            ("POST", "/token") => answer(200, &self.token()),
            ("POST", "/mcp") if seen.header("authorization").is_empty() => challenge(401, "Bearer"),
            ("POST", "/mcp") => rpc(seen),
            _ => answer(404, &json!({})),
        }
    }
}

async fn serve(
    State(mock): State<Mock>,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let query = uri.query().unwrap_or_default();
    let query = url::form_urlencoded::parse(query.as_bytes()).into_owned().collect();
    let seen = Seen { method, path: uri.path().to_owned(), query, headers, body };
    mock.0.log.lock().unwrap().push(seen.clone());
    (mock.0.rule)(&mock, &seen).unwrap_or_else(|| mock.default_answer(&seen))
}

/// An MCP server of the envelope era with one tool.
fn rpc(seen: &Seen) -> Response {
    let message = seen.json();
    let result = match message["method"].as_str() {
        Some("server/discover") => json!({
            "resultType": "complete", "supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}},
            "ttlMs": 0, "cacheScope": "private",
        }),
        Some("tools/call") => {
            json!({"resultType": "complete", "content": [{"type": "text", "text": "done"}]})
        }
        _ => return answer(404, &json!({})),
    };
    answer(200, &json!({"jsonrpc": "2.0", "id": message["id"], "result": result}))
}

pub(crate) fn answer(status: u16, body: &Value) -> Response {
    let status = StatusCode::from_u16(status).unwrap();
    (status, [("content-type", "application/json")], body.to_string()).into_response()
}

pub(crate) fn redirect(to: &str) -> Response {
    (StatusCode::FOUND, [("location", to.to_owned())]).into_response()
}

pub(crate) fn challenge(status: u16, value: &str) -> Response {
    let status = StatusCode::from_u16(status).unwrap();
    (status, [("www-authenticate", HeaderValue::from_str(value).unwrap())]).into_response()
}
