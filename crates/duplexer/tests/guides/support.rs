// What snippets of the guides need and readers do not see: servers to connect to, a client of the program that is shown,
// a person with a browser, and an issuer of tokens. A snippet includes this file in one hidden line.

mod support {
    use std::collections::BTreeMap;
    use std::fmt::Write as _;
    use std::future::{Future, pending};
    use std::io::{Read, Write};
    use std::os::unix::fs::OpenOptionsExt;
    use std::path::Path;
    use std::process::Command;
    use std::time::{SystemTime, UNIX_EPOCH};
    use std::{env, fs, process};

    use axum::Router;
    use axum::routing::get;
    use base64::Engine;
    use base64::engine::general_purpose::URL_SAFE_NO_PAD;
    use duplexer::auth::{Auth, AuthorizationServer, DevBackend, RegisteredClient, StaticToken};
    use duplexer::client::{Client, ConnectError};
    use duplexer::http::StreamableHttp;
    use duplexer::http_client::HttpTransport;
    use duplexer::oauth::{Algorithm, Signer, SigningKey};
    use duplexer::{Server, Tool};
    use serde_json::{Value, json};
    use tokio::net::{TcpListener, TcpStream};
    use tokio::task::JoinHandle;

    /// Which part of a test this process is. The first one has no role.
    const ROLE: &str = "GUIDE_ROLE";
    const ARGUMENT: &str = "GUIDE_ARGUMENT";

    #[derive(serde::Deserialize, schemars::JsonSchema)]
    struct Add {
        a: i64,
        b: i64,
    }

    /// Returns a server with one tool, `add`.
    pub fn calculator() -> Server {
        let add = Tool::new("add", |Add { a, b }: Add| async move { a + b });
        Server::builder("calculator", "1.0.0").tool(add).build().unwrap()
    }

    /// Returns an address on which no program listens.
    pub fn free_address() -> &'static str {
        let address = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        address.to_string().leak()
    }

    /// Serves until the process ends, and returns the URL.
    pub async fn serve(server: Server) -> &'static str {
        let bound = StreamableHttp::new(server).bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/mcp", bound.local_addr().unwrap());
        tokio::spawn(bound.serve_until(pending()));
        url.leak()
    }

    /// Serves callers who have this token, until the process ends, and returns the URL.
    pub async fn serve_with_token(server: Server, token: &str) -> &'static str {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/mcp", listener.local_addr().unwrap());
        let token = StaticToken::new(token).client_id("guide").audience(&url);
        let auth = Auth::static_tokens([token]).audience(&url).build().unwrap();
        tokio::spawn(StreamableHttp::new(server).with_listener(listener).layer(auth).serve_until(pending()));
        url.leak()
    }

    /// Serves callers who have logged in with the authorization server at the same port, until the process ends, and
    /// returns the URL of that issuer. The endpoint is `/mcp`.
    pub async fn serve_with_login(server: Server) -> &'static str {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let issuer = format!("http://{}", listener.local_addr().unwrap());
        let url = format!("{issuer}/mcp");
        let service = RegisteredClient::service("service-7", "from the environment", ["mcp"]);
        let tokens = AuthorizationServer::builder(&issuer, DevBackend::new("ada")).resource(&url).scopes(["mcp"]);
        let tokens = tokens.client(service).build().unwrap();
        let auth = Auth::authorization_server(tokens).audience(url).require_scopes(["mcp"]).build().unwrap();
        tokio::spawn(StreamableHttp::new(server).with_listener(listener).layer(auth).serve_until(pending()));
        issuer.leak()
    }

    /// Connects with these headers.
    pub async fn connect(url: &str, headers: &[(&str, &str)]) -> Result<Client, ConnectError> {
        let transport = headers.iter().fold(HttpTransport::builder(url), |transport, (name, value)| transport.header(name, value));
        Client::builder("guide", "1").connect(transport.build().unwrap()).await
    }

    /// Runs `visitor` as soon as this program listens on `address`. Then ends the program as a supervisor does, also if the
    /// visitor panics.
    pub fn visit(address: &str, visitor: impl Future<Output = ()> + Send + 'static) -> JoinHandle<()> {
        let address = address.to_owned();
        tokio::spawn(async move {
            let visited = tokio::spawn(async move {
                while TcpStream::connect(&address).await.is_err() {
                    tokio::task::yield_now().await;
                }
                visitor.await;
            });
            let visited = visited.await;
            let process = process::id().to_string();
            assert!(Command::new("kill").args(["-TERM", &process]).status().unwrap().success());
            visited.unwrap();
        })
    }

    /// An issuer of signed tokens.
    pub struct Issuer {
        pub url: String,
        key: SigningKey,
    }

    impl Issuer {
        /// Serves metadata and keys until the process ends. The key is for this test only.
        pub async fn start() -> &'static Self {
            let (x, y) = ("y3rYpRI4zm43VgpVxfs5TynhsU49gGYzkt5QXesf8i0", "by_gtUZhyiVlWmncWzAUaPw54GWjWMb-zsV2N10Lrco");
            let mut key = json!({"kty": "EC", "crv": "P-256", "kid": "k", "use": "sig", "x": x, "y": y});
            let keys = json!({"keys": [key]}).to_string();
            key["d"] = "g0YjqY7v1gBG0oxb4ZjTnJ40Kwe4hMxSda0hikSX7eg".into();
            let key = SigningKey::jwk(Algorithm::Es256, &key).unwrap();
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let url = format!("http://{}", listener.local_addr().unwrap());
            let metadata = json!({"issuer": url, "jwks_uri": format!("{url}/keys")}).to_string();
            let site = Router::new()
                .route("/.well-known/openid-configuration", get(async move || metadata))
                .route("/keys", get(async move || keys));
            tokio::spawn(async move { axum::serve(listener, site).await.unwrap() });
            Box::leak(Box::new(Self { url, key }))
        }

        /// Returns the value of the header `Authorization` for a user.
        pub async fn bearer(&self, subject: &str, audience: &str, scope: &str) -> String {
            let expires = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs() + 600;
            let header = json!({"alg": "ES256", "typ": "at+jwt", "kid": "k"});
            let claims =
                json!({"iss": self.url, "sub": subject, "client_id": "guide", "aud": audience, "scope": scope, "exp": expires});
            let part = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
            let signed = format!("{}.{}", part(&header), part(&claims));
            let signature = self.key.sign(signed.as_bytes()).await.unwrap();
            format!("Bearer {signed}.{}", URL_SAFE_NO_PAD.encode(signature))
        }
    }

    /// Opens the login page of [`serve_with_login`], allows what it asks for, and returns where the browser is redirected to.
    pub async fn allow(page: &str) -> String {
        let page = page.to_owned();
        tokio::task::spawn_blocking(move || allow_at(&page)).await.unwrap()
    }

    fn allow_at(page: &str) -> String {
        let origin: Vec<&str> = page.splitn(4, '/').take(3).collect();
        let form = exchange("GET", page, "", "");
        let cookie = between(&form, "set-cookie: ", ";");
        let decision = format!("request={}&decision=allow", between(&form, "name=\"request\" value=\"", "\""));
        let answer = exchange("POST", &format!("{}/authorize/consent", origin.join("/")), cookie, &decision);
        between(&answer, "location: ", "\r\n").to_owned()
    }

    fn between<'a>(text: &'a str, before: &str, after: &str) -> &'a str {
        let found = text.split_once(before).and_then(|(_, rest)| rest.split_once(after));
        found.unwrap_or_else(|| panic!("no {before:?} in {text}")).0
    }

    /// Sends an HTTP request, and returns the response.
    fn exchange(method: &str, url: &str, cookie: &str, form: &str) -> String {
        let (host, path) = url.strip_prefix("http://").unwrap().split_once('/').unwrap();
        let mut stream = std::net::TcpStream::connect(host).unwrap();
        let head = format!("{method} /{path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\nCookie: {cookie}\r\n");
        let length = form.len();
        let kind = "Content-Type: application/x-www-form-urlencoded";
        write!(stream, "{head}{kind}\r\nContent-Length: {length}\r\n\r\n{form}").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }

    /// A Redis or Valkey that ends with this value.
    pub struct Store {
        pub url: String,
        process: process::Child,
        folder: std::path::PathBuf,
    }

    /// Starts a store. Without a program for it the snippet is only compiled, which is a failure where `CI=true`.
    pub async fn store() -> Option<Store> {
        let path = env::var_os("PATH").unwrap();
        let on_path = |name: &&str| env::split_paths(&path).any(|folder| folder.join(name).is_file());
        let program = env::var("REDIS_SERVER").ok();
        let found = ["valkey-server", "redis-server"].into_iter().find(on_path).map(str::to_owned);
        let Some(program) = program.or(found) else {
            assert!(!env::var("CI").is_ok_and(|value| value == "true"), "no redis-server: set REDIS_SERVER");
            println!("SKIPPED (no redis-server): a snippet of the guides");
            return None;
        };
        let folder = env::temp_dir().join(format!("duplexer-guide-store-{}", process::id()));
        fs::create_dir(&folder).unwrap();
        let (host, port) = free_address().split_once(':').unwrap();
        let mut command = Command::new(program);
        command.args(["--bind", host, "--port", port, "--save", "", "--dir"]).arg(&folder);
        let process = command.stdout(process::Stdio::null()).spawn().unwrap();
        let store = Store { url: format!("redis://{host}:{port}"), process, folder };
        while TcpStream::connect(format!("{host}:{port}")).await.is_err() {
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
        Some(store)
    }

    impl Drop for Store {
        fn drop(&mut self) {
            let _ = self.process.kill();
            let _ = self.process.wait();
            let _ = fs::remove_dir_all(&self.folder);
        }
    }

    /// Continues the test in a process of its own, whose user has these programs, a browser, and an empty data folder. Each
    /// program serves a [`calculator`] on standard input and output.
    pub async fn on_machine_with(programs: &[&str]) {
        match env::var(ROLE).as_deref() {
            Ok("user") => return,
            Ok("server") => duplexer::serve_stdio(&calculator()).await.unwrap(),
            Ok("browser") => {
                let page = env::var(ARGUMENT).unwrap();
                tokio::task::spawn_blocking(move || exchange("GET", &allow_at(&page), "", "")).await.unwrap();
            }
            _ => {
                let folder = env::temp_dir().join(format!("duplexer-guide-{}", process::id()));
                fs::create_dir(&folder).unwrap();
                let status = run_as_user(programs, &folder);
                fs::remove_dir_all(&folder).unwrap();
                assert!(status.success(), "{status}");
            }
        }
        process::exit(0)
    }

    fn run_as_user(programs: &[&str], folder: &Path) -> process::ExitStatus {
        for program in programs {
            write_script(&folder.join(program), "server");
        }
        write_script(&folder.join("browser"), "browser");
        let path = env::join_paths([folder.to_owned()].into_iter().chain(env::split_paths(&env::var_os("PATH").unwrap())));
        Command::new(env::current_exe().unwrap())
            .env(ROLE, "user")
            .env("PATH", path.unwrap())
            .env("BROWSER", folder.join("browser"))
            .env("XDG_DATA_HOME", folder)
            .status()
            .unwrap()
    }

    /// Writes a program that runs this one in another role. The test to run is in variables of rustdoc.
    fn write_script(path: &Path, role: &str) {
        let test: BTreeMap<String, String> = env::vars().filter(|(name, _)| name.starts_with("RUSTDOC_")).collect();
        let mut script = format!("#!/bin/sh\nexport {ROLE}={role} {ARGUMENT}=\"$*\"");
        for (name, value) in test {
            write!(script, " {name}='{value}'").unwrap();
        }
        writeln!(script, "\nexec '{}'", env::current_exe().unwrap().display()).unwrap();
        let mut file = fs::OpenOptions::new().write(true).create_new(true).mode(0o700).open(path).unwrap();
        file.write_all(script.as_bytes()).unwrap();
    }
}

use support::*;
