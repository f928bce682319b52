//! Exchanges that overlap with a revocation, and exchanges whose tokens cannot be stored.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytes::Bytes;
use duplexer_auth::{
    Auth, AuthBackend, AuthorizationServer, Grant, MemoryStore, OAuthError, Record, RecordKey, RecordKind,
    RegisteredClient, Store, StoreError, Swapped, User, When,
};
use duplexer_core::dispatch::BoxFuture;
use http::request::Parts;
use serde_json::Value;
use tokio::sync::Notify;
use tokio::task::JoinSet;

use crate::support::{REDIRECT, Site, Time, VERIFIER, json_of, refusal};

/// Holds the first one that passes while it is armed.
#[derive(Default)]
struct Gate {
    is_armed: AtomicBool,
    entered: Notify,
    released: Notify,
}

impl Gate {
    async fn pass(&self) {
        if self.is_armed.swap(false, Ordering::SeqCst) {
            self.entered.notify_one();
            self.released.notified().await;
        }
    }
}

#[derive(Default)]
struct Gates {
    approval: Gate,
    /// Before a grant is extended.
    extension: Gate,
    /// Whether refresh tokens and codes cannot be spent.
    is_read_only: AtomicBool,
}

/// A backend and a store that wait at gates.
struct Slow {
    store: MemoryStore,
    gates: Arc<Gates>,
}

impl Store for Slow {
    fn get<'a>(&'a self, key: &'a RecordKey) -> BoxFuture<'a, Result<Option<String>, StoreError>> {
        self.store.get(key)
    }

    fn swap<'a>(
        &'a self,
        key: &'a RecordKey,
        when: When,
        record: Option<Record>,
    ) -> BoxFuture<'a, Result<Swapped, StoreError>> {
        Box::pin(async move {
            if key.kind == RecordKind::Grant && when == When::Present {
                self.gates.extension.pass().await;
            }
            if matches!(when, When::Is(_)) && self.gates.is_read_only.load(Ordering::SeqCst) {
                return Err(StoreError::Unavailable("a connection was refused".into()));
            }
            self.store.swap(key, when, record).await
        })
    }
}

impl AuthBackend for Slow {
    fn store(&self) -> &dyn Store {
        self
    }

    fn user<'a>(&'a self, _: &'a Parts) -> BoxFuture<'a, Result<User, http::Response<Bytes>>> {
        Box::pin(std::future::ready(Ok(User::new("ada"))))
    }

    fn approve<'a>(&'a self, _: &'a RegisteredClient, _: &'a Grant) -> BoxFuture<'a, Result<(), OAuthError>> {
        Box::pin(async move {
            self.gates.approval.pass().await;
            Ok(())
        })
    }
}

async fn site() -> (Site, Arc<Gates>) {
    let gates = Arc::new(Gates::default());
    let backend = Slow { store: MemoryStore::new(), gates: Arc::clone(&gates) };
    let site = Site::new(|base| {
        let authorization_server = AuthorizationServer::builder(base, backend)
            .resource(base)
            .scopes(["read"])
            .client(RegisteredClient::public("app", [REDIRECT]))
            .build()
            .unwrap();
        Auth::authorization_server(authorization_server).audience(base).build().unwrap()
    });
    (site.await, gates)
}

fn text<'a>(tokens: &'a Value, name: &str) -> &'a str {
    tokens[name].as_str().unwrap()
}

/// O-revoke-race, SCL-50: a revocation while a renewal waits for its approval, or is about to extend the grant, is
/// final.
#[tokio::test]
async fn a_grant_revoked_during_its_renewal_stays_revoked() {
    let (site, gates) = site().await;
    for gate in [&gates.approval, &gates.extension] {
        let tokens = site.tokens().await;
        let access = text(&tokens, "access_token");
        gate.is_armed.store(true, Ordering::SeqCst);
        let pairs = [
            ("grant_type", "refresh_token"),
            ("client_id", "app"),
            ("refresh_token", text(&tokens, "refresh_token")),
        ];
        let mut renewal = JoinSet::new();
        renewal.spawn(site.post("/token", &pairs).send());
        gate.entered.notified().await;
        assert_eq!(site.form("/revoke", &[("client_id", "app"), ("token", access)]).await.status(), 200);
        gate.released.notify_one();
        let refused = refusal(renewal.join_next().await.unwrap().unwrap().unwrap()).await;
        assert_eq!(refused, (400, "invalid_grant".into(), "the grant has been revoked".into()));
        assert_eq!(site.whoami(access).await, None);
    }
}

/// O-code-race-slow: a second use of a code while the first one waits for its approval leaves no valid token.
#[tokio::test]
async fn a_code_used_twice_during_its_approval_leaves_no_token() {
    let (site, gates) = site().await;
    let gate = &gates.approval;
    let code = site.code(&[]).await;
    let pairs = [
        ("grant_type", "authorization_code"),
        ("client_id", "app"),
        ("code", &*code),
        ("redirect_uri", REDIRECT),
        ("code_verifier", VERIFIER),
    ];
    gate.is_armed.store(true, Ordering::SeqCst);
    let mut first = JoinSet::new();
    first.spawn(site.post("/token", &pairs).send());
    gate.entered.notified().await;
    let second = site.form("/token", &pairs).await;
    gate.released.notify_one();
    let first = first.join_next().await.unwrap().unwrap().unwrap();
    assert!(first.status() != 200 || second.status() != 200, "one of them is refused");
    for response in [first, second] {
        if response.status() == 200 {
            let tokens = json_of(response).await;
            assert_eq!(site.whoami(text(&tokens, "access_token")).await, None);
            assert_eq!(site.refresh(text(&tokens, "refresh_token"), &[]).await.status(), 400);
        }
    }
}

/// O-refresh-full: a renewal that gets 503 can be repeated with the same refresh token.
#[tokio::test]
async fn a_renewal_that_cannot_be_stored_does_not_spend_its_token() {
    let time = Time::new();
    let site = Site::with_authorization_server(&time, |builder| {
        builder.access_lifetime(Duration::from_secs(600)).refresh_lifetime(Duration::from_secs(6000))
    });
    let site = site.await;
    for _ in 0..49 {
        site.tokens().await;
    }
    time.pass(1000);
    let tokens = site.tokens().await;
    time.pass(4990);
    let (status, error, _) = refusal(site.refresh(text(&tokens, "refresh_token"), &[]).await).await;
    assert_eq!((status, &*error), (503, "temporarily_unavailable"), "the store is full");
    time.pass(20);
    let response = site.refresh(text(&tokens, "refresh_token"), &[]).await;
    assert_eq!(response.status(), 200, "the other refresh tokens have expired");
    let renewed = json_of(response).await;
    assert!(site.whoami(text(&renewed, "access_token")).await.is_some());
    time.pass(11);
    assert_eq!(site.refresh(text(&tokens, "refresh_token"), &[]).await.status(), 400, "it is spent now");
}

/// O-refresh-full: a code or refresh token that could not be spent is still valid, and the tokens that were issued for it
/// are not.
#[tokio::test]
async fn an_exchange_that_fails_can_be_repeated() {
    let (site, gates) = site().await;
    let failed = async |response: reqwest::Response| {
        assert_eq!(response.headers()["retry-after"], "1");
        let text = "the server cannot use its store; try again later";
        assert_eq!(refusal(response).await, (503, "temporarily_unavailable".into(), text.into()));
    };
    let code = site.code(&[]).await;
    gates.is_read_only.store(true, Ordering::SeqCst);
    failed(site.redeem(&code, &[]).await).await;
    gates.is_read_only.store(false, Ordering::SeqCst);
    let tokens = json_of(site.redeem(&code, &[]).await).await;
    gates.is_read_only.store(true, Ordering::SeqCst);
    failed(site.refresh(text(&tokens, "refresh_token"), &[]).await).await;
    gates.is_read_only.store(false, Ordering::SeqCst);
    let renewed = json_of(site.refresh(text(&tokens, "refresh_token"), &[]).await).await;
    assert!(site.whoami(text(&renewed, "access_token")).await.is_some());
}
