//! Where secrets must not appear: logs, `Debug`, URLs of login pages, and connections without TLS.

use std::io::Write;
use std::sync::{Arc, Mutex};

use duplexer_oauth::{ClientIdentity, Event, MemoryCredentials, OAuth, Secret};

use serde_json::json;

use crate::mock::{Mock, Seen, answer};
use crate::site::{Person, Time, connect, tool};

#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Write for Log {
    fn write(&mut self, text: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(text);
        Ok(text.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// OAC-34, OAC-45, OAC-93: what a login and a refresh produce is in no event, no `Debug` and no login URL.
#[tokio::test]
async fn secrets_are_not_shown() {
    let (time, person, log) = (Time::new(), Person::default(), Log::default());
    let mock = Mock::new(|_, _| None).await;
    let (mut events, urls) = (log.clone(), Log::default());
    let mut seen_urls = urls.clone();
    let handler = Mutex::new(move |event: &Event| match event {
        Event::Waiting { url } => write!(seen_urls, "{url}").unwrap(),
        other => writeln!(events, "{other:?}").unwrap(),
    });
    let store = MemoryCredentials::new();
    let oauth = OAuth::login_with_browser("test")
        .present(person.browser())
        .client(ClientIdentity::secret("app", Secret::new("client-secret-1")))
        .clock(time.clock())
        .store(store.clone())
        .on_event(move |event| (handler.lock().unwrap())(event))
        .build()
        .unwrap();
    let client = connect(&mock.url(), &oauth).await.unwrap();
    time.pass(3590);
    assert!(tool(&client, "x").await.is_ok());
    let verifier = mock.seen("/token")[0].form()["code_verifier"].clone();
    let shown =
        format!("{oauth:?} {store:?} {:?}", ClientIdentity::secret("app", Secret::new("client-secret-1")));
    let events = String::from_utf8(log.0.lock().unwrap().clone()).unwrap();
    let urls = String::from_utf8(urls.0.lock().unwrap().clone()).unwrap();
    assert!(!events.is_empty() && !urls.is_empty());
    for secret in ["at-1", "rt-1", "at-2", "rt-2", "c0de", "client-secret-1", verifier.as_str()] {
        assert!(!shown.contains(secret), "{secret} in {shown}");
        assert!(!events.contains(secret), "{secret} in {events}");
        // OAC-92: the URL is an argument of the browser's process.
        assert!(!urls.contains(secret), "{secret} in {urls}");
    }
}

/// OAC-93: a log of a login, a refresh and failures has no secrets, although the server repeats what it was sent.
#[tokio::test]
async fn secrets_are_not_logged() {
    let log = Log::default();
    let writer = log.clone();
    let subscriber = tracing_subscriber::fmt()
        .with_max_level(tracing::Level::DEBUG)
        .with_ansi(false)
        .with_writer(move || writer.clone())
        .finish();
    // While there is only one subscriber, `tracing` takes the word of the thread that reaches an event first, which can be
    // that of another test. With two it asks both.
    let _second = tracing::Dispatch::new(tracing::subscriber::NoSubscriber::default());
    let _logged = tracing::subscriber::set_default(subscriber);
    let (time, person) = (Time::new(), Person::default());
    let mock = Mock::new(|mock, seen| match (seen.path.as_str(), mock.seen("/token").len()) {
        ("/register", _) => {
            let secret = json!({"client_id": "app", "client_secret": "client-secret-1"});
            Some(answer(201, &secret))
        }
        ("/.well-known/oauth-authorization-server", _) => {
            let mut metadata = mock.metadata();
            metadata["token_endpoint_auth_methods_supported"] = json!(["client_secret_post"]);
            Some(answer(200, &metadata))
        }
        // The first two requests are the login and a refresh.
        ("/token", 3) => Some(answer(400, &repeated(seen, "invalid_grant"))),
        ("/token", 4) => Some(answer(400, &repeated(seen, "server_error"))),
        ("/token", 5) => Some(answer(200, &json!({"access_token": ["at-9"], "refresh_token": "rt-9"}))),
        _ => None,
    })
    .await;
    let oauth = OAuth::login_with_browser("test").present(person.browser()).clock(time.clock());
    let oauth = oauth.build().unwrap();
    let client = connect(&mock.url(), &oauth).await.unwrap();
    time.pass(3590);
    assert!(tool(&client, "x").await.is_ok());
    time.pass(3601);
    // The refresh is refused, then the exchange of the code of a new login fails: temporarily, and with a malformed answer.
    for _ in 0..2 {
        let error = tool(&client, "x").await.unwrap_err();
        tracing::error!(%error, ?error, "shown by the application");
    }
    let tokens = mock.seen("/token");
    let grants: Vec<_> = tokens.iter().map(|seen| seen.form()["grant_type"].clone()).collect();
    let code = "authorization_code";
    assert_eq!(grants, [code, "refresh_token", "refresh_token", code, code]);
    let log = String::from_utf8(log.0.lock().unwrap().clone()).unwrap();
    for logged in ["Registered", "Refreshed", "invalid_grant", "[secret]", "shown by the application"] {
        assert!(log.contains(logged), "{logged} is not in {log}");
    }
    let verifiers = tokens.iter().filter_map(|seen| seen.form().get("code_verifier").cloned());
    let states = mock.seen("/authorize").into_iter().map(|seen| seen.query["state"].clone());
    let secrets = ["at-1", "rt-1", "at-2", "rt-2", "at-9", "rt-9", "c0de", "client-secret-1"];
    for secret in secrets.into_iter().map(str::to_owned).chain(verifiers).chain(states) {
        assert!(!log.contains(&secret), "{secret} in {log}");
    }
}

/// OAC-92, OAC-98: the page of a login on the web has its state, which is not logged.
#[tokio::test]
async fn the_page_of_a_login_is_not_logged() {
    let log = Log::default();
    let writer = log.clone();
    let subscriber = tracing_subscriber::fmt()
        .with_max_level(tracing::Level::DEBUG)
        .with_writer(move || writer.clone())
        .finish();
    // As above.
    let _second = tracing::Dispatch::new(tracing::subscriber::NoSubscriber::default());
    let _logged = tracing::subscriber::set_default(subscriber);
    let mock = Mock::new(|_, _| None).await;
    let oauth = OAuth::login_on_web("shop", "https://shop.example/callback").build().unwrap();
    let error = oauth.login(&mock.url()).await.unwrap_err();
    let url = url::Url::parse(error.login_url().unwrap()).unwrap();
    let (_, state) = url.query_pairs().find(|(name, _)| name == "state").unwrap();
    let log = String::from_utf8(log.0.lock().unwrap().clone()).unwrap();
    assert!(log.contains("waiting for a login"), "{log}");
    assert!(!log.contains(&*state), "{log}");
}

/// An error whose description has everything that the request had.
fn repeated(seen: &Seen, error: &str) -> serde_json::Value {
    json!({"error": error, "error_description": format!("{:?}", seen.form())})
}

/// OAC-46: a token is not sent without TLS, and no login starts there.
#[tokio::test]
async fn nothing_is_sent_without_tls() {
    let oauth = OAuth::login_with_browser("test").build().unwrap();
    let error = oauth.login("http://mcp.example/mcp").await.unwrap_err();
    assert!(matches!(error, duplexer_oauth::OAuthError::InsecureEndpoint { .. }), "{error:?}");
}

/// OAC-46: two sources of credentials contradict each other.
#[tokio::test]
async fn a_header_of_the_application_is_an_error() {
    let mock = Mock::new(|_, _| None).await;
    let oauth = OAuth::login_with_browser("test").build().unwrap();
    let transport = duplexer_http_client::HttpTransport::builder(&mock.url())
        .header("authorization", "Bearer own")
        .authorization(Arc::new(oauth))
        .build()
        .unwrap();
    let error = duplexer_client::Client::builder("t", "1").connect(transport).await.err().unwrap();
    assert!(matches!(crate::site::failure(&error), duplexer_oauth::OAuthError::Config(_)), "{error:?}");
}
