//! The settings of a connection.

use std::fmt;
use std::future::IntoFuture;
use std::path::PathBuf;
use std::time::Duration;

use duplexer_core::dispatch::BoxFuture;
use duplexer_http::EventLimits;
use zeroize::Zeroizing;

use crate::address::{Access, Password};
use crate::error::ConnectError;
use crate::link::Settings;
use crate::seal::Seal;
use crate::shared::Shared;

/// Longest namespace, in bytes.
const MAX_NAMESPACE: usize = 64;

/// A connection to be made. Returned by [`Shared::connect`]; await it.
#[must_use = "nothing is connected until it is awaited"]
pub struct Connect {
    pub(crate) url: String,
    pub(crate) access: Access,
    pub(crate) namespace: String,
    pub(crate) node: Option<String>,
    pub(crate) response_timeout: Duration,
    pub(crate) settings: Settings,
    pub(crate) secrets: Option<Vec<Zeroizing<Vec<u8>>>>,
}

impl Connect {
    pub(crate) fn new(url: String) -> Self {
        Self {
            url,
            access: Access::default(),
            namespace: "default".to_owned(),
            node: None,
            response_timeout: Duration::from_secs(1),
            settings: Settings::default(),
            secrets: None,
        }
    }

    /// Reads the password from a file, such as a mounted secret. A line break at its end is not part of it. The user name is in
    /// the URL.
    pub fn password_file(mut self, path: impl Into<PathBuf>) -> Self {
        self.access.password = Password::File(path.into());
        self
    }

    /// Reads the password from an environment variable. The user name is in the URL.
    pub fn password_env(mut self, variable: impl Into<String>) -> Self {
        self.access.password = Password::Variable(variable.into());
        self
    }

    /// Trusts these certificates instead of those of the platform, in PEM format (feature `rustls`).
    #[cfg(feature = "rustls")]
    pub fn tls_roots(mut self, pem: impl Into<Vec<u8>>) -> Self {
        self.access.tls.roots = Some(pem.into());
        self
    }

    /// Shows a certificate to the store; certificate and key in PEM format (feature `rustls`).
    #[cfg(feature = "rustls")]
    pub fn tls_client(mut self, certificate: impl Into<Vec<u8>>, key: impl Into<Vec<u8>>) -> Self {
        self.access.tls.client = Some((certificate.into(), key.into()));
        self
    }

    /// Sets the namespace, which is part of every key. Servers that share a store need different ones. Default: `default`.
    pub fn namespace(mut self, namespace: impl Into<String>) -> Self {
        self.namespace = namespace.into();
        self
    }

    /// Sets the name of this node, for people. Default: the name of the host.
    pub fn node(mut self, name: impl Into<String>) -> Self {
        self.node = Some(name.into());
        self
    }

    /// Sets how long one exchange with the store can take. Default: 1 s.
    pub fn response_timeout(mut self, limit: Duration) -> Self {
        self.response_timeout = limit;
        self
    }

    /// Sets how long a publication or an operation on tasks is repeated while the store is unavailable. Default: 5 s. That of
    /// sessions is [`StreamableHttpBuilder::store_patience`](duplexer_http::StreamableHttpBuilder::store_patience).
    pub fn patience(mut self, patience: Duration) -> Self {
        self.settings.patience = patience;
        self
    }

    /// Sets how long other nodes wait for a node that has died. Default: 10 s.
    pub fn lease(mut self, length: Duration) -> Self {
        self.settings.lease = length;
        self
    }

    /// Sets how often a node looks for messages and changes without a wake-up. Default: 1 s.
    pub fn poll(mut self, interval: Duration) -> Self {
        self.settings.poll = interval;
        self
    }

    /// Sets how long an unused session is kept. Default: 30 minutes.
    pub fn session_expiry(mut self, expiry: Duration) -> Self {
        self.settings.session_expiry = expiry;
        self
    }

    /// Sets how long a stream is kept after its end: one that was read to its end, and one that was not. Default: 1 and 5
    /// minutes.
    pub fn stream_expiry(mut self, read: Duration, unread: Duration) -> Self {
        self.settings.read_stream = read;
        self.settings.unread_stream = unread;
        self
    }

    /// Sets the limits of events per stream and per session. The store itself bounds those of all sessions.
    pub fn event_limits(mut self, limits: EventLimits) -> Self {
        self.settings.events = limits;
        self
    }

    /// Sets how many changes the log keeps, for at most 10 minutes. Default: 100 000.
    pub fn change_log(mut self, entries: usize) -> Self {
        self.settings.change_log = entries.max(1);
        self
    }

    /// Encrypts what is stored of sessions, events and tasks, and the messages between nodes, so that who can write to the store
    /// can neither read nor invent them. The first secret seals, all of them open; each has at least 32 random bytes. To
    /// rotate, add the new one at the end on all nodes, then move it to the front, and later remove the old one.
    ///
    /// What was stored without a seal is not read any more: use another namespace.
    pub fn seal<T: AsRef<[u8]>>(mut self, secrets: impl IntoIterator<Item = T>) -> Self {
        let secrets = secrets.into_iter().map(|secret| Zeroizing::new(secret.as_ref().to_vec()));
        self.secrets = Some(secrets.collect());
        self
    }

    /// Checks the settings, and returns the seal.
    pub(crate) fn check(&mut self) -> Result<Option<Seal>, ConnectError> {
        if !is_namespace(&self.namespace) {
            return Err(ConnectError::Namespace(std::mem::take(&mut self.namespace)));
        }
        let settings = &self.settings;
        let times = [
            ("response_timeout", self.response_timeout),
            ("patience", settings.patience),
            ("lease", settings.lease),
            ("poll", settings.poll),
            ("session_expiry", settings.session_expiry),
            ("stream_expiry", settings.read_stream.min(settings.unread_stream)),
        ];
        if let Some((name, _)) = times.into_iter().find(|(_, time)| time.is_zero()) {
            return Err(ConnectError::Zero(name));
        }
        self.secrets.take().map(Seal::new).transpose()
    }

    /// Returns the name of the node: the one that was set, or that of the host.
    pub(crate) fn node_name(&self) -> String {
        self.node.clone().or_else(host_name).unwrap_or_else(|| format!("process {}", std::process::id()))
    }
}

impl IntoFuture for Connect {
    type Output = Result<Shared, ConnectError>;
    type IntoFuture = BoxFuture<'static, Self::Output>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(Shared::open(self))
    }
}

impl fmt::Debug for Connect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The URL can contain a password.
        f.debug_struct("Connect").field("namespace", &self.namespace).finish_non_exhaustive()
    }
}

fn is_namespace(text: &str) -> bool {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    (1..=MAX_NAMESPACE).contains(&text.len()) && text.bytes().all(allowed)
}

#[cfg(unix)]
fn host_name() -> Option<String> {
    let name = rustix::system::uname().nodename().to_str().ok().map(str::to_owned);
    name.filter(|name| !name.is_empty())
}

#[cfg(not(unix))]
fn host_name() -> Option<String> {
    std::env::var("COMPUTERNAME").ok()
}
