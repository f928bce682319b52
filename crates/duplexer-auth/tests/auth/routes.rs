//! A protected server among the routes of an application.

use axum::Router;
use axum::routing::get;
use duplexer_auth::{Auth, AuthConfigError, AuthorizationServer, DevBackend};
use duplexer_http::StreamableHttp;

use crate::support::{Site, header, json_of, server};

fn authorization_server(base: &str) -> AuthorizationServer {
    let backend = DevBackend::new("ada");
    AuthorizationServer::builder(&format!("{base}/auth"), backend)
        .resource(format!("{base}/mcp"))
        .build()
        .unwrap()
}

/// SRV-11: the authorization server, the protected endpoint, its metadata, and routes of the application, which are its own.
#[tokio::test]
async fn a_router_holds_all_of_it() {
    let site = Site::routes(|base| {
        let authorization_server = authorization_server(base);
        let auth = Auth::authorization_server(authorization_server.clone())
            .audience(format!("{base}/mcp"))
            .build()
            .unwrap();
        let protected = auth.protect(StreamableHttp::new(server(&auth, |guard| guard)));
        let mut router = Router::new();
        for path in authorization_server.paths() {
            router = router.route_service(&path, authorization_server.clone());
        }
        router = router.route_service("/mcp", protected.clone());
        for path in auth.metadata_paths() {
            router = router.route_service(path, protected.clone());
        }
        router.route("/about", get(|| async { "ours" }))
    });
    let site = site.await;
    let metadata = json_of(site.get("/.well-known/oauth-authorization-server/auth").await).await;
    assert_eq!(metadata["token_endpoint"], site.url("/auth/token"));
    assert_eq!(site.form("/auth/token", &[]).await.status(), 401);
    let refused = site.tool("x", None).send().await.unwrap();
    assert_eq!(refused.status(), 401);
    let (_, place) = header(&refused, "www-authenticate").split_once("resource_metadata=\"").unwrap();
    let place = place.split('"').next().unwrap().to_owned();
    let found = json_of(site.http.get(place).send().await.unwrap()).await;
    assert_eq!(found["authorization_servers"][0], site.url("/auth"));
    assert_eq!(site.get("/about").await.text().await.unwrap(), "ours");
}

/// A CORS preflight has no token; the inner service answers it.
#[tokio::test]
async fn a_preflight_needs_no_token() {
    let site = Site::new(|base| Auth::static_tokens([]).audience(base).build().unwrap()).await;
    let asks = site.http.request(reqwest::Method::OPTIONS, site.url("/mcp"));
    let asked = asks.header("origin", "http://localhost").header("access-control-request-method", "POST");
    assert_eq!(asked.send().await.unwrap().status(), 405, "cross-origin requests are off here");
    let bare = site.http.request(reqwest::Method::OPTIONS, site.url("/mcp"));
    assert_eq!(bare.send().await.unwrap().status(), 401);
}

/// AUTH-08: a server takes the tokens of exactly one party, and of an authorization server only those issued for it.
#[test]
fn an_authorization_server_protects_the_servers_it_knows() {
    let authorization_server = authorization_server("http://localhost:1");
    assert!(
        Auth::authorization_server(authorization_server.clone())
            .audience("http://localhost:1/mcp")
            .build()
            .is_ok()
    );
    let unknown =
        Auth::authorization_server(authorization_server).audience("http://localhost:1/other").build();
    assert_eq!(unknown.unwrap_err(), AuthConfigError::UnknownResource("http://localhost:1/other".into()));
    let nothing = AuthorizationServer::builder("http://localhost:1", DevBackend::new("ada")).build();
    assert_eq!(nothing.unwrap_err(), AuthConfigError::NoResource);
    let clear = AuthorizationServer::builder("http://auth.example", DevBackend::new("ada"))
        .resource("https://x.example");
    assert!(clear.build().is_err());
}
