//! Token revocation.

use crate::support::{Site, Time, header, json_of, refusal};

/// AS-11: either token revokes the grant, with and without a hint; unknown and foreign tokens are not revealed.
#[tokio::test]
async fn a_revoked_token_is_invalid() {
    let time = Time::new();
    let site = Site::with_authorization_server(&time, |builder| {
        builder.client(duplexer_auth::RegisteredClient::public("other", [crate::support::REDIRECT]))
    });
    let site = site.await;
    for (kind, hint) in [
        ("access_token", None),
        ("access_token", Some("refresh_token")),
        ("refresh_token", None),
        ("refresh_token", Some("refresh_token")),
        ("refresh_token", Some("nonsense")),
    ] {
        let tokens = site.tokens().await;
        let access = tokens["access_token"].as_str().unwrap();
        let given = tokens[kind].as_str().unwrap();
        let foreign = site.form("/revoke", &[("client_id", "other"), ("token", given)]).await;
        assert_eq!(foreign.status(), 200);
        assert!(site.whoami(access).await.is_some(), "it is not the other's to give back");
        let mut pairs = vec![("client_id", "app"), ("token", given)];
        pairs.extend(hint.map(|hint| ("token_type_hint", hint)));
        let response = site.form("/revoke", &pairs).await;
        assert_eq!((response.status().as_u16(), header(&response, "cache-control")), (200, "no-store"));
        assert_eq!(site.whoami(access).await, None, "{kind} {hint:?}");
        assert_eq!(site.refresh(tokens["refresh_token"].as_str().unwrap(), &[]).await.status(), 400);
    }
    let unknown = site.form("/revoke", &[("client_id", "app"), ("token", "x")]).await;
    assert_eq!((unknown.status().as_u16(), json_of(unknown).await), (200, serde_json::json!({})));
}

/// AS-05, AS-11: a client that fails to authenticate gets the error code of this endpoint.
#[tokio::test]
async fn only_authenticated_clients_revoke_tokens() {
    let site = Site::with_authorization_server(&Time::new(), |builder| builder).await;
    let wrong = site.form("/revoke", &[("client_id", "web"), ("client_secret", "x"), ("token", "x")]).await;
    let (status, error, _) = refusal(wrong).await;
    assert_eq!((status, &*error), (401, "unauthorized_client"));
    let none = refusal(site.form("/revoke", &[("client_id", "app")]).await).await;
    assert_eq!((none.0, &*none.1), (400, "invalid_request"));
}
