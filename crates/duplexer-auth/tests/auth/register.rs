//! Dynamic client registration.

use duplexer_auth::{Auth, AuthorizationServer, DevBackend, MemoryStore};
use serde_json::{Value, json};

use crate::support::{REDIRECT, Site, Time, header, json_of, question, refusal};

async fn register(site: &Site, metadata: &Value) -> reqwest::Response {
    let request = site.http.post(site.url("/register")).header("content-type", "application/json");
    request.body(metadata.to_string()).send().await.unwrap()
}

async fn site() -> Site {
    Site::with_authorization_server(&Time::new(), |builder| builder).await
}

/// AS-10: a client gets an id and a secret, and its metadata is returned.
#[tokio::test]
async fn a_client_is_registered_and_gets_its_credentials() {
    let site = site().await;
    let metadata = json!({
        "redirect_uris": [REDIRECT, "https://app.example/cb"],
        "client_name": "App", "client_uri": "https://app.example", "scope": "read",
        "application_type": "native", "contacts": ["a@app.example"], "software_id": "x",
    });
    let response = register(&site, &metadata).await;
    assert_eq!((response.status().as_u16(), header(&response, "cache-control")), (201, "no-store"));
    let registered = json_of(response).await;
    for (name, value) in metadata.as_object().unwrap() {
        assert_eq!(&registered[name], value, "{name}");
    }
    assert_eq!(registered["token_endpoint_auth_method"], "client_secret_post");
    assert_eq!(registered["grant_types"], json!(["authorization_code", "refresh_token"]));
    assert_eq!(registered["response_types"], json!(["code"]));
    assert_eq!(registered["client_secret_expires_at"], 0);
    assert_eq!(registered["client_id_issued_at"], 1_800_000_000);
    let secret = registered["client_secret"].as_str().unwrap();
    assert!(secret.len() == 64 && secret.bytes().all(|byte| byte.is_ascii_hexdigit()));
    let id = registered["client_id"].as_str().unwrap();
    let dashes: Vec<usize> = id.match_indices('-').map(|(at, _)| at).collect();
    assert_eq!((id.len(), dashes, &id[14..15]), (36, vec![8, 13, 18, 23], "4"));
    let public = json!({"redirect_uris": [REDIRECT], "token_endpoint_auth_method": "none", "scope": null});
    let registered = json_of(register(&site, &public).await).await;
    assert_eq!(registered.get("client_secret"), None);
}

/// AS-10: a registered client completes a flow; its default scopes are those of its registration.
#[tokio::test]
async fn a_registered_client_gets_tokens() {
    let site = site().await;
    let metadata =
        json!({"redirect_uris": [REDIRECT], "scope": "read", "token_endpoint_auth_method": "none"});
    let registered = json_of(register(&site, &metadata).await).await;
    let id = registered["client_id"].as_str().unwrap();
    let more = site.code(&[("client_id", id), ("scope", "read write")]).await;
    let tokens = json_of(site.redeem(&more, &[("client_id", id)]).await).await;
    assert_eq!(tokens["scope"], "read write", "it has learned meanwhile that it needs more");
    let code = site.code(&[("client_id", id), ("scope", "")]).await;
    let tokens = json_of(site.redeem(&code, &[("client_id", id)]).await).await;
    assert_eq!(tokens["scope"], "read");
    assert_eq!(site.whoami(tokens["access_token"].as_str().unwrap()).await.unwrap()["client"], id);
}

/// AS-10, O03: invalid registrations and their errors.
#[tokio::test]
async fn invalid_metadata_is_not_registered() {
    let site = site().await;
    let with = |name: &str, value: Value| {
        let mut metadata = json!({ "redirect_uris": [REDIRECT] });
        metadata[name] = value;
        metadata
    };
    for (metadata, error) in [
        (with("redirect_uris", json!(["javascript:alert(1)"])), "invalid_redirect_uri"),
        (with("redirect_uris", json!(["data:text/html,x"])), "invalid_redirect_uri"),
        (with("redirect_uris", json!(["myapp://cb"])), "invalid_redirect_uri"),
        (with("redirect_uris", json!(["http://app.example/cb"])), "invalid_redirect_uri"),
        (with("redirect_uris", json!([])), "invalid_client_metadata"),
        (with("redirect_uris", json!(vec![REDIRECT; 17])), "invalid_client_metadata"),
        (with("token_endpoint_auth_method", json!("private_key_jwt")), "invalid_client_metadata"),
        (with("scope", json!("read admin")), "invalid_client_metadata"),
        (with("grant_types", json!(["refresh_token"])), "invalid_client_metadata"),
        (
            with("grant_types", json!(["authorization_code", "urn:ietf:params:oauth:grant-type:jwt-bearer"])),
            "invalid_client_metadata",
        ),
        (with("response_types", json!(["token"])), "invalid_client_metadata"),
        (with("client_name", json!("x".repeat(201))), "invalid_client_metadata"),
        (with("client_id", json!("app")), "invalid_client_metadata"),
        (with("client_secret", json!("x")), "invalid_client_metadata"),
        (json!({}), "invalid_client_metadata"),
        (json!("x"), "invalid_client_metadata"),
    ] {
        let (status, registered, _) = refusal(register(&site, &metadata).await).await;
        assert_eq!((status, &*registered), (400, error), "{metadata}");
    }
    assert_eq!(site.get("/register").await.status(), 405);
}

/// O12, O-register-room: a body of a megabyte is not read, and the number of clients is limited. The oldest unused client
/// makes room; clients in use stay, also if they are older.
#[tokio::test]
async fn registration_is_bounded() {
    let time = Time::new();
    let site = Site::with_authorization_server(&time, |builder| builder).await;
    let large = json!({"redirect_uris": [REDIRECT], "client_name": "x".repeat(1 << 20)});
    assert_eq!(register(&site, &large).await.status(), 413);
    let metadata = json!({"redirect_uris": [REDIRECT], "token_endpoint_auth_method": "none"});
    let used = registered(&site, &metadata).await;
    time.pass(1);
    let unused = registered(&site, &metadata).await;
    time.pass(1);
    for _ in 2..50 {
        registered(&site, &metadata).await;
    }
    use_client(&site, &used).await;
    let last = registered(&site, &metadata).await;
    assert!(is_known(&site, &used).await && is_known(&site, &last).await);
    assert!(!is_known(&site, &unused).await, "it was the oldest one without a use");
    time.pass(24 * 3600);
    assert!(is_known(&site, &used).await && !is_known(&site, &last).await, "an unused one ends after a day");
}

/// O12: clients in use are not removed for new ones.
#[tokio::test]
async fn a_client_in_use_keeps_its_registration() {
    let time = Time::new();
    let site = Site::new(|base| {
        let backend = DevBackend::new("ada").keep_in(MemoryStore::new().max(2).clock(time.clock()));
        let server = AuthorizationServer::builder(base, backend).resource(base).scopes(["read"]);
        let server = server.clock(time.clock()).build().unwrap();
        Auth::authorization_server(server).audience(base).clock(time.clock()).build().unwrap()
    });
    let site = site.await;
    let metadata = json!({"redirect_uris": [REDIRECT], "token_endpoint_auth_method": "none"});
    for _ in 0..2 {
        use_client(&site, &registered(&site, &metadata).await).await;
    }
    let response = register(&site, &metadata).await;
    assert_eq!(header(&response, "retry-after"), "1");
    let (status, error, _) = refusal(response).await;
    assert_eq!((status, &*error), (503, "temporarily_unavailable"));
}

/// O-register-memory: members without a meaning take little room, and so does the whole registration.
#[tokio::test]
async fn a_registration_keeps_little_that_it_does_not_use() {
    let site = site().await;
    let long = "x".repeat(2048);
    let metadata =
        json!({"redirect_uris": [REDIRECT], "client_name": "App", "software_id": "x", "notes": long});
    let response = register(&site, &metadata).await;
    assert_eq!(response.status(), 201);
    let registered = json_of(response).await;
    assert_eq!(registered["client_name"], "App");
    assert_eq!((registered.get("notes"), registered.get("software_id")), (None, None));
    for (name, value) in [
        ("client_uri", json!(format!("https://app.example/{}", "x".repeat(8192)))),
        ("grant_types", json!(vec!["authorization_code"; 1000])),
        ("redirect_uris", json!(vec![format!("https://app.example/{}", "x".repeat(1000)); 16])),
    ] {
        let mut metadata = metadata.clone();
        metadata[name] = value;
        let (status, error, text) = refusal(register(&site, &metadata).await).await;
        assert_eq!((status, &*error), (400, "invalid_client_metadata"), "{name}");
        assert_eq!(text, "the metadata is too large: at most 8192 bytes", "{name}");
    }
}

/// O-register-simple: a request that a browser sends for any page without asking registers nothing.
#[tokio::test]
async fn a_registration_must_be_json() {
    let site = site().await;
    let metadata = json!({ "redirect_uris": [REDIRECT] }).to_string();
    let send = async |kind: Option<&str>| {
        let request = site.http.post(site.url("/register")).body(metadata.clone());
        match kind {
            Some(kind) => request.header("content-type", kind),
            None => request,
        }
        .send()
        .await
        .unwrap()
    };
    for kind in [
        None,
        Some("text/plain"),
        Some("application/x-www-form-urlencoded"),
        Some("text/json;application/json"),
    ] {
        let (status, error, text) = refusal(send(kind).await).await;
        assert_eq!((status, &*error), (415, "invalid_request"), "{kind:?}");
        assert_eq!(text, "the body must be application/json");
    }
    for kind in ["application/json", "Application/JSON; charset=utf-8"] {
        assert_eq!(send(Some(kind)).await.status(), 201, "{kind}");
    }
}

async fn registered(site: &Site, metadata: &Value) -> String {
    let response = register(site, metadata).await;
    assert_eq!(response.status(), 201);
    json_of(response).await["client_id"].as_str().unwrap().to_owned()
}

async fn is_known(site: &Site, id: &str) -> bool {
    site.authorize(&question(&[("client_id", id)])).await.status() == 200
}

async fn use_client(site: &Site, id: &str) {
    let code = site.code(&[("client_id", id)]).await;
    assert_eq!(site.redeem(&code, &[("client_id", id)]).await.status(), 200);
}
