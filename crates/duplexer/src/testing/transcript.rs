//! Recording of the frames of a connection.

use std::fmt;
use std::sync::{Arc, Mutex};

use crate::dispatch::lock;
use crate::transport::{FrameDirection, Tap, Transport};

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
#[derive(Clone, Debug, Default)]
pub struct Transcript(Arc<Mutex<Vec<String>>>);

impl Transcript {
    /// Wraps a client's transport and records its frames.
    pub fn record<T: Transport>(&self, transport: T) -> Tap<T> {
        let lines = Arc::clone(&self.0);
        Tap::new(transport, move |passing, frame| {
            let arrow = match passing {
                FrameDirection::Out => "-->",
                FrameDirection::In => "<--",
            };
            lock(&lines).push(format!("{arrow} {frame}"));
        })
    }

    /// Returns one line per frame, each with its arrow.
    pub fn lines(&self) -> Vec<String> {
        lock(&self.0).clone()
    }
}

impl fmt::Display for Transcript {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.lines().iter().try_for_each(|line| writeln!(f, "{line}"))
    }
}
