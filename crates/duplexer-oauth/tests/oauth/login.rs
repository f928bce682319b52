//! Logins of a person against the authorization server of this project.

use std::sync::{Arc, Mutex};

use duplexer_auth::{AuthMethod, RegisteredClient};
use duplexer_oauth::{
    ClientIdentity, Event, Loopback, MemoryCredentials, OAuth, OAuthError, Renewal, Secret, Status, StepUp,
};

use crate::site::{Person, Site, Time, connect, tool};

fn login(time: &Time, person: &Person) -> duplexer_oauth::OAuthBuilder {
    OAuth::login_with_browser("test").present(person.browser()).clock(time.clock())
}

/// OAC-01, OAC-02, OAC-03, P-AUC-14: a login happens inside `connect`, and the caller sees one answer.
#[tokio::test]
async fn a_session_is_opened_by_a_login_and_the_token_is_sent_with_every_request() {
    let (time, person) = (Time::new(), Person::default());
    let site = Site::new(&time, |builder| builder).await;
    let oauth = login(&time, &person).build().unwrap();
    let client = connect(&site.url(), &oauth).await.unwrap();
    assert_eq!(tool(&client, "one").await.unwrap(), "one read");
    assert_eq!(tool(&client, "two").await.unwrap(), "two read");
    assert_eq!(person.times(), 1);
    // OAC-97
    let Status::LoggedIn { issuer, scopes, renewal, .. } = oauth.status(&site.url()).await.unwrap() else {
        panic!()
    };
    assert_eq!((issuer, scopes, renewal), (site.base.clone(), vec!["read".to_owned()], Renewal::Automatic));
}

/// OAC-02, OAC-44: a token of the store is sent from the first request on, without a login.
#[tokio::test]
async fn a_restart_needs_no_login() {
    let (time, person, store) = (Time::new(), Person::default(), MemoryCredentials::new());
    let site = Site::new(&time, |builder| builder).await;
    for _ in 0..3 {
        let oauth = login(&time, &person).store(store.clone()).build().unwrap();
        let client = connect(&site.url(), &oauth).await.unwrap();
        assert_eq!(tool(&client, "x").await.unwrap(), "x read");
        // Later the access token has expired, and the refresh token renews it.
        time.pass(7200);
    }
    assert_eq!(person.times(), 1);
}

/// OAC-50, OAC-51, P-AUC-10: more scopes are requested together with the granted ones, and the request is sent again.
#[tokio::test]
async fn a_request_that_needs_more_scopes_requests_them() {
    let (time, person) = (Time::new(), Person::default());
    let site = Site::new(&time, |builder| builder).await;
    let events = Arc::new(Mutex::new(Vec::new()));
    let log = Arc::clone(&events);
    let oauth =
        login(&time, &person).on_event(move |event| log.lock().unwrap().push(event.clone())).build().unwrap();
    let client = connect(&site.url(), &oauth).await.unwrap();
    assert_eq!(tool(&client, "write").await.unwrap(), "write read write");
    assert_eq!(person.times(), 2);
    // OAC-98
    let names: Vec<_> = events
        .lock()
        .unwrap()
        .iter()
        .map(|event| match event {
            Event::Discovered { .. } => "discovered",
            Event::Registered { .. } => "registered",
            Event::Waiting { .. } => "waiting",
            Event::Authorized { .. } => "authorized",
            Event::SteppingUp { .. } => "stepping up",
            _ => "other",
        })
        .collect();
    let first = ["discovered", "registered", "waiting", "authorized"];
    // The second login may have to register again, if its port is taken.
    assert_eq!(names[..4], first);
    assert_eq!((names[4], names[5], names[names.len() - 1]), ("discovered", "stepping up", "authorized"));
}

/// OAC-52
#[tokio::test]
async fn without_step_up_the_missing_scopes_are_an_error() {
    let (time, person) = (Time::new(), Person::default());
    let site = Site::new(&time, |builder| builder).await;
    let oauth = login(&time, &person).step_up(StepUp::Never).build().unwrap();
    let client = connect(&site.url(), &oauth).await.unwrap();
    let Err(OAuthError::InsufficientScope { required }) = tool(&client, "write").await else { panic!() };
    assert!(required.contains(&"write".to_owned()));
    assert_eq!(person.times(), 1);
}

/// OAC-41, OAC-94: all requests that wait for a login share its failure.
#[tokio::test]
async fn a_declined_login_is_an_error_of_its_own() {
    let (time, person) = (Time::new(), Person::declining());
    let site = Site::new(&time, |builder| builder).await;
    let oauth = login(&time, &person).build().unwrap();
    let url = site.url();
    let (one, two) = tokio::join!(connect(&url, &oauth), connect(&url, &oauth));
    for refused in [one, two] {
        assert!(matches!(refused, Err(OAuthError::LoginDenied)));
    }
    assert_eq!(person.times(), 1);
}

/// OAC-94
#[tokio::test]
async fn concurrent_requests_cause_one_login() {
    let (time, person) = (Time::new(), Person::default());
    let site = Site::new(&time, |builder| builder).await;
    let oauth = login(&time, &person).build().unwrap();
    let url = site.url();
    let (one, two, three) = tokio::join!(connect(&url, &oauth), connect(&url, &oauth), connect(&url, &oauth));
    assert!(one.is_ok() && two.is_ok() && three.is_ok());
    assert_eq!(person.times(), 1);
}

/// OAC-22, OAC-37: a client that is registered with a fixed redirect URI, written as `localhost`.
#[tokio::test]
async fn a_registered_client_keeps_its_redirect_uri() {
    let (time, person) = (Time::new(), Person::default());
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = free.local_addr().unwrap().port();
    drop(free);
    let redirect_uri = format!("http://localhost:{port}/back");
    let site = Site::new(&time, |builder| {
        builder.without_registration().client(
            RegisteredClient::confidential("app", "s3cret/+", [redirect_uri])
                .auth_method(AuthMethod::ClientSecretBasic),
        )
    })
    .await;
    let redirect = Loopback::localhost().port(port).path("/back");
    let client = ClientIdentity::secret("app", Secret::new("s3cret/+"));
    let oauth = login(&time, &person).client(client).redirect(redirect).build().unwrap();
    let client = connect(&site.url(), &oauth).await.unwrap();
    assert_eq!(tool(&client, "x").await.unwrap(), "x read");
    // OAC-22: without an identity and without registration there is an error that says what to configure.
    let oauth = login(&time, &person).build().unwrap();
    let Err(OAuthError::NoRegistration { issuer }) = connect(&site.url(), &oauth).await else { panic!() };
    assert_eq!(issuer, site.base);
}

/// OAC-22: a token is used by a program that names no client; one that names another client logs in as that.
#[tokio::test]
async fn a_token_belongs_to_its_client() {
    let (person, store) = (Person::default(), MemoryCredentials::new());
    let mock = crate::mock::Mock::new(|_, _| None).await;
    for (client, logins) in [(Some("one"), 1), (None, 1), (Some("one"), 1), (Some("two"), 2)] {
        let login = OAuth::login_with_browser("test").present(person.browser()).store(store.clone());
        let login = match client {
            Some(id) => login.client(ClientIdentity::public(id)),
            None => login,
        };
        connect(&mock.url(), &login.build().unwrap()).await.unwrap();
        assert_eq!(person.times(), logins, "{client:?}");
    }
    let ids: Vec<_> = mock.seen("/token").iter().map(|seen| seen.form()["client_id"].clone()).collect();
    assert_eq!(ids, ["one", "two"]);
}

/// OAC-97
#[tokio::test]
async fn a_logout_revokes_the_tokens_and_removes_the_record() {
    let (time, person, store) = (Time::new(), Person::default(), MemoryCredentials::new());
    let site = Site::new(&time, |builder| builder).await;
    let oauth = login(&time, &person).store(store.clone()).build().unwrap();
    let client = connect(&site.url(), &oauth).await.unwrap();
    let other = login(&time, &person).store(store.clone()).build().unwrap();
    let second = connect(&site.url(), &other).await.unwrap();
    oauth.logout(&site.url()).await.unwrap();
    assert_eq!(oauth.status(&site.url()).await.unwrap(), Status::LoggedOut);
    assert_eq!(person.times(), 1);
    // The token that the other one still holds is revoked: it has to log in.
    assert_eq!(tool(&second, "x").await.unwrap(), "x read");
    assert_eq!(person.times(), 2);
    drop(client);
}

/// OAC-37
#[tokio::test]
async fn an_occupied_port_is_named() {
    let (time, person) = (Time::new(), Person::default());
    let site = Site::new(&time, |builder| builder).await;
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    let oauth = login(&time, &person).redirect(Loopback::new().port(port)).build().unwrap();
    let Err(OAuthError::Port { port: named }) = connect(&site.url(), &oauth).await else { panic!() };
    assert_eq!(named, port);
}

/// OAC-36: the person pastes the address to which the browser was redirected.
#[tokio::test]
async fn a_pasted_redirect_finishes_a_login() {
    let (time, person) = (Time::new(), Person::default());
    let site = Site::new(&time, |builder| builder).await;
    let pasting = person.clone();
    let present = move |url: String| {
        let person = pasting.clone();
        async move { Ok(Some(format!("  {}\n", person.decide(&url).await))) }
    };
    let oauth = OAuth::login_with_browser("test").present(present).clock(time.clock()).build().unwrap();
    let client = connect(&site.url(), &oauth).await.unwrap();
    assert_eq!(tool(&client, "x").await.unwrap(), "x read");
    // Something else that is pasted is refused.
    let present = |_: String| async { Ok(Some("http://127.0.0.1/callback?code=x&state=y".to_owned())) };
    let oauth = OAuth::login_with_browser("test").present(present).clock(time.clock()).build().unwrap();
    assert!(matches!(connect(&site.url(), &oauth).await, Err(OAuthError::Callback(_))));
}
