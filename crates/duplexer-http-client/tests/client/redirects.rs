//! Redirects over a socket. The unit test of `redirected` lists which ones are followed.

use duplexer_client::ErrorKind;
use http::Method;

use crate::script::{NEWEST, Piped, Script, calling, options};

/// CHTTP-04: every kind of request, with all its headers.
#[tokio::test]
async fn a_redirect_on_the_same_server_keeps_method_body_and_session() {
    let mut script = Script::start().await;
    let moved = |status: u16| {
        move |asked: crate::script::Asked| {
            assert_eq!(asked.path, "/mcp");
            asked.reply(status, &[("location", "/mcp/")], Piped::whole(""));
        }
    };
    let (client, stream) = script.session_in(options(), NEWEST).await;
    moved(307)(stream);
    let again = script.plain(Method::GET).await;
    assert_eq!((&*again.path, again.belongs_to()), ("/mcp/", (Some("s-1"), Some(NEWEST))));
    again.status(405);
    let (result, ()) = calling(&client, &mut script, async |script, asked| {
        let body = asked.body.clone();
        moved(308)(asked);
        let again = script.next().await;
        assert_eq!((&again.method, &*again.path, &again.body), (&Method::POST, "/mcp/", &body));
        assert_eq!((again.belongs_to(), again.header("x-own")), ((Some("s-1"), Some(NEWEST)), Some("1")));
        again.say("here");
    })
    .await;
    assert_eq!(result.as_deref(), Ok("here"));
    let (closed, ()) = tokio::join!(client.close(), async {
        moved(307)(script.plain(Method::DELETE).await);
        let again = script.plain(Method::DELETE).await;
        assert_eq!(again.path, "/mcp/");
        again.status(200);
    });
    closed.unwrap();
}

/// CHTTP-04: another server must not see the request, and a changed method would change its meaning.
#[tokio::test]
async fn other_redirects_are_refusals() {
    let mut other = Script::start().await;
    let mut script = Script::start().await;
    let client = script.session(options()).await;
    let elsewhere = other.url.clone();
    for (status, location) in
        [(307, &*elsewhere), (308, &*elsewhere), (301, "/mcp/"), (302, "/mcp/"), (303, "/mcp/")]
    {
        let (result, ()) = calling(&client, &mut script, async |_, asked| {
            asked.reply(status, &[("location", location)], Piped::whole(""));
        })
        .await;
        let (kind, text) = result.unwrap_err();
        assert_eq!(kind, ErrorKind::Http);
        assert!(text.starts_with(&status.to_string()), "{text}");
    }
    assert!(other.unexpected().is_none());
    assert!(script.unexpected().is_none());
}

/// CHTTP-04: the number of redirects is limited.
#[tokio::test]
async fn redirects_have_an_end() {
    let mut script = Script::start().await;
    let client = script.session(options()).await;
    let (result, ()) = calling(&client, &mut script, async |script, asked| {
        asked.reply(307, &[("location", "/round")], Piped::whole(""));
        for _ in 0..5 {
            script.next().await.reply(307, &[("location", "/round")], Piped::whole(""));
        }
    })
    .await;
    assert_eq!(result, Err((ErrorKind::Http, "307 Temporary Redirect".to_owned())));
    let (result, ()) = calling(&client, &mut script, async |_, asked| {
        asked.say("still here");
    })
    .await;
    assert_eq!(result.as_deref(), Ok("still here"));
}
