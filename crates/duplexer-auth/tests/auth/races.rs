//! Exchanges that overlap with a revocation.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;
use duplexer_auth::{
    Auth, AuthBackend, AuthorizationServer, Client, Grant, MemoryStore, OAuthError, Record, RecordKey,
    RecordKind, Store, StoreError, Swapped, User, When,
};
use duplexer_core::dispatch::BoxFuture;
use http::request::Parts;
use serde_json::Value;
use tokio::sync::Notify;

use crate::support::{REDIRECT, Site, VERIFIER, json_of, refusal};

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

    fn approve<'a>(&'a self, _: &'a Client, _: &'a Grant) -> BoxFuture<'a, Result<(), OAuthError>> {
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
            .client(Client::public("app", [REDIRECT]))
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
        let renewal = tokio::spawn(site.post("/token", &pairs).send());
        gate.entered.notified().await;
        assert_eq!(site.form("/revoke", &[("client_id", "app"), ("token", access)]).await.status(), 200);
        gate.released.notify_one();
        let refused = refusal(renewal.await.unwrap().unwrap()).await;
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
    let first = tokio::spawn(site.post("/token", &pairs).send());
    gate.entered.notified().await;
    let second = site.form("/token", &pairs).await;
    gate.released.notify_one();
    let first = first.await.unwrap().unwrap();
    assert!(first.status() != 200 || second.status() != 200, "one of them is refused");
    for response in [first, second] {
        if response.status() == 200 {
            let tokens = json_of(response).await;
            assert_eq!(site.whoami(text(&tokens, "access_token")).await, None);
            assert_eq!(site.refresh(text(&tokens, "refresh_token"), &[]).await.status(), 400);
        }
    }
}
