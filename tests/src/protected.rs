//! Authorization for the target server of the attack tests: two clients of one user, and a gate before each approval.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytes::Bytes;
use duplexer_auth::{
    Auth, AuthBackend, AuthConfigError, AuthorizationServer, Grant, MemoryStore, OAuthError,
    RegisteredClient, Store, User,
};
use duplexer_core::dispatch::BoxFuture;
use duplexer_server::ServerBuilder;
use duplexer_server::tool::Tool;
use http::request::Parts;
use schemars::JsonSchema;
use serde::Deserialize;
use tokio::sync::Notify;

/// The clients that need not register.
pub const CLIENTS: [&str; 2] = ["app", "web"];
/// Where they have their codes sent.
pub const REDIRECT: &str = "http://127.0.0.1:9/callback";
/// The scope of their tokens.
pub const SCOPE: &str = "mcp";

/// Holds the next approval while it is armed.
#[derive(Debug, Default)]
pub struct Gate {
    is_armed: AtomicBool,
    entered: Notify,
    released: Notify,
}

/// What the tool `gate` does.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Action {
    /// Holds the next approval.
    Arm,
    /// Waits until an approval is held.
    Wait,
    /// Lets it pass.
    Release,
}

#[derive(Deserialize, JsonSchema)]
struct Operate {
    action: Action,
}

impl Gate {
    async fn pass(&self) {
        if self.is_armed.swap(false, Ordering::SeqCst) {
            self.entered.notify_one();
            self.released.notified().await;
        }
    }

    async fn operate(&self, action: Action) {
        match action {
            Action::Arm => self.is_armed.store(true, Ordering::SeqCst),
            Action::Wait => self.entered.notified().await,
            Action::Release => self.released.notify_one(),
        }
    }

    /// Adds a tool that operates the gate.
    pub fn tool<S: Send + Sync + 'static>(self: &Arc<Self>, server: ServerBuilder<S>) -> ServerBuilder<S> {
        let gate = Arc::clone(self);
        server.tool(Tool::new("gate", move |Operate { action }| {
            let gate = Arc::clone(&gate);
            async move { gate.operate(action).await }
        }))
    }
}

struct Gated {
    store: MemoryStore,
    gate: Arc<Gate>,
}

impl AuthBackend for Gated {
    fn store(&self) -> &dyn Store {
        &self.store
    }

    fn user<'a>(&'a self, _: &'a Parts) -> BoxFuture<'a, Result<User, http::Response<Bytes>>> {
        Box::pin(std::future::ready(Ok(User::new("ada"))))
    }

    fn approve<'a>(&'a self, _: &'a RegisteredClient, _: &'a Grant) -> BoxFuture<'a, Result<(), OAuthError>> {
        Box::pin(async move {
            self.gate.pass().await;
            Ok(())
        })
    }
}

/// Protects the server at `{base}/mcp` with an authorization server at `base`.
pub fn auth(base: &str, gate: Arc<Gate>, body_timeout: Duration) -> Result<Auth, AuthConfigError> {
    let resource = format!("{base}/mcp");
    let backend = Gated { store: MemoryStore::new(), gate };
    let mut issuer = AuthorizationServer::builder(base, backend)
        .resource(&resource)
        .scopes([SCOPE])
        .body_timeout(body_timeout);
    for client in CLIENTS {
        issuer = issuer.client(RegisteredClient::public(client, [REDIRECT]));
    }
    Auth::authorization_server(issuer.build()?).audience(resource).require_scopes([SCOPE]).build()
}
