//! Tokens of the protected server, obtained as a browser and a client would.

use duplexer_tests::protected::{REDIRECT, SCOPE};
use serde_json::Value;

use super::site::{Post, Reply, Site};

/// The verifier and challenge of RFC 7636, appendix B.
const VERIFIER: &str = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk";
const CHALLENGE: &str = "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM";

/// Tokens of one client.
pub struct Tokens {
    pub client: &'static str,
    pub access: String,
    pub refresh: String,
}

/// Builds a form for an endpoint of the authorization server.
pub fn form(site: &Site, path: &str, pairs: &[(&str, &str)]) -> Post {
    let text: Vec<_> = pairs.iter().map(|(name, value)| format!("{name}={}", escaped(value))).collect();
    Post::at(path, text.join("&"))
        .header("Host", &site.address.to_string())
        .header("Content-Type", "application/x-www-form-urlencoded")
}

fn escaped(text: &str) -> String {
    let byte = |byte: u8| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' => char::from(byte).to_string(),
        other => format!("%{other:02X}"),
    };
    text.bytes().map(byte).collect()
}

/// Signs in and returns a code.
pub async fn code(site: &Site, client: &str) -> String {
    let pairs = [
        ("response_type", "code"),
        ("client_id", client),
        ("redirect_uri", REDIRECT),
        ("code_challenge", CHALLENGE),
        ("code_challenge_method", "S256"),
        ("scope", SCOPE),
    ];
    let question = form(site, "", &pairs);
    let page = Post { path: format!("/authorize?{}", question.body), body: String::new(), ..question };
    let page = site.send(&page.method("GET")).await;
    assert_eq!(page.status, 200, "{}", page.body);
    let (_, handle) = page.body.split_once("name=\"request\" value=\"").expect("a form");
    let handle = handle.split('"').next().unwrap();
    let cookie = page.headers["set-cookie"].split(';').next().unwrap();
    let consent = form(site, "/authorize/consent", &[("request", handle), ("decision", "allow")]);
    let reply = site.send(&consent.header("Cookie", cookie)).await;
    let (_, code) = reply.headers["location"].split_once("code=").expect("a code");
    code.split('&').next().unwrap().to_owned()
}

pub fn redeem(site: &Site, client: &str, code: &str) -> Post {
    let pairs = [
        ("grant_type", "authorization_code"),
        ("client_id", client),
        ("code", code),
        ("redirect_uri", REDIRECT),
        ("code_verifier", VERIFIER),
    ];
    form(site, "/token", &pairs)
}

impl Tokens {
    pub async fn of(site: &Site, client: &'static str) -> Self {
        let code = code(site, client).await;
        let reply = site.send(&redeem(site, client, &code)).await;
        Self::issued(client, &reply)
    }

    pub fn issued(client: &'static str, reply: &Reply) -> Self {
        assert_eq!(reply.status, 200, "{}", reply.body);
        let body: Value = serde_json::from_str(&reply.body).unwrap();
        let text = |name: &str| body[name].as_str().expect("a token").to_owned();
        Self { client, access: text("access_token"), refresh: text("refresh_token") }
    }

    pub fn renewal(&self, site: &Site) -> Post {
        let pairs =
            [("grant_type", "refresh_token"), ("client_id", self.client), ("refresh_token", &self.refresh)];
        form(site, "/token", &pairs)
    }

    pub async fn revoke(&self, site: &Site) {
        let pairs = [("client_id", self.client), ("token", &*self.access)];
        assert_eq!(site.send(&form(site, "/revoke", &pairs)).await.status, 200);
    }

    /// Adds the access token to a request.
    pub fn on(&self, post: Post) -> Post {
        post.header("Authorization", &format!("Bearer {}", self.access))
    }
}
