//! The authorization endpoint: its parameters, its page and its redirects.

use duplexer_auth::{AuthorizationServerBuilder, RegisteredClient};
use serde_json::json;

use crate::support::{
    CHALLENGE, REDIRECT, Site, Time, handle, header, json_of, question, refusal, returned, value,
};

async fn site() -> Site {
    Site::with_authorization_server(&Time::new(), |builder| builder).await
}

/// AS-01, AS-02: the metadata of the authorization server.
#[tokio::test]
async fn the_metadata_names_every_endpoint() {
    let site = site().await;
    let response = site.get("/.well-known/oauth-authorization-server").await;
    assert_eq!(header(&response, "cache-control"), "public, max-age=3600");
    assert_eq!(header(&response, "access-control-allow-origin"), "*");
    let base = &site.base;
    let methods = ["client_secret_post", "client_secret_basic", "none", "private_key_jwt"];
    let algorithms = ["ES256", "ES384", "EdDSA", "RS256", "PS256"];
    assert_eq!(
        json_of(response).await,
        json!({
            "issuer": base,
            "authorization_endpoint": format!("{base}/authorize"),
            "token_endpoint": format!("{base}/token"),
            "registration_endpoint": format!("{base}/register"),
            "revocation_endpoint": format!("{base}/revoke"),
            "scopes_supported": ["read", "write"],
            "response_types_supported": ["code"],
            "grant_types_supported": ["authorization_code", "refresh_token", "client_credentials"],
            "token_endpoint_auth_methods_supported": methods,
            "token_endpoint_auth_signing_alg_values_supported": algorithms,
            "dpop_signing_alg_values_supported": algorithms,
            "revocation_endpoint_auth_methods_supported": methods,
            "code_challenge_methods_supported": ["S256"],
            "authorization_response_iss_parameter_supported": true,
            "client_id_metadata_document_supported": true,
        })
    );
    let time = Time::new();
    let closed = Site::with_authorization_server(&time, |builder| {
        builder.without_registration().without_client_documents()
    });
    let closed = closed.await;
    let metadata = json_of(closed.get("/.well-known/oauth-authorization-server").await).await;
    assert_eq!(metadata.get("registration_endpoint"), None);
    assert_eq!(metadata["client_id_metadata_document_supported"], false);
    assert_eq!(closed.form("/register", &[]).await.status(), 401, "there is no such endpoint");
}

/// AS-03, O14: a whole authorization, by GET and by POST; state, issuer and the client's own query come back.
#[tokio::test]
async fn a_user_agrees_and_the_client_gets_a_code() {
    let site = site().await;
    let response = site.decide(&question(&[]), "allow").await;
    assert_eq!(header(&response, "cache-control"), "no-store");
    let (to, pairs) = returned(&response);
    assert_eq!((to.as_str(), value(&pairs, "state"), value(&pairs, "iss")), (REDIRECT, "st", &*site.base));
    assert_eq!(value(&pairs, "code").len(), 43);
    let posted = site.form("/authorize", &question(&[])).await;
    assert_eq!(posted.status(), 200);
    let web = question(&[("client_id", "web"), ("redirect_uri", "https://web.example/cb?x=1")]);
    let response = site.decide(&web, "allow").await;
    assert!(header(&response, "location").starts_with("https://web.example/cb?x=1&code="));
}

/// AS-03, O01, O02: no redirect is sent until client and redirect URI are known to match.
#[tokio::test]
async fn no_redirect_goes_to_an_address_that_is_not_registered() {
    let site = site().await;
    for redirect in [
        "https://evil.example/",
        "http://127.0.0.1:9/CALLBACK",
        "http://127.0.0.1:9/callback/",
        "http://127.0.0.1:9/callback?x=1",
        "http://127.0.0.1:9/callback#x",
        "http://me@127.0.0.1:9/callback",
        "http://localhost:9/callback",
    ] {
        let response = site.authorize(&question(&[("redirect_uri", redirect)])).await;
        assert_eq!(header(&response, "location"), "");
        assert_eq!(header(&response, "cache-control"), "no-store");
        assert_eq!(refusal(response).await.0, 400, "{redirect}");
    }
    let another_port = question(&[("redirect_uri", "http://127.0.0.1:4711/callback")]);
    assert_eq!(site.authorize(&another_port).await.status(), 200, "a loopback port is left to the moment");
    let web = question(&[("client_id", "web"), ("redirect_uri", "https://web.example:8443/cb?x=1")]);
    assert_eq!(site.authorize(&web).await.status(), 400, "any other port is not");
    let unknown = site.authorize(&question(&[("client_id", "no<body>")])).await;
    assert_eq!(header(&unknown, "content-type"), "application/json");
    assert_eq!(refusal(unknown).await.2, "Client ID 'no<body>' not found");
    assert_eq!(site.authorize(&question(&[("client_id", "")])).await.status(), 400);
}

/// AS-03, O04, O10, O14: all other errors are redirected to the client, with its state and the issuer.
#[tokio::test]
async fn other_refusals_go_back_to_the_client() {
    let site = site().await;
    for (name, wrong, error) in [
        ("response_type", "token", "unsupported_response_type"),
        ("response_type", "", "invalid_request"),
        ("code_challenge", "", "invalid_request"),
        ("code_challenge", "short", "invalid_request"),
        ("code_challenge_method", "plain", "invalid_request"),
        ("scope", "read admin", "invalid_scope"),
        ("resource", "https://other.example/mcp", "invalid_target"),
    ] {
        let response = site.authorize(&question(&[(name, wrong)])).await;
        let (to, pairs) = returned(&response);
        assert_eq!((to.as_str(), value(&pairs, "error")), (REDIRECT, error), "{name}={wrong}");
        assert_eq!((value(&pairs, "state"), value(&pairs, "iss")), ("st", &*site.base));
        assert_eq!(value(&pairs, "code"), "");
    }
    let method = question(&[("code_challenge_method", "")]);
    assert_eq!(site.authorize(&method).await.status(), 200, "S256 is what is meant");
}

/// AS-04
#[tokio::test]
async fn a_redirect_may_be_omitted_if_there_is_only_one() {
    let time = Time::new();
    let site = Site::with_authorization_server(&time, |builder| {
        builder.client(RegisteredClient::public("two", [REDIRECT, "https://two.example/cb"]))
    });
    let site = site.await;
    let response = site.decide(&question(&[("redirect_uri", "")]), "allow").await;
    assert_eq!(returned(&response).0, REDIRECT);
    let two = question(&[("client_id", "two"), ("redirect_uri", "")]);
    assert_eq!(site.authorize(&two).await.status(), 400);
}

/// O11: no value of a client leaves its parameter.
#[tokio::test]
async fn line_breaks_stay_within_their_parameter() {
    let site = site().await;
    let nasty = "a\r\nSet-Cookie: x=1&code=2#\u{e9}";
    let more = [("state", nasty), ("scope", "x\r\ny")];
    let response = site.authorize(&question(&more)).await;
    assert!(response.headers().get("set-cookie").is_none());
    let (_, pairs) = returned(&response);
    assert_eq!((value(&pairs, "state"), value(&pairs, "code")), (nasty, ""));
    let agreed = site.decide(&question(&[("state", nasty)]), "allow").await;
    assert_eq!(value(&returned(&agreed).1, "state"), nasty);
}

/// The page shows client and scopes as text; it cannot be framed, scripted or cached.
#[tokio::test]
async fn the_page_is_only_a_page() {
    let site = site().await;
    let page = site.authorize(&question(&[])).await;
    assert_eq!(header(&page, "x-frame-options"), "DENY");
    let policy = header(&page, "content-security-policy").to_owned();
    assert!(policy.contains("default-src 'none'") && policy.contains("frame-ancestors 'none'"), "{policy}");
    assert_eq!(
        (header(&page, "cache-control"), header(&page, "referrer-policy")),
        ("no-store", "no-referrer")
    );
    let cookie = header(&page, "set-cookie").to_owned();
    assert!(cookie.contains("HttpOnly") && cookie.contains("SameSite=Lax"), "{cookie}");
    let text = page.text().await.unwrap();
    assert!(text.contains("An &lt;app&gt;") && !text.contains("<app>"), "{text}");
    assert!(text.contains("<li>read</li>") && text.contains("ada") && text.contains("127.0.0.1:9"), "{text}");
}

/// Consent cannot be given from elsewhere: without the cookie, with another one, from another page, twice, or under
/// another name of this server.
#[tokio::test]
async fn only_the_browser_that_was_asked_can_agree() {
    let site = site().await;
    let page = async || {
        let page = site.authorize(&question(&[])).await;
        let cookie = header(&page, "set-cookie").split(';').next().unwrap().to_owned();
        (cookie, handle(&page.text().await.unwrap()))
    };
    let send = async |cookie: &str, handle: &str, header: (&str, &str)| {
        let form = site.post("/authorize/consent", &[("request", handle), ("decision", "allow")]);
        form.header("cookie", cookie).header(header.0, header.1).send().await.unwrap().status().as_u16()
    };
    let plain = ("x-nothing", "x");
    let ((mine, first), (other, _)) = (page().await, page().await);
    assert_eq!(send("a=b", &first, plain).await, 400);
    assert_eq!(send(&mine, &first, plain).await, 400, "one try is all there is");
    let (mine, second) = page().await;
    assert_eq!(send(&other, &second, plain).await, 400);
    for elsewhere in
        [("origin", "https://evil.example"), ("sec-fetch-site", "cross-site"), ("host", "evil.example")]
    {
        assert_eq!(send(&mine, &page().await.1, elsewhere).await, 403, "{elsewhere:?}");
    }
    let (mine, third) = page().await;
    assert_eq!(send(&mine, &third, ("origin", &site.base)).await, 302);
    assert_eq!(send(&mine, &third, plain).await, 400);
    let rebound = site.http.get(site.url("/authorize?client_id=app")).header("host", "evil.example");
    assert_eq!(rebound.send().await.unwrap().status(), 403);
}

/// A second page of the same browser does not invalidate the first.
#[tokio::test]
async fn two_pages_of_one_browser_are_two_questions() {
    let site = site().await;
    let first = site.authorize(&question(&[])).await;
    let cookie = header(&first, "set-cookie").split(';').next().unwrap().to_owned();
    let query = format!("/authorize?client_id=app&response_type=code&code_challenge={CHALLENGE}");
    let second = site.http.get(site.url(&query)).header("cookie", &cookie).send().await.unwrap();
    assert!(header(&second, "set-cookie").starts_with(&cookie));
    for page in [first, second] {
        let handle = handle(&page.text().await.unwrap());
        let form = site.post("/authorize/consent", &[("request", &handle), ("decision", "allow")]);
        assert_eq!(form.header("cookie", &cookie).send().await.unwrap().status(), 302);
    }
}

/// O-authorize-room: pages that are left open do not keep others from opening theirs; the oldest one makes room.
#[tokio::test]
async fn open_pages_make_room_for_new_ones() {
    let time = Time::new();
    let site = Site::with_authorization_server(&time, |builder| builder).await;
    let oldest = handle(&site.authorize(&question(&[])).await.text().await.unwrap());
    time.pass(1);
    let page = site.authorize(&question(&[])).await;
    let cookie = header(&page, "set-cookie").split(';').next().unwrap().to_owned();
    let second = handle(&page.text().await.unwrap());
    time.pass(1);
    for _ in 2..51 {
        assert_eq!(site.authorize(&question(&[])).await.status(), 200);
    }
    let submit = async |handle: &str| {
        let form = site.post("/authorize/consent", &[("request", handle), ("decision", "allow")]);
        form.header("cookie", &cookie).send().await.unwrap()
    };
    assert_eq!(refusal(submit(&oldest).await).await.2, "this page has been used or is too old");
    assert_eq!(submit(&second).await.status(), 302);
}

/// O-invisible: a name that would not be visible is replaced by the id of the client.
#[tokio::test]
async fn a_blank_name_is_not_shown() {
    let names = ["", " \u{a0}\u{2003}", "\u{3164}", "\u{e0041}\u{34f}\u{ad}", "\u{2800}\u{fe0f}"];
    let time = Time::new();
    let site = Site::with_authorization_server(&time, |builder| {
        names.iter().enumerate().fold(builder, |builder, (number, name)| {
            builder.client(RegisteredClient::public(format!("blank-{number}"), [REDIRECT]).name(*name))
        })
    });
    let site = site.await;
    for (number, name) in names.iter().enumerate() {
        let id = format!("blank-{number}");
        let page = site.authorize(&question(&[("client_id", &id)])).await.text().await.unwrap();
        assert!(page.contains(&format!("<b>{id}</b>")), "{name:?}: {page}");
    }
}

/// AS-03, O14: a declined request is redirected to the client as an error.
#[tokio::test]
async fn a_user_may_decline() {
    let site = site().await;
    let (_, pairs) = returned(&site.decide(&question(&[]), "deny").await);
    assert_eq!((value(&pairs, "error"), value(&pairs, "code")), ("access_denied", ""));
    assert_eq!((value(&pairs, "state"), value(&pairs, "iss")), ("st", &*site.base));
}

/// AS-03: a page expires after ten minutes; other methods and repeated parameters are rejected.
#[tokio::test]
async fn the_endpoint_takes_one_question_at_a_time() {
    let time = Time::new();
    let site = Site::with_authorization_server(&time, |builder| builder).await;
    let page = site.authorize(&question(&[])).await;
    let cookie = header(&page, "set-cookie").split(';').next().unwrap().to_owned();
    let handle = handle(&page.text().await.unwrap());
    time.pass(600);
    let form = site.post("/authorize/consent", &[("request", &handle), ("decision", "allow")]);
    assert_eq!(form.header("cookie", cookie).send().await.unwrap().status(), 400);
    let twice = site.get("/authorize?client_id=app&client_id=app").await;
    assert_eq!(refusal(twice).await.2, "a parameter is given more than once");
    assert_eq!(site.http.put(site.url("/authorize")).send().await.unwrap().status(), 405);
    let large = site.form("/authorize", &[("client_id", &"x".repeat(100_000))]).await;
    assert_eq!(large.status(), 413);
    let wrong_kind = site.http.post(site.url("/authorize")).body("client_id=app").send().await.unwrap();
    assert_eq!(wrong_kind.status(), 400);
}

/// O15: a request cannot make the server connect to its own machine.
#[tokio::test]
async fn a_client_s_document_is_not_fetched_from_this_machine() {
    let site = site().await;
    let own = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = own.local_addr().unwrap().port();
    for host in ["127.0.0.1", "localhost", "[::ffff:127.0.0.1]", "2130706433"] {
        let id = format!("https://{host}:{port}/client.json");
        let (status, ..) = refusal(site.authorize(&question(&[("client_id", &id)])).await).await;
        assert_eq!(status, 400, "{host}");
    }
    let called = std::future::poll_fn(|cx| std::task::Poll::Ready(own.poll_accept(cx).is_ready())).await;
    assert!(!called, "the document was not fetched");
}

/// A signed-in user of a first-party client is not asked; users of other clients are.
#[tokio::test]
async fn a_first_party_client_gets_a_code_without_the_page() {
    let time = Time::new();
    let own = "https://own.example/cb";
    let site = Site::with_authorization_server(&time, |builder| {
        builder.client(RegisteredClient::public("own", [own]).first_party())
    })
    .await;
    let asked = question(&[("client_id", "own"), ("redirect_uri", own)]);
    let response = site.authorize(&asked).await;
    assert_eq!(header(&response, "cache-control"), "no-store");
    let (to, pairs) = returned(&response);
    assert_eq!((to.as_str(), value(&pairs, "state")), (own, "st"));
    let redeemed = site.redeem(value(&pairs, "code"), &[("client_id", "own"), ("redirect_uri", own)]).await;
    assert_eq!(redeemed.status(), 200);
    let foreign = question(&[("client_id", "own"), ("redirect_uri", "https://evil.example/cb")]);
    assert_eq!(site.authorize(&foreign).await.status(), 400);
    assert_eq!(site.authorize(&question(&[])).await.status(), 200, "other clients show the page");
}

/// RFC 9207: a server that does not send `iss` says so in its metadata.
#[tokio::test]
async fn the_issuer_can_be_left_out_of_redirects() {
    let site =
        Site::with_authorization_server(&Time::new(), AuthorizationServerBuilder::without_iss_parameter)
            .await;
    let (_, pairs) = returned(&site.decide(&question(&[]), "allow").await);
    assert!(!value(&pairs, "code").is_empty() && !pairs.iter().any(|(name, _)| name == "iss"), "{pairs:?}");
    let metadata = json_of(site.get("/.well-known/oauth-authorization-server").await).await;
    assert_eq!(metadata["authorization_response_iss_parameter_supported"], false);
}
