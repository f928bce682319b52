//! Dynamic client registration.

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

/// O12: a body of a megabyte is not read, and the number of clients is limited; unused ones expire.
#[tokio::test]
async fn registration_is_bounded() {
    let time = Time::new();
    let site = Site::with_authorization_server(&time, |builder| builder).await;
    let large = json!({"redirect_uris": [REDIRECT], "client_name": "x".repeat(1 << 20)});
    assert_eq!(register(&site, &large).await.status(), 413);
    let metadata = json!({"redirect_uris": [REDIRECT], "token_endpoint_auth_method": "none"});
    let first = json_of(register(&site, &metadata).await).await;
    let id = first["client_id"].as_str().unwrap();
    for _ in 1..50 {
        assert_eq!(register(&site, &metadata).await.status(), 201);
    }
    let (status, error, _) = refusal(register(&site, &metadata).await).await;
    assert_eq!((status, &*error), (503, "temporarily_unavailable"));
    // The first one is in use by now.
    let code = site.code(&[("client_id", id)]).await;
    assert_eq!(site.redeem(&code, &[("client_id", id)]).await.status(), 200);
    time.pass(24 * 3600);
    assert_eq!(register(&site, &metadata).await.status(), 201);
    assert_eq!(site.authorize(&question(&[("client_id", id)])).await.status(), 200);
}
