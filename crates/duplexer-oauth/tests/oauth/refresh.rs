//! Renewal: by many callers and processes, against a server that revokes everything when a token is used twice.

use std::collections::HashSet;
use std::sync::{Arc, Mutex};

use duplexer_core::dispatch::BoxFuture;
use duplexer_oauth::{
    CredentialStore, Generation, Key, MemoryCredentials, OAuth, OAuthError, Record, Status, StoreError,
    StoreLock, Swapped,
};
use serde_json::json;

use crate::mock::{Mock, Seen, answer, challenge};
use crate::site::{Person, Time, connect, tool};

fn login(time: &Time, person: &Person, store: impl CredentialStore) -> OAuth {
    OAuth::login_with_browser("test")
        .present(person.browser())
        .clock(time.clock())
        .store(store)
        .build()
        .unwrap()
}

/// Accepts each refresh token once. A second use revokes all of them.
pub(crate) fn rotating() -> impl Fn(&Mock, &Seen) -> Option<axum::response::Response> + Send + Sync + 'static
{
    let state = Mutex::new((HashSet::new(), false));
    move |mock, seen| {
        if !seen.is("POST", "/token") || seen.form()["grant_type"] != "refresh_token" {
            return None;
        }
        let (spent, is_revoked) = &mut *state.lock().unwrap();
        *is_revoked |= !spent.insert(seen.form()["refresh_token"].clone());
        Some(if *is_revoked {
            answer(400, &json!({"error": "invalid_grant"}))
        } else {
            answer(200, &mock.token())
        })
    }
}

/// OAC-47: all requests of a process share one refresh.
#[tokio::test]
async fn concurrent_requests_refresh_once() {
    let (time, person, store) = (Time::new(), Person::default(), MemoryCredentials::new());
    let mock = Mock::new(rotating()).await;
    let client = connect(&mock.url(), &login(&time, &person, store.clone())).await.unwrap();
    time.pass(3590);
    let call = || tool(&client, "x");
    let (one, two, three, four) = tokio::join!(call(), call(), call(), call());
    assert!(one.is_ok() && two.is_ok() && three.is_ok() && four.is_ok());
    let refreshes: Vec<_> =
        mock.seen("/token").into_iter().filter(|seen| seen.form()["grant_type"] == "refresh_token").collect();
    assert_eq!(refreshes.len(), 1);
    let form = refreshes[0].form();
    assert_eq!((form["refresh_token"].as_str(), form["resource"].as_str()), ("rt-1", mock.url().as_str()));
    assert!(!form.contains_key("scope"));
    assert_eq!(person.times(), 1);
}

/// OAC-47, OAC-49, OAC-95: several processes that share a store spend each refresh token once.
#[cfg(unix)]
#[tokio::test]
async fn processes_that_share_a_store_refresh_once() {
    let (time, person) = (Time::new(), Person::default());
    let folder = crate::stores::folder("shared");
    let open = || duplexer_oauth::FileCredentials::at(folder.path()).unwrap();
    let mock = Mock::new(rotating()).await;
    connect(&mock.url(), &login(&time, &person, open())).await.unwrap();
    for round in 1..4 {
        time.pass(3590);
        // Values of their own, like processes: only the files are shared.
        let others: Vec<_> = (0..4).map(|_| login(&time, &person, open())).collect();
        let url = mock.url();
        let (one, two, three, four) = tokio::join!(
            connect(&url, &others[0]),
            connect(&url, &others[1]),
            connect(&url, &others[2]),
            connect(&url, &others[3]),
        );
        assert!([&one, &two, &three, &four].into_iter().all(Result::is_ok));
        let refreshes = mock.seen("/token").len() - 1;
        assert_eq!((refreshes, person.times()), (round, 1));
    }
}

/// CAUTH-01, OAC-48: an answer without refresh token and scope keeps the old ones.
#[tokio::test]
async fn an_answer_without_a_refresh_token_keeps_the_old_one() {
    let (time, person) = (Time::new(), Person::default());
    let mock = Mock::new(|_, seen| {
        let is_refresh = seen.is("POST", "/token") && seen.form()["grant_type"] == "refresh_token";
        let renewed = json!({"access_token": "at-new", "token_type": "bearer", "expires_in": "3600"});
        is_refresh.then(|| answer(200, &renewed))
    })
    .await;
    let client = connect(&mock.url(), &login(&time, &person, MemoryCredentials::new())).await.unwrap();
    for _ in 0..3 {
        time.pass(3590);
        assert!(tool(&client, "x").await.is_ok());
    }
    let spent: Vec<_> =
        mock.seen("/token").iter().filter_map(|seen| seen.form().get("refresh_token").cloned()).collect();
    assert_eq!((spent, person.times()), (vec!["rt-1".to_owned(); 3], 1));
}

/// OAC-49: a refused refresh token leads to a login; the registration is kept.
#[tokio::test]
async fn a_refused_refresh_token_leads_to_a_login() {
    let (time, person) = (Time::new(), Person::default());
    let mock = Mock::new(|_, seen| {
        let is_refresh = seen.is("POST", "/token") && seen.form()["grant_type"] == "refresh_token";
        is_refresh.then(|| answer(400, &json!({"error": "invalid_grant"})))
    })
    .await;
    let client = connect(&mock.url(), &login(&time, &person, MemoryCredentials::new())).await.unwrap();
    time.pass(3601);
    assert!(tool(&client, "x").await.is_ok());
    assert_eq!(person.times(), 2);
}

/// OAC-49: a temporary failure loses nothing: the token is used while it lives, without an attempt per request; then the
/// error says so.
#[tokio::test]
async fn a_temporary_failure_keeps_the_refresh_token() {
    let (time, person) = (Time::new(), Person::default());
    let down = Arc::new(std::sync::atomic::AtomicBool::new(true));
    let is_down = Arc::clone(&down);
    let mock = Mock::new(move |_, seen| {
        let is_refresh = seen.is("POST", "/token") && seen.form()["grant_type"] == "refresh_token";
        let is_down = is_down.load(std::sync::atomic::Ordering::SeqCst);
        (is_refresh && is_down).then(|| answer(503, &json!({})))
    })
    .await;
    let client = connect(&mock.url(), &login(&time, &person, MemoryCredentials::new())).await.unwrap();
    time.pass(3590);
    for _ in 0..3 {
        assert!(tool(&client, "x").await.is_ok());
    }
    assert_eq!(mock.seen("/token").len(), 2);
    time.pass(11);
    let failed = tool(&client, "x").await;
    assert!(matches!(failed, Err(OAuthError::Temporary { .. })), "{failed:?}");
    down.store(false, std::sync::atomic::Ordering::SeqCst);
    assert!(tool(&client, "x").await.is_ok());
    assert_eq!(person.times(), 1);
}

/// Starts an authorization server that issues access tokens only.
async fn without_refresh_tokens() -> Mock {
    Mock::new(|mock, seen| {
        let mut token = mock.token();
        token.as_object_mut().unwrap().remove("refresh_token");
        seen.is("POST", "/token").then(|| answer(200, &token))
    })
    .await
}

/// OAC-02, OAC-47: without a refresh token, an expired access token is not sent, and the refusal leads to one login.
#[tokio::test]
async fn an_expired_token_without_a_refresh_token_leads_to_a_login() {
    let (time, person, store) = (Time::new(), Person::default(), MemoryCredentials::new());
    let mock = without_refresh_tokens().await;
    let client = connect(&mock.url(), &login(&time, &person, store.clone())).await.unwrap();
    time.pass(3601);
    assert!(tool(&client, "x").await.is_ok());
    assert_eq!(person.times(), 2);
    time.pass(3601);
    // Also after a restart.
    let calls = mock.seen("/mcp").len();
    connect(&mock.url(), &login(&time, &person, store)).await.unwrap();
    let calls: Vec<_> = mock.seen("/mcp").split_off(calls);
    assert_eq!((person.times(), calls.len()), (3, 2));
    assert_eq!((calls[0].header("authorization"), calls[1].header("authorization").is_empty()), ("", false));
}

/// OAC-04: a token that has expired when it arrives is not replaced by another login.
#[tokio::test]
async fn a_token_that_expires_at_once_causes_one_login() {
    let (time, person) = (Time::new(), Person::default());
    let mock = Mock::new(|_, seen| {
        let expired = json!({"access_token": "a", "token_type": "Bearer", "expires_in": 0});
        seen.is("POST", "/token").then(|| answer(200, &expired))
    })
    .await;
    let transport = duplexer_http_client::HttpTransport::new(&mock.url()).unwrap();
    let oauth = login(&time, &person, MemoryCredentials::new());
    let transport = transport.authorization(Arc::new(oauth));
    let refused = duplexer_client::Client::builder("t", "1").connect(transport).await.err().unwrap();
    assert_eq!(refused.refusal().map(|refusal| refusal.status), Some(401), "{refused:?}");
    assert_eq!(person.times(), 1);
}

/// OAC-47: a token that another process has renewed is taken over, also if the refresh token is still the same.
#[tokio::test]
async fn a_renewed_token_is_taken_over() {
    let (time, person, store) = (Time::new(), Person::default(), MemoryCredentials::new());
    let mock = Mock::new(|mock, seen| {
        let mut token = mock.token();
        token["refresh_token"] = "same".into();
        seen.is("POST", "/token").then(|| answer(200, &token))
    })
    .await;
    let first = connect(&mock.url(), &login(&time, &person, store.clone())).await.unwrap();
    let second = connect(&mock.url(), &login(&time, &person, store)).await.unwrap();
    time.pass(3590);
    assert!(tool(&first, "x").await.is_ok() && tool(&second, "x").await.is_ok());
    assert_eq!((mock.seen("/token").len(), person.times()), (2, 1));
    let calls = mock.seen("/mcp");
    let sent: Vec<_> = calls.iter().rev().take(2).map(|seen| seen.header("authorization")).collect();
    assert_eq!(sent[0], sent[1]);
}

/// A login in advance renews a token without the person.
#[tokio::test]
async fn a_login_in_advance_renews_an_expired_token() {
    let (time, person) = (Time::new(), Person::default());
    let mock = Mock::new(rotating()).await;
    let oauth = login(&time, &person, MemoryCredentials::new());
    oauth.login(&mock.url()).await.unwrap();
    time.pass(3601);
    oauth.login(&mock.url()).await.unwrap();
    assert_eq!((person.times(), mock.seen("/token").len()), (1, 2));
}

/// OAC-16, OAC-23, P-AUC-12, P-AUC-16: when the server names another issuer, nothing of the first one is shown to it.
#[tokio::test]
async fn credentials_of_one_issuer_are_not_shown_to_another() {
    let person = Person::default();
    let second = Mock::new(|_, seen| match seen.path.as_str() {
        "/register" => Some(answer(201, &json!({"client_id": "second"}))),
        "/token" => Some(answer(200, &json!({"access_token": "of-second", "token_type": "Bearer"}))),
        _ => None,
    })
    .await;
    let other = second.base().to_owned();
    let first = Mock::new(move |mock, seen| match seen.path.as_str() {
        // Calls need a token of the second one.
        "/mcp"
            if seen.json()["method"] == "tools/call"
                && seen.header("authorization") != "Bearer of-second" =>
        {
            Some(challenge(401, "Bearer"))
        }
        "/token" => Some(answer(200, &json!({"access_token": "of-first", "token_type": "Bearer"}))),
        "/.well-known/oauth-protected-resource/mcp" if !mock.seen("/token").is_empty() => {
            Some(answer(200, &json!({"resource": mock.url(), "authorization_servers": [other]})))
        }
        _ => None,
    })
    .await;
    let oauth = OAuth::login_with_browser("test").present(person.browser()).build().unwrap();
    let client = connect(&first.url(), &oauth).await.unwrap();
    assert_eq!(tool(&client, "x").await.unwrap(), "done");
    assert_eq!(second.seen("/register").len(), 1);
    assert_eq!(second.seen("/authorize")[0].query["client_id"], "second");
    assert_eq!(second.seen("/token")[0].form()["client_id"], "second");
    for seen in second.log() {
        let text = format!("{:?} {:?} {:?}", seen.query, seen.body, seen.headers);
        assert!(!text.contains("of-first") && !text.contains("registered"), "{text}");
    }
}

/// OAC-47, OAC-95: the login of another process is enough, also for one that has read the store before it.
#[tokio::test]
async fn a_login_of_another_process_is_taken_over() {
    let (time, person, store) = (Time::new(), Person::default(), MemoryCredentials::new());
    let mock = without_refresh_tokens().await;
    let first = connect(&mock.url(), &login(&time, &person, store.clone())).await.unwrap();
    let second = connect(&mock.url(), &login(&time, &person, store)).await.unwrap();
    assert_eq!(person.times(), 1);
    // Without a refresh token, one of them logs in again.
    time.pass(3601);
    assert!(tool(&first, "x").await.is_ok() && tool(&second, "x").await.is_ok());
    assert_eq!(person.times(), 2);
}

/// A token that the configuration no longer accepts is not sent: of another issuer, or not bound to a key.
#[tokio::test]
async fn a_stored_token_is_used_only_if_the_configuration_accepts_it() {
    let (time, person, store) = (Time::new(), Person::default(), MemoryCredentials::new());
    let mock = Mock::new(|_, _| None).await;
    connect(&mock.url(), &login(&time, &person, store.clone())).await.unwrap();
    let stored = || {
        let absent = |_: String| std::future::ready(Err("there is no browser".into()));
        OAuth::login_with_browser("test").present(absent).clock(time.clock()).store(store.clone())
    };
    let calls = mock.seen("/mcp").len();
    let pinned = stored().issuer("https://login.example.com").build().unwrap();
    let refused = connect(&mock.url(), &pinned).await;
    assert!(matches!(refused, Err(OAuthError::NoAuthority { .. })), "{:?}", refused.err());
    let bound = stored().dpop(duplexer_oauth::Dpop::require()).build().unwrap();
    let refused = connect(&mock.url(), &bound).await;
    assert!(matches!(refused, Err(OAuthError::Present { .. })), "{:?}", refused.err());
    let calls = mock.seen("/mcp").split_off(calls);
    assert!(!calls.is_empty() && calls.iter().all(|seen| seen.header("authorization").is_empty()));
    let same = stored().issuer(mock.base()).build().unwrap();
    assert!(connect(&mock.url(), &same).await.is_ok());
    assert_eq!(person.times(), 1);
}

/// A store with one lock, which a test can hold like a process that renews a token.
#[derive(Clone, Default)]
struct Lockable(MemoryCredentials, Arc<tokio::sync::Mutex<()>>);

impl CredentialStore for Lockable {
    fn load<'a>(&'a self, key: &'a Key) -> BoxFuture<'a, Result<Option<Record>, StoreError>> {
        self.0.load(key)
    }

    fn swap<'a>(
        &'a self,
        key: &'a Key,
        expected: Option<Generation>,
        new: Option<Record>,
    ) -> BoxFuture<'a, Result<Swapped, StoreError>> {
        self.0.swap(key, expected, new)
    }

    fn lock<'a>(&'a self, _: &'a Key) -> BoxFuture<'a, Result<StoreLock, StoreError>> {
        Box::pin(async { Ok(StoreLock::new(Arc::clone(&self.1).lock_owned().await)) })
    }
}

/// OAC-97: a logout waits for the renewal of another process, which would store its token after the removal.
#[tokio::test]
async fn a_logout_waits_for_a_renewal_that_runs() {
    let (time, person, store) = (Time::new(), Person::default(), Lockable::default());
    let mock = Mock::new(|_, _| None).await;
    let oauth = login(&time, &person, store.clone());
    connect(&mock.url(), &oauth).await.unwrap();
    let (renewal, url) = (store.1.lock().await, mock.url());
    let mut logout = Box::pin(oauth.logout(&url));
    let status = tokio::select! {
        biased;
        _ = &mut logout => panic!("the logout does not wait"),
        status = oauth.status(&url) => status.unwrap(),
    };
    assert!(matches!(status, Status::LoggedIn { .. }));
    drop(renewal);
    logout.await.unwrap();
    assert_eq!(oauth.status(&url).await.unwrap(), Status::LoggedOut);
}
