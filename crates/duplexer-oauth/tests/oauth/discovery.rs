//! What is asked, in which order, and with which parameters.

use duplexer_oauth::{ClientDocument, ClientIdentity, MemoryCredentials, OAuth, OAuthError, Secret};
use serde_json::json;

use crate::mock::{Mock, answer, challenge};
use crate::site::{Person, connect, tool};

pub(crate) fn login(person: &Person) -> duplexer_oauth::OAuthBuilder {
    OAuth::login_with_browser("test").present(person.browser())
}

/// CAUTH-01, OAC-11, OAC-14, OAC-25, OAC-33, OAC-42, P-AUC-1, P-AUC-4, P-AUC-5, P-AUC-8: one login, request by request.
#[tokio::test]
async fn a_login_asks_what_the_specifications_say() {
    let mock = Mock::new(|_, _| None).await;
    let document = ClientDocument::new("Test").member("software_id", "t-1");
    let oauth = login(&Person::default()).document(document).scopes(["extra"]).build().unwrap();
    let client = connect(&mock.url(), &oauth).await.unwrap();
    assert_eq!(tool(&client, "x").await.unwrap(), "done");
    let paths = mock.paths();
    assert_eq!(
        paths[..7],
        [
            "POST /mcp",
            "GET /.well-known/oauth-protected-resource/mcp",
            "GET /.well-known/oauth-authorization-server",
            "POST /register",
            "GET /authorize",
            "POST /token",
            "POST /mcp",
        ]
    );
    let metadata = &mock.log()[1];
    assert!(
        metadata.header("authorization").is_empty() && !metadata.header("mcp-protocol-version").is_empty()
    );
    let registered = mock.seen("/register")[0].json();
    assert_eq!(registered["client_name"], "Test");
    assert_eq!(
        (&registered["software_id"], &registered["application_type"]),
        (&json!("t-1"), &json!("native"))
    );
    assert_eq!(registered["grant_types"], json!(["authorization_code", "refresh_token"]));
    let asked = &mock.seen("/authorize")[0].query;
    assert_eq!(registered["redirect_uris"], json!([asked["redirect_uri"]]));
    assert_eq!((asked["resource"].as_str(), asked["scope"].as_str()), (mock.url().as_str(), "extra"));
    assert_eq!((asked["code_challenge_method"].as_str(), asked["code_challenge"].len()), ("S256", 43));
    assert!(asked["state"].len() >= 22 && !asked.contains_key("prompt"));
    let token = mock.seen("/token")[0].form();
    assert_eq!(token["redirect_uri"], asked["redirect_uri"]);
    assert_eq!((token["code"].as_str(), token["client_id"].as_str()), ("c0de", "registered"));
    assert_eq!((token["resource"].as_str(), token["code_verifier"].len()), (mock.url().as_str(), 43));
    assert!(!token.contains_key("scope") && !token.contains_key("client_secret"));
    assert_eq!(mock.seen("/mcp")[1].header("authorization"), "Bearer at-1");
    // OAC-03: the refused request is sent again as it was.
    assert_eq!(mock.seen("/mcp")[0].body, mock.seen("/mcp")[1].body);
}

/// OAC-18: one last slash of an issuer without a path may differ; the spelling of its metadata is the issuer then.
#[tokio::test]
async fn an_issuer_can_end_with_a_slash() {
    let rule = |mock: &Mock, seen: &crate::mock::Seen| match seen.path.as_str() {
        "/.well-known/oauth-authorization-server" => {
            let mut metadata = mock.metadata();
            metadata["issuer"] = format!("{}/", mock.base()).into();
            metadata["authorization_response_iss_parameter_supported"] = true.into();
            Some(answer(200, &metadata))
        }
        "/authorize" => {
            let (to, state) = (&seen.query["redirect_uri"], &seen.query["state"]);
            Some(crate::mock::redirect(&format!("{to}?code=c&state={state}&iss={}/", mock.base())))
        }
        _ => None,
    };
    // OAC-80: the rule is the same for a server that is its own authorization server.
    let is_old = move |mock: &Mock, seen: &crate::mock::Seen| {
        let is_hidden = seen.path.starts_with("/.well-known/oauth-protected");
        if is_hidden { Some(answer(404, &json!({}))) } else { rule(mock, seen) }
    };
    for mock in [Mock::new(rule).await, Mock::new(is_old).await] {
        let oauth = login(&Person::default()).build().unwrap();
        assert!(connect(&mock.url(), &oauth).await.is_ok());
        let strict = login(&Person::default()).strict_issuer().build().unwrap();
        let refused = connect(&mock.url(), &strict).await;
        assert!(matches!(refused, Err(OAuthError::IssuerMismatch { .. })), "{:?}", refused.err());
    }
}

/// OAC-12, OAC-13, P-AUC-5: metadata of another place, or about another server, ends the login before anything else is asked.
#[tokio::test]
async fn foreign_metadata_is_refused() {
    let foreign = r#"Bearer resource_metadata="https://evil.example/metadata""#;
    let mock = Mock::new(move |_, seen| seen.is("POST", "/mcp").then(|| challenge(401, foreign))).await;
    let oauth = login(&Person::default()).build().unwrap();
    assert!(matches!(connect(&mock.url(), &oauth).await, Err(OAuthError::Answer { .. })));
    assert_eq!(mock.paths(), ["POST /mcp"]);
    let mock = Mock::new(|_, seen| {
        let resource = json!({"resource": "https://evil.example/mcp", "authorization_servers": ["https://evil.example"]});
        seen.path.starts_with("/.well-known/oauth-protected").then(|| answer(200, &resource))
    })
    .await;
    assert!(matches!(connect(&mock.url(), &oauth).await, Err(OAuthError::ResourceMismatch { .. })));
    assert_eq!(mock.paths().len(), 2);
}

/// OAC-15: a pinned issuer that the server does not list is an error; so is a server without any.
#[tokio::test]
async fn a_pinned_issuer_must_be_listed() {
    let mock = Mock::new(|_, _| None).await;
    let pinned = login(&Person::default()).issuer("https://other.example").build().unwrap();
    assert!(matches!(connect(&mock.url(), &pinned).await, Err(OAuthError::NoAuthority { .. })));
    let pinned = login(&Person::default()).issuer(mock.base()).build().unwrap();
    assert!(connect(&mock.url(), &pinned).await.is_ok());
    let mock = Mock::new(|mock, seen| {
        let resource = json!({"resource": mock.url()});
        seen.path.starts_with("/.well-known/oauth-protected").then(|| answer(200, &resource))
    })
    .await;
    let oauth = login(&Person::default()).build().unwrap();
    assert!(matches!(connect(&mock.url(), &oauth).await, Err(OAuthError::NoAuthority { .. })));
    // OAC-82: a server that hides its metadata does not become the issuer.
    let mock =
        Mock::new(|_, seen| seen.path.starts_with("/.well-known/").then(|| answer(404, &json!({})))).await;
    let client = ClientIdentity::secret("service", Secret::new("s"));
    let pinned = OAuth::client_credentials(client).issuer("https://other.example").build().unwrap();
    assert!(matches!(connect(&mock.url(), &pinned).await, Err(OAuthError::NoAuthority { .. })));
    assert!(mock.seen("/token").is_empty());
    let pinned = login(&Person::default()).issuer(mock.base()).build().unwrap();
    assert!(connect(&mock.url(), &pinned).await.is_ok());
}

/// OAC-80: a server without metadata of its own is its authorization server, whose metadata names the endpoints.
#[tokio::test]
async fn the_metadata_at_the_origin_names_the_endpoints_of_an_old_server() {
    let mock = Mock::new(|mock, seen| {
        let (to, state) = (seen.query.get("redirect_uri"), seen.query.get("state"));
        match (seen.path.as_str(), to, state) {
            ("/.well-known/oauth-authorization-server", ..) => {
                let mut metadata = mock.metadata();
                for (member, path) in [
                    ("authorization_endpoint", "/oauth/authorize"),
                    ("token_endpoint", "/oauth/token"),
                    ("registration_endpoint", "/oauth/register"),
                ] {
                    metadata[member] = format!("{}{path}", mock.base()).into();
                }
                Some(answer(200, &metadata))
            }
            ("/oauth/register", ..) => Some(answer(201, &json!({"client_id": "registered"}))),
            ("/oauth/authorize", Some(to), Some(state)) => {
                Some(crate::mock::redirect(&format!("{to}?code=c&state={state}")))
            }
            ("/oauth/token", ..) => Some(answer(200, &mock.token())),
            (path, ..) if path.starts_with("/.well-known/") => Some(answer(404, &json!({}))),
            _ => None,
        }
    })
    .await;
    let oauth = login(&Person::default()).build().unwrap();
    assert!(connect(&mock.url(), &oauth).await.is_ok());
    assert!(["/register", "/authorize", "/token"].iter().all(|path| mock.seen(path).is_empty()));
    assert!(!mock.seen("/oauth/token")[0].form().contains_key("resource"));
}

/// OAC-31, OAC-33: a refresh token is requested with the consent of the person where `offline_access` exists. A query of the
/// endpoint is kept.
#[tokio::test]
async fn offline_access_is_requested_with_consent() {
    let mock = Mock::new(|mock, seen| {
        let mut metadata = mock.metadata();
        metadata["scopes_supported"] = json!(["offline_access", "other"]);
        metadata["authorization_endpoint"] = format!("{}/authorize?tenant=7", mock.base()).into();
        seen.path.contains("authorization-server").then(|| answer(200, &metadata))
    })
    .await;
    let oauth = login(&Person::default()).scopes(["mcp"]).build().unwrap();
    assert!(connect(&mock.url(), &oauth).await.is_ok());
    let asked = &mock.seen("/authorize")[0].query;
    assert_eq!(
        (asked["scope"].as_str(), asked["prompt"].as_str(), asked["tenant"].as_str()),
        ("mcp offline_access", "consent", "7")
    );
}

/// OAC-80, OAC-81, OAC-82, P-AUC-18: a disturbed discovery is an error, and does not lead to the endpoints of old servers.
#[tokio::test]
async fn only_a_server_without_metadata_is_an_old_one() {
    for status in [400, 403, 500, 503] {
        let mock = Mock::new(move |_, seen| {
            seen.path.starts_with("/.well-known/oauth-protected").then(|| answer(status, &json!({})))
        })
        .await;
        let oauth = login(&Person::default()).build().unwrap();
        let refused = connect(&mock.url(), &oauth).await.err().unwrap();
        assert!(matches!(refused, OAuthError::Answer { .. } | OAuthError::Temporary { .. }), "{refused:?}");
        assert!(mock.seen("/authorize").is_empty());
    }
    // Without any metadata the endpoints are at the origin, and there is no `resource`.
    let mock =
        Mock::new(|_, seen| seen.path.starts_with("/.well-known/").then(|| answer(404, &json!({})))).await;
    let oauth = login(&Person::default()).build().unwrap();
    assert!(connect(&mock.url(), &oauth).await.is_ok());
    let asked = &mock.seen("/authorize")[0].query;
    assert!(!asked.contains_key("resource") && asked["code_challenge_method"] == "S256");
    assert!(!mock.seen("/token")[0].form().contains_key("resource"));
}

/// CAUTH-01, OAC-22, OAC-24, P-AUC-6: a client document is used where it is supported; elsewhere the client registers.
#[tokio::test]
async fn a_client_document_is_used_where_it_is_supported() {
    for supported in [true, false] {
        let mock = Mock::new(move |mock, seen| {
            let mut metadata = mock.metadata();
            metadata["client_id_metadata_document_supported"] = supported.into();
            seen.path.contains("authorization-server").then(|| answer(200, &metadata))
        })
        .await;
        let document = ClientIdentity::document("https://client.example/c.json");
        let oauth = login(&Person::default()).client(document).build().unwrap();
        assert!(connect(&mock.url(), &oauth).await.is_ok());
        let id = mock.seen("/authorize")[0].query["client_id"].clone();
        assert_eq!(id, if supported { "https://client.example/c.json" } else { "registered" });
        assert_eq!(mock.seen("/register").is_empty(), supported);
    }
    for wrong in ["http://client.example/c.json", "https://client.example", "c.json"] {
        assert!(
            login(&Person::default()).client(ClientIdentity::document(wrong)).build().is_err(),
            "{wrong}"
        );
    }
}

/// CAUTH-01, OAC-53, P-AUC-10: a server that refuses every token for its scopes causes one more login, not an endless loop.
#[tokio::test]
async fn a_futile_step_up_is_not_repeated() {
    let insufficient = r#"Bearer error="insufficient_scope", scope="more""#;
    let mock = Mock::new(move |_, seen| {
        let refused = seen.is("POST", "/mcp") && !seen.header("authorization").is_empty();
        refused.then(|| challenge(403, insufficient))
    })
    .await;
    let person = Person::default();
    let oauth = login(&person).build().unwrap();
    for _ in 0..3 {
        let refused = connect(&mock.url(), &oauth).await;
        assert!(matches!(refused, Err(OAuthError::InsufficientScope { .. })), "{:?}", refused.err());
    }
    assert_eq!(person.times(), 2);
}

/// OAC-04: a server that requires other scopes each time causes two step-ups, not one per attempt.
#[tokio::test]
async fn a_request_steps_up_twice_at_most() {
    let mock = Mock::new(move |mock, seen| {
        let is_call = seen.json()["method"] == "tools/call";
        let insufficient =
            format!(r#"Bearer error="insufficient_scope", scope="s{}""#, mock.seen("/authorize").len());
        is_call.then(|| challenge(403, &insufficient))
    })
    .await;
    let person = Person::default();
    let client = connect(&mock.url(), &login(&person).build().unwrap()).await.unwrap();
    for _ in 0..2 {
        let refused = tool(&client, "x").await;
        assert!(matches!(refused, Err(OAuthError::InsufficientScope { .. })), "{refused:?}");
        assert_eq!(person.times(), 3);
    }
}

/// OAC-53: a step-up that failed for a reason that passes is tried again; one that was denied is not.
#[tokio::test]
async fn only_a_denied_step_up_is_futile() {
    let insufficient = r#"Bearer error="insufficient_scope", scope="more""#;
    let mock = Mock::new(move |mock, seen| match (seen.path.as_str(), mock.seen("/authorize").len()) {
        ("/mcp", _) if seen.json()["method"] == "tools/call" => Some(challenge(403, insufficient)),
        // The second login cannot begin, and the third one is denied.
        ("/.well-known/oauth-authorization-server", 1) if mock.seen(&seen.path).len() == 2 => {
            Some(answer(503, &json!({})))
        }
        ("/authorize", 2) => {
            let (to, state) = (&seen.query["redirect_uri"], &seen.query["state"]);
            Some(crate::mock::redirect(&format!("{to}?error=access_denied&state={state}")))
        }
        _ => None,
    })
    .await;
    let (person, store) = (Person::default(), MemoryCredentials::new());
    let oauth = || login(&person).store(store.clone()).build().unwrap();
    let client = connect(&mock.url(), &oauth()).await.unwrap();
    let call = async || tool(&client, "x").await.unwrap_err();
    assert!(matches!(call().await, OAuthError::Temporary { .. }));
    assert!(matches!(call().await, OAuthError::LoginDenied));
    assert!(matches!(call().await, OAuthError::InsufficientScope { .. }));
    // The token is still there.
    assert!(connect(&mock.url(), &oauth()).await.is_ok());
    assert_eq!(person.times(), 2);
}

/// OAC-04: a server that refuses a new token gets no further login; the caller sees the refusal.
#[tokio::test]
async fn a_refused_new_token_is_not_replaced() {
    let mock = Mock::new(|_, seen| seen.is("POST", "/mcp").then(|| challenge(401, "Bearer"))).await;
    let person = Person::default();
    let oauth = login(&person).build().unwrap();
    let transport = duplexer_http_client::HttpTransport::new(&mock.url()).unwrap();
    let transport = transport.authorization(std::sync::Arc::new(oauth));
    let refused = duplexer_client::Client::builder("t", "1").connect(transport).await.err().unwrap();
    assert_eq!(refused.refusal().map(|refusal| refusal.status), Some(401), "{refused:?}");
    assert_eq!(person.times(), 1);
}
