//! Processes of examples, and clients of them.

use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use duplexer::client::{Client, ClientBuilder};
use duplexer::http_client::HttpTransport;
use duplexer::transport::child::{self, ChildCommand};
use duplexer::types::tool::CallToolResult;
use tokio::task::JoinSet;
use tokio::time::Instant;

/// A client of an example on standard input and output. The process ends with it.
pub(crate) struct Started {
    pub(crate) client: Client,
    process: child::Child,
}

impl Started {
    pub(crate) async fn new(command: ChildCommand) -> Self {
        Self::with(command, Client::builder("test", "1")).await
    }

    pub(crate) async fn with(command: ChildCommand, client: ClientBuilder) -> Self {
        let (transport, process) = command.spawn().unwrap();
        Self { client: client.connect(transport).await.unwrap(), process }
    }

    pub(crate) async fn end(self) {
        self.client.close().await.unwrap();
        assert!(self.process.shutdown().await.unwrap().success());
    }
}

/// An example that serves HTTP. It is killed with this value.
pub(crate) struct Site {
    process: Child,
    pub(crate) address: String,
}

impl Site {
    /// Starts a program with its address as the first argument, and waits until it listens.
    pub(crate) fn new(program: &str, arguments: &[&str]) -> Self {
        Self::with(program, |address| {
            let arguments = arguments.iter().map(|argument| (*argument).to_owned());
            [address.to_owned()].into_iter().chain(arguments).collect()
        })
    }

    /// Starts a program with the arguments that `arguments` returns for its address.
    pub(crate) fn with(program: &str, arguments: impl FnOnce(&str) -> Vec<String>) -> Self {
        let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
        let process = Command::new(program).args(arguments(&address)).stdin(Stdio::null()).spawn().unwrap();
        let mut site = Self { process, address };
        let deadline = Instant::now() + Duration::from_secs(30);
        while TcpStream::connect(&site.address).is_err() {
            assert!(Instant::now() < deadline, "{program} does not listen");
            assert_eq!(site.process.try_wait().unwrap(), None, "{program} has ended");
            std::thread::yield_now();
        }
        site
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}/mcp", self.address)
    }

    pub(crate) async fn client(&self, token: &str) -> Client {
        let transport =
            HttpTransport::builder(&self.url()).header("Authorization", &format!("Bearer {token}"));
        Client::builder("test", "1").connect(transport.build().unwrap()).await.unwrap()
    }

    /// Ends the program as a supervisor does, and returns whether it ended in good order.
    pub(crate) fn terminate(mut self) -> bool {
        let process = self.process.id().to_string();
        assert!(Command::new("kill").args(["-TERM", &process]).status().unwrap().success());
        self.process.wait().unwrap().success()
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// A server of the test itself. It ends with this value.
pub(crate) struct Background {
    pub(crate) url: String,
    _task: JoinSet<std::io::Result<()>>,
}

impl Background {
    /// Serves the routes that `routes` returns for the URL of the server.
    pub(crate) async fn new(routes: impl FnOnce(&str) -> axum::Router) -> Self {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let app = routes(&url);
        let mut task = JoinSet::new();
        task.spawn(async move { axum::serve(listener, app).await });
        Self { url, _task: task }
    }
}

/// A new folder, removed with this value.
pub(crate) struct Folder(PathBuf);

impl Folder {
    pub(crate) fn new() -> Self {
        static NUMBER: AtomicUsize = AtomicUsize::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("duplexer-example-{}-{number}", std::process::id()));
        std::fs::create_dir(&path).unwrap();
        Self(path)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Returns the first text of a result.
pub(crate) fn text(result: &CallToolResult) -> &str {
    result.content.first().and_then(|content| content.as_text()).unwrap_or_default()
}

pub(crate) async fn tool_names(client: &Client) -> Vec<String> {
    client.all_tools().await.unwrap().into_iter().map(|tool| tool.name).collect()
}
