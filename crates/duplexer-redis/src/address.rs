//! Where the store is: what a URL says, and the password that stands elsewhere.

use std::path::PathBuf;

use redis::{Client, ConnectionAddr, ConnectionInfo, ErrorKind, IntoConnectionInfo as _, RedisResult};

use crate::error::ConnectError;
use crate::sentinel::Sentinels;
#[cfg(feature = "rustls")]
use crate::tls::Tls;

const SENTINEL: &str = "redis-sentinel://";
const SENTINEL_PORT: u16 = 26379;

/// A store that can be connected to.
#[derive(Clone)]
pub(crate) enum Address {
    /// One server.
    Server(Client),
    Cluster(Cluster),
    /// Sentinels, which know the primary server of a name.
    Sentinel {
        sentinels: Vec<Client>,
        name: String,
        primary: ConnectionInfo,
    },
}

/// Some servers of a cluster, at least two.
#[derive(Clone)]
pub(crate) struct Cluster {
    pub(crate) clients: Vec<Client>,
    #[cfg(feature = "rustls")]
    pub(crate) tls: Tls,
}

#[cfg(all(feature = "cluster", feature = "rustls"))]
impl Cluster {
    pub(crate) fn uses_tls(&self) -> bool {
        let is_tls =
            |client: &Client| matches!(client.get_connection_info().addr(), ConnectionAddr::TcpTls { .. });
        self.clients.iter().any(is_tls)
    }
}

/// Where the password is.
#[derive(Default)]
pub(crate) enum Password {
    #[default]
    Url,
    File(PathBuf),
    Variable(String),
}

/// How connections are made, besides the URL.
#[derive(Default)]
pub(crate) struct Access {
    pub(crate) password: Password,
    #[cfg(feature = "rustls")]
    pub(crate) tls: Tls,
}

impl Address {
    /// Reads a URL. Its errors never contain it, because it can contain a password.
    pub(crate) fn parse(url: &str, access: &Access) -> Result<Self, ConnectError> {
        let password = access.password.read()?;
        let password = password.as_deref();
        if let Some(rest) = url.strip_prefix(SENTINEL) {
            return Self::sentinel(rest, password);
        }
        let (head, credentials, hosts, tail) = parts(url)?;
        if matches!(head, "rediss" | "valkeys") && cfg!(not(feature = "rustls")) {
            return Err(ConnectError::NoTls);
        }
        let client =
            |host: &str| access.client(info(&format!("{head}://{credentials}{host}{tail}"), password)?);
        if !hosts.contains(',') {
            return Ok(Self::Server(client(hosts)?));
        }
        if cfg!(not(feature = "cluster")) {
            return Err(ConnectError::NoCluster);
        }
        Ok(Self::Cluster(Cluster {
            clients: hosts.split(',').map(client).collect::<Result<_, _>>()?,
            #[cfg(feature = "rustls")]
            tls: access.tls.clone(),
        }))
    }

    /// Reads what follows the scheme: `[USER:PASSWORD@]HOST[:PORT],.../NAME[/DATABASE]`.
    fn sentinel(rest: &str, password: Option<&str>) -> Result<Self, ConnectError> {
        let url = format!("redis://{rest}");
        let (_, credentials, hosts, path) = parts(&url)?;
        let mut path = path.split('/').skip(1);
        let name = path.next().filter(|name| !name.is_empty());
        let name = name.ok_or_else(|| invalid("a sentinel URL names the primary server after the hosts"))?;
        let database = path.next().unwrap_or("0");
        let primary = info(&format!("redis://{credentials}primary/{database}"), password)?;
        let sentinel = |host: &str| {
            let port = if host.contains(':') { String::new() } else { format!(":{SENTINEL_PORT}") };
            Client::open(info(&format!("redis://{host}{port}"), None)?).map_err(|error| url_error(&error))
        };
        let sentinels = hosts.split(',').map(sentinel).collect::<Result<_, _>>()?;
        Ok(Self::Sentinel { sentinels, name: name.to_owned(), primary })
    }

    fn clients(&self) -> &[Client] {
        match self {
            Self::Server(client) => std::slice::from_ref(client),
            Self::Cluster(Cluster { clients, .. }) | Self::Sentinel { sentinels: clients, .. } => clients,
        }
    }

    /// Returns a client for wake-ups. In a cluster every server passes them on, so each attempt uses another one.
    pub(crate) async fn client(&self, attempt: usize) -> RedisResult<Client> {
        match self {
            Self::Server(client) => Ok(client.clone()),
            Self::Cluster(Cluster { clients, .. }) => {
                let client = clients.get(attempt % clients.len().max(1));
                client.cloned().ok_or_else(|| (ErrorKind::InvalidClientConfig, "no hosts").into())
            }
            Self::Sentinel { sentinels, name, primary } => {
                Sentinels::new(sentinels.clone(), name.clone(), primary.clone()).client().await
            }
        }
    }
}

/// Writes the hosts, without credentials.
impl std::fmt::Display for Address {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (index, client) in self.clients().iter().enumerate() {
            if index > 0 {
                f.write_str(", ")?;
            }
            match client.get_connection_info().addr() {
                ConnectionAddr::Tcp(host, port) | ConnectionAddr::TcpTls { host, port, .. } => {
                    write!(f, "{host}:{port}")?;
                }
                ConnectionAddr::Unix(path) => write!(f, "{}", path.display())?,
                _ => f.write_str("an unknown address")?,
            }
        }
        Ok(())
    }
}

impl Access {
    #[cfg(feature = "rustls")]
    fn client(&self, info: ConnectionInfo) -> Result<Client, ConnectError> {
        self.tls.client(info)
    }

    #[cfg(not(feature = "rustls"))]
    #[expect(clippy::unused_self, reason = "used with the feature `rustls`")]
    fn client(&self, info: ConnectionInfo) -> Result<Client, ConnectError> {
        Client::open(info).map_err(|error| url_error(&error))
    }
}

impl Password {
    fn read(&self) -> Result<Option<String>, ConnectError> {
        match self {
            Self::Url => Ok(None),
            Self::File(path) => {
                let failed = |source| ConnectError::PasswordFile { path: path.clone(), source };
                let text = std::fs::read_to_string(path).map_err(failed)?;
                Ok(Some(text.trim_end_matches(['\r', '\n']).to_owned()))
            }
            Self::Variable(name) => {
                let password = std::env::var(name).ok().filter(|text| !text.is_empty());
                Ok(Some(password.ok_or_else(|| ConnectError::PasswordVariable(name.clone()))?))
            }
        }
    }
}

/// Splits a URL: scheme, credentials with their `@`, hosts, and the rest.
fn parts(url: &str) -> Result<(&str, &str, &str, &str), ConnectError> {
    let (head, rest) = url.split_once("://").ok_or_else(|| invalid("it has no scheme"))?;
    if !matches!(head, "redis" | "rediss" | "valkey" | "valkeys" | "unix") {
        return Err(invalid("its scheme is unknown"));
    }
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (authority, tail) = rest.split_at(end);
    let at = authority.rfind('@').map_or(0, |at| at + 1);
    let (credentials, hosts) = authority.split_at(at);
    Ok((head, credentials, hosts, tail))
}

fn info(url: &str, password: Option<&str>) -> Result<ConnectionInfo, ConnectError> {
    let info = url.into_connection_info().map_err(|error| url_error(&error))?;
    let Some(password) = password else { return Ok(info) };
    let settings = info.redis_settings().clone().set_password(password);
    Ok(info.set_redis_settings(settings))
}

/// Returns the fault that the crate names. Its text does not contain the URL.
pub(crate) fn url_error(error: &redis::RedisError) -> ConnectError {
    ConnectError::Url(error.category().to_owned())
}

fn invalid(fault: &str) -> ConnectError {
    ConnectError::Url(fault.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(url: &str) -> Result<Address, String> {
        Address::parse(url, &Access::default()).map_err(|error| error.to_string())
    }

    fn shown(url: &str) -> String {
        parse(url).unwrap().to_string()
    }

    /// SCL-80: the forms of a URL.
    #[test]
    fn urls_name_servers_clusters_sockets_and_sentinels() {
        assert_eq!(shown("redis://localhost"), "localhost:6379");
        assert_eq!(shown("redis://app:hunter2@[::1]:7000/3"), "::1:7000");
        #[cfg(unix)]
        assert_eq!(shown("unix:///run/valkey.sock?db=2"), "/run/valkey.sock");
        assert_eq!(shown("redis-sentinel://app:hunter2@a,b:5000/main/1"), "a:26379, b:5000");
        let Ok(Address::Sentinel { name, primary, .. }) = parse("redis-sentinel://app:hunter2@a/main/1")
        else {
            panic!("a sentinel")
        };
        let settings = primary.redis_settings();
        let expected = (Some("app"), Some("hunter2"), 1);
        assert_eq!((settings.username(), settings.password(), settings.db()), expected);
        assert_eq!(name, "main");
    }

    /// SCL-80: what is wrong is said, and the URL is not repeated.
    #[test]
    fn a_wrong_url_is_named_without_its_password() {
        let wrong = [
            "app:hunter2@localhost",
            "http://app:hunter2@localhost",
            "redis://app:hunter2@",
            "redis://app:hunter2@localhost/x",
            "redis://app:hunter2@localhost:70000",
            "redis-sentinel://app:hunter2@localhost",
            "redis-sentinel://app:hunter2@localhost/",
        ];
        for url in wrong {
            let text = parse(url).map(|address| address.to_string()).unwrap_err();
            assert!(text.starts_with("the URL of the store is not valid: "), "{url}: {text}");
            assert!(!text.contains("hunter2"), "{text}");
        }
    }

    #[cfg(not(feature = "cluster"))]
    #[test]
    fn a_cluster_needs_its_feature() {
        let text = "several hosts are a cluster, which needs the feature `cluster` of duplexer-redis";
        assert_eq!(parse("redis://a,b").map(|_| ()).unwrap_err(), text);
    }

    #[cfg(not(feature = "rustls"))]
    #[test]
    fn tls_needs_its_feature() {
        let text = "a `rediss://` URL needs the feature `rustls` of duplexer-redis";
        assert_eq!(parse("rediss://app:hunter2@localhost").map(|_| ()).unwrap_err(), text);
    }

    #[cfg(feature = "cluster")]
    #[test]
    fn several_hosts_are_a_cluster() {
        assert_eq!(shown("redis://app:hunter2@a:7000,b"), "a:7000, b:6379");
        assert!(matches!(parse("redis://a,b"), Ok(Address::Cluster(cluster)) if cluster.clients.len() == 2));
        assert!(parse("redis://a,").is_err());
    }
}
