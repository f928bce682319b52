//! Examples that serve HTTP.

use std::time::{SystemTime, UNIX_EPOCH};

use axum::Router;
use axum::routing::get;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use duplexer::client::{Client, OpenClient as _};
use reqwest::StatusCode;
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::support::{Background, Site, text, tool_names};

/// An issuer of signed tokens.
struct Issuer {
    site: Background,
    key: EcdsaKeyPair,
}

impl Issuer {
    async fn new() -> Self {
        let (kind, random) = (&ECDSA_P256_SHA256_FIXED_SIGNING, SystemRandom::new());
        let key = EcdsaKeyPair::generate_pkcs8(kind, &random).unwrap();
        let key = EcdsaKeyPair::from_pkcs8(kind, key.as_ref(), &random).unwrap();
        let public = key.public_key().as_ref();
        let (x, y) = (URL_SAFE_NO_PAD.encode(&public[1..33]), URL_SAFE_NO_PAD.encode(&public[33..65]));
        let keys = json!({"keys": [{"kty": "EC", "crv": "P-256", "kid": "k", "use": "sig", "x": x, "y": y}]});
        let site = Background::new(|url| {
            let metadata = json!({"issuer": url, "jwks_uri": format!("{url}/keys")});
            Router::new()
                .route("/.well-known/openid-configuration", get(async move || metadata.to_string()))
                .route("/keys", get(async move || keys.to_string()))
        });
        Self { site: site.await, key }
    }

    fn token(&self, subject: &str, audience: &str, scope: &str) -> String {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
        let header = json!({"alg": "ES256", "typ": "at+jwt", "kid": "k"});
        let claims =
            json!({"iss": self.site.url, "sub": subject, "aud": audience, "scope": scope, "exp": now + 600});
        let part = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
        let signed = format!("{}.{}", part(&header), part(&claims));
        let signature = self.key.sign(&SystemRandom::new(), signed.as_bytes()).unwrap();
        format!("{signed}.{}", URL_SAFE_NO_PAD.encode(signature))
    }
}

/// Returns a client that follows no redirects.
fn browser() -> reqwest::Client {
    let _ = rustls::crypto::ring::default_provider().install_default();
    reqwest::Client::builder().redirect(reqwest::redirect::Policy::none()).build().unwrap()
}

#[tokio::test]
async fn the_axum_application_requires_tokens_and_scopes_and_ends_in_good_order() {
    let issuer = Issuer::new().await;
    let site = Site::new(env!("CARGO_BIN_EXE_axum-jwt"), &[&issuer.site.url]);
    let http = browser();
    let page = http.get(format!("http://{}/", site.address)).send().await.unwrap();
    assert_eq!(page.text().await.unwrap(), "Notes for your assistant.");
    let stranger = http.post(site.url()).send().await.unwrap();
    assert_eq!(stranger.status(), StatusCode::UNAUTHORIZED);
    let challenge = stranger.headers()["www-authenticate"].to_str().unwrap().to_owned();
    let (_, metadata) = challenge.split_once("resource_metadata=\"").unwrap();
    let metadata = http.get(metadata.split('"').next().unwrap()).send().await.unwrap();
    let metadata: Value = serde_json::from_str(&metadata.text().await.unwrap()).unwrap();
    assert_eq!(metadata["authorization_servers"], json!([issuer.site.url]));

    let ada = site.client(&issuer.token("ada", &site.url(), "notes notes:write")).await;
    ada.call_tool("add_note", json!({"text": "buy bread"})).await.unwrap();
    let bob = site.client(&issuer.token("bob", &site.url(), "notes")).await;
    assert!(bob.call_tool("add_note", json!({"text": "mine"})).await.is_err());
    let notes = async |client: &Client| text(&client.call_tool("notes", ()).await.unwrap()).to_owned();
    assert_eq!(notes(&ada).await, r#"["buy bread"]"#);
    assert_eq!(notes(&bob).await, "[]");
    ada.close().await.unwrap();
    bob.close().await.unwrap();
    assert!(site.terminate());
}

/// The flow of a host: it registers, sends the user to a page with "Allow", and redeems the code for a token.
#[tokio::test]
async fn the_dev_login_gives_a_token_to_a_client_that_the_user_allows() {
    let site = Site::new(env!("CARGO_BIN_EXE_dev-login"), &[]);
    let base = format!("http://{}", site.address);
    let http = browser();
    assert_eq!(http.post(site.url()).send().await.unwrap().status(), StatusCode::UNAUTHORIZED);

    let back = "http://127.0.0.1:9/back";
    let registration =
        json!({"redirect_uris": [back], "client_name": "test", "token_endpoint_auth_method": "none"});
    let registered = http.post(format!("{base}/register")).json(&registration).send().await.unwrap();
    let registered: Value = registered.json().await.unwrap();
    let client_id = registered["client_id"].as_str().unwrap();

    let verifier = "a-verifier-of-at-least-forty-three-characters-0";
    let challenge = URL_SAFE_NO_PAD.encode(Sha256::digest(verifier));
    let question = url::Url::parse_with_params(
        &format!("{base}/authorize"),
        [
            ("response_type", "code"),
            ("client_id", client_id),
            ("redirect_uri", back),
            ("code_challenge", &challenge),
            ("code_challenge_method", "S256"),
            ("resource", &site.url()),
            ("scope", "mcp"),
        ],
    );
    let page = http.get(question.unwrap().as_str()).send().await.unwrap();
    let cookie = page.headers()["set-cookie"].to_str().unwrap().split(';').next().unwrap().to_owned();
    let page = page.text().await.unwrap();
    let (_, handle) = page.split_once("name=\"request\" value=\"").unwrap();
    let decision = [("request", handle.split('"').next().unwrap()), ("decision", "allow")];
    let consent = http.post(format!("{base}/authorize/consent")).header("cookie", cookie);
    let sent_back = consent.form(&decision).send().await.unwrap();
    let location = url::Url::parse(sent_back.headers()["location"].to_str().unwrap()).unwrap();
    let code = location.query_pairs().find(|(name, _)| name == "code").unwrap().1.into_owned();

    let redemption = [
        ("grant_type", "authorization_code"),
        ("client_id", client_id),
        ("code", &code),
        ("redirect_uri", back),
        ("code_verifier", verifier),
    ];
    let token = http.post(format!("{base}/token")).form(&redemption).send().await.unwrap();
    let token: Value = token.json().await.unwrap();
    let client = site.client(token["access_token"].as_str().unwrap()).await;
    assert_eq!(text(&client.call_tool("whoami", ()).await.unwrap()), "ada");
    client.close().await.unwrap();
    assert!(site.terminate());
}

#[tokio::test]
async fn dynamic_tools_depend_on_the_caller_and_change() {
    let site = Site::new(env!("CARGO_BIN_EXE_dynamic"), &[]);
    let (reader, admin) = (site.client("reader-token").await, site.client("admin-token").await);
    assert_eq!(tool_names(&reader).await, ["whoami"]);
    assert_eq!(tool_names(&admin).await, ["whoami", "learn", "forget"]);
    let lesson = json!({"name": "hello", "text": "Hi"});
    assert!(reader.call_tool("learn", lesson.clone()).await.is_err());
    admin.call_tool("learn", lesson).await.unwrap();
    assert_eq!(text(&reader.call_tool("hello", ()).await.unwrap()), "Hi");
    admin.call_tool("forget", json!({"name": "hello"})).await.unwrap();
    assert_eq!(tool_names(&reader).await, ["whoami"]);
    reader.close().await.unwrap();
    admin.close().await.unwrap();
    assert!(site.terminate());
}

/// A certificate for `localhost` in files, which are removed with it.
struct Certificate(std::path::PathBuf);

impl Certificate {
    fn new() -> (Self, String) {
        let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        let folder = std::env::temp_dir().join(format!("duplexer-example-tls-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("cert.pem"), made.cert.pem()).unwrap();
        std::fs::write(folder.join("key.pem"), made.signing_key.serialize_pem()).unwrap();
        (Self(folder), made.cert.pem())
    }

    fn path(&self, name: &str) -> String {
        self.0.join(name).to_str().unwrap().to_owned()
    }
}

impl Drop for Certificate {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[tokio::test]
async fn the_tls_example_serves_https() {
    let (certificate, pem) = Certificate::new();
    let program = env!("CARGO_BIN_EXE_tls");
    let paths = [certificate.path("cert.pem"), certificate.path("key.pem")];
    let site = Site::with(program, |address| [&paths[..], &[address.to_owned()]].concat());
    let _ = rustls::crypto::ring::default_provider().install_default();
    let root = reqwest::Certificate::from_pem(pem.as_bytes()).unwrap();
    let http = reqwest::Client::builder().tls_certs_only([root]).build().unwrap();
    let url = format!("https://localhost:{}/livez", site.address.rsplit(':').next().unwrap());
    let reply = http.get(url).send().await.unwrap();
    assert_eq!(reply.status(), StatusCode::OK);
    assert!(site.terminate());
}

/// The socket of this test becomes that of the server, as systemd passes it on.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn the_socket_of_another_process_is_served() {
    use std::os::fd::{AsRawFd as _, OwnedFd};

    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let socket = OwnedFd::from(listener);
    // A shell moves the socket to the third descriptor and names itself, as the protocol of systemd requires.
    let script = format!(
        "exec 3<&0 </dev/null; LISTEN_PID=$$ LISTEN_FDS=1 exec {}",
        env!("CARGO_BIN_EXE_socket-activation")
    );
    assert!(socket.as_raw_fd() > 2);
    let mut process = std::process::Command::new("sh").args(["-c", &script]).stdin(socket).spawn().unwrap();
    let client = Client::open(format!("http://{address}/mcp").as_str()).await.unwrap();
    let sum = client.call_tool("add", json!({"a": 2, "b": 3})).text().await.unwrap();
    assert_eq!(sum, "5");
    let id = process.id().to_string();
    assert!(std::process::Command::new("kill").args(["-TERM", &id]).status().unwrap().success());
    assert!(process.wait().unwrap().success());
}
