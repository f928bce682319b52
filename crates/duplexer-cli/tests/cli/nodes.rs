//! The demo as one node of several, on a store that the test starts.

use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use crate::support::{Demo, Place, data_folder, run};

const SECRET: &str = "0123456789abcdef0123456789abcdef";

/// A store that ends with this value.
struct Store {
    process: Child,
    url: String,
}

impl Store {
    /// Starts a store. Without a program it reports that the test is skipped, which is a failure where `CI=true`.
    #[expect(clippy::print_stdout, reason = "a skipped test is reported")]
    fn start(test: &str) -> Option<Self> {
        let path = std::env::var_os("PATH").unwrap();
        let found = std::env::split_paths(&path)
            .flat_map(|folder| ["valkey-server", "redis-server"].map(|name| folder.join(name)))
            .find(|program| program.is_file());
        let Some(program) = std::env::var_os("REDIS_SERVER").map(PathBuf::from).or(found) else {
            assert!(
                !std::env::var("CI").is_ok_and(|value| value == "true"),
                "no redis-server: set REDIS_SERVER"
            );
            println!("SKIPPED (no redis-server): {test}");
            return None;
        };
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let process = Command::new(program)
            .args(["--port", &port.to_string(), "--bind", "127.0.0.1", "--save", ""])
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            std::thread::sleep(Duration::from_millis(20));
        }
        Some(Self { process, url: format!("redis://127.0.0.1:{port}") })
    }
}

impl Drop for Store {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// SCL-90: a task that one node runs is answered at another. Nodes of another namespace do not know it.
#[test]
fn demos_on_one_store_are_nodes_of_one_server() {
    let Some(store) = Store::start("nodes") else { return };
    let file = data_folder().join("secret");
    std::fs::create_dir_all(data_folder()).unwrap();
    std::fs::write(&file, format!("{SECRET}\n")).unwrap();
    let node = |name: &str, namespace: &str| {
        let secret = file.to_str().unwrap();
        let shared =
            ["--redis", &store.url, "--secret-file", secret, "--node", name, "--namespace", namespace];
        Demo::with(&shared)
    };
    let (one, two, other) = (node("one", "demo"), node("two", "demo"), node("three", "other"));
    let [one, two, other] = [&one, &two, &other].map(|demo| Place::http(demo, "envelope"));
    let id = one.run(&["call", "--detach", "report", "about=ants", "seconds:=1"]).ok();
    let state = two.run(&["task", "get", id.trim()]).ok();
    assert!(state.starts_with(&format!("{} ", id.trim())), "{state}");
    other.run(&["task", "get", id.trim()]).failed(5, "Unknown task");
    two.run(&["task", "cancel", id.trim()]).ok();
    one.run(&["task", "wait", id.trim()]).failed(5, "was cancelled");
}

/// SCL-52, SCL-90: without a secret, and without a store, the text says what to set.
#[test]
fn a_node_without_secret_or_store_says_what_to_set() {
    let Some(store) = Store::start("a node without a secret") else { return };
    let random = run(&["demo", "--port", "0", "--redis", &store.url]);
    random.failed(2, "give all nodes the same secret with");
    let random = run(&["demo", "--port", "0", "--redis", &store.url]);
    random.failed(2, "set DUPLEXER_SECRET to at least 32 random bytes");
    let absent = run(&["demo", "--port", "0", "--redis", "redis://app:hunter2@127.0.0.1:1"]);
    assert!(!absent.stderr.contains("hunter2"), "{}", absent.stderr);
    absent.failed(3, "no Redis or Valkey answers at 127.0.0.1:1");
    let alone = run(&["demo", "--namespace", "x"]);
    assert!(alone.code == Some(2) && alone.stderr.contains("--redis <URL>"), "{}", alone.stderr);
}
