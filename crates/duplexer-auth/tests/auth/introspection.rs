//! Tokens that are verified by introspection.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use axum::Router;
use axum::http::HeaderMap;
use axum::routing::post;
use duplexer_auth::{Auth, Introspection};
use serde_json::json;

use crate::support::{Site, Time};

/// Knows the token `good`, for a server at `here`; fails for `broken`.
async fn issuer(asked: &Arc<AtomicUsize>) -> Site {
    let asked = Arc::clone(asked);
    let answer = move |headers: HeaderMap, body: String| {
        asked.fetch_add(1, Ordering::SeqCst);
        async move {
            // `rs` and `p:w d`, each form-encoded before they were joined.
            assert_eq!(headers["authorization"], "Basic cnM6cCUzQXcrZA==");
            let iss = format!("http://{}", headers["host"].to_str().unwrap());
            let token = body.split('&').find_map(|pair| pair.strip_prefix("token=")).unwrap().to_owned();
            let (name, here) = token.split_once("%7E").unwrap_or((&token, ""));
            let aud = format!("http://127.0.0.1:{here}");
            match name {
                "good" => json!({"active": true, "aud": aud, "sub": "ada", "scope": "read"}).to_string(),
                "username" => json!({"active": true, "aud": aud, "username": "ada"}).to_string(),
                "nameless" => json!({"active": true, "aud": aud, "sub": "", "client_id": ""}).to_string(),
                "client" => json!({"active": true, "aud": aud, "client_id": "app"}).to_string(),
                "foreign" => {
                    json!({"active": true, "aud": aud, "sub": "ada", "iss": "https://x.example"}).to_string()
                }
                "unread" => json!({"active": true, "aud": aud, "sub": "ada", "iss": 1}).to_string(),
                "own" => json!({"active": true, "aud": aud, "sub": "ada", "iss": iss}).to_string(),
                name if name.starts_with("nbf") => {
                    let begins: serde_json::Value =
                        serde_json::from_str(&name[3..].replace("%22", "\"")).unwrap();
                    json!({"active": true, "aud": aud, "sub": "ada", "nbf": begins, "exp": 1_800_000_100_u64})
                        .to_string()
                }
                "homeless" => json!({"active": true, "sub": "ada"}).to_string(),
                "broken" => "<html>".to_owned(),
                _ => json!({"active": false, "aud": aud}).to_string(),
            }
        }
    };
    Site::routes(|_| Router::new().route("/introspect", post(answer))).await
}

async fn site(issuer: &Site, keep: Duration) -> Site {
    let time = Time::new();
    let introspection = Introspection::new(&issuer.url("/introspect"), "rs", "p:w d".into()).unwrap();
    let introspection = introspection.keep(keep).clock(time.clock()).skew(Duration::from_secs(30));
    Site::new(|base| {
        let auth = Auth::introspection(&issuer.base, introspection).audience(base);
        auth.clock(time.clock()).build().unwrap()
    })
    .await
}

fn port(site: &Site) -> &str {
    site.base.rsplit(':').next().unwrap()
}

/// AUTH-02: a token must be active and name this server as its audience.
#[tokio::test]
async fn the_issuer_says_what_a_token_is_worth() {
    let asked = Arc::default();
    let issuer = issuer(&asked).await;
    let site = site(&issuer, Duration::ZERO).await;
    let good = format!("good~{}", port(&site));
    let who = site.whoami(&good).await.unwrap();
    assert_eq!((&who["subject"], &who["scopes"]), (&json!("ada"), &json!(["read"])));
    for token in [format!("bad~{}", port(&site)), "good~1".into(), "homeless".into()] {
        assert_eq!(site.whoami(&token).await, None, "{token}");
    }
    let broken = site.tool("whoami", Some("broken")).send().await.unwrap();
    assert_eq!(broken.status(), 503);
    assert!(site.whoami(&good).await.is_some());
    assert_eq!(asked.load(Ordering::SeqCst), 6, "no response is cached by default");
}

/// A token of which only a user name is known would make all users one principal.
#[tokio::test]
async fn a_token_without_subject_and_client_is_refused() {
    let asked = Arc::default();
    let issuer = issuer(&asked).await;
    let site = site(&issuer, Duration::ZERO).await;
    for name in ["username", "nameless"] {
        assert_eq!(site.whoami(&format!("{name}~{}", port(&site))).await, None, "{name}");
    }
    assert_eq!(site.whoami(&format!("client~{}", port(&site))).await.unwrap()["client"], "app");
}

/// I-issuer, I-nbf: a response that names another issuer, or a later beginning, is not a valid token. The expiry is part of
/// the principal, so that long-lived requests end with it.
#[tokio::test]
async fn issuer_and_beginning_are_compared_where_they_are_given() {
    let asked = Arc::default();
    let issuer = issuer(&asked).await;
    let site = site(&issuer, Duration::ZERO).await;
    let whoami = async |name: &str| site.whoami(&format!("{name}~{}", port(&site))).await;
    for refused in ["foreign", "unread", "nbf1800000031", "nbf%22now%22", "nbfnull"] {
        assert_eq!(whoami(refused).await, None, "{refused}");
    }
    assert_eq!(whoami("own").await.unwrap()["issuer"], issuer.base);
    for accepted in ["nbf1800000030", "nbf1799999999.5"] {
        assert_eq!(whoami(accepted).await.unwrap()["expires"], true, "{accepted}");
    }
}

/// A positive response can be cached; a negative one never is.
#[tokio::test]
async fn responses_are_cached_for_the_configured_time() {
    let asked = Arc::default();
    let issuer = issuer(&asked).await;
    let site = site(&issuer, Duration::from_secs(60)).await;
    let good = format!("good~{}", port(&site));
    for _ in 0..3 {
        assert!(site.whoami(&good).await.is_some());
        assert_eq!(site.whoami("bad").await, None);
    }
    assert_eq!(asked.load(Ordering::SeqCst), 4);
}

/// Credentials are not sent over plain http.
#[test]
fn an_endpoint_over_plain_http_is_rejected() {
    assert!(Introspection::new("http://issuer.example/introspect", "rs", "x".into()).is_err());
}
