//! Signed tokens: their checks, and the number of requests to the issuer.

use std::sync::Arc;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use duplexer_auth::{Auth, Jwt};
use ring::hmac;
use serde_json::{Value, json};

use crate::issuer::{Published, Signer, issuer, token};
use crate::support::{Site, Time};

struct Stage {
    site: Site,
    issuer: Site,
    published: Arc<Published>,
    signer: Signer,
    time: Time,
}

async fn stage() -> Stage {
    let (issuer, published) = issuer(None).await;
    let signer = Signer::new("first");
    published.publish(json!({"kty": "unheard-of", "kid": "first"}));
    published.publish(signer.jwk());
    let time = Time::new();
    let site = Site::new(|base| {
        let jwt = Jwt::new(&issuer.base).unwrap().clock(time.clock()).skew(Duration::from_secs(30));
        Auth::verifier(&issuer.base, jwt)
            .audience(base)
            .accept_audience("api")
            .clock(time.clock())
            .build()
            .unwrap()
    });
    let site = site.await;
    Stage { site, issuer, published, signer, time }
}

impl Stage {
    fn claims(&self) -> Value {
        json!({
            "iss": self.issuer.base,
            "aud": self.site.base,
            "sub": "ada",
            "client_id": "app",
            "scope": "read write",
            "name": "Ada",
            "exp": self.time.seconds() + 100,
            "nbf": self.time.seconds() - 100,
        })
    }

    fn token(&self, change: impl FnOnce(&mut Value)) -> String {
        let mut claims = self.claims();
        change(&mut claims);
        self.signer.sign("at+jwt", &claims)
    }
}

/// AUTH-05, AUTH-09: a valid token gives the principal with all claims.
#[tokio::test]
async fn a_signed_token_says_who_calls() {
    let stage = stage().await;
    let who = stage.site.whoami(&stage.token(|_| ())).await.unwrap();
    assert_eq!(
        who,
        json!({
            "client": "app", "issuer": stage.issuer.base, "subject": "ada", "scopes": ["read", "write"],
            "expires": true, "name": "\"Ada\"", "authorization": [],
        })
    );
    for audience in [json!([stage.site.base, "x"]), json!("api"), json!(["api"])] {
        assert!(stage.site.whoami(&stage.token(|claims| claims["aud"] = audience)).await.is_some());
    }
    let kinds = ["JWT", "application/at+jwt"].map(|kind| stage.signer.sign(kind, &stage.claims()));
    for token in kinds {
        assert!(stage.site.whoami(&token).await.is_some());
    }
    assert_eq!(stage.published.asked(), 1, "the keys are fetched once");
}

/// AUTH-02, P-AUS-5: issuer, audience, beginning and end are always checked.
#[tokio::test]
async fn every_claim_is_checked() {
    let stage = stage().await;
    let now = stage.time.seconds();
    let changes: [(&str, Value); 14] = [
        ("iss", json!("https://other.example")),
        ("iss", json!([stage.issuer.base])),
        ("iss", Value::Null),
        ("aud", json!("https://other.example")),
        ("aud", json!([])),
        ("aud", Value::Null),
        ("exp", json!(now - 30)),
        ("exp", Value::Null),
        ("exp", json!("tomorrow")),
        ("exp", json!(-1)),
        ("nbf", json!(now + 31)),
        ("nbf", json!("yesterday")),
        ("nbf", json!(f64::from(u32::MAX))),
        ("aud", json!({"x": 1})),
    ];
    for (name, value) in changes {
        let token = stage.token(|claims| claims[name] = value.clone());
        assert_eq!(stage.site.whoami(&token).await, None, "{name}: {value}");
    }
    // Clocks can differ by half a minute.
    for (name, value) in [("exp", now - 29), ("nbf", now + 30)] {
        assert!(
            stage.site.whoami(&stage.token(|claims| claims[name] = value.into())).await.is_some(),
            "{name}"
        );
    }
    let token = stage.token(|_| ());
    stage.time.pass(130);
    assert_eq!(stage.site.whoami(&token).await, None, "it has ended meanwhile");
}

/// Without a subject and a client, the tokens of all users would have the same principal.
#[tokio::test]
async fn a_signed_token_without_subject_and_client_is_refused() {
    let stage = stage().await;
    let token = |names: &[(&str, &str)]| {
        stage.token(|claims| {
            let claims = claims.as_object_mut().unwrap();
            claims.retain(|name, _| name != "sub" && name != "client_id");
            claims.extend(names.iter().map(|(name, value)| ((*name).to_owned(), json!(value))));
        })
    };
    for nameless in [&[][..], &[("sub", "")], &[("client_id", "")], &[("azp", ""), ("sub", "")]] {
        assert_eq!(stage.site.whoami(&token(nameless)).await, None, "{nameless:?}");
    }
    for (named, client, subject) in [
        (&[("sub", "ada")][..], "ada", Some("ada")),
        (&[("client_id", "app"), ("sub", "")], "app", None),
        (&[("azp", "app"), ("client_id", "")], "app", None),
    ] {
        let who = stage.site.whoami(&token(named)).await.unwrap();
        assert_eq!((&who["client"], &who["subject"]), (&json!(client), &json!(subject)), "{named:?}");
    }
}

fn encoded(value: &Value) -> String {
    URL_SAFE_NO_PAD.encode(value.to_string())
}

/// No `none`, no shared secret made of a public key, no other key, no unknown critical header, no other kind of token.
#[tokio::test]
async fn only_signatures_of_the_issuers_keys_count() {
    let stage = stage().await;
    let claims = stage.claims();
    let unsigned = format!("{}.{}.", encoded(&json!({"alg": "none"})), encoded(&claims));
    let confused = {
        let key = hmac::Key::new(hmac::HMAC_SHA256, &stage.signer.public);
        let sign = |text: &[u8]| hmac::sign(&key, text).as_ref().to_vec();
        token(&json!({"alg": "HS256", "typ": "JWT", "kid": "first"}), &claims, sign)
    };
    let forged = Signer::new("first").sign("at+jwt", &claims);
    let good = stage.token(|_| ());
    let (head, rest) = good.split_once('.').unwrap();
    let (body, signature) = rest.split_once('.').unwrap();
    let critical = format!(
        "{}.{body}.{signature}",
        encoded(&json!({"alg": "ES256", "kid": "first", "crit": ["b64"], "b64": false}))
    );
    let mut better = claims.clone();
    better["sub"] = "root".into();
    let tampered = format!("{head}.{}.{signature}", encoded(&better));
    let other_kind = stage.signer.sign("oauth-id-jag+jwt", &claims);
    let huge = "x".repeat(20_000);
    for token in
        [unsigned, confused, forged, critical, tampered, other_kind, huge, "a.b.c".into(), "..".into()]
    {
        assert_eq!(stage.site.whoami(&token).await, None, "{token}");
    }
    assert!(stage.site.whoami(&good).await.is_some());
}

/// An algorithm of shared secrets cannot even be configured.
#[test]
fn only_algorithms_of_public_keys_can_be_allowed() {
    let jwt = || Jwt::new("https://issuer.example").unwrap();
    for name in ["HS256", "none", "es256", ""] {
        assert!(jwt().algorithms(&[name]).unwrap_err().to_string().contains("public keys"), "{name}");
    }
    assert!(jwt().algorithms(&["ES256", "EdDSA"]).is_ok());
    assert!(jwt().jwks_uri("http://keys.example").is_err());
}

/// A token with an unlisted algorithm is rejected, though its signature is valid.
#[tokio::test]
async fn the_list_of_algorithms_is_kept() {
    let stage = stage().await;
    let site = Site::new(|base| {
        let jwt = Jwt::new(&stage.issuer.base).unwrap().clock(stage.time.clock());
        let jwt = jwt.algorithms(&["RS256"]).unwrap().jwks_uri(&stage.issuer.url("/keys")).unwrap();
        Auth::verifier(&stage.issuer.base, jwt).audience(base).clock(stage.time.clock()).build().unwrap()
    });
    let site = site.await;
    let token = stage.token(|claims| claims["aud"] = site.base.clone().into());
    assert_eq!(site.whoami(&token).await, None);
}

/// Concurrent requests cause one fetch; unknown key ids cause no second one; a new key is found.
#[tokio::test]
async fn the_issuer_is_asked_no_more_than_needed() {
    let stage = stage().await;
    let token = stage.token(|_| ());
    let calls = (0..20).map(|_| stage.site.tool("whoami", Some(&token)).send());
    let mut waiting = tokio::task::JoinSet::new();
    for call in calls {
        waiting.spawn(call);
    }
    while let Some(response) = waiting.join_next().await {
        assert_eq!(response.unwrap().unwrap().status(), 200);
    }
    for number in 0..20 {
        let invented = Signer::new(&format!("invented {number}"));
        assert_eq!(stage.site.whoami(&invented.sign("at+jwt", &stage.claims())).await, None);
    }
    assert_eq!(stage.published.asked(), 1);
}

/// A key that appears later is found by the first token that names it.
#[tokio::test(start_paused = true)]
async fn a_new_key_is_found_after_a_while() {
    let (issuer, published) = issuer(None).await;
    let (first, second) = (Signer::new("first"), Signer::new("second"));
    published.publish(first.jwk());
    let time = Time::new();
    let jwt = Jwt::new(&issuer.base).unwrap().clock(time.clock());
    let claims = json!({"iss": issuer.base, "aud": "x", "sub": "ada", "exp": time.seconds() + 9});
    let verify = async |signer: &Signer| {
        use duplexer_auth::TokenVerifier;
        jwt.verify(&signer.sign("JWT", &claims)).await.unwrap().is_some()
    };
    assert!(verify(&first).await && !verify(&second).await);
    published.publish(second.jwk());
    assert!(!verify(&second).await, "it was asked just now");
    assert_eq!(published.asked(), 1);
    tokio::time::advance(Duration::from_secs(30)).await;
    assert!(verify(&second).await && verify(&first).await);
    assert_eq!(published.asked(), 2);
}

/// AUTH-02: the verifier itself refuses a token that has ended, and one of more than 16 KiB.
#[tokio::test]
async fn a_token_is_verified_up_to_its_end_and_up_to_the_maximum_size() {
    use duplexer_auth::TokenVerifier;
    let (issuer, published) = issuer(None).await;
    // With an id of this length, tokens have both lengths that are tried below: base64 skips every fourth one.
    let signer = Signer::new("only");
    published.publish(signer.jwk());
    let time = Time::new();
    let jwt = Jwt::new(&issuer.base).unwrap().clock(time.clock()).skew(Duration::from_secs(30));
    let token = |end: u64, fill: usize| {
        let claims = json!({"iss": issuer.base, "sub": "ada", "exp": end, "fill": "x".repeat(fill)});
        signer.sign("JWT", &claims)
    };
    let verify = async |token: &str| jwt.verify(token).await.unwrap().is_some();
    let now = time.seconds();
    assert!(verify(&token(now - 29, 0)).await);
    assert!(!verify(&token(now - 30, 0)).await);

    let of_size = |size: usize| {
        let most = size / 4 * 3;
        (most - 500..most).map(|fill| token(now, fill)).find(|token| token.len() == size).unwrap()
    };
    assert!(verify(&of_size(16 * 1024)).await);
    assert!(!verify(&of_size(16 * 1024 + 1)).await);
}

/// With an issuer that is unreachable, or names another issuer, requests get 503 and neither 200 nor 401.
#[tokio::test]
async fn an_issuer_that_cannot_be_asked_is_no_reason_to_sign_in_again() {
    let (mistaken, _) = issuer(Some("https://other.example")).await;
    for base in [mistaken.base.clone(), "http://127.0.0.1:1".to_owned()] {
        let site = Site::new(|here| Auth::jwt(&base).audience(here).build().unwrap()).await;
        let token = Signer::new("x").sign("JWT", &json!({}));
        let response = site.tool("whoami", Some(&token)).send().await.unwrap();
        assert_eq!(response.status(), 503, "{base}");
    }
}

/// Stale keys are used while a fetch of new ones hangs: one request waits a second for it, the others do not wait, and
/// keys that could not be renewed for a day are not used.
#[tokio::test(start_paused = true)]
async fn an_issuer_that_hangs_does_not_delay_tokens_of_known_keys() {
    use duplexer_auth::TokenVerifier;
    let (issuer, published) = issuer(None).await;
    let signer = Signer::new("first");
    published.publish(signer.jwk());
    let time = Time::new();
    let jwt = Jwt::new(&issuer.base).unwrap().clock(time.clock());
    let token =
        signer.sign("JWT", &json!({"iss": issuer.base, "aud": "x", "sub": "ada", "exp": time.seconds() + 9}));
    let verify = async || {
        let started = tokio::time::Instant::now();
        let verified = jwt.verify(&token).await.map(|token| token.is_some());
        (verified.unwrap_or(false), started.elapsed())
    };
    assert!(verify().await.0);
    published.hang(true);
    tokio::time::advance(Duration::from_secs(3600)).await;
    let (one, other) = tokio::join!(verify(), verify());
    assert!(one.0 && other.0, "stale keys are used");
    assert!(one.1.max(other.1) <= Duration::from_secs(1), "{one:?} {other:?}");
    assert_eq!(one.1.min(other.1), Duration::ZERO, "only one request waits for the fetch");
    assert_eq!(published.asked(), 2, "one fetch runs");
    published.hang(false);
    // The clock is paused: the time of the fetch runs out, then its task ends.
    tokio::time::sleep(Duration::from_secs(31)).await;
    assert!(verify().await.0);
    assert_eq!(published.asked(), 3, "the keys are fetched again");
    published.hang(true);
    tokio::time::advance(Duration::from_secs(24 * 3600)).await;
    assert!(!verify().await.0, "keys of yesterday are not used");
}
