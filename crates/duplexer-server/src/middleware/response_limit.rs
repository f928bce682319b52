//! A limit on the size of results.

use super::{Middleware, Next};
use crate::kernel::context::Context;
use crate::kernel::outcome::Outcome;
use duplexer_core::dispatch::{BoxFuture, Message};
use duplexer_core::error::McpError;

/// Limits the size of results. A tool whose result is larger fails with a text for the model, which can then request less; any
/// other request fails with an internal error, and the size is logged.
///
/// The size is known when the result is written, so the result is held to the limit there, and written only once.
///
/// ```
/// use duplexer::middleware::ResponseLimit;
/// use duplexer::{Server, Tool};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), duplexer::BoxError> {
/// let dump = Tool::new("dump", || async { "x".repeat(2 << 20) });
/// let server = Server::builder("archive", "1.0.0").middleware(ResponseLimit::new(1 << 20)).tool(dump).build()?;
/// # let client = duplexer::testing::TestClient::new(&server).await?;
/// # let result = client.call_tool("dump", ()).await?;
/// # assert!(result.content[0].as_text().unwrap().starts_with("The result has"), "{result:?}");
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug)]
pub struct ResponseLimit(usize);

impl ResponseLimit {
    /// Sets the maximum size of the JSON text of a result, in bytes.
    pub fn new(bytes: usize) -> Self {
        Self(bytes)
    }
}

impl Middleware for ResponseLimit {
    fn handle(
        &self,
        cx: Context,
        message: Message,
        next: Next,
    ) -> BoxFuture<'static, Result<Outcome, McpError>> {
        if cx.request_id().is_none() {
            return next.run(cx, message);
        }
        let limit = self.0;
        let work = next.future(cx, &message);
        Box::pin(async move { work.await.map(|outcome| outcome.limited(limit)) })
    }
}
