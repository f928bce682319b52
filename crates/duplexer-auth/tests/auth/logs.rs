//! The log of a whole flow at the most verbose level contains no secret.

use std::fmt::{Debug, Write};
use std::sync::{Arc, Mutex, PoisonError};

use duplexer_auth::{Jwt, RegisteredClient};
use serde_json::json;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

use crate::issuer::{Signer, issuer};
use crate::support::{REDIRECT, Site, Time, VERIFIER, handle, header, json_of, question, returned, value};

/// Records every log event.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<String>>);

impl Log {
    fn text(&self) -> String {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Visit for &Log {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        let mut text = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        write!(text, "{field}={value:?} ").unwrap();
    }
}

impl Subscriber for Log {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, span: &Attributes<'_>) -> Id {
        span.record(&mut &*self);
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, values: &Record<'_>) {
        values.record(&mut &*self);
    }

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        event.record(&mut &*self);
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

/// Registration, consent, tokens, renewal, reuse, calls with good and bad tokens, an assertion.
/// Other tests may log at the same time.
#[tokio::test]
async fn no_secret_reaches_the_log() {
    let log = Log::default();
    tracing::subscriber::set_global_default(log.clone()).unwrap();
    let (idp, published) = issuer(None).await;
    let signer = Signer::new("idp");
    published.publish(signer.jwk());
    let time = Time::new();
    let site = Site::with_authorization_server(&time, |builder| {
        builder.trust(Jwt::new(&idp.base).unwrap().clock(time.clock())).client(
            RegisteredClient::confidential("corp", "corporate-password", [REDIRECT]).identity_assertions(),
        )
    });
    let site = site.await;
    let metadata = json!({"redirect_uris": [REDIRECT]}).to_string();
    let register =
        site.http.post(site.url("/register")).header("content-type", "application/json").body(metadata);
    let client = json_of(register.send().await.unwrap()).await;
    let (id, secret) = (client["client_id"].as_str().unwrap(), client["client_secret"].as_str().unwrap());
    let page = site.authorize(&question(&[("client_id", id)])).await;
    let cookie = header(&page, "set-cookie").split(';').next().unwrap().to_owned();
    let handle = handle(&page.text().await.unwrap());
    let agree = site.post("/authorize/consent", &[("request", &handle), ("decision", "allow")]);
    let response = agree.header("cookie", &cookie).send().await.unwrap();
    let code = value(&returned(&response).1, "code").to_owned();
    let credentials = [("client_id", id), ("client_secret", secret)];
    let wrong = [("client_id", id), ("client_secret", "a-wrong-secret-of-a-client")];
    assert_eq!(site.redeem(&code, &wrong).await.status(), 401);
    let tokens = json_of(site.redeem(&code, &credentials).await).await;
    let (access, refresh) =
        (tokens["access_token"].as_str().unwrap(), tokens["refresh_token"].as_str().unwrap());
    assert!(site.whoami(access).await.is_some());
    assert!(site.whoami("an-unknown-token").await.is_none());
    let renew = async || {
        let pairs = [("grant_type", "refresh_token"), ("refresh_token", refresh), ("client_id", id)];
        site.form("/token", &[&pairs[..], &[("client_secret", secret)]].concat()).await
    };
    let renewed = json_of(renew().await).await;
    // Within ten seconds its client gets the same successor.
    assert_eq!(renew().await.status(), 200);
    assert_eq!(site.redeem(&code, &credentials).await.status(), 400);
    let assertion = signer.sign(
        "oauth-id-jag+jwt",
        &json!({
            "iss": idp.base, "sub": "grace", "aud": site.base, "client_id": "corp", "resource": site.url("/mcp"),
            "scope": "read", "jti": "1", "exp": time.seconds() + 60, "iat": time.seconds(),
        }),
    );
    let pairs = [
        ("grant_type", "urn:ietf:params:oauth:grant-type:jwt-bearer"),
        ("client_id", "corp"),
        ("client_secret", "corporate-password"),
        ("assertion", &assertion),
    ];
    let asserted = json_of(site.form("/token", &pairs).await).await;
    let log = log.text();
    assert!(
        log.contains("used twice") && log.contains("the token is unknown, expired or revoked"),
        "the log is not empty: {log}"
    );
    let cookie = cookie.split_once('=').unwrap().1;
    for hidden in [
        secret,
        &code,
        access,
        refresh,
        VERIFIER,
        &handle,
        cookie,
        renewed["access_token"].as_str().unwrap(),
        renewed["refresh_token"].as_str().unwrap(),
        asserted["access_token"].as_str().unwrap(),
        &assertion,
        "corporate-password",
        "an-unknown-token",
        "a-wrong-secret-of-a-client",
    ] {
        assert!(!log.contains(hidden), "{hidden} in the log");
    }
}
