//! Authorization of requests: credentials on all of them, refused ones sent again, and no secret in `Debug`.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use duplexer_client::{Client, ErrorKind, Negotiation};
use duplexer_core::dispatch::{BoxFuture, CallClock};
use duplexer_core::error::{BoxError, CallError};
use duplexer_core::transport::{Transport, TransportFailure};
use duplexer_http_client::{Authorization, HttpTransport, OutgoingRequest, ResponseHead, Verdict};
use http::Method;
use http::header::AUTHORIZATION;
use tokio::sync::Notify;

use crate::script::{Asked, NEWEST, Piped, Script, calling, options};

/// Numbers its tokens, and has refused requests sent again.
#[derive(Default)]
struct Tokens {
    issued: AtomicU32,
    clock: CallClock,
}

impl Authorization for Tokens {
    fn authorize<'a>(&'a self, request: &'a mut OutgoingRequest) -> BoxFuture<'a, Result<(), BoxError>> {
        Box::pin(async move {
            let number = self.issued.fetch_add(1, Ordering::SeqCst) + 1;
            let attempt = request.attempt();
            request.headers_mut().insert(AUTHORIZATION, format!("Bearer {number}").parse()?);
            request.headers_mut().insert("x-attempt", attempt.to_string().parse()?);
            Ok(())
        })
    }

    fn on_response<'a>(
        &'a self,
        request: &'a OutgoingRequest,
        response: ResponseHead<'a>,
    ) -> BoxFuture<'a, Result<Verdict, BoxError>> {
        Box::pin(async move {
            assert!(request.headers().contains_key(AUTHORIZATION));
            assert!(response.peer.is_some_and(|peer| peer.ip().is_loopback()));
            match response.status.as_u16() {
                401 => {
                    assert_eq!(response.challenges().collect::<Vec<_>>(), ["Basic", "Bearer"]);
                    Ok(Verdict::SendAgain)
                }
                403 => Err("the login failed".into()),
                _ => Ok(Verdict::Accept),
            }
        })
    }

    fn clock(&self) -> Option<CallClock> {
        Some(self.clock.clone())
    }
}

fn refuse(asked: Asked) {
    let challenges = [("www-authenticate", "Basic"), ("www-authenticate", "Bearer")];
    asked.reply(401, &challenges, Piped::whole(""));
}

async fn session(script: &mut Script, tokens: &Arc<Tokens>) -> Client {
    let transport =
        HttpTransport::builder(&script.url).authorization(Arc::clone(tokens) as _).build().unwrap();
    assert!(transport.clock().is_some());
    let opening = options().negotiation(Negotiation::Handshake).connect(transport);
    let (client, ()) = tokio::join!(opening, async {
        for method in ["initialize", "notifications/initialized"] {
            let first = script.posted(method).await;
            let body = first.body.clone();
            refuse(first);
            let again = script.posted(method).await;
            assert_eq!((&again.body, again.header("x-attempt")), (&body, Some("2")));
            if method == "initialize" { again.open(NEWEST, Some("s-1")) } else { again.status(202) }
        }
        refuse(script.plain(Method::GET).await);
        let again = script.plain(Method::GET).await;
        assert_eq!((again.belongs_to(), again.header("x-attempt")), ((Some("s-1"), Some(NEWEST)), Some("2")));
        again.status(405);
    });
    client.unwrap()
}

/// D-9, F-12: POST of requests and notifications, GET and DELETE all pass through the authorization, which sees all challenges
/// and can have each request sent again.
#[tokio::test]
async fn every_request_passes_through_the_authorization() {
    let tokens = Arc::new(Tokens::default());
    let mut script = Script::start().await;
    let client = session(&mut script, &tokens).await;
    let (result, ()) = calling(&client, &mut script, async |script, asked| {
        assert_eq!(asked.header("authorization"), Some("Bearer 7"));
        refuse(asked);
        let again = script.posted("tools/call").await;
        assert_eq!(again.header("authorization"), Some("Bearer 8"));
        again.say("in");
    })
    .await;
    assert_eq!(result.as_deref(), Ok("in"));
    let (closed, ()) = tokio::join!(client.close(), async {
        refuse(script.plain(Method::DELETE).await);
        let again = script.plain(Method::DELETE).await;
        assert_eq!(again.header("authorization"), Some("Bearer 10"));
        again.status(200);
    });
    closed.unwrap();
}

/// An authorization cannot loop: a request is sent six times at most. Its own error reaches the caller with its type.
#[tokio::test]
async fn a_request_is_sent_six_times_at_most() {
    let tokens = Arc::new(Tokens::default());
    let mut script = Script::start().await;
    let client = session(&mut script, &tokens).await;
    let (result, ()) = calling(&client, &mut script, async |script, asked| {
        refuse(asked);
        for _ in 0..5 {
            refuse(script.posted("tools/call").await);
        }
    })
    .await;
    assert_eq!(result, Err((ErrorKind::Unauthorized, "401 Unauthorized".to_owned())));
    assert!(script.unexpected().is_none());
    let call = client.call_tool("x", ()).into_future();
    let (result, ()) = tokio::join!(call, async { script.posted("tools/call").await.status(403) });
    let error = result.unwrap_err();
    assert_eq!((error.kind(), error.to_string()), (ErrorKind::Unauthorized, "the login failed".to_owned()));
    let duplexer_client::ClientError::Call(CallError::Transport(TransportFailure::Authorization(_))) = error
    else {
        panic!("{error:?}")
    };
}

/// Waits for a person when a request is refused.
#[derive(Default)]
struct Waiting {
    asked: Notify,
    decided: Notify,
}

impl Authorization for Waiting {
    fn authorize<'a>(&'a self, _: &'a mut OutgoingRequest) -> BoxFuture<'a, Result<(), BoxError>> {
        Box::pin(std::future::ready(Ok(())))
    }

    fn on_response<'a>(
        &'a self,
        _: &'a OutgoingRequest,
        response: ResponseHead<'a>,
    ) -> BoxFuture<'a, Result<Verdict, BoxError>> {
        Box::pin(async move {
            if response.status != 401 {
                return Ok(Verdict::Accept);
            }
            self.asked.notify_one();
            self.decided.notified().await;
            Ok(Verdict::SendAgain)
        })
    }
}

/// The connection of a refused request is free while a person logs in: it is used by others, and closed in time. One that
/// counted as busy would be used for the next attempt, although the server has closed it meanwhile.
#[tokio::test]
async fn a_login_does_not_hold_a_connection() {
    let (mut script, waiting) = (Script::start().await, Arc::new(Waiting::default()));
    let transport = HttpTransport::new(&script.url).unwrap().authorization(Arc::clone(&waiting) as _);
    let opening = options().negotiation(Negotiation::Handshake).connect(transport);
    let (client, ()) = tokio::join!(opening, async {
        script.shake_hands(NEWEST).await.status(405);
    });
    let client = client.unwrap();
    let (result, ()) = calling(&client, &mut script, async |script, asked| {
        let connection = asked.connection;
        asked.reply(401, &[("content-type", "text/plain")], Piped::whole("log in"));
        waiting.asked.notified().await;
        // The HTTP library takes the connection back in a task of its own.
        for _ in 0..100 {
            tokio::task::yield_now().await;
        }
        let (other, ()) = calling(&client, script, async |_, asked| {
            assert_eq!(asked.connection, connection);
            asked.say("other");
        })
        .await;
        assert_eq!(other.as_deref(), Ok("other"));
        waiting.decided.notify_one();
        script.posted("tools/call").await.say("in");
    })
    .await;
    assert_eq!(result.as_deref(), Ok("in"));
}

/// CHTTP-04: credentials follow a redirect on the same server only.
#[tokio::test]
async fn credentials_do_not_follow_a_redirect_to_another_server() {
    let mut other = Script::start().await;
    let tokens = Arc::new(Tokens::default());
    let mut script = Script::start().await;
    let client = session(&mut script, &tokens).await;
    let elsewhere = other.url.clone();
    let (result, ()) = calling(&client, &mut script, async |script, asked| {
        asked.reply(307, &[("location", "/moved")], Piped::whole(""));
        let moved = script.next().await;
        assert_eq!((&*moved.path, moved.header("authorization")), ("/moved", Some("Bearer 8")));
        moved.reply(307, &[("location", &elsewhere)], Piped::whole(""));
    })
    .await;
    assert_eq!(result, Err((ErrorKind::Http, "307 Temporary Redirect".to_owned())));
    assert!(other.unexpected().is_none());
}

/// D-8: neither a token, nor a header, nor what a URL hides is shown.
#[tokio::test]
async fn debug_shows_no_secret() {
    let url = "https://user:hidden@mcp.example.com/mcp?key=hidden#hidden";
    let builder = HttpTransport::builder(url).header("x-api-key", "hidden").bearer("hidden");
    assert!(!format!("{builder:?}").contains("hidden"));
    let transport = builder.build().unwrap();
    let shown = format!("{transport:?}");
    assert!(!shown.contains("hidden") && shown.contains("mcp.example.com/mcp"), "{shown}");
    let transport = HttpTransport::new("http://localhost/").unwrap().bearer("hidden").unwrap();
    assert!(!format!("{transport:?}").contains("hidden"));
    assert!(HttpTransport::new("http://localhost/").unwrap().bearer("a\nb").is_err());

    let mut script = Script::start().await;
    let transport = HttpTransport::new(&script.url).unwrap().bearer("hidden").unwrap();
    let (client, ()) = tokio::join!(options().connect(transport), async {
        let asked = script.posted("server/discover").await;
        assert_eq!(asked.header("authorization"), Some("Bearer hidden"));
        asked.status(401);
    });
    let error = client.unwrap_err();
    assert!(!format!("{error:?}{error}").contains("hidden"));
}
