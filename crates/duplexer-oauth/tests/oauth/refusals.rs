//! What follows from a refusal, and what does not.

use std::convert::Infallible;
use std::sync::Arc;

use axum::body::{Body, Bytes};
use axum::response::{IntoResponse, Response};
use duplexer_client::{Client, ErrorKind};
use duplexer_http_client::HttpTransport;
use duplexer_oauth::{ClientIdentity, OAuth, OAuthError, Secret, Status};
use http_body::Frame;
use serde_json::json;

use crate::discovery::login;
use crate::mock::{Mock, Seen, answer, challenge};
use crate::site::{Person, connect, tool};

/// A stream that stays open without an event.
struct Silent;

impl http_body::Body for Silent {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: std::pin::Pin<&mut Self>,
        _: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        std::task::Poll::Pending
    }
}

fn silent() -> Response {
    ([("content-type", "text/event-stream")], Body::new(Silent)).into_response()
}

fn is_call(seen: &Seen, name: &str) -> bool {
    seen.is("POST", "/mcp") && seen.json()["params"]["name"] == name
}

/// OAC-05, OAC-10: a refusal that no login changes is an error with its status and challenge, after one attempt; the probe is
/// not repeated as a handshake.
#[tokio::test]
async fn a_refusal_for_another_reason_is_given_out() {
    let refusal = r#"Bearer error="access_denied", error_description="not you""#;
    let mock = Mock::new(move |_, seen| {
        let has_token = !seen.header("authorization").is_empty();
        (seen.is("POST", "/mcp") && has_token).then(|| challenge(403, refusal))
    })
    .await;
    let person = Person::default();
    let oauth = login(&person).build().unwrap();
    let transport = HttpTransport::new(&mock.url()).unwrap().authorization(Arc::new(oauth));
    let error = Client::builder("t", "1").connect(transport).await.err().unwrap();
    assert_eq!(error.kind(), ErrorKind::Forbidden);
    assert_eq!(error.to_string(), "could not open the session: 403 Forbidden: access_denied");
    assert_eq!(error.refusal().unwrap().challenges, [refusal]);
    assert_eq!((person.times(), mock.seen("/mcp").len()), (1, 2));
    assert!(mock.seen("/mcp").iter().all(|seen| seen.json()["method"] == "server/discover"));
}

/// OAC-05: what the client tried is the cause of the failed connection, and of every error around it.
#[tokio::test]
async fn the_failure_of_a_login_is_found_from_the_outside() {
    let mock = Mock::new(|_, _| None).await;
    let oauth = login(&Person::default()).issuer("https://other.example").build().unwrap();
    let transport = HttpTransport::new(&mock.url()).unwrap().authorization(Arc::new(oauth));
    let error = Client::builder("t", "1").connect(transport).await.err().unwrap();
    assert_eq!(error.kind(), ErrorKind::Unauthorized);
    assert!(matches!(OAuthError::find(&error), Some(OAuthError::NoAuthority { .. })), "{error:?}");
}

/// OAC-07: neither a stream nor a request in flight keeps another one from its token.
#[tokio::test]
async fn a_request_in_flight_blocks_no_other() {
    let mock = Mock::new(|_, seen| is_call(seen, "endless").then(silent)).await;
    let oauth = login(&Person::default()).build().unwrap();
    let client = connect(&mock.url(), &oauth).await.unwrap();
    let endless = client.call_tool("endless", ()).into_future();
    tokio::select! {
        ended = endless => panic!("{ended:?}"),
        others = async {
            while !mock.log().iter().any(|seen| is_call(seen, "endless")) {
                tokio::task::yield_now().await;
            }
            (tool(&client, "x").await.unwrap(), tool(&client, "y").await.unwrap())
        } => assert_eq!(others, ("done".to_owned(), "done".to_owned())),
    }
}

/// OAC-10: a token that was replaced while the request was in flight is no reason for another refresh or login.
#[tokio::test]
async fn a_refused_token_that_was_replaced_meanwhile_is_only_exchanged() {
    let mock = Mock::new(|_, seen| {
        let is_outdated = seen.header("authorization") == "Bearer at-1";
        (is_outdated && seen.json()["method"] == "tools/call").then(|| challenge(401, "Bearer"))
    })
    .await;
    let person = Person::default();
    let oauth = login(&person).build().unwrap();
    let client = connect(&mock.url(), &oauth).await.unwrap();
    let calls = (0..8).map(|_| tool(&client, "x"));
    for result in futures(calls).await {
        assert_eq!(result.unwrap(), "done");
    }
    // One login, and one refresh for all calls.
    assert_eq!((person.times(), mock.seen("/token").len()), (1, 2));
}

/// Runs futures at once.
async fn futures<T>(all: impl Iterator<Item = impl Future<Output = T>>) -> Vec<T> {
    let mut all: Vec<_> = all.map(Box::pin).collect();
    let mut done: Vec<Option<T>> = all.iter().map(|_| None).collect();
    std::future::poll_fn(|cx| {
        for (future, done) in all.iter_mut().zip(&mut done).filter(|(_, done)| done.is_none()) {
            if let std::task::Poll::Ready(result) = future.as_mut().poll(cx) {
                *done = Some(result);
            }
        }
        if done.iter().all(Option::is_some) { std::task::Poll::Ready(()) } else { std::task::Poll::Pending }
    })
    .await;
    done.into_iter().flatten().collect()
}

/// OAC-32, OAC-51: a machine requests another token with all scopes; a refresh could not raise them.
#[tokio::test]
async fn a_machine_steps_up_by_another_token() {
    let insufficient = r#"Bearer error="insufficient_scope", scope="write""#;
    let mock = Mock::new(move |_, seen| {
        let is_first = seen.header("authorization") == "Bearer at-1";
        (is_first && is_call(seen, "write")).then(|| challenge(403, insufficient))
    })
    .await;
    let client = ClientIdentity::secret("service", Secret::new("s"));
    let oauth = OAuth::client_credentials(client).scopes(["read"]).build().unwrap();
    let client = connect(&mock.url(), &oauth).await.unwrap();
    assert_eq!(tool(&client, "write").await.unwrap(), "done");
    let asked: Vec<_> = mock.seen("/token").iter().map(Seen::form).collect();
    assert_eq!((asked[0]["scope"].as_str(), asked[1]["scope"].as_str()), ("read", "read write"));
    // The answers name no scopes, so those that were requested are granted.
    let Status::LoggedIn { scopes, .. } = oauth.status(&mock.url()).await.unwrap() else { panic!() };
    assert_eq!(scopes, ["read", "write"]);
    assert!(asked.iter().all(|form| form["grant_type"] == "client_credentials"));
}

/// OAC-29, P-AUC-9: `OAuth::login` knows the scopes of the server's challenge, like a login within a request.
#[tokio::test]
async fn a_login_in_advance_requests_the_scopes_of_the_challenge() {
    let scoped = r#"Bearer scope="mcp:read mcp:call""#;
    let mock = Mock::new(move |_, seen| {
        (seen.is("POST", "/mcp") && seen.header("authorization").is_empty()).then(|| challenge(401, scoped))
    })
    .await;
    let person = Person::default();
    let oauth = login(&person).build().unwrap();
    oauth.login(&mock.url()).await.unwrap();
    assert_eq!(mock.seen("/authorize")[0].query["scope"], "mcp:read mcp:call");
    assert_eq!(mock.seen("/mcp").len(), 1);
    // A valid token is kept.
    oauth.login(&mock.url()).await.unwrap();
    assert_eq!((person.times(), mock.seen("/mcp").len()), (1, 1));
    // The response of a server that requires no token is not read: it may be a stream without an end.
    let open = Mock::new(|_, seen| seen.is("POST", "/mcp").then(silent)).await;
    let oauth = login(&person).build().unwrap();
    oauth.login(&open.url()).await.unwrap();
    assert!(!open.seen("/authorize")[0].query.contains_key("scope"));
}

/// OAC-49: a registration that the authorization server has forgotten is not used for another login.
#[tokio::test]
async fn a_forgotten_registration_is_replaced_by_the_next_login() {
    let mock = Mock::new(|mock, seen| {
        let is_first = seen.is("POST", "/token") && mock.seen("/token").len() == 1;
        is_first.then(|| answer(401, &json!({"error": "invalid_client"})))
    })
    .await;
    let person = Person::default();
    let oauth = login(&person).build().unwrap();
    let refused = connect(&mock.url(), &oauth).await.err().unwrap();
    assert!(
        matches!(&refused, OAuthError::Authority { error, .. } if error == "invalid_client"),
        "{refused:?}"
    );
    assert!(connect(&mock.url(), &oauth).await.is_ok());
    assert_eq!((mock.seen("/register").len(), person.times()), (2, 2));
}

/// OAC-99: a login at a server that needs none says so, and does not ask for a client id.
#[tokio::test]
async fn a_login_at_an_open_server_says_that_it_needs_none() {
    let mock = Mock::new(|_, seen| match seen.path.as_str() {
        "/mcp" => Some(answer(400, &json!({}))),
        _ => Some(answer(404, &json!({}))),
    })
    .await;
    let person = Person::default();
    let oauth = login(&person).build().unwrap();
    let refused = oauth.login(&mock.url()).await.unwrap_err();
    assert!(refused.to_string().ends_with("it accepts requests without a login"), "{refused}");
    assert_eq!(person.times(), 0);
}
