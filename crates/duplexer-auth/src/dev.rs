//! Authorization to try things with: a protected server and its authorization server in one process, with one user.

use crate::authority::{Authority, Development};
use crate::error::ConfigError;
use crate::resource::Auth;

/// The scope that every request needs here.
pub const SCOPE: &str = "mcp";

/// Protects the server at `{base_url}/mcp` with an authorization server at `base_url` whose one user is `user`.
///
/// Anybody may register a client, and whoever opens the page is that user: this is for a machine of one's own.
///
/// ```no_run
/// # async fn example(server: duplexer_core::server::Server) -> Result<(), Box<dyn std::error::Error>> {
/// use duplexer_http::StreamableHttp;
/// let auth = duplexer_auth::dev::authority("http://127.0.0.1:8000", "ada")?;
/// StreamableHttp::new(server).bind("127.0.0.1:8000").await?.layer(auth).serve_until(std::future::pending()).await;
/// # Ok(()) }
/// ```
pub fn authority(base_url: &str, user: &str) -> Result<Auth, ConfigError> {
    let base = base_url.strip_suffix('/').unwrap_or(base_url);
    let resource = format!("{base}/mcp");
    let authority =
        Authority::builder(base, Development::new(user)).resource(&resource).scopes([SCOPE]).build()?;
    Auth::authority(authority, &resource).require([SCOPE]).build()
}
