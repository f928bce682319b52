//! Redaction: secrets that a handler returns by mistake do not reach the client.

mod text;

use std::sync::Arc;

use duplexer_types::content::Content;
use duplexer_types::error::ErrorObject;
use duplexer_types::prompt::GetPromptResult;
use duplexer_types::resource::{ReadResourceResult, ResourceContents};
use duplexer_types::tool::CallToolResult;

use self::text::Secrets;
use super::{Middleware, Next};
use crate::kernel::context::Context;
use crate::kernel::outcome::Outcome;
use duplexer_core::dispatch::{BoxFuture, Message};
use duplexer_core::error::McpError;

pub use text::RedactionError;

/// Replaces secrets in results and errors with `[redacted]`: those of the program, and texts that have the form of one.
///
/// It sees the texts of tools, prompts and resources, structured results, and the errors that clients see. It does not see
/// bytes (images, blobs), nor the notifications that a handler sends.
///
/// ```
/// use duplexer::middleware::Redaction;
/// use duplexer::{Server, Tool};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), duplexer::BoxError> {
/// let redaction = Redaction::builder().secret("correct horse battery").tokens().pattern(r"\bEMP-\d{6}\b").build()?;
/// let leak = Tool::new("leak", || async { "EMP-123456 says: correct horse battery" });
/// let server = Server::builder("archive", "1.0.0").middleware(redaction).tool(leak).build()?;
/// # let client = duplexer::testing::TestClient::new(&server).await?;
/// # let text = client.call_tool("leak", ()).text().await?;
/// assert_eq!(text, "[redacted] says: [redacted]");
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Redaction(Arc<Secrets>);

/// Builder of a [`Redaction`].
///
/// ```
/// use duplexer::middleware::Redaction;
///
/// assert!(Redaction::builder().pattern("(").build().is_err());
/// ```
#[derive(Clone, Debug, Default)]
#[must_use = "nothing is redacted until it is built and installed as a middleware"]
pub struct RedactionBuilder {
    secrets: Vec<String>,
    patterns: Vec<String>,
}

/// Texts that have the form of a secret: bearer tokens, JSON Web Tokens, private keys, and keys with a known prefix.
const TOKENS: &[&str] = &[
    r"(?i-u:\bbearer [a-z0-9._~+/=-]{15,}[a-z0-9_~+/=-])",
    r"(?-u:\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*)",
    r"(?s:-----BEGIN [A-Z ]*PRIVATE KEY-----.*?-----END [A-Z ]*PRIVATE KEY-----)",
    r"(?-u:\b(?:AKIA|ASIA)[A-Z0-9]{16}\b)",
    r"(?-u:\b(?:ghp|gho|ghu|ghs|ghr)_[A-Za-z0-9]{36,}\b)",
    r"(?-u:\bgithub_pat_[A-Za-z0-9_]{22,}\b)",
    r"(?-u:\bglpat-[A-Za-z0-9_-]{20,})",
    r"(?-u:\bxox[abprs]-[A-Za-z0-9-]{10,})",
    r"(?-u:\b(?:sk|rk|pk)[-_](?:[a-z]+[-_])*[A-Za-z0-9]{20,}\b)",
    r"(?-u:\bAIza[A-Za-z0-9_-]{35}\b)",
];

impl Redaction {
    /// Returns a builder without any secret.
    pub fn builder() -> RedactionBuilder {
        RedactionBuilder::default()
    }

    /// Returns a text without its secrets.
    pub fn apply(&self, text: &str) -> String {
        self.0.redacted(text).into_owned()
    }

    fn text(&self, text: &mut String) {
        if let std::borrow::Cow::Owned(redacted) = self.0.redacted(text) {
            *text = redacted;
        }
    }

    fn error(&self, error: &mut ErrorObject) {
        if let std::borrow::Cow::Owned(redacted) = self.0.redacted(&error.message) {
            error.message = redacted.into();
        }
        if let Some(redacted) = error.data.as_ref().and_then(|data| self.0.redacted_json(data)) {
            error.data = Some(redacted);
        }
    }

    fn content(&self, content: &mut Content) {
        match content {
            Content::Text(text) => self.text(&mut text.text),
            Content::Resource(embedded) => self.contents(&mut embedded.resource),
            _ => {}
        }
    }

    fn contents(&self, contents: &mut ResourceContents) {
        if let ResourceContents::Text(text) = contents {
            self.text(&mut text.text);
        }
    }

    fn outcome(&self, mut outcome: Outcome) -> Outcome {
        if let Some(result) = outcome.downcast_mut::<CallToolResult>() {
            result.content.iter_mut().for_each(|content| self.content(content));
            let redacted = result.structured_content.as_ref().and_then(|json| self.0.redacted_json(json));
            if let Some(redacted) = redacted {
                result.structured_content = Some(redacted);
            }
        } else if let Some(result) = outcome.downcast_mut::<ReadResourceResult>() {
            result.contents.iter_mut().for_each(|contents| self.contents(contents));
        } else if let Some(result) = outcome.downcast_mut::<GetPromptResult>() {
            result.messages.iter_mut().for_each(|message| self.content(&mut message.content));
        } else if let Some(redacted) = outcome.as_text().and_then(|text| self.0.redacted_strings(text)) {
            // The strings of a JSON text were replaced by strings.
            return outcome.with_text(redacted).unwrap_or_else(|_| Outcome::empty());
        }
        outcome
    }
}

impl RedactionBuilder {
    /// Redacts a secret of the program, such as the key of an API: at least 6 bytes.
    pub fn secret(mut self, secret: impl Into<String>) -> Self {
        self.secrets.push(secret.into());
        self
    }

    /// Redacts what a regular expression matches, in the syntax of the crate `regex`.
    pub fn pattern(mut self, pattern: impl Into<String>) -> Self {
        self.patterns.push(pattern.into());
        self
    }

    /// Redacts texts that have the form of a secret: bearer tokens, JSON Web Tokens, private keys in PEM, and the keys of
    /// well-known services that have a prefix.
    pub fn tokens(mut self) -> Self {
        self.patterns.extend(TOKENS.iter().map(|pattern| (*pattern).to_owned()));
        self
    }

    /// Compiles the patterns.
    ///
    /// # Errors
    ///
    /// Fails if a secret is shorter than 6 bytes, and if a pattern is invalid, too large, or matches an empty text.
    pub fn build(self) -> Result<Redaction, RedactionError> {
        Ok(Redaction(Arc::new(Secrets::new(&self.secrets, &self.patterns)?)))
    }
}

impl Middleware for Redaction {
    fn handle(
        &self,
        cx: Context,
        message: Message,
        next: Next,
    ) -> BoxFuture<'static, Result<Outcome, McpError>> {
        let redaction = self.clone();
        Box::pin(async move {
            match next.run(cx, message).await {
                Ok(outcome) => Ok(redaction.outcome(outcome)),
                Err(mut error) => {
                    match &mut error {
                        McpError::Rpc(error) => redaction.error(error),
                        McpError::Forbidden(challenge) => redaction.error(&mut challenge.error),
                        McpError::Busy(busy) => redaction.error(&mut busy.error),
                        _ => {}
                    }
                    Err(error)
                }
            }
        })
    }
}
