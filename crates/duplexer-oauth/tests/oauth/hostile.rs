//! Servers and authorization servers that mean harm, or fail.

use axum::body::Body;
use axum::response::{IntoResponse, Response};
use duplexer_oauth::OAuthError;
use serde_json::json;

use crate::discovery::login;
use crate::mock::{Mock, Seen, answer, redirect};
use crate::site::{Person, connect};

async fn refused(
    rule: impl Fn(&Mock, &Seen) -> Option<Response> + Send + Sync + 'static,
) -> (OAuthError, Mock) {
    let mock = Mock::new(rule).await;
    let oauth = login(&Person::default()).build().unwrap();
    let error = connect(&mock.url(), &oauth).await.expect_err("a failure");
    // OAC-92: whatever the peer wrote, the text is short and has no control characters.
    let text = error.to_string();
    assert!(text.chars().count() < 700 && !text.chars().any(char::is_control), "{text:?}");
    (error, mock)
}

/// OAC-19: endpoints that reach a program of the machine, or send secrets without TLS.
#[tokio::test]
async fn dangerous_endpoints_are_refused_before_they_are_used() {
    for (member, url) in [
        ("authorization_endpoint", "javascript:alert(1)"),
        ("authorization_endpoint", "file:///etc/passwd"),
        ("authorization_endpoint", "http://a.example/authorize"),
        ("token_endpoint", "http://a.example/token"),
        ("token_endpoint", "ftp://a.example/token"),
        ("registration_endpoint", "http://10.0.0.1/register"),
        ("registration_endpoint", "https://user:pw@a.example/register"),
    ] {
        let (error, mock) = refused(move |mock, seen| {
            let mut metadata = mock.metadata();
            metadata[member] = url.into();
            seen.path.contains("authorization-server").then(|| answer(200, &metadata))
        })
        .await;
        assert!(matches!(error, OAuthError::InsecureEndpoint { .. }), "{url}: {error:?}");
        assert!(mock.seen("/register").is_empty() && mock.seen("/authorize").is_empty());
    }
}

/// OAC-91: documents beyond their limit are not read to their end, at each hop.
#[tokio::test]
async fn huge_answers_are_refused() {
    for (path, method) in [
        ("/.well-known/oauth-protected-resource/mcp", "GET"),
        ("/.well-known/oauth-authorization-server", "GET"),
        ("/register", "POST"),
        ("/token", "POST"),
    ] {
        let (error, _) = refused(move |_, seen| {
            let huge = || format!("{{\"x\":\"{}\"}}", "x".repeat(2 * 1024 * 1024)).into_response();
            seen.is(method, path).then(huge)
        })
        .await;
        assert!(matches!(error, OAuthError::Answer { .. }), "{path}: {error:?}");
    }
}

/// OAC-91: redirects of discovery stay on the origin and are few; POSTs are not redirected.
#[tokio::test]
async fn redirects_do_not_lead_elsewhere() {
    let (error, _) = refused(|_, seen| {
        seen.path.starts_with("/.well-known/oauth-protected").then(|| redirect("http://127.0.0.1:1/"))
    })
    .await;
    assert!(matches!(error, OAuthError::Answer { .. }), "{error:?}");
    let (error, _) = refused(|_, seen| {
        seen.path.starts_with("/.well-known/oauth-protected").then(|| redirect(&format!("{}x", seen.path)))
    })
    .await;
    assert!(matches!(error, OAuthError::Answer { .. }), "{error:?}");
    for path in ["/register", "/token"] {
        let (error, mock) = refused(move |_, seen| seen.is("POST", path).then(|| redirect("/stolen"))).await;
        assert!(
            matches!(error, OAuthError::RegistrationRefused { .. } | OAuthError::Answer { .. }),
            "{error:?}"
        );
        assert!(mock.seen("/stolen").is_empty());
    }
}

/// CAUTH-01, OAC-18, OAC-40, P-AUC-3, P-AUC-11: another issuer in metadata or redirect; nothing of such an answer is used.
#[tokio::test]
async fn a_foreign_issuer_is_refused() {
    let (error, mock) = refused(|mock, seen| {
        let mut metadata = mock.metadata();
        metadata["issuer"] = "https://attacker.example".into();
        seen.path.contains("authorization-server").then(|| answer(200, &metadata))
    })
    .await;
    assert!(matches!(error, OAuthError::IssuerMismatch { .. }), "{error:?}");
    assert!(mock.seen("/register").is_empty());
    let (error, mock) = refused(|_, seen| {
        let (to, state) = (seen.query.get("redirect_uri")?, seen.query.get("state")?);
        Some(redirect(&format!(
            "{to}?error=x&error_description=evil&state={state}&iss=https://attacker.example"
        )))
    })
    .await;
    assert!(
        matches!(&error, OAuthError::IssuerMismatch { .. }) && !error.to_string().contains("evil"),
        "{error:?}"
    );
    assert!(mock.seen("/token").is_empty());
}

/// OAC-43: answers of the token endpoint that are no tokens.
#[tokio::test]
async fn unusable_tokens_are_refused() {
    for token in [
        json!({"access_token": "", "token_type": "Bearer"}),
        json!({"access_token": "a b", "token_type": "Bearer"}),
        json!({"access_token": "a\r\nx-evil: 1", "token_type": "Bearer"}),
        json!({"access_token": "a", "token_type": "mac"}),
        json!({"access_token": "a", "token_type": "DPoP"}),
        json!({"token_type": "Bearer"}),
        json!([]),
    ] {
        let shown = token.to_string();
        let (error, _) = refused(move |_, seen| seen.is("POST", "/token").then(|| answer(200, &token))).await;
        assert!(matches!(error, OAuthError::Answer { .. }), "{shown}: {error:?}");
    }
}

/// OAC-92: the text of an authorization server is bounded and escaped.
#[tokio::test]
async fn the_words_of_a_peer_are_bounded() {
    let (error, _) = refused(|_, seen| {
        let error = json!({"error": "invalid_grant", "error_description": "\u{1b}[31m".repeat(5000)});
        seen.is("POST", "/token").then(|| answer(400, &error))
    })
    .await;
    let text = error.to_string();
    assert!(matches!(error, OAuthError::Authority { .. }));
    assert!(text.len() < 2000 && !text.contains('\u{1b}'), "{text}");
}

/// OAC-43: an error is one whatever its status.
#[tokio::test]
async fn an_error_with_the_status_of_a_success_is_an_error() {
    let (error, _) = refused(|_, seen| {
        let error = json!({"error": "bad_verification_code", "error_description": "the code is incorrect"});
        seen.is("POST", "/token").then(|| answer(200, &error))
    })
    .await;
    let is_refusal =
        matches!(&error, OAuthError::Authority { error, .. } if error == "bad_verification_code");
    assert!(is_refusal, "{error:?}");
}

/// OAC-26: an unusable registration is found before a browser opens.
#[tokio::test]
async fn an_unusable_registration_opens_no_browser() {
    for registered in [
        json!({"client_id": "a", "token_endpoint_auth_method": "client_secret_basic"}),
        json!({"client_id": "a", "token_endpoint_auth_method": "self_signed_tls_client_auth"}),
        json!({"client_id": ""}),
    ] {
        let (error, mock) =
            refused(move |_, seen| seen.is("POST", "/register").then(|| answer(201, &registered))).await;
        assert!(matches!(error, OAuthError::RegistrationRefused { .. }), "{error:?}");
        assert!(mock.seen("/authorize").is_empty());
    }
}

/// OAC-91: an answer that never ends is given up. The clock is advanced, not waited for.
#[tokio::test]
async fn a_slow_answer_is_given_up() {
    let never = || Body::new(Never).into_response();
    let mock = Mock::new(move |_, seen| seen.path.contains("oauth-protected").then(never)).await;
    let oauth = login(&Person::default()).build().unwrap();
    let url = mock.url();
    let mut waiting = Box::pin(connect(&url, &oauth));
    loop {
        tokio::select! {
            biased;
            opened = &mut waiting => {
                let error = opened.err().unwrap();
                assert!(matches!(error, OAuthError::Temporary { .. }), "{error:?}");
                return;
            }
            () = tokio::task::yield_now(), if mock.seen("/.well-known/oauth-protected-resource/mcp").is_empty() => {}
            () = std::future::ready(()), if !mock.seen("/.well-known/oauth-protected-resource/mcp").is_empty() => {
                tokio::time::pause();
                tokio::time::advance(std::time::Duration::from_secs(11)).await;
                tokio::time::resume();
            }
        }
    }
}

/// A body without an end.
struct Never;

impl http_body::Body for Never {
    type Data = axum::body::Bytes;
    type Error = std::io::Error;

    fn poll_frame(
        self: std::pin::Pin<&mut Self>,
        _: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Option<Result<http_body::Frame<Self::Data>, Self::Error>>> {
        std::task::Poll::Pending
    }
}
