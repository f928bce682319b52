//! Authorization for development: a protected server and its authorization server in one process, with one user.

use crate::authorization_server::{AuthorizationServer, DevBackend};
use crate::error::AuthConfigError;
use crate::resource::Auth;

/// Scope that every request requires.
pub const SCOPE: &str = "mcp";

/// Protects the server at `{base_url}/mcp` with an authorization server at `base_url` whose one user is `user`.
///
/// Every client can register, and every browser is that user: use it only on a local machine.
///
/// ```no_run
/// # async fn example(server: duplexer_server::Server) -> Result<(), Box<dyn std::error::Error>> {
/// use duplexer_http::StreamableHttp;
/// let auth = duplexer_auth::dev::auth("http://127.0.0.1:8000", "ada")?;
/// StreamableHttp::new(server).bind("127.0.0.1:8000").await?.layer(auth).serve().await?;
/// # Ok(()) }
/// ```
///
/// # Errors
///
/// Fails if `base_url` is not an http URL of this machine.
pub fn auth(base_url: &str, user: &str) -> Result<Auth, AuthConfigError> {
    let base = base_url.strip_suffix('/').unwrap_or(base_url);
    let resource = format!("{base}/mcp");
    let issuer = AuthorizationServer::builder(base, DevBackend::new(user));
    let issuer = issuer.resource(&resource).scopes([SCOPE]).build()?;
    Auth::authorization_server(issuer).audience(resource).require_scopes([SCOPE]).build()
}
