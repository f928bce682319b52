//! The token endpoint: codes, refresh tokens and client authentication.

use std::time::Duration;

use duplexer_auth::{AuthMethod, RegisteredClient};
use serde_json::json;

use crate::support::{REDIRECT, Site, Time, header, json_of, question, refusal};

async fn site(time: &Time) -> Site {
    Site::with_authorization_server(time, |builder| {
        let basic = RegisteredClient::confidential("basic", "p:w d", [REDIRECT])
            .auth_method(AuthMethod::ClientSecretBasic);
        let bare = RegisteredClient::public("bare", [REDIRECT]).auth_method(AuthMethod::ClientSecretPost);
        builder
            .client(basic)
            .client(bare)
            .client(RegisteredClient::public("other", [REDIRECT]))
            .access_lifetime(Duration::from_secs(600))
            .refresh_lifetime(Duration::from_secs(6000))
    })
    .await
}

/// AS-06, AUTH-08: a code is exchanged for tokens, which the protected server accepts.
#[tokio::test]
async fn a_code_becomes_tokens() {
    let time = Time::new();
    let site = site(&time).await;
    let code = site.code(&[("scope", "read write")]).await;
    let response = site.redeem(&code, &[("resource", &site.url("/mcp"))]).await;
    assert_eq!((header(&response, "cache-control"), header(&response, "pragma")), ("no-store", "no-cache"));
    assert_eq!(header(&response, "access-control-allow-origin"), "*");
    let tokens = json_of(response).await;
    assert_eq!(
        (&tokens["token_type"], &tokens["expires_in"], &tokens["scope"]),
        (&json!("Bearer"), &json!(600), &json!("read write"))
    );
    let access = tokens["access_token"].as_str().unwrap();
    let who = site.whoami(access).await.unwrap();
    assert_eq!(
        (&who["client"], &who["subject"], &who["issuer"]),
        (&json!("app"), &json!("ada"), &json!(site.base))
    );
    assert_eq!(who["scopes"], json!(["read", "write"]));
    assert_eq!(who["expires"], true, "long-lived requests end with the token");
    assert_eq!(site.whoami(tokens["refresh_token"].as_str().unwrap()).await, None);
    time.pass(600);
    assert_eq!(site.whoami(access).await, None);
}

/// AS-07, O06, O07, O08: wrong codes, wrong clients, wrong redirects, wrong verifiers, too late.
#[tokio::test]
async fn a_code_is_for_the_one_who_asked_for_it() {
    let time = Time::new();
    let site = site(&time).await;
    let check = async |response: reqwest::Response, error: &str, text: &str| {
        assert_eq!(refusal(response).await, (400, error.into(), text.into()));
    };
    let code = site.code(&[]).await;
    let absent = "authorization code does not exist";
    check(site.redeem("invented", &[]).await, "invalid_grant", absent).await;
    check(site.redeem(&code, &[("client_id", "other")]).await, "invalid_grant", absent).await;
    let mismatch = "redirect_uri did not match the one used when creating auth code";
    for redirect in ["", "http://127.0.0.1:10/callback"] {
        check(site.redeem(&code, &[("redirect_uri", redirect)]).await, "invalid_request", mismatch).await;
    }
    for verifier in ["x".repeat(43), "x".into()] {
        let response = site.redeem(&code, &[("code_verifier", &verifier)]).await;
        check(response, "invalid_grant", "incorrect code_verifier").await;
    }
    check(site.redeem(&code, &[("code_verifier", "")]).await, "invalid_request", "code_verifier is missing")
        .await;
    let elsewhere = site.redeem(&code, &[("resource", "https://other.example")]).await;
    assert_eq!(refusal(elsewhere).await.1, "invalid_target");
    assert_eq!(site.redeem(&code, &[]).await.status(), 200, "none of that has used it up");
    let late = site.code(&[]).await;
    time.pass(60);
    check(site.redeem(&late, &[]).await, "invalid_grant", "authorization code has expired").await;
    let unnamed = site.code(&[("redirect_uri", "")]).await;
    check(site.redeem(&unnamed, &[]).await, "invalid_request", mismatch).await;
    assert_eq!(site.redeem(&unnamed, &[("redirect_uri", "")]).await.status(), 200);
}

/// O05: reuse of a code revokes the tokens of its first use.
#[tokio::test]
async fn a_code_used_twice_ends_its_tokens() {
    let site = site(&Time::new()).await;
    let code = site.code(&[]).await;
    let tokens = json_of(site.redeem(&code, &[]).await).await;
    let access = tokens["access_token"].as_str().unwrap();
    assert!(site.whoami(access).await.is_some());
    let again = refusal(site.redeem(&code, &[]).await).await;
    assert_eq!(again, (400, "invalid_grant".into(), "authorization code does not exist".into()));
    assert_eq!(site.whoami(access).await, None);
    assert_eq!(site.refresh(tokens["refresh_token"].as_str().unwrap(), &[]).await.status(), 400);
}

/// O05: of concurrent requests with one code, at most one gets tokens.
#[tokio::test]
async fn a_code_is_used_once_by_concurrent_requests() {
    let site = site(&Time::new()).await;
    let code = site.code(&[]).await;
    let mut tries = tokio::task::JoinSet::new();
    for _ in 0..8 {
        let pairs = [
            ("grant_type", "authorization_code"),
            ("client_id", "app"),
            ("code", &*code),
            ("redirect_uri", REDIRECT),
            ("code_verifier", crate::support::VERIFIER),
        ];
        tries.spawn(site.post("/token", &pairs).send());
    }
    let mut fine = 0;
    while let Some(response) = tries.join_next().await {
        fine += usize::from(response.unwrap().unwrap().status() == 200);
    }
    assert_eq!(fine, 1);
}

/// AS-08, O09: a refresh token is valid for one renewal; its reuse revokes the grant.
#[tokio::test]
async fn a_refresh_token_is_used_once() {
    let time = Time::new();
    let site = site(&time).await;
    let first = site.tokens().await;
    let old = first["refresh_token"].as_str().unwrap();
    let second = json_of(site.refresh(old, &[]).await).await;
    let (access, new) = (second["access_token"].as_str().unwrap(), second["refresh_token"].as_str().unwrap());
    assert!(site.whoami(access).await.is_some());
    assert_ne!(old, new);
    time.pass(11);
    let again = refusal(site.refresh(old, &[]).await).await;
    assert_eq!(again, (400, "invalid_grant".into(), "refresh token does not exist".into()));
    assert_eq!(site.whoami(access).await, None, "the thief and the client cannot be distinguished");
    assert_eq!(site.refresh(new, &[]).await.status(), 400);
}

/// SCL-51: a client whose response was lost gets the same successor for ten seconds, until it uses it. Anybody else, and
/// any later use, revokes the grant.
#[tokio::test]
async fn a_repeated_renewal_gets_the_same_successor() {
    let time = Time::new();
    let site = site(&time).await;
    let old = site.tokens().await["refresh_token"].as_str().unwrap().to_owned();
    let renew = async |token: &str| json_of(site.refresh(token, &[]).await).await;
    let first = renew(&old).await;
    time.pass(10);
    let again = renew(&old).await;
    assert_eq!(again["refresh_token"], first["refresh_token"]);
    let refused = [("grant_type", "refresh_token"), ("client_id", "other"), ("refresh_token", &*old)];
    assert_eq!(site.form("/token", &refused).await.status(), 400, "another client gets nothing");
    for tokens in [&first, &again] {
        assert!(site.whoami(tokens["access_token"].as_str().unwrap()).await.is_some());
    }
    let next = renew(first["refresh_token"].as_str().unwrap()).await;
    assert_ne!(next["refresh_token"], first["refresh_token"]);
    assert_eq!(site.refresh(&old, &[]).await.status(), 400, "its successor was used");
    assert_eq!(site.whoami(next["access_token"].as_str().unwrap()).await, None, "the grant is revoked");
}

/// AS-08, O10: no more scopes than were granted, and not indefinitely.
#[tokio::test]
async fn a_renewal_is_no_wider_than_its_grant() {
    let time = Time::new();
    let site = site(&time).await;
    let tokens = json_of(site.redeem(&site.code(&[("scope", "read write")]).await, &[]).await).await;
    let refresh = tokens["refresh_token"].as_str().unwrap();
    let wider = refusal(site.refresh(refresh, &[("scope", "read admin")]).await).await;
    assert_eq!((wider.0, &*wider.1), (400, "invalid_scope"));
    let pairs = [("grant_type", "refresh_token"), ("client_id", "other"), ("refresh_token", refresh)];
    let foreign = site.form("/token", &pairs);
    assert_eq!(refusal(foreign.await).await.2, "refresh token does not exist");
    let narrow = json_of(site.refresh(refresh, &[("scope", "read")]).await).await;
    let who = site.whoami(narrow["access_token"].as_str().unwrap()).await.unwrap();
    assert_eq!(who["scopes"], json!(["read"]));
    let refresh = narrow["refresh_token"].as_str().unwrap();
    time.pass(5999);
    let last = json_of(site.refresh(refresh, &[]).await).await;
    assert_eq!(last["scope"], "read write", "what is renewed is what was granted");
    time.pass(6000);
    let late = refusal(site.refresh(last["refresh_token"].as_str().unwrap(), &[]).await).await;
    assert_eq!((late.0, &*late.1), (400, "invalid_grant"));
}

/// AS-05, O13: client authentication and its errors.
#[tokio::test]
async fn a_client_with_a_secret_must_show_it() {
    let site = site(&Time::new()).await;
    let body = [("grant_type", "refresh_token"), ("refresh_token", "x")];
    let send = async |more: &[(&str, &str)], basic: Option<&str>| {
        let request = site.post("/token", &[&body, more].concat());
        let request = match basic {
            Some(basic) => request.header("authorization", format!("Basic {basic}")),
            None => request,
        };
        let response = request.send().await.unwrap();
        let challenge = header(&response, "www-authenticate").to_owned();
        let (status, error, _) = refusal(response).await;
        assert_eq!(challenge.starts_with("Basic"), status == 401 && basic.is_some());
        (status, error)
    };
    let refused = (401, "invalid_client".to_owned());
    // An authenticated client gets the error of the unknown token.
    let fine = (400, "invalid_grant".to_owned());
    assert_eq!(send(&[("client_id", "web"), ("client_secret", "s3cret/+")], None).await, fine);
    assert_eq!(send(&[("client_id", "web"), ("client_secret", "s3cret/")], None).await, refused);
    assert_eq!(send(&[("client_id", "web")], None).await, refused);
    assert_eq!(send(&[("client_id", "bare"), ("client_secret", "")], None).await, refused);
    assert_eq!(
        send(&[("client_id", "bare"), ("client_secret", "x")], None).await,
        refused,
        "it has no secret"
    );
    assert_eq!(send(&[("client_id", "unknown")], None).await, refused);
    assert_eq!(send(&[], None).await, refused);
    // `basic` and `p:w d`, form-encoded; then a wrong secret; then another client's id.
    let (good, bad, foreign) = ("YmFzaWM6cCUzQXcrZA==", "YmFzaWM6eA==", "d2ViOnA=");
    assert_eq!(send(&[("client_id", "basic")], Some(good)).await, fine);
    assert_eq!(send(&[], Some(good)).await, fine);
    assert_eq!(send(&[("client_id", "basic")], Some(bad)).await, refused);
    assert_eq!(send(&[("client_id", "basic")], Some(foreign)).await, refused);
    assert_eq!(send(&[("client_id", "basic")], None).await, refused);
    assert_eq!(send(&[("client_id", "basic"), ("client_secret", "p:w d")], None).await, refused);
}

/// AS-06, O16: one form of credentials, one value for a parameter, by POST, as a form, for a known grant.
#[tokio::test]
async fn a_request_for_tokens_has_one_form() {
    let site = site(&Time::new()).await;
    assert_eq!(site.get("/token?grant_type=authorization_code").await.status(), 405);
    let both = [("grant_type", "refresh_token"), ("client_id", "basic"), ("client_secret", "x")];
    let both = site.post("/token", &both).header("authorization", "Basic YmFzaWM6cCUzQXcrZA==");
    assert_eq!(refusal(both.send().await.unwrap()).await.1, "invalid_request");
    let twice = [("grant_type", "refresh_token"), ("client_id", "app"), ("client_id", "app")];
    assert_eq!(refusal(site.form("/token", &twice).await).await.1, "invalid_request");
    let json = site.http.post(site.url("/token")).header("content-type", "application/json").body("{}");
    assert_eq!(refusal(json.send().await.unwrap()).await.1, "invalid_request");
    assert_eq!(refusal(site.form("/token", &[("client_id", "app")]).await).await.1, "invalid_request");
    for grant in ["password", "client_credentials", "urn:ietf:params:oauth:grant-type:jwt-bearer"] {
        let response = site.form("/token", &[("client_id", "app"), ("grant_type", grant)]).await;
        assert_eq!(refusal(response).await.1, "unsupported_grant_type", "{grant}");
    }
    let asked = site.http.request(reqwest::Method::OPTIONS, site.url("/token")).send().await.unwrap();
    assert_eq!(
        (asked.status().as_u16(), header(&asked, "access-control-allow-methods")),
        (204, "POST, OPTIONS")
    );
}

/// AS-07: the backend can reject a grant with its own error.
#[tokio::test]
async fn the_backend_can_reject_tokens() {
    use bytes::Bytes;
    use duplexer_auth::{
        Auth, AuthBackend, AuthorizationServer, Grant, MemoryStore, OAuthError, Store, User,
    };
    use duplexer_core::dispatch::BoxFuture;
    use http::request::Parts;

    struct Strict(MemoryStore);
    impl AuthBackend for Strict {
        fn store(&self) -> &dyn Store {
            &self.0
        }
        fn user<'a>(&'a self, request: &'a Parts) -> BoxFuture<'a, Result<User, http::Response<Bytes>>> {
            let page = http::Response::builder().status(418).body(Bytes::from("sign in")).unwrap();
            let known = request.headers.contains_key("x-user");
            Box::pin(std::future::ready(if known { Ok(User::new("ada")) } else { Err(page) }))
        }
        fn approve<'a>(
            &'a self,
            _: &'a RegisteredClient,
            grant: &'a Grant,
        ) -> BoxFuture<'a, Result<(), OAuthError>> {
            assert_eq!((&*grant.user.subject, &*grant.client_id), ("ada", "app"));
            Box::pin(std::future::ready(Err(OAuthError::new("access_denied", "the account is closed"))))
        }
    }
    let site = Site::new(|base| {
        let authorization_server = AuthorizationServer::builder(base, Strict(MemoryStore::new()))
            .resource(base)
            .scopes(["read"])
            .client(RegisteredClient::public("app", [REDIRECT]))
            .build()
            .unwrap();
        Auth::authorization_server(authorization_server).audience(base).build().unwrap()
    });
    let mut site = site.await;
    let unknown = site.authorize(&question(&[])).await;
    assert_eq!((unknown.status().as_u16(), &*unknown.text().await.unwrap()), (418, "sign in"));
    let mut headers = reqwest::header::HeaderMap::new();
    headers.insert("x-user", "ada".parse().unwrap());
    let browser = reqwest::Client::builder().default_headers(headers).no_proxy();
    site.http = browser.redirect(reqwest::redirect::Policy::none()).build().unwrap();
    let code = site.code(&[]).await;
    let refused = refusal(site.redeem(&code, &[]).await).await;
    assert_eq!(refused, (400, "access_denied".into(), "the account is closed".into()));
}
