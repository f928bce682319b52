//! A store process of its own, with a port and a folder of its own (SCL-95).

use std::net::TcpListener;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use duplexer_redis::{Connect, Shared};
use duplexer_tests::store_program;

/// A running store with an empty folder. It ends with this value.
pub struct Store {
    process: Child,
    folder: PathBuf,
    pub port: u16,
}

/// Number of stores of this process.
static FOLDERS: AtomicU32 = AtomicU32::new(0);

impl Store {
    /// Starts a store. Without a program it reports that the test is skipped, which is a failure where `CI=true`.
    pub async fn start(test: &str) -> Option<Self> {
        Self::start_with(test, &[]).await
    }

    /// Starts a store with further options.
    pub async fn start_with(test: &str, options: &[&str]) -> Option<Self> {
        let Some(program) = store_program::find() else {
            assert!(
                !std::env::var("CI").is_ok_and(|value| value == "true" || value == "1"),
                "no redis-server or valkey-server: set REDIS_SERVER, or install one"
            );
            println!("SKIPPED (no redis-server): {test}");
            return None;
        };
        let number = FOLDERS.fetch_add(1, Ordering::Relaxed);
        let folder = std::env::temp_dir().join(format!("duplexer-redis-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        // Another process can take the port before the store does.
        for _ in 0..10 {
            let port = free_port();
            let process = Command::new(&program)
                .args([
                    "--port",
                    &port.to_string(),
                    "--bind",
                    "127.0.0.1",
                    "--save",
                    "",
                    "--appendonly",
                    "yes",
                ])
                .arg("--dir")
                .arg(&folder)
                .args(options)
                .stdout(Stdio::null())
                .spawn()
                .unwrap();
            let mut store = Self { process, folder: folder.clone(), port };
            if store.is_ready().await {
                return Some(store);
            }
        }
        panic!("the store does not start");
    }

    async fn is_ready(&mut self) -> bool {
        for _ in 0..200 {
            if tokio::net::TcpStream::connect(("127.0.0.1", self.port)).await.is_ok() {
                return self.process.try_wait().unwrap().is_none();
            }
            if self.process.try_wait().unwrap().is_some() {
                return false;
            }
            tokio::time::sleep(Duration::from_millis(25)).await;
        }
        false
    }

    /// Starts a sentinel that watches a store under the name `main`.
    pub async fn start_sentinel(test: &str, watched: &Self) -> Option<Self> {
        let number = FOLDERS.fetch_add(1, Ordering::Relaxed);
        let folder = std::env::temp_dir().join(format!("duplexer-redis-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let (port, file) = (free_port(), folder.join("sentinel.conf"));
        let watched = watched.port;
        let settings = format!(
            "port {port}\nbind 127.0.0.1\nsentinel monitor main 127.0.0.1 {watched} 1\n\
             sentinel down-after-milliseconds main 500\nsentinel failover-timeout main 5000\n"
        );
        std::fs::write(&file, settings).unwrap();
        let Some(program) = store_program::find() else {
            println!("SKIPPED (no redis-server): {test}");
            return None;
        };
        let process =
            Command::new(program).arg(file).arg("--sentinel").stdout(Stdio::null()).spawn().unwrap();
        let mut sentinel = Self { process, folder, port };
        assert!(sentinel.is_ready().await, "the sentinel does not start");
        Some(sentinel)
    }

    /// Ends the process, as if its machine had died.
    pub fn kill(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }

    /// Returns its folder, which is removed with it.
    pub fn folder(&self) -> &std::path::Path {
        &self.folder
    }

    pub fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    /// Connects a node.
    pub async fn node(&self) -> Shared {
        self.connect().await.unwrap()
    }

    pub fn connect(&self) -> Connect {
        Shared::connect(self.url()).namespace("test").response_timeout(Duration::from_secs(4))
    }

    /// Returns a connection for commands of the test.
    pub async fn commands(&self) -> redis::aio::MultiplexedConnection {
        redis::Client::open(self.url()).unwrap().get_multiplexed_async_connection().await.unwrap()
    }
}

impl Drop for Store {
    fn drop(&mut self) {
        self.kill();
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// Returns a port that no program uses at the moment.
pub fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}
