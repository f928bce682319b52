//! Logins of a web application, which end in another request and perhaps in another process.

use duplexer_oauth::{MemoryCredentials, OAuth, OAuthError};

use crate::site::{Person, Site, Time, connect, tool};

const REDIRECT: &str = "https://shop.example/oauth/callback";

fn replica(time: &Time, store: &MemoryCredentials, user: &str) -> OAuth {
    OAuth::login_on_web("shop", REDIRECT)
        .store(store.clone())
        .account(user)
        .clock(time.clock())
        .build()
        .unwrap()
}

async fn login_url(site: &Site, oauth: &OAuth) -> String {
    let Err(error) = connect(&site.url(), oauth).await else { panic!("a login is required") };
    error.login_url().unwrap_or_else(|| panic!("{error:?}")).to_owned()
}

/// OAC-35, OAC-36: the login is a value in the store; another replica finishes it, once.
#[tokio::test]
async fn another_replica_finishes_a_login() {
    let (time, person, store) = (Time::new(), Person::default(), MemoryCredentials::new());
    let site = Site::new(&time, |builder| builder).await;
    let first = replica(&time, &store, "ada");
    let url = login_url(&site, &first).await;
    assert_eq!(login_url(&site, &first).await, url, "the same page for a while");
    let back = person.decide(&url).await;
    assert!(back.starts_with(REDIRECT));
    let (_, query) = back.split_once('?').unwrap();
    // Another user cannot finish it, and a wrong state finishes nothing.
    for (user, query) in [("eve", query), ("ada", "code=x&state=y"), ("ada", "code=x"), ("ada", "")] {
        let refused = replica(&time, &store, user).finish(query).await;
        assert!(matches!(refused, Err(OAuthError::Callback(_))), "{user} {query}: {refused:?}");
    }
    let second = replica(&time, &store, "ada");
    second.finish(query).await.unwrap();
    assert!(matches!(second.finish(query).await, Err(OAuthError::Callback(_))));
    let client = connect(&site.url(), &second).await.unwrap();
    assert_eq!(tool(&client, "x").await.unwrap(), "x read");
    // The replica on which the login began has read the store before. It asks for no second login.
    let client = connect(&site.url(), &first).await.unwrap();
    assert_eq!(tool(&client, "x").await.unwrap(), "x read");
    // The credentials belong to one user.
    assert!(connect(&site.url(), &replica(&time, &store, "ada")).await.is_ok());
    login_url(&site, &replica(&time, &store, "eve")).await;
}

/// OAC-35
#[tokio::test]
async fn a_login_can_be_finished_for_ten_minutes() {
    let (time, person, store) = (Time::new(), Person::default(), MemoryCredentials::new());
    let site = Site::new(&time, |builder| builder).await;
    let oauth = replica(&time, &store, "ada");
    let back = person.decide(&login_url(&site, &oauth).await).await;
    time.pass(601);
    assert!(matches!(oauth.finish(&back).await, Err(OAuthError::LoginTimedOut)));
}

/// The redirect URI of a web application is https, or on this machine.
#[test]
fn a_redirect_uri_is_checked() {
    for wrong in ["http://shop.example/cb", "shop", "javascript:x", "https://shop.example/cb#x"] {
        assert!(OAuth::login_on_web("shop", wrong).build().is_err(), "{wrong}");
    }
}
