//! The listener of a login, and the browsers and other programs that call it.

use std::sync::{Arc, Mutex};

use duplexer_oauth::{OAuth, OAuthError};

use crate::mock::Mock;
use crate::site::{connect, http};

/// OAC-38, OAC-39, P-AUC-17: neither other pages nor a wrong state end a login, and nothing is reflected.
#[tokio::test]
async fn a_login_survives_requests_that_are_not_its_own() {
    let mock = Mock::new(|_, _| None).await;
    let pages = Arc::new(Mutex::new(Vec::new()));
    let log = Arc::clone(&pages);
    let present = move |url: String| {
        let log = Arc::clone(&log);
        async move {
            let asked = http().get(&url).send().await?;
            let target = asked.headers()["location"].to_str()?.to_owned();
            let (redirect, query) = target.split_once('?').unwrap();
            let state = query.split("state=").nth(1).unwrap();
            for wrong in [
                format!("{redirect}?code=stolen&state=wrong"),
                format!("{redirect}?code=<script>"),
                format!("{redirect}?code=a&code=b&state={state}"),
                redirect.to_owned(),
                redirect.replace("/callback", "/other"),
            ] {
                let page = http().get(&wrong).send().await?;
                let status = page.status().as_u16();
                let headers = page.headers().clone();
                let text = page.text().await?;
                log.lock().unwrap().push((status, headers, text));
            }
            let foreign = http().get(&target).header("host", "evil.example").send().await?;
            assert_eq!(foreign.status(), 404);
            let posted = http().post(&target).send().await?;
            assert_eq!(posted.status(), 404);
            let huge = http().get(format!("{redirect}?x={}", "x".repeat(64 * 1024))).send().await;
            assert!(huge.is_err() || !huge.unwrap().status().is_success());
            let right = http().get(&target).send().await?;
            assert_eq!(right.status(), 200);
            Ok(None)
        }
    };
    let oauth = OAuth::login_with_browser("test").present(present).build().unwrap();
    assert!(connect(&mock.url(), &oauth).await.is_ok());
    assert_eq!(mock.seen("/token")[0].form()["code"], "c0de");
    let pages = pages.lock().unwrap();
    assert_eq!(pages.iter().map(|(status, ..)| *status).collect::<Vec<_>>(), [400, 400, 400, 400, 404]);
    for (_, headers, text) in &*pages {
        assert_eq!(headers["cache-control"], "no-store");
        assert_eq!(headers["referrer-policy"], "no-referrer");
        assert_eq!(headers["content-security-policy"], "default-src 'none'");
        assert!(!text.contains("script") && !text.contains("stolen"));
    }
}

/// OAC-38: programs that connect and send nothing, or only a part of a request, do not keep the browser out.
#[tokio::test]
async fn silent_connections_do_not_delay_a_login() {
    use tokio::io::AsyncWriteExt;
    use tokio::net::TcpStream;

    let mock = Mock::new(|_, _| None).await;
    let present = |url: String| async move {
        let asked = http().get(&url).send().await?;
        let target = asked.headers()["location"].to_str()?.to_owned();
        let address = target.split('/').nth(2).unwrap();
        let mut silent = Vec::new();
        for _ in 0..40 {
            let mut stream = TcpStream::connect(address).await?;
            stream.write_all(b"GET /callback").await?;
            silent.push(stream);
        }
        // The connections of the others would end after ten seconds.
        let browser = tokio::time::timeout(std::time::Duration::from_secs(8), http().get(&target).send());
        assert_eq!(browser.await??.status(), 200);
        drop(silent);
        Ok(None)
    };
    let oauth = OAuth::login_with_browser("test").present(present).build().unwrap();
    assert!(connect(&mock.url(), &oauth).await.is_ok());
}

/// OAC-38
#[tokio::test(start_paused = true)]
async fn a_login_that_is_not_finished_ends_after_five_minutes() {
    let mock = Mock::new(|_, _| None).await;
    let present = |_: String| async { Ok(None) };
    let oauth = OAuth::login_with_browser("test").present(present).build().unwrap();
    // OAC-06: no timeout of the session ends it earlier.
    let error = connect(&mock.url(), &oauth).await.err().unwrap();
    assert!(matches!(error, OAuthError::LoginTimedOut), "{error:?}");
}

/// OAC-36
#[tokio::test]
async fn a_page_that_cannot_be_shown_is_an_error() {
    let mock = Mock::new(|_, _| None).await;
    let present = |_: String| async { Err("no display".into()) };
    let oauth = OAuth::login_with_browser("test").present(present).build().unwrap();
    let error = connect(&mock.url(), &oauth).await.err().unwrap();
    assert!(matches!(&error, OAuthError::Present { reason } if reason == "no display"), "{error:?}");
}
