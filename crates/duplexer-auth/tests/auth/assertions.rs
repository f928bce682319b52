//! Identity assertions of an enterprise issuer, in place of the consent page.

use duplexer_auth::{Jwt, RegisteredClient};
use serde_json::{Value, json};

use crate::issuer::{Signer, issuer};
use crate::support::{REDIRECT, Site, Time, json_of, refusal};

const GRANT: &str = "urn:ietf:params:oauth:grant-type:jwt-bearer";

struct Stage {
    site: Site,
    issuer: Site,
    signer: Signer,
    time: Time,
}

async fn stage() -> Stage {
    let (issuer, published) = issuer(None).await;
    let signer = Signer::new("idp");
    published.publish(signer.jwk());
    let time = Time::new();
    let site = Site::with_authorization_server(&time, |builder| {
        builder
            .trust(Jwt::new(&issuer.base).unwrap().clock(time.clock()))
            .client(RegisteredClient::confidential("corp", "pw", [REDIRECT]).identity_assertions())
            .client(RegisteredClient::public("loose", [REDIRECT]).identity_assertions())
    });
    Stage { site: site.await, issuer, signer, time }
}

impl Stage {
    fn claims(&self) -> Value {
        json!({
            "iss": self.issuer.base, "sub": "grace", "aud": self.site.base, "client_id": "corp",
            "resource": self.site.url("/mcp"), "scope": "read", "jti": "1",
            "exp": self.time.seconds() + 60, "iat": self.time.seconds(),
        })
    }

    async fn send(&self, assertion: &str, more: &[(&str, &str)]) -> reqwest::Response {
        let mut pairs = vec![
            ("grant_type", GRANT),
            ("client_id", "corp"),
            ("client_secret", "pw"),
            ("assertion", assertion),
        ];
        pairs.extend(more);
        self.site.form("/token", &pairs).await
    }
}

/// AS-02, AS-09: an assertion becomes an access token, once, and no refresh token.
#[tokio::test]
async fn an_assertion_becomes_an_access_token() {
    let stage = stage().await;
    let metadata = json_of(stage.site.get("/.well-known/oauth-authorization-server").await).await;
    assert_eq!(
        metadata["grant_types_supported"],
        json!(["authorization_code", "refresh_token", "client_credentials", GRANT])
    );
    assert_eq!(
        metadata["authorization_grant_profiles_supported"],
        json!(["urn:ietf:params:oauth:grant-profile:id-jag"])
    );
    let assertion = stage.signer.sign("oauth-id-jag+jwt", &stage.claims());
    let tokens = json_of(stage.send(&assertion, &[]).await).await;
    assert_eq!(tokens.get("refresh_token"), None);
    let who = stage.site.whoami(tokens["access_token"].as_str().unwrap()).await.unwrap();
    assert_eq!(
        (&who["subject"], &who["client"], &who["scopes"]),
        (&json!("grace"), &json!("corp"), &json!(["read"]))
    );
    let again = refusal(stage.send(&assertion, &[]).await).await;
    assert_eq!(again, (400, "invalid_grant".into(), "the assertion has been used".into()));
}

/// AS-09: type, audience, client, server, scopes and time are all checked.
#[tokio::test]
async fn an_assertion_is_for_one_client_at_one_server() {
    let stage = stage().await;
    for (name, value, error) in [
        ("aud", json!("https://other.example"), "invalid_grant"),
        ("aud", json!([stage.site.base]), "invalid_grant"),
        ("client_id", json!("web"), "invalid_grant"),
        ("client_id", Value::Null, "invalid_grant"),
        ("sub", Value::Null, "invalid_grant"),
        ("jti", Value::Null, "invalid_grant"),
        ("iat", Value::Null, "invalid_grant"),
        ("exp", json!(stage.time.seconds() - 60), "invalid_grant"),
        ("iss", json!("https://other.example"), "invalid_grant"),
        ("resource", json!("https://other.example/mcp"), "invalid_target"),
        ("scope", json!("admin"), "invalid_scope"),
    ] {
        let mut claims = stage.claims();
        claims[name] = value.clone();
        let assertion = stage.signer.sign("oauth-id-jag+jwt", &claims);
        assert_eq!(refusal(stage.send(&assertion, &[]).await).await.1, error, "{name}: {value}");
    }
    let plain = stage.signer.sign("JWT", &stage.claims());
    assert_eq!(refusal(stage.send(&plain, &[]).await).await.1, "invalid_grant");
    let forged = Signer::new("idp").sign("oauth-id-jag+jwt", &stage.claims());
    assert_eq!(refusal(stage.send(&forged, &[]).await).await.1, "invalid_grant");
    let good = stage.signer.sign("oauth-id-jag+jwt", &stage.claims());
    let wider = stage.send(&good, &[("scope", "read write")]).await;
    assert_eq!(refusal(wider).await.1, "invalid_scope");
    assert_eq!(stage.send(&good, &[]).await.status(), 200, "none of that has used it up");
}

/// AS-09: not for public clients, not for clients without the permission, and not where it is disabled.
#[tokio::test]
async fn assertions_require_a_permitted_client() {
    let stage = stage().await;
    let assertion = stage.signer.sign("oauth-id-jag+jwt", &stage.claims());
    let send = async |site: &Site, client: &str| {
        let pairs = [("grant_type", GRANT), ("client_id", client), ("assertion", &assertion)];
        refusal(site.form("/token", &pairs).await).await.1
    };
    assert_eq!(send(&stage.site, "loose").await, "unauthorized_client");
    assert_eq!(send(&stage.site, "app").await, "unsupported_grant_type");
    let off = Site::with_authorization_server(&stage.time, |builder| {
        builder.client(RegisteredClient::public("loose", [REDIRECT]).identity_assertions())
    });
    assert_eq!(send(&off.await, "loose").await, "unsupported_grant_type");
}

/// AS-09: the default backend accepts no assertions.
#[tokio::test]
async fn a_backend_rejects_assertions_by_default() {
    use bytes::Bytes;
    use duplexer_auth::{Auth, AuthBackend, AuthorizationServer, MemoryStore, Store, User};
    use duplexer_core::dispatch::BoxFuture;

    struct Silent(MemoryStore);
    impl AuthBackend for Silent {
        fn store(&self) -> &dyn Store {
            &self.0
        }
        fn user<'a>(
            &'a self,
            _: &'a http::request::Parts,
        ) -> BoxFuture<'a, Result<User, http::Response<Bytes>>> {
            Box::pin(async { Ok(User::new("ada")) })
        }
    }
    let mut stage = stage().await;
    stage.site = Site::new(|base| {
        let authorization_server = AuthorizationServer::builder(base, Silent(MemoryStore::new()))
            .resource(format!("{base}/mcp"))
            .scopes(["read"])
            .trust(Jwt::new(&stage.issuer.base).unwrap().clock(stage.time.clock()))
            .client(RegisteredClient::confidential("corp", "pw", [REDIRECT]).identity_assertions())
            .build()
            .unwrap();
        Auth::authorization_server(authorization_server).audience(format!("{base}/mcp")).build().unwrap()
    })
    .await;
    let assertion = stage.signer.sign("oauth-id-jag+jwt", &stage.claims());
    assert_eq!(refusal(stage.send(&assertion, &[]).await).await.1, "unauthorized_client");
}
