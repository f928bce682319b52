//! What is wrong with a store is said at start, and what to change.

use std::io::Write;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use duplexer::testing::store_laws::LAWS;
use duplexer_core::error::{Chain, StoreError};
use duplexer_http::{Health, HttpConfigError, SessionRecord, StreamableHttp};
use duplexer_redis::{Connect, Shared};
use duplexer_server::request_state::RequestState;
use duplexer_server::{ConnectionSnapshot, Server};

use super::laws::{EXPIRY, OnStore};
use super::proxy::{Fault, Proxy};
use super::store::{Store, free_port};

async fn refused(url: String) -> String {
    text_of(Shared::connect(url)).await
}

async fn text_of(connect: Connect) -> String {
    assert!(!format!("{connect:?}").contains("hunter2"));
    let error = connect.await.unwrap_err();
    let text = Chain(&error).to_string();
    assert!(
        !text.contains("hunter2") && !format!("{error:?}").contains("hunter2"),
        "the password is in: {text}"
    );
    error.to_string()
}

#[tokio::test]
async fn a_wrong_url_is_named() {
    let text = refused("http://user:hunter2@localhost".to_owned()).await;
    assert!(text.starts_with("the URL of the store is not valid"), "{text}");
    let text = Shared::connect("redis://localhost").namespace("a b").await.unwrap_err().to_string();
    assert!(text.starts_with("the namespace `a b` is not valid"), "{text}");
}

#[tokio::test]
async fn an_absent_store_is_named_without_the_password() {
    let port = free_port();
    let text = refused(format!("redis://user:hunter2@127.0.0.1:{port}")).await;
    assert_eq!(text, format!("no Redis or Valkey answers at 127.0.0.1:{port}"));
    let sentinel = refused(format!("redis-sentinel://user:hunter2@127.0.0.1:{port}/main")).await;
    assert_eq!(sentinel, text);
    let cluster = refused(format!("redis://user:hunter2@127.0.0.1:{port},127.0.0.1:{port}")).await;
    assert_eq!(cluster, format!("{text}, 127.0.0.1:{port}"));
}

/// SCL-25: a missing right is named with the rule that gives it.
#[tokio::test]
async fn wrong_credentials_and_missing_rights_are_named() {
    let Some(store) = Store::start("rights").await else { return };
    let mut commands = store.commands().await;
    let mut acl = async |rules: &[&str]| {
        let mut command = redis::cmd("ACL");
        command.arg("SETUSER").arg("app").arg("reset").arg("on").arg(">hunter2");
        for rule in rules {
            command.arg(*rule);
        }
        let () = command.query_async(&mut commands).await.unwrap();
    };
    let url = |password: &str| format!("redis://app:{password}@127.0.0.1:{}", store.port);
    let enough = documented_rules();
    acl(&enough).await;
    // SCL-89: the documented rules are enough for everything that a node does.
    let stores = OnStore::new(url("hunter2"), Duration::from_secs(60));
    for law in LAWS.iter().filter(|law| !EXPIRY.contains(&law.name())) {
        law.check(&stores).await.unwrap();
    }
    let text = refused(url("wrong")).await;
    let expected = format!(
        "the store at 127.0.0.1:{} rejects the user name or the password: set them in the URL, or the password with \
         `password_file` or `password_env`",
        store.port
    );
    assert_eq!(text, expected);
    for (rule, command) in [
        ("+@read", "EXISTS"),
        ("+@write", "PEXPIRE"),
        ("+@scripting", "EVAL"),
        ("+time", "TIME"),
        ("+info", "INFO"),
    ] {
        let without: Vec<&str> = enough.iter().copied().filter(|given| *given != rule).collect();
        acl(&without).await;
        let text = refused(url("hunter2")).await;
        assert_eq!(text, format!("the store denies `{command}`: add `{rule}` to the ACL of the user"));
    }
}

/// Returns the rules that the guide gives to the user of the nodes.
fn documented_rules() -> Vec<&'static str> {
    let guide = include_str!("../../../crates/duplexer/guide/scaling_out.md");
    let line = guide.lines().find_map(|line| line.strip_prefix("ACL SETUSER app on >PASSWORD "));
    line.expect("a line with the rules").split(' ').collect()
}

/// SCL-80: the password is in the URL, in a file or in the environment.
#[tokio::test]
async fn a_password_is_read_from_its_place() {
    let Some(store) = Store::start_with("passwords", &["--requirepass", "hunter2"]).await else { return };
    let address = format!("127.0.0.1:{}", store.port);
    let connect = || Shared::connect(format!("redis://{address}"));
    Shared::connect(format!("redis://:hunter2@{address}")).await.unwrap();
    let file = store.folder().join("password");
    std::fs::write(&file, "hunter2\n").unwrap();
    connect().password_file(&file).await.unwrap();
    let rejected = format!("the store at {address} rejects the user name or the password: ");
    assert!(text_of(connect()).await.starts_with(&rejected));
    std::fs::write(&file, "hunter3\n").unwrap();
    assert!(text_of(connect().password_file(&file)).await.starts_with(&rejected));
    let absent = store.folder().join("absent");
    let text = text_of(connect().password_file(&absent)).await;
    assert_eq!(
        text,
        format!("the file '{}' with the password of the store cannot be read", absent.display())
    );
    let text = text_of(connect().password_env("DUPLEXER_NO_SUCH_VARIABLE")).await;
    let expected =
        "the environment variable `DUPLEXER_NO_SUCH_VARIABLE` with the password of the store is not set";
    assert_eq!(text, expected);
    // A variable that every process has, with a value that is not the password.
    assert!(text_of(connect().password_env("PATH")).await.starts_with(&rejected));
}

/// SCL-80: a socket of this machine.
#[cfg(unix)]
#[tokio::test]
async fn a_store_is_reached_over_a_unix_socket() {
    let path = std::env::temp_dir().join(format!("duplexer-{}.sock", std::process::id()));
    let socket = path.to_str().unwrap();
    let Some(store) = Store::start_with("sockets", &["--unixsocket", socket]).await else { return };
    let shared = Shared::connect(format!("unix://{socket}")).await.unwrap();
    assert!(shared.stats().trips > 0);
    drop(store);
    assert_eq!(refused(format!("unix://{socket}")).await, format!("no Redis or Valkey answers at {socket}"));
}

/// SCL-81, SCL-82, SCL-83, SCL-86: settings that cannot work are named, before anything is connected.
#[tokio::test]
async fn settings_that_cannot_work_are_named() {
    let connect = || Shared::connect("redis://127.0.0.1:1");
    let zero = Duration::ZERO;
    let minute = Duration::from_secs(60);
    let faults: [(Connect, &str); 8] = [
        (
            connect().namespace(""),
            "the namespace `` is not valid: it has 1 to 64 letters, digits, `-`, `_` and `.`",
        ),
        (connect().response_timeout(zero), "`response_timeout` must be longer than zero"),
        (connect().patience(zero), "`patience` must be longer than zero"),
        (connect().lease(zero), "`lease` must be longer than zero"),
        (connect().poll(zero), "`poll` must be longer than zero"),
        (connect().session_expiry(zero), "`session_expiry` must be longer than zero"),
        (connect().stream_expiry(minute, zero), "`stream_expiry` must be longer than zero"),
        (
            connect().seal(["short"]),
            "the ring of secrets for `seal` cannot be used: a secret has less than 32 bytes; each secret has at least 32 \
             random bytes",
        ),
    ];
    for (connect, expected) in faults {
        assert_eq!(text_of(connect).await, expected);
    }
}

/// SCL-81, SCL-82: the node, its namespace and its lease are in the store, for people.
#[tokio::test]
async fn a_node_is_found_by_its_name() {
    let Some(store) = Store::start("names").await else { return };
    let lease = Duration::from_secs(60);
    let _named = store.connect().namespace("prod").node("pod-7").lease(lease).await.unwrap();
    let _unnamed = store.connect().namespace("prod").await.unwrap();
    let mut commands = store.commands().await;
    let keys: Vec<String> =
        redis::cmd("KEYS").arg("dpx1:prod:{n:*}:a").query_async(&mut commands).await.unwrap();
    let mut names = Vec::new();
    for key in &keys {
        let name: String = redis::cmd("GET").arg(key).query_async(&mut commands).await.unwrap();
        let expiry: u64 = redis::cmd("PTTL").arg(key).query_async(&mut commands).await.unwrap();
        let length = if name.starts_with("pod-7 ") { 60_000 } else { 10_000 };
        assert!((length - 9_000..=length).contains(&expiry), "{name}: {expiry}");
        names.push(name);
    }
    assert_eq!(names.len(), 2);
    assert!(names.iter().any(|name| name.starts_with("pod-7 ")), "{names:?}");
    assert!(names.iter().all(|name| !name.starts_with("process ")), "the name of the host: {names:?}");
}

/// What the log of one thread contains.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// SCL-25: a policy that evicts sessions is a warning, and what to set.
#[tokio::test]
async fn a_policy_that_evicts_sessions_is_a_warning() {
    let log = Log::default();
    let writer = log.clone();
    let subscriber = tracing_subscriber::fmt().with_writer(move || writer.clone()).finish();
    let _logged = tracing::subscriber::set_default(subscriber);
    let warning =
        "the store can evict sessions and events while they are in use: set `maxmemory-policy noeviction`";
    for (policy, is_warned) in [("noeviction", false), ("volatile-ttl", false), ("allkeys-lru", true)] {
        let options = ["--maxmemory", "64mb", "--maxmemory-policy", policy];
        let Some(store) = Store::start_with("eviction", &options).await else { return };
        log.0.lock().unwrap().clear();
        store.connect().await.unwrap();
        let text = String::from_utf8(log.0.lock().unwrap().clone()).unwrap();
        assert_eq!(text.contains(warning), is_warned, "{policy}: {text}");
    }
}

/// SCL-29, SCL-67: a full store is named at start, and refuses new sessions later.
#[tokio::test]
async fn a_full_store_is_named() {
    let Some(store) = Store::start("a full store").await else { return };
    let node = store.node().await;
    let mut commands = store.commands().await;
    let () =
        redis::cmd("CONFIG").arg("SET").arg("maxmemory").arg("1").query_async(&mut commands).await.unwrap();
    let text = text_of(store.connect()).await;
    assert_eq!(text, "the store is full: raise its `maxmemory`, or give it a Redis or Valkey of its own");
    let record = SessionRecord::new(ConnectionSnapshot::new("2025-11-25".to_owned()), None);
    let created = node.stores().sessions.create("s", &record).await;
    assert!(matches!(created, Err(StoreError::Full)), "{created:?}");
    let () =
        redis::cmd("CONFIG").arg("SET").arg("maxmemory").arg("0").query_async(&mut commands).await.unwrap();
    node.stores().sessions.create("s", &record).await.unwrap();
}

/// SCL-52: nodes that share a store and do not share the key for request states do not start.
#[tokio::test]
async fn a_random_key_for_request_states_is_refused() {
    let Some(store) = Store::start("request states").await else { return };
    let shared = store.node().await;
    let build = |server: Server| StreamableHttp::builder(server).scale_out(&shared).build();
    let server = || Server::builder("calculator", "1.0.0");
    for random in [server(), server().request_state(RequestState::ephemeral())] {
        let error = build(random.build().unwrap()).unwrap_err();
        assert!(matches!(error, HttpConfigError::RandomStateKey), "{error:?}");
        let text = error.to_string();
        assert!(text.contains("give all nodes the same secret with"), "{text}");
    }
    let keys = RequestState::keys([[7_u8; 32]]).unwrap();
    assert!(build(server().request_state(keys).build().unwrap()).is_ok());
}

/// SCL-85, SCL-88: a node without its store is not ready where it serves sessions, and is again when the store is back.
#[tokio::test]
async fn a_node_without_its_store_is_not_ready() {
    let Some(store) = Store::start("readiness").await else { return };
    let proxy = Proxy::start(store.port).await;
    let shared = Shared::connect(proxy.url()).lease(Duration::from_secs(2)).await.unwrap();
    let keys = || RequestState::keys([[7_u8; 32]]).unwrap();
    let server = || Server::builder("calculator", "1.0.0").request_state(keys()).build().unwrap();
    let with_sessions = StreamableHttp::builder(server()).scale_out(&shared).build().unwrap();
    let without = StreamableHttp::builder(server())
        .scale_out(&shared)
        .handshake(duplexer_http::Handshake::Stateless)
        .build()
        .unwrap();
    let ready = || (with_sessions.readiness().is_ready(), without.readiness().is_ready());
    assert_eq!(ready(), (true, true));
    proxy.set(Fault::Cut);
    while shared.stores().nodes.health() == Health::Healthy {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert_eq!(ready(), (false, true));
    proxy.set(Fault::None);
    while shared.stores().nodes.health() != Health::Healthy {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert_eq!(ready(), (true, true));
}
