//! Tokens that are bound to a key (DPoP, RFC 9449): how they are presented, and to whom they belong.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use duplexer_auth::{Auth, Jwt};
use ring::digest::{SHA256, digest};
use serde_json::{Value, json};

use crate::issuer::{Signer, issuer};
use crate::support::{Site, Time, header};

fn sha_256(text: &str) -> String {
    URL_SAFE_NO_PAD.encode(digest(&SHA256, text.as_bytes()))
}

/// The public key of a client, with the members that its thumbprint is made of (RFC 7638).
fn public_key(client: &Signer) -> Value {
    let jwk = client.jwk();
    json!({"crv": jwk["crv"], "kty": jwk["kty"], "x": jwk["x"], "y": jwk["y"]})
}

/// A proof that `client` has made for a call with `token`.
fn proof(client: &Signer, site: &Site, time: &Time, token: &str, id: &str) -> String {
    let header = json!({"alg": "ES256", "typ": "dpop+jwt", "jwk": public_key(client)});
    let url = site.url("/mcp");
    let claims = json!({"htm": "POST", "htu": url, "iat": time.seconds(), "jti": id, "ath": sha_256(token)});
    client.sign_with(&header, &claims)
}

/// RFC 9449, sections 7.1 and 7.2: a bound token needs the scheme `DPoP` and a proof of its own key; any other token must not
/// claim to be bound, and is refused where only bound ones are accepted.
#[tokio::test]
async fn a_bound_token_needs_a_proof_of_its_key() {
    let (issuer, published) = issuer(None).await;
    let (authority, client, thief) = (Signer::new("issuer"), Signer::new("client"), Signer::new("thief"));
    published.publish(authority.jwk());
    let time = Time::new();
    let auth = |base: &str| {
        let jwt = Jwt::new(&issuer.base).unwrap().clock(time.clock());
        Auth::verifier(&issuer.base, jwt).audience(base).accept_audience("api").clock(time.clock())
    };
    let site = Site::new(|base| auth(base).build().unwrap()).await;
    let strict = Site::new(|base| auth(base).require_dpop().build().unwrap()).await;
    let signed = |more: Value| {
        let mut claims = json!({"iss": issuer.base, "aud": "api", "sub": "ada", "exp": time.seconds() + 9});
        claims.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        authority.sign("JWT", &claims)
    };
    let thumbprint = sha_256(&public_key(&client).to_string());
    let (free, bound) = (signed(json!({})), signed(json!({"cnf": {"jkt": thumbprint}})));

    let (by_client, by_thief) =
        (proof(&client, &site, &time, &bound, "1"), proof(&thief, &site, &time, &bound, "1"));
    let cases = [
        (&site, format!("Bearer {free}"), None, None),
        (&site, format!("DPoP {free}"), None, Some("the token is not bound to a key")),
        (&strict, format!("Bearer {free}"), None, Some("only tokens that are bound to a key are accepted")),
        (&site, format!("Bearer {bound}"), Some(&by_client), Some("send it with the scheme DPoP")),
        (&site, format!("DPoP {bound}"), None, Some("there is no proof")),
        (&site, format!("DPoP {bound}"), Some(&by_thief), Some("the proof is of another key")),
        (&site, format!("DPoP {bound}"), Some(&by_client), None),
    ];
    for (site, authorization, proof, refusal) in cases {
        let mut request = site.tool("whoami", None).header("authorization", &authorization);
        if let Some(proof) = proof {
            request = request.header("dpop", proof);
        }
        let response = request.send().await.unwrap();
        let challenge = header(&response, "www-authenticate");
        match refusal {
            None => assert_eq!(response.status(), 200, "{authorization}: {challenge}"),
            Some(reason) => {
                assert_eq!(response.status(), 401, "{authorization}");
                assert!(challenge.starts_with("DPoP ") && challenge.contains(reason), "{challenge}");
            }
        }
    }
}
