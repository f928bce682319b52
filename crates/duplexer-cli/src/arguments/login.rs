//! Options of logins.

use clap::Args;

/// How the program is authorized at a server that requires it.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct LoginArguments {
    /// Send this token, and do not log in
    #[arg(long, value_name = "TOKEN", conflicts_with_all = ["client_id", "callback_port", "no_browser"])]
    pub(crate) token: Option<String>,
    /// Log in as this client, which is registered at the authorization server
    #[arg(long, value_name = "ID")]
    pub(crate) client_id: Option<String>,
    /// Have the browser return to this port of `localhost`, if the client is registered with it
    #[arg(long, value_name = "PORT")]
    pub(crate) callback_port: Option<u16>,
    /// Print the URL of the login page instead of opening a browser
    #[arg(long)]
    pub(crate) no_browser: bool,
    /// Store tokens in the keyring of the platform instead of files
    #[cfg(feature = "keyring")]
    #[arg(long)]
    pub(crate) keyring: bool,
}

/// A login, a logout, or a question about them.
#[derive(Clone, Debug, Args)]
pub(crate) struct AccountArguments {
    /// The URL of the server
    pub(crate) url: String,
    #[command(flatten)]
    pub(crate) login: LoginArguments,
}
