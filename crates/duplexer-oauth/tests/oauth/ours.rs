//! Bound tokens and machine grants against the authorization server of this project.

use duplexer_auth::RegisteredClient;
use duplexer_oauth::{
    Algorithm, ClientIdentity, Dpop, MemoryCredentials, OAuth, OAuthError, Secret, Signer, SigningKey,
};

use crate::machines::KEY;
use crate::site::{Person, Site, Time, connect, http, tool};

/// RFC 9449: a server that requires bound tokens and nonces, and a client that has no setting for it.
#[tokio::test]
async fn a_challenge_with_dpop_leads_to_bound_tokens() {
    let (time, person, store) = (Time::new(), Person::default(), MemoryCredentials::new());
    let site = Site::with(&time, |builder| builder, |auth| auth.require_dpop().dpop_nonces()).await;
    for _ in 0..3 {
        let oauth = OAuth::login_with_browser("test").present(person.browser()).clock(time.clock());
        let oauth = oauth.store(store.clone()).build().unwrap();
        let client = connect(&site.url(), &oauth).await.unwrap();
        assert_eq!(tool(&client, "one").await.unwrap(), "one read");
        // The refresh token is bound to the key of the store, and the nonce is outdated.
        time.pass(7200);
    }
    assert_eq!(person.times(), 1);
}

/// RFC 9449, section 7: what an accepted request of another client is worth to a thief.
#[tokio::test]
async fn a_stolen_bound_token_is_useless() {
    let (time, person) = (Time::new(), Person::default());
    let site = Site::new(&time, |builder| builder).await;
    let oauth = OAuth::login_with_browser("test").present(person.browser()).clock(time.clock());
    let oauth = oauth.dpop(Dpop::require()).build().unwrap();
    let (token, proof) = crate::machines::captured(&site.url(), &oauth).await;
    let post = |authorization: String, proof: Option<&str>| {
        let request = http().post(site.url()).header("authorization", authorization);
        let request = request.header("content-type", "application/json").body("{}");
        let request = match proof {
            Some(proof) => request.header("dpop", proof),
            None => request,
        };
        async move {
            let answer = request.send().await.unwrap();
            let challenge =
                answer.headers().get("www-authenticate").map(|value| value.to_str().unwrap().to_owned());
            (answer.status().as_u16(), challenge.unwrap_or_default())
        }
    };
    for (authorization, proof, reason) in [
        (format!("Bearer {token}"), None, "send it with the scheme DPoP"),
        (format!("DPoP {token}"), None, "there is no proof"),
        (format!("DPoP {token}"), Some(proof.as_str()), "has been used before"),
        (format!("DPoP {token}"), Some("a.b.c"), "not signed by its key"),
    ] {
        let (status, challenge) = post(authorization, proof).await;
        assert_eq!(status, 401);
        assert!(challenge.starts_with("DPoP error=") && challenge.contains(reason), "{challenge}");
    }
}

/// OAC-54, OAC-55: a service with a secret, and one with a key; scopes beyond those of the client are refused.
#[tokio::test]
async fn services_get_tokens_for_themselves() {
    let time = Time::new();
    let key = SigningKey::pem(Algorithm::Es256, KEY).unwrap();
    let jwk = key.public_jwk().unwrap();
    let site = Site::new(&time, |builder| {
        builder
            .client(RegisteredClient::service("with-secret", "s3cret/+", ["read"]))
            .client(RegisteredClient::service("with-key", "", ["read", "write"]).public_key(&jwk))
    })
    .await;
    let with_secret = ClientIdentity::secret("with-secret", Secret::new("s3cret/+"));
    let oauth = OAuth::client_credentials(with_secret.clone()).clock(time.clock()).build().unwrap();
    let client = connect(&site.url(), &oauth).await.unwrap();
    assert_eq!(tool(&client, "x").await.unwrap(), "x read");
    assert!(matches!(tool(&client, "write").await, Err(OAuthError::Authority { .. })));
    time.pass(7200);
    assert_eq!(tool(&client, "x").await.unwrap(), "x read");
    let with_key = ClientIdentity::private_key_jwt("with-key", key);
    let oauth = OAuth::client_credentials(with_key).dpop(Dpop::prefer()).clock(time.clock()).build().unwrap();
    let client = connect(&site.url(), &oauth).await.unwrap();
    assert_eq!(tool(&client, "write").await.unwrap(), "write read write");
    for wrong in [
        ClientIdentity::secret("with-secret", Secret::new("wrong")),
        ClientIdentity::secret("with-key", Secret::new("s3cret/+")),
        ClientIdentity::private_key_jwt("with-secret", SigningKey::pem(Algorithm::Es256, KEY).unwrap()),
        ClientIdentity::public("with-key"),
    ] {
        let oauth = OAuth::client_credentials(wrong).clock(time.clock()).build().unwrap();
        let refused = connect(&site.url(), &oauth).await;
        assert!(matches!(refused, Err(OAuthError::Authority { .. })), "{:?}", refused.err());
    }
}
