//! Tokens without a person, and tokens that are bound to a key.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use duplexer_oauth::{
    Algorithm, ClientIdentity, Dpop, MemoryCredentials, OAuth, OAuthError, Secret, SigningKey,
};
use serde_json::{Value, json};

use crate::discovery::login;
use crate::mock::{Mock, Seen, answer, challenge};
use crate::site::{Person, connect, tool};

pub(crate) const KEY: &str = "-----BEGIN PRIVATE KEY-----
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgevZzL1gdAFr88hb2
OF/2NxApJCzGCEDdfSp6VQO30hyhRANCAAQRWz+jn65BtOMvdyHKcvjBeBSDZH2r
1RTwjmYSi9R/zpBnuQ4EiMnCqfMPWiZqB4QdbAd0E7oH50VpuZ1P087G
-----END PRIVATE KEY-----";

fn part(token: &str, index: usize) -> Value {
    serde_json::from_slice(&URL_SAFE_NO_PAD.decode(token.split('.').nth(index).unwrap()).unwrap()).unwrap()
}

/// CAUTH-01, OAC-54, P-AUC-15, P-AUC-21: no registration, no browser; a refused token is replaced by another request.
#[tokio::test]
async fn client_credentials_need_no_person() {
    let mock = Mock::new(|_, seen| {
        // The first token is refused after it was used once.
        let is_second = seen.is("POST", "/mcp") && seen.json()["method"] == "tools/call";
        (is_second && seen.header("authorization") == "Bearer at-1").then(|| challenge(401, "Bearer"))
    })
    .await;
    let client = ClientIdentity::secret("service", Secret::new("s"));
    let oauth = OAuth::client_credentials(client).scopes(["mcp"]).build().unwrap();
    let client = connect(&mock.url(), &oauth).await.unwrap();
    assert_eq!(tool(&client, "x").await.unwrap(), "done");
    let requests = mock.seen("/token");
    assert_eq!(requests.len(), 2);
    for request in requests {
        let form = request.form();
        assert_eq!((form["grant_type"].as_str(), form["scope"].as_str()), ("client_credentials", "mcp"));
        assert_eq!(form["resource"], mock.url());
        // OAC-28: in the header, and not in the body.
        assert_eq!(request.header("authorization"), "Basic c2VydmljZTpz");
        assert!(!form.contains_key("client_secret") && !form.contains_key("refresh_token"));
    }
    assert!(mock.seen("/register").is_empty() && mock.seen("/authorize").is_empty());
}

/// CAUTH-01, OAC-55, P-AUC-21
#[tokio::test]
async fn a_client_signs_a_new_assertion_for_every_request() {
    let mock = Mock::new(|_, _| None).await;
    let key = SigningKey::pem(Algorithm::Es256, KEY).unwrap().with_id("k1");
    for _ in 0..2 {
        let client = ClientIdentity::private_key_jwt("service", key.clone());
        let oauth = OAuth::client_credentials(client).build().unwrap();
        assert!(connect(&mock.url(), &oauth).await.is_ok());
    }
    let assertions: Vec<_> =
        mock.seen("/token").iter().map(|seen| seen.form()["client_assertion"].clone()).collect();
    let (header, claims) = (part(&assertions[0], 0), part(&assertions[0], 1));
    assert_eq!((&header["alg"], &header["kid"]), (&json!("ES256"), &json!("k1")));
    assert_eq!(
        (&claims["iss"], &claims["sub"], &claims["aud"]),
        (&json!("service"), &json!("service"), &json!(mock.base()))
    );
    assert!(claims["exp"].as_u64().unwrap() - claims["iat"].as_u64().unwrap() <= 300);
    assert_ne!(claims["jti"], part(&assertions[1], 1)["jti"]);
    // An algorithm that the server does not accept is refused before it is used.
    let mock = Mock::new(|mock, seen| {
        let mut metadata = mock.metadata();
        metadata["token_endpoint_auth_signing_alg_values_supported"] = json!(["RS256"]);
        seen.path.contains("authorization-server").then(|| answer(200, &metadata))
    })
    .await;
    let oauth = OAuth::client_credentials(ClientIdentity::private_key_jwt("service", key)).build().unwrap();
    assert!(matches!(connect(&mock.url(), &oauth).await, Err(OAuthError::Config(_))));
    assert!(mock.seen("/token").is_empty());
}

/// OAC-58: after an error there is no second request.
#[tokio::test]
async fn a_refused_workload_is_not_tried_again() {
    let mock = Mock::new(|_, seen| {
        seen.is("POST", "/token").then(|| answer(400, &json!({"error": "invalid_grant"})))
    })
    .await;
    let asked = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&asked);
    let source = move |audience: String| {
        count.fetch_add(1, Ordering::SeqCst);
        std::future::ready(Ok(Secret::new(format!("for-{audience}"))))
    };
    let oauth = OAuth::workload("build", source).build().unwrap();
    assert!(matches!(connect(&mock.url(), &oauth).await, Err(OAuthError::Authority { .. })));
    let form = mock.seen("/token")[0].form();
    assert_eq!(
        (form["assertion"].as_str(), form["client_id"].as_str()),
        (format!("for-{}", mock.base()).as_str(), "build")
    );
    assert_eq!((mock.seen("/token").len(), asked.load(Ordering::SeqCst)), (1, 1));
    assert!(mock.seen("/register").is_empty());
}

/// OAC-59: a function is asked at once, and once more after a refusal.
#[tokio::test]
async fn a_function_gives_tokens() {
    let mock = Mock::new(|_, seen| {
        (seen.is("POST", "/mcp") && seen.header("authorization") == "Bearer t0")
            .then(|| challenge(401, "Bearer"))
    })
    .await;
    let asked = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&asked);
    let function = move || {
        let number = count.fetch_add(1, Ordering::SeqCst);
        std::future::ready(Ok(Secret::new(format!("t{number}"))))
    };
    let oauth = OAuth::from_fn(function).build().unwrap();
    assert!(connect(&mock.url(), &oauth).await.is_ok());
    assert_eq!(asked.load(Ordering::SeqCst), 2);
    assert!(mock.log().iter().all(|seen| seen.path == "/mcp"));
}

/// Demands a nonce at the token endpoint and, another one, at the server; refuses proofs that repeat.
fn demanding(mock: &Mock, seen: &Seen) -> Option<axum::response::Response> {
    let claims = || part(seen.header("dpop"), 1);
    let with_nonce = |mut response: axum::response::Response, nonce: &'static str| {
        response.headers_mut().insert("dpop-nonce", nonce.parse().unwrap());
        response
    };
    match (seen.method.as_str(), seen.path.as_str()) {
        ("POST", "/token") if claims()["nonce"] != "for-token" => {
            Some(with_nonce(answer(400, &json!({"error": "use_dpop_nonce"})), "for-token"))
        }
        ("POST", "/token") => {
            let mut token = mock.token();
            token["token_type"] = "DPoP".into();
            Some(answer(200, &token))
        }
        ("POST", "/mcp") if seen.header("authorization").is_empty() => {
            Some(challenge(401, "DPoP algs=\"ES256\""))
        }
        ("POST", "/mcp") if claims()["nonce"] != "for-server" => {
            let refusal = challenge(401, "DPoP error=\"use_dpop_nonce\"");
            Some(with_nonce(refusal, "for-server"))
        }
        _ => None,
    }
}

/// OAC-70, OAC-71, OAC-72, OAC-73, OAC-74
#[tokio::test]
async fn a_bound_token_is_sent_with_a_new_proof_each_time() {
    let mock = Mock::new(demanding).await;
    let person = Person::default();
    let oauth = login(&person).dpop(Dpop::require()).build().unwrap();
    let client = connect(&mock.url(), &oauth).await.unwrap();
    assert_eq!(tool(&client, "x").await.unwrap(), "done");
    assert_eq!((person.times(), mock.seen("/token").len()), (1, 2));
    let mut ids = std::collections::HashSet::new();
    for seen in mock.log().iter().filter(|seen| !seen.header("dpop").is_empty()) {
        assert_eq!(seen.headers.get_all("dpop").iter().count(), 1);
        let (header, claims) = (part(seen.header("dpop"), 0), part(seen.header("dpop"), 1));
        assert_eq!((&header["typ"], &header["alg"]), (&json!("dpop+jwt"), &json!("ES256")));
        assert!(header["jwk"].get("d").is_none());
        assert_eq!(claims["htu"], format!("{}{}", mock.base(), seen.path));
        assert_eq!(claims["htm"], "POST");
        assert!(ids.insert(claims["jti"].to_string()), "{claims}");
        if seen.path == "/mcp" {
            assert!(seen.header("authorization").starts_with("DPoP at-"));
            assert_eq!(claims["ath"].as_str().unwrap().len(), 43);
        }
    }
    let jkt = &mock.seen("/authorize")[0].query["dpop_jkt"];
    assert_eq!(jkt.len(), 43);
    // OAC-72: a bearer token where a bound one is required.
    let mock = Mock::new(|_, _| None).await;
    let oauth = login(&Person::default()).dpop(Dpop::require()).build().unwrap();
    assert!(matches!(connect(&mock.url(), &oauth).await, Err(OAuthError::Config(_))));
    let oauth = login(&Person::default()).dpop(Dpop::prefer()).build().unwrap();
    assert!(connect(&mock.url(), &oauth).await.is_ok());
}

/// OAC-70: a client that no longer uses DPoP does not send a bound token, which needs a proof, and gets another one.
#[tokio::test]
async fn without_dpop_a_bound_token_is_replaced() {
    let mock = Mock::new(|mock, seen| {
        let mut token = mock.token();
        if !seen.header("dpop").is_empty() {
            token["token_type"] = "DPoP".into();
        }
        seen.is("POST", "/token").then(|| answer(200, &token))
    })
    .await;
    let (person, store) = (Person::default(), MemoryCredentials::new());
    for (dpop, scheme) in [(Dpop::require(), "DPoP "), (Dpop::off(), "Bearer ")] {
        let oauth = login(&person).store(store.clone()).dpop(dpop).build().unwrap();
        assert!(connect(&mock.url(), &oauth).await.is_ok());
        let calls = mock.seen("/mcp");
        assert!(calls.last().unwrap().header("authorization").starts_with(scheme));
    }
    assert_eq!(person.times(), 2);
    assert!(mock.seen("/token")[1].header("dpop").is_empty());
}

/// OAC-74: a server that demands nonces without end is given up.
#[tokio::test]
async fn endless_nonces_are_given_up() {
    let count = AtomicUsize::new(0);
    let mock = Mock::new(move |mock, seen| {
        if seen.is("POST", "/mcp") && !seen.header("authorization").is_empty() {
            let mut refusal = challenge(401, "DPoP error=\"use_dpop_nonce\"");
            let nonce = format!("n{}", count.fetch_add(1, Ordering::SeqCst));
            refusal.headers_mut().insert("dpop-nonce", nonce.parse().unwrap());
            return Some(refusal);
        }
        demanding(mock, seen)
    })
    .await;
    let person = Person::default();
    let oauth = login(&person).dpop(Dpop::require()).build().unwrap();
    assert!(matches!(connect(&mock.url(), &oauth).await, Err(OAuthError::Answer { .. })));
    assert_eq!((person.times(), mock.seen("/mcp").len()), (1, 3));
}

/// OAC-74: a server that demands a nonce, and gives none, is asked once with its token.
#[tokio::test]
async fn a_demanded_nonce_must_be_given() {
    let mock = Mock::new(|mock, seen| {
        if seen.is("POST", "/mcp") && !seen.header("authorization").is_empty() {
            return Some(challenge(401, "DPoP error=\"use_dpop_nonce\""));
        }
        demanding(mock, seen)
    })
    .await;
    let person = Person::default();
    let oauth = login(&person).dpop(Dpop::require()).build().unwrap();
    assert!(matches!(connect(&mock.url(), &oauth).await, Err(OAuthError::Answer { .. })));
    assert_eq!((person.times(), mock.seen("/mcp").len()), (1, 2));
}

/// Returns token and proof of a request that a server has accepted.
pub(crate) async fn captured(url: &str, oauth: &OAuth) -> (String, String) {
    use duplexer_core::dispatch::{BoxFuture, CallClock};
    use duplexer_core::error::BoxError;
    use duplexer_http_client::{Authorization, OutgoingRequest, ResponseHead, Verdict};

    struct Spy(OAuth, Arc<std::sync::Mutex<(String, String)>>);

    impl Authorization for Spy {
        fn authorize<'a>(&'a self, request: &'a mut OutgoingRequest) -> BoxFuture<'a, Result<(), BoxError>> {
            self.0.authorize(request)
        }

        fn on_response<'a>(
            &'a self,
            request: &'a OutgoingRequest,
            response: ResponseHead<'a>,
        ) -> BoxFuture<'a, Result<Verdict, BoxError>> {
            let text = |name| request.headers().get(name).map(|value| value.to_str().unwrap().to_owned());
            if let (true, Some(token), Some(proof)) =
                (response.status.is_success(), text("authorization"), text("dpop"))
            {
                *self.1.lock().unwrap() = (token.strip_prefix("DPoP ").unwrap().to_owned(), proof);
            }
            self.0.on_response(request, response)
        }

        fn clock(&self) -> Option<CallClock> {
            self.0.clock()
        }
    }

    let caught = Arc::new(std::sync::Mutex::default());
    let transport = duplexer_http_client::HttpTransport::new(url).unwrap();
    let transport = transport.authorization(Arc::new(Spy(oauth.clone(), Arc::clone(&caught))));
    duplexer_client::Client::builder("t", "1").connect(transport).await.unwrap();
    caught.lock().unwrap().clone()
}
