//! Directories of skills, and clients of both eras.

use std::fs;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};

use duplexer::Server;
use duplexer::client::{Client, ClientBuilder, ClientError, Negotiation};
use duplexer::error::CallError;
use duplexer::skills::Skills;
use duplexer::testing::TestClient;
use duplexer::types::error::ErrorCode;

/// A directory that is removed at the end of its test.
pub(crate) struct Folder(pub(crate) PathBuf);

impl Folder {
    pub(crate) fn new() -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("duplexer-skills-test-{}-{number}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    pub(crate) fn write(&self, path: &str, contents: impl AsRef<[u8]>) -> &Self {
        let path = self.0.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, contents).unwrap();
        self
    }

    pub(crate) fn skill(&self, path: &str) -> &Self {
        let name = path.rsplit('/').next().unwrap();
        let text = format!("---\nname: {name}\ndescription: About {name}\n---\n# {name}\n");
        self.write(&format!("{path}/SKILL.md"), text)
    }

    pub(crate) fn skills(&self) -> Skills {
        Skills::new().directory(&self.0)
    }

    pub(crate) fn server(&self) -> Server {
        Server::builder("skills", "0").extend(self.skills()).build().unwrap()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Returns the configuration of a client of each era.
pub(crate) fn eras() -> [ClientBuilder; 2] {
    [Negotiation::Auto, Negotiation::Handshake].map(|era| Client::builder("test", "0").negotiation(era))
}

/// Connects a client of each era, each to a run of its own.
pub(crate) async fn clients(server: &Server) -> Vec<TestClient> {
    let mut clients = Vec::new();
    for era in eras() {
        clients.push(TestClient::connect(server, era).await.unwrap());
    }
    clients
}

/// Returns the code of the server's refusal.
pub(crate) fn code<T: std::fmt::Debug>(outcome: Result<T, ClientError>) -> ErrorCode {
    match outcome.unwrap_err() {
        ClientError::Call(CallError::Rpc(error)) => error.code,
        other => panic!("{other}"),
    }
}
