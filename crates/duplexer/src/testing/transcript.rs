//! Recording of the frames of a connection, and transcripts in files.
//!
//! `docs/transcripts.md` describes the format of files, which `duplexer record` and the inspector page write too.

mod file;
mod replay;

use std::fmt;
use std::io::Write;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::time::Instant;

use crate::dispatch::lock;
use crate::server::{BuildError, Server};
use crate::transport::{FrameDirection, Tap, Transport};

pub use file::{TranscriptError, TranscriptWriter};

/// Frames of a connection in transmission order: `-->` to the server, `<--` to the client.
///
/// ```
/// use duplexer::Server;
/// use duplexer::testing::TestClient;
///
/// # #[tokio::main]
/// # async fn main() -> Result<(), duplexer::BoxError> {
/// let server = Server::builder("calculator", "1.0.0").build()?;
/// let client = TestClient::new(&server).await?;
/// let lines = client.transcript().lines();
/// assert!(lines[0].starts_with("--> ") && lines[1].starts_with("<-- "));
/// # Ok(())
/// # }
/// ```
///
/// A recorded connection can take the place of its server in tests of a client. `duplexer record` writes such files:
///
/// ```
/// use duplexer::testing::{TestClient, Transcript};
///
/// # #[tokio::main]
/// # async fn main() -> Result<(), duplexer::BoxError> {
/// let recorded = Transcript::parse(r#"
/// {"duplexer":"transcript","version":1}
/// {"at_ms":0,"from":"client","message":{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}}
/// {"at_ms":2,"from":"server","message":{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"weather","version":"1"}}}}
/// {"at_ms":3,"from":"client","message":{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"today","arguments":{}}}}
/// {"at_ms":9,"from":"server","message":{"jsonrpc":"2.0","id":2,"result":{"content":[{"type":"text","text":"Rain"}]}}}
/// "#)?;
/// let client = TestClient::new(&recorded.server()?).await?;
/// assert_eq!(client.call_tool("today", ()).await?.to_text(), "Rain");
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, Default)]
pub struct Transcript(Arc<Mutex<Record>>);

#[derive(Debug, Default)]
struct Record {
    /// When the first frame was recorded here.
    begun: Option<Instant>,
    messages: Vec<TranscriptMessage>,
}

/// Who sent a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sender {
    /// The client.
    Client,
    /// The server.
    Server,
}

/// A message of a [`Transcript`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TranscriptMessage {
    /// Time since the first message.
    pub at: Duration,
    /// Who sent it.
    pub from: Sender,
    /// Number of the connection, from 1.
    pub connection: u64,
    /// JSON text of the message.
    pub text: String,
}

impl Transcript {
    /// Wraps a client's transport and records its frames.
    pub fn record<T: Transport>(&self, transport: T) -> Tap<T> {
        let record = Arc::clone(&self.0);
        Tap::new(transport, move |passing, frame| {
            let from = match passing {
                FrameDirection::Out => Sender::Client,
                FrameDirection::In => Sender::Server,
            };
            let now = Instant::now();
            let mut record = lock(&record);
            let at = now.duration_since(*record.begun.get_or_insert(now));
            record.messages.push(TranscriptMessage { at, from, connection: 1, text: frame.to_owned() });
        })
    }

    /// Reads a file in the format of `docs/transcripts.md`, of at most 256 MiB.
    ///
    /// # Errors
    ///
    /// Fails if the file cannot be read, or is not a transcript.
    pub fn read(path: impl AsRef<Path>) -> Result<Self, TranscriptError> {
        file::read(path.as_ref()).map(Self::of)
    }

    /// Reads the text of a file.
    ///
    /// # Errors
    ///
    /// Fails if the text is not a transcript.
    pub fn parse(text: &str) -> Result<Self, TranscriptError> {
        file::parse(text.as_bytes()).map(Self::of)
    }

    fn of(messages: Vec<TranscriptMessage>) -> Self {
        Self(Arc::new(Mutex::new(Record { begun: None, messages })))
    }

    /// Writes a file in the format of `docs/transcripts.md`. Frames that are no JSON are left out.
    ///
    /// ```
    /// # use duplexer::{BoxError, Server, testing::{TestClient, Transcript}};
    /// # #[tokio::main]
    /// # async fn main() -> Result<(), BoxError> {
    /// # let server = Server::builder("calculator", "1.0.0").build()?;
    /// let client = TestClient::new(&server).await?;
    /// let mut file = Vec::new();
    /// client.transcript().write(&mut file)?;
    /// let again = Transcript::parse(&String::from_utf8(file)?)?;
    /// assert_eq!(again.lines(), client.transcript().lines());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// Fails if the output cannot be written.
    pub fn write(&self, output: impl Write) -> std::io::Result<()> {
        let mut writer = TranscriptWriter::new(output, None, None)?;
        for message in self.messages() {
            writer.write_at(message.at, message.from, message.connection, &message.text)?;
        }
        writer.flush()
    }

    /// Returns the messages recorded so far.
    pub fn messages(&self) -> Vec<TranscriptMessage> {
        lock(&self.0).messages.clone()
    }

    /// Returns one line per frame, each with its arrow.
    pub fn lines(&self) -> Vec<String> {
        let arrow = |from: Sender| match from {
            Sender::Client => "-->",
            Sender::Server => "<--",
        };
        lock(&self.0).messages.iter().map(|one| format!("{} {}", arrow(one.from), one.text)).collect()
    }

    /// Returns a server that gives the recorded answers, to clients of both eras.
    ///
    /// A request is answered like the recorded one with the same method and params; `_meta` is not compared, and neither
    /// are the params of the handshake. One that was recorded several times gets its answers in their order, and then the
    /// last one again. A request that was not recorded fails with -32601, or with -32602 if only its params differ.
    ///
    /// # Errors
    ///
    /// Fails if the server cannot be built.
    pub fn server(&self) -> Result<Server, BuildError> {
        replay::server(&self.messages())
    }
}

impl fmt::Display for Transcript {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.lines().iter().try_for_each(|line| writeln!(f, "{line}"))
    }
}

#[cfg(test)]
mod tests;
