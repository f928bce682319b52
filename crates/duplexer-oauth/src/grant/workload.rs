//! Workload identity: the platform on which a program runs vouches for it with a signed token.

use std::future::Future;
use std::path::PathBuf;
use std::sync::Arc;

use duplexer_core::dispatch::BoxFuture;
use duplexer_core::error::BoxError;
use duplexer_oauth_base::Secret;

use crate::client::ClientIdentity;
use crate::discovery::Discovered;
use crate::error::OAuthError;
use crate::flow::exchange::TokenEndpoint;
use crate::grant::assertion::redeem;
use crate::token::Tokens;

/// Maximum size of a token file.
const MAX_FILE: u64 = 64 * 1024;

/// Gives the platform's token for an audience. It is asked for each token request.
///
/// Closures `Fn(String) -> Future` implement it.
///
/// ```
/// use duplexer_oauth::{OAuth, Secret};
///
/// let workload = OAuth::workload("build-agent", |audience: String| async move {
///     Ok(Secret::new(format!("a token for {audience}")))
/// })
/// .build()?;
/// # Ok::<_, duplexer_oauth::OAuthError>(())
/// ```
pub trait WorkloadToken: Send + Sync + 'static {
    /// Returns the token. `audience` is the issuer of the authorization server.
    fn token(&self, audience: String) -> BoxFuture<'_, Result<Secret, BoxError>>;
}

impl<F, R> WorkloadToken for F
where
    F: Fn(String) -> R + Send + Sync + 'static,
    R: Future<Output = Result<Secret, BoxError>> + Send + 'static,
{
    fn token(&self, audience: String) -> BoxFuture<'_, Result<Secret, BoxError>> {
        Box::pin(self(audience))
    }
}

/// Reads the token from a file that the platform renews, such as a projected service account token.
///
/// ```
/// use duplexer_oauth::{OAuth, TokenFile};
///
/// let workload = OAuth::workload("build-agent", TokenFile::new("/var/run/secrets/tokens/mcp")).build()?;
/// # Ok::<_, duplexer_oauth::OAuthError>(())
/// ```
#[derive(Clone, Debug)]
pub struct TokenFile(PathBuf);

impl TokenFile {
    /// Reads this file for each token request.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self(path.into())
    }
}

impl WorkloadToken for TokenFile {
    fn token(&self, _audience: String) -> BoxFuture<'_, Result<Secret, BoxError>> {
        let read = || {
            use std::io::Read;
            let mut text = String::new();
            std::fs::File::open(&self.0)?.take(MAX_FILE).read_to_string(&mut text)?;
            let token = text.trim();
            if token.is_empty() {
                return Err(BoxError::from(format!("'{}' contains no token", self.0.display())));
            }
            Ok(Secret::new(token))
        };
        Box::pin(std::future::ready(read()))
    }
}

pub(crate) struct WorkloadGrant {
    pub(crate) client: ClientIdentity,
    pub(crate) source: Arc<dyn WorkloadToken>,
}

impl WorkloadGrant {
    pub(crate) async fn request(
        &self,
        endpoint: &TokenEndpoint<'_>,
        discovered: &Discovered,
        scopes: &[String],
    ) -> Result<Tokens, OAuthError> {
        let assertion = self.source.token(discovered.authority.issuer.clone()).await;
        redeem(endpoint, discovered, &assertion.map_err(OAuthError::source)?, scopes).await
    }
}
