//! Accepted and rejected bearer tokens.

use std::time::Duration;

use duplexer_auth::{Auth, StaticToken};
use serde_json::json;

use crate::support::{Site, Time, header, json_of, refusal};

async fn site(time: &Time) -> Site {
    let end = time.now() + Duration::from_secs(100);
    Site::new(|base| {
        let here = format!("{base}/mcp");
        let tokens = [
            StaticToken::new("good")
                .client_id("ada")
                .audience(&here)
                .scopes(["read", "write"])
                .expires_at(end),
            StaticToken::new("slash").client_id("ada").audience(format!("{here}/")).scopes(["read"]),
            StaticToken::new("weak").client_id("bob").audience(&here).scopes(["other"]),
            StaticToken::new("broad").client_id("eve").audience(&here).scopes(["all"]),
            StaticToken::new("foreign")
                .client_id("ada")
                .audience("https://other.example/mcp")
                .scopes(["read"]),
        ];
        let auth = Auth::static_tokens(tokens)
            .audience(here)
            .require_scopes(["read"])
            .scope_implies("all", ["read", "write"]);
        auth.scope_implies("write", ["all"]).clock(time.clock()).build().unwrap()
    })
    .await
}

/// AUTH-01, AUTH-02, AUTH-03, P-AUS-2, P-AUS-4, P-AUS-5, P-AUS-6, P-AUS-10, P-AUS-11: no token, a wrong one,
/// an expired one, one for another server, one in the query: 401 that says which. RFC 6750, section 3.1: without a token
/// the challenge has no error. Listed tokens have no issuer, so the challenge names no metadata.
#[tokio::test]
async fn a_request_without_a_token_for_this_server_gets_a_challenge() {
    let time = Time::new();
    let site = site(&time).await;
    assert!(site.whoami("good").await.is_some() && site.whoami("slash").await.is_some());
    time.pass(100);
    let in_query = site.url("/mcp?access_token=slash");
    let requests = [
        (site.tool("whoami", None), ""),
        (site.tool("whoami", Some("unknown")), "the token is unknown, expired or revoked"),
        (site.tool("whoami", Some("good")), "the token has expired"),
        (site.tool("whoami", Some("foreign")), "the token is for another audience"),
        (site.tool("whoami", Some("two words")), "the Authorization header holds no bearer token"),
        (site.tool("whoami", None).header("authorization", "Basic Z29vZDpnb29k"), ""),
        (site.http.post(in_query).header("content-type", "application/json").body("{}"), ""),
        (site.http.get(site.url("/mcp")), ""),
        (site.http.delete(site.url("/mcp")), ""),
        (site.http.get(site.url("/anything/else")), ""),
    ];
    for (request, cause) in requests {
        let response = request.send().await.unwrap();
        let challenge = header(&response, "www-authenticate");
        if cause.is_empty() {
            assert_eq!(challenge, "Bearer scope=\"read\"");
        } else {
            let given = format!("error=\"invalid_token\", error_description=\"{cause}\"");
            assert_eq!(challenge, format!("Bearer {given}, scope=\"read\""));
        }
        assert_eq!(header(&response, "cache-control"), "no-store");
        assert_eq!(header(&response, "access-control-allow-origin"), "*");
        let (status, error, text) = refusal(response).await;
        let expected = if cause.is_empty() { "unauthorized" } else { "invalid_token" };
        assert_eq!((status, &*error), (401, expected));
        assert!(text.ends_with(cause) && !text.is_empty(), "{text}");
    }
}

/// AUTH-04, P-AUS-6: a token without a required scope gets 403 with all required scopes.
#[tokio::test]
async fn a_token_without_the_required_scope_is_not_enough() {
    let site = site(&Time::new()).await;
    let response = site.tool("whoami", Some("weak")).send().await.unwrap();
    let challenge = header(&response, "www-authenticate").to_owned();
    assert_eq!(
        challenge,
        "Bearer error=\"insufficient_scope\", error_description=\"Required scope: read\", scope=\"read\""
    );
    assert_eq!(refusal(response).await, (403, "insufficient_scope".into(), "Required scope: read".into()));
}

/// P-AUS-8: a scope includes the scopes that it implies, also in a cycle.
#[tokio::test]
async fn a_broad_scope_contains_the_narrow_ones() {
    let site = site(&Time::new()).await;
    let who = site.whoami("broad").await.unwrap();
    assert_eq!(who["scopes"], json!(["all", "read", "write"]));
}

/// AUTH-05, AUTH-09, P-AUS-9: handlers see who calls, request by request, and not the token.
#[tokio::test]
async fn handlers_see_who_calls_and_not_the_token() {
    let site = site(&Time::new()).await;
    for (token, subject) in [("good", "ada"), ("broad", "eve"), ("good", "ada")] {
        let who = site.whoami(token).await.unwrap();
        assert_eq!((&who["client"], &who["subject"]), (&json!(subject), &json!(subject)));
        assert_eq!(who["authorization"], json!([]));
    }
    assert_eq!(site.whoami("good").await.unwrap()["expires"], true);
}

/// With two headers it is undefined which one applies: the request is rejected.
#[tokio::test]
async fn two_authorization_headers_are_a_malformed_request() {
    let site = site(&Time::new()).await;
    let request = site.tool("whoami", Some("good")).header("authorization", "Bearer weak");
    let response = request.send().await.unwrap();
    assert!(header(&response, "www-authenticate").contains("error=\"invalid_request\""));
    assert_eq!(refusal(response).await.0, 400);
}

/// AUTH-06, P-AUS-1, P-AUS-3, P-AUS-12, P-AUS-17: the metadata, at the path of the server and at the root, without a token.
#[tokio::test]
async fn the_metadata_says_what_is_protected_and_by_whom() {
    let site = Site::new(|base| {
        Auth::jwt("https://issuer.example")
            .audience(format!("{base}/mcp"))
            .require_scopes(["read"])
            .build()
            .unwrap()
    })
    .await;
    for path in ["/.well-known/oauth-protected-resource/mcp", "/.well-known/oauth-protected-resource"] {
        // The `Host` header does not matter: the content comes from the settings.
        let request = site.http.get(site.url(path)).header("host", "evil.example");
        let response = request.send().await.unwrap();
        assert_eq!(response.status(), 200);
        assert_eq!(header(&response, "cache-control"), "public, max-age=3600");
        assert_eq!(header(&response, "access-control-allow-origin"), "*");
        assert_eq!(
            json_of(response).await,
            json!({
                "resource": format!("{}/mcp", site.base),
                "authorization_servers": ["https://issuer.example"],
                "scopes_supported": ["read"],
                "bearer_methods_supported": ["header"],
                "dpop_signing_alg_values_supported": ["ES256", "ES384", "EdDSA", "RS256", "PS256"],
                "dpop_bound_access_tokens_required": false,
            })
        );
        let asked = site.http.request(reqwest::Method::OPTIONS, site.url(path)).send().await.unwrap();
        assert_eq!(asked.status(), 204);
        assert!(header(&asked, "access-control-allow-headers").contains("mcp-protocol-version"));
        assert_eq!(site.form(path, &[]).await.status(), 405);
    }
    let challenge = site.tool("x", None).header("host", "evil.example").send().await.unwrap();
    assert!(header(&challenge, "www-authenticate").contains(&site.base));
}

/// AUTH-07: URLs are kept verbatim, and `build` reports invalid settings.
#[tokio::test]
async fn settings_are_checked_when_they_are_built() {
    let wrong = |auth: duplexer_auth::AuthBuilder| auth.build().unwrap_err().to_string();
    assert!(
        wrong(Auth::jwt("http://issuer.example").audience("https://x.example")).contains("must be https")
    );
    assert!(wrong(Auth::jwt("https://i.example").audience("x.example")).contains("not a URL"));
    assert!(wrong(Auth::jwt("https://i.example").audience("https://x.example#a")).contains("fragment"));
    let scoped = |scope: &str| Auth::static_tokens([]).audience("https://x.example").require_scopes([scope]);
    assert!(wrong(scoped("a b")).contains("'a b' is not a scope"));
    assert!(wrong(scoped("offline_access")).contains("no server requires it"));
    assert!(Auth::static_tokens([]).audience("https://x.example").build().is_ok());
    assert!(wrong(Auth::jwt("https://i.example")).contains("add `.audience(url)`"));
    let listed = |token: StaticToken| Auth::static_tokens([token]).audience("https://x.example");
    assert!(wrong(listed(StaticToken::new("t").client_id("ada"))).contains("no audience"));
    assert!(wrong(listed(StaticToken::new("t").audience("https://x.example"))).contains("no client_id"));
    let nameless = StaticToken::new("t").client_id("").audience("https://x.example");
    assert!(wrong(listed(nameless)).contains("no client_id"));
    let site = Site::new(|base| Auth::jwt(base).audience(base).build().unwrap()).await;
    let metadata = json_of(site.get("/.well-known/oauth-protected-resource").await).await;
    assert_eq!(metadata["resource"], *site.base);
    assert_eq!(metadata["authorization_servers"], json!([site.base]));
}

/// A failure of the verifier is not an invalid token: the client does not have to sign in again.
#[tokio::test]
async fn a_token_that_cannot_be_verified_gets_a_503() {
    async fn broken(_: String) -> Result<Option<duplexer_auth::AccessToken>, &'static str> {
        Err("the password is wrong")
    }
    let site =
        Site::new(|base| Auth::verifier("https://i.example", broken).audience(base).build().unwrap()).await;
    let (status, error, text) = refusal(site.tool("x", Some("t")).send().await.unwrap()).await;
    assert_eq!((status, &*error), (503, "temporarily_unavailable"));
    assert!(!text.contains("password"));
}

/// A principal without a name is refused, whatever verifier returns it: it would be the same for all tokens.
#[tokio::test]
async fn a_principal_without_client_and_subject_is_refused() {
    use duplexer_auth::{AccessToken, TokenVerifier};
    use duplexer_core::dispatch::BoxFuture;
    use duplexer_core::error::BoxError;

    struct Named(String);
    impl TokenVerifier for Named {
        fn verify<'a>(&'a self, token: &'a str) -> BoxFuture<'a, Result<Option<AccessToken>, BoxError>> {
            let principal = duplexer_server::Principal::new(token.trim_matches('-'));
            Box::pin(async { Ok(Some(AccessToken::new(principal, vec![self.0.clone()]))) })
        }
    }
    let site = Site::new(|base| {
        Auth::verifier("https://i.example", Named(base.into())).audience(base).build().unwrap()
    });
    let site = site.await;
    assert_eq!(site.whoami("app").await.unwrap()["client"], "app");
    assert_eq!(site.whoami("---").await, None);
}

/// A verifier is an async function or closure; the challenge names the metadata of its issuer.
#[tokio::test]
async fn an_async_closure_verifies_tokens() {
    use duplexer_auth::AccessToken;
    use duplexer_core::error::BoxError;

    let site = Site::new(|base| {
        let audience = base.to_owned();
        let verify = move |token: String| {
            let audience = audience.clone();
            async move {
                let who = token.strip_prefix("token-of-").map(duplexer_server::Principal::new);
                Ok::<_, BoxError>(who.map(|who| AccessToken::new(who, vec![audience])))
            }
        };
        Auth::verifier("https://i.example", verify).audience(base).build().unwrap()
    })
    .await;
    assert_eq!(site.whoami("token-of-ada").await.unwrap()["client"], "ada");
    let response = site.tool("whoami", None).send().await.unwrap();
    let expected = format!("Bearer resource_metadata=\"{}/.well-known/oauth-protected-resource\"", site.base);
    assert_eq!(header(&response, "www-authenticate"), expected);
}

#[tokio::test]
async fn a_listed_token_can_have_a_user_and_an_issuer() {
    let site = Site::new(|base| {
        let token = StaticToken::new("t").client_id("app").audience(base);
        let token = token.subject("ada").issuer("https://people.example");
        Auth::static_tokens([token]).audience(base).build().unwrap()
    })
    .await;
    let who = site.whoami("t").await.unwrap();
    assert_eq!(who["client"], "app");
    assert_eq!((&who["subject"], &who["issuer"]), (&json!("ada"), &json!("https://people.example")));
}
