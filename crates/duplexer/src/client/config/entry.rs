//! One server of a configuration file.

use std::sync::Arc;

use duplexer_types::json::{Json, JsonObject};
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::variables::expand;
use super::{ConfigError, ServerAddress};
use crate::client::OpenError;
use crate::client::open::Location;

/// Server of a configuration file: a program or a URL. Open it with
/// [`Client::open`](crate::client::OpenClient::open).
///
/// `Debug` shows no values, which may be secret.
///
/// ```
/// use duplexer::client::prelude::*;
///
/// # #[tokio::main]
/// # async fn main() -> Result<(), duplexer::BoxError> {
/// let config = McpConfig::parse(r#"{"mcpServers": {"files": {"command": "/no/such/program"}}}"#)?;
/// let entry = config.entry("files").unwrap();
/// assert_eq!(entry.name(), "files");
/// assert!(Client::open(entry).await.is_err());
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct ServerEntry {
    file: String,
    line: usize,
    /// Path of the member in the file.
    member: String,
    name: String,
    kind: Kind,
    /// All members, as they are in the file.
    members: JsonObject,
    stderr: Option<Arc<StderrSink>>,
    #[cfg(feature = "http-client")]
    authorization: Option<Arc<dyn duplexer_http_client::Authorization>>,
}

/// Function that gets every line that a program writes to standard error.
type StderrSink = dyn Fn(&str) + Send + Sync;

#[derive(Clone)]
enum Kind {
    Stdio { command: String, args: Vec<String>, env: Vec<(String, String)>, cwd: Option<String> },
    Http { url: String, headers: Vec<(String, String)>, version: Http },
}

/// Transport over HTTP.
#[derive(Clone, Copy)]
enum Http {
    Streamable,
    /// HTTP+SSE, of 2024-11-05.
    Sse,
}

/// The `type` of an entry.
enum Declared {
    Stdio,
    Http(Http),
}

impl ServerEntry {
    /// Reads an entry. Returns `None` if it is disabled.
    pub(super) fn new(
        (file, line): (&str, usize),
        member: &str,
        name: &str,
        settings: &Json,
    ) -> Result<Option<Self>, ConfigError> {
        let reader = Members { file, line, member };
        let Ok(members) = settings.decode::<JsonObject>() else {
            return Err(reader.fault("", "it must be an object"));
        };
        let text = |name: &str| {
            reader.optional(&members, name, "a string", |value| Some(value.as_str()?.to_owned()))
        };
        if reader.optional(&members, "disabled", "true or false", Value::as_bool)? == Some(true) {
            return Ok(None);
        }
        let kind = match (reader.kind(text("type")?.as_deref())?, text("command")?, text("url")?) {
            (_, Some(_), Some(_)) => return Err(reader.fault("url", "the entry has a `command` too")),
            (None | Some(Declared::Stdio), Some(command), None) => Kind::Stdio {
                command,
                args: reader.optional(&members, "args", "an array of strings", strings)?.unwrap_or_default(),
                env: reader.pairs(&members, "env")?,
                cwd: text("cwd")?,
            },
            (None, None, Some(url)) => {
                Kind::Http { url, headers: reader.pairs(&members, "headers")?, version: Http::Streamable }
            }
            (Some(Declared::Http(version)), None, Some(url)) => {
                Kind::Http { url, headers: reader.pairs(&members, "headers")?, version }
            }
            (Some(Declared::Http(_)), _, None) => return Err(reader.fault("url", "it is missing")),
            (None | Some(Declared::Stdio), None, _) => return Err(reader.fault("command", "it is missing")),
        };
        let (file, member, name) = (file.to_owned(), member.to_owned(), name.to_owned());
        Ok(Some(Self {
            file,
            line,
            member,
            name,
            kind,
            members,
            stderr: None,
            #[cfg(feature = "http-client")]
            authorization: None,
        }))
    }

    /// Returns the name of the server.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Reads a member of the entry that this library does not know, such as a setting of a gateway.
    ///
    /// # Errors
    ///
    /// Fails if the member is not a `T`. `expected` says what it should be.
    pub fn member<T: DeserializeOwned>(&self, name: &str, expected: &str) -> Result<Option<T>, ConfigError> {
        let reader = Members { file: &self.file, line: self.line, member: &self.member };
        let Some(value) = self.members.get(name).filter(|value| !value.is_null()) else { return Ok(None) };
        value.decode().map(Some).map_err(|_| reader.fault(name, &format!("it must be {expected}")))
    }

    /// Returns the text of the entry, to compare it with that of another time. It may be secret.
    pub fn fingerprint(&self) -> String {
        Json::from(self.members.clone()).as_str().to_owned()
    }

    /// Gives every line that the program writes to standard error to `sink`. By default the program shares standard
    /// error with this one.
    #[must_use]
    pub fn on_stderr(mut self, sink: impl Fn(&str) + Send + Sync + 'static) -> Self {
        self.stderr = Some(Arc::new(sink));
        self
    }

    /// Authorizes the requests to a server at a URL, unless the entry has a header `Authorization`.
    #[cfg(feature = "http-client")]
    #[cfg_attr(docsrs, doc(cfg(feature = "http-client")))]
    #[must_use]
    pub fn authorization(mut self, authorization: Arc<dyn duplexer_http_client::Authorization>) -> Self {
        self.authorization = Some(authorization);
        self
    }

    /// Returns where the server is, with the variables of the environment.
    ///
    /// ```
    /// use duplexer::client::{McpConfig, ServerAddress};
    ///
    /// let config = McpConfig::parse(r#"{"mcpServers": {"files": {"command": "files", "args": ["--root", "${NOWHERE:-/srv}"]}}}"#)?;
    /// let address = config.entry("files").map(|entry| entry.address()).transpose()?;
    /// assert!(matches!(address, Some(ServerAddress::Program { args, .. }) if args == ["--root", "/srv"]));
    /// # Ok::<_, duplexer::client::ConfigError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Fails if a variable is not set and has no default.
    pub fn address(&self) -> Result<ServerAddress, ConfigError> {
        self.address_with(|name| std::env::var(name).ok())
    }

    fn address_with(&self, lookup: impl Fn(&str) -> Option<String>) -> Result<ServerAddress, ConfigError> {
        let reader = Members { file: &self.file, line: self.line, member: &self.member };
        let expanded =
            |member: &str, text: &str| expand(text, &lookup).map_err(|fault| reader.fault(member, &fault));
        let pairs = |member: &str, pairs: &[(String, String)]| {
            let pairs = pairs
                .iter()
                .map(|(name, value)| Ok((name.clone(), expanded(&format!("{member}.{name}"), value)?)));
            pairs.collect::<Result<Vec<_>, ConfigError>>()
        };
        Ok(match &self.kind {
            Kind::Http { url, headers, .. } => {
                ServerAddress::Url { headers: pairs("headers", headers)?, url: expanded("url", url)? }
            }
            Kind::Stdio { command, args, env, cwd } => ServerAddress::Program {
                command: expanded("command", command)?,
                args: args.iter().map(|arg| expanded("args", arg)).collect::<Result<_, _>>()?,
                env: pairs("env", env)?,
                cwd: cwd.as_deref().map(|cwd| expanded("cwd", cwd)).transpose()?,
            },
        })
    }

    /// Returns what a client opens, with the variables of the environment.
    pub(in crate::client) fn location(&self) -> Result<Location, OpenError> {
        self.location_with(|name| std::env::var(name).ok())
    }

    pub(super) fn location_with(
        &self,
        lookup: impl Fn(&str) -> Option<String>,
    ) -> Result<Location, OpenError> {
        match self.address_with(lookup)? {
            ServerAddress::Url { url, headers } => {
                let version = match &self.kind {
                    Kind::Http { version, .. } => *version,
                    Kind::Stdio { .. } => Http::Streamable,
                };
                #[cfg(feature = "http-client")]
                return http(&url, &headers, version, self.authorization.clone());
                #[cfg(not(feature = "http-client"))]
                http(&url, &headers, version)
            }
            ServerAddress::Program { command, args, env, cwd } => {
                let mut child = crate::transport::child::ChildCommand::new(command).args(args);
                for (name, value) in env {
                    child = child.env(name, value);
                }
                if let Some(sink) = &self.stderr {
                    let sink = Arc::clone(sink);
                    child = child.stderr(crate::transport::child::Stderr::lines(move |line| sink(line)));
                }
                if let Some(cwd) = cwd {
                    child = child.current_dir(cwd);
                }
                Ok(Location::Command(Box::new(child)))
            }
        }
    }
}

#[cfg(feature = "http-client")]
fn http(
    url: &str,
    headers: &[(String, String)],
    version: Http,
    authorization: Option<Arc<dyn duplexer_http_client::Authorization>>,
) -> Result<Location, OpenError> {
    let mut transport = duplexer_http_client::HttpTransport::builder(url);
    for (name, value) in headers {
        transport = transport.header(name, value);
    }
    let is_given = headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("authorization"));
    if let Some(authorization) = authorization.filter(|_| !is_given) {
        transport = transport.authorization(authorization);
    }
    Ok(match version {
        Http::Streamable => Location::Http(Box::new(transport.build()?)),
        Http::Sse => Location::HttpSse(Box::new(transport.build_http_sse()?)),
    })
}

#[cfg(not(feature = "http-client"))]
fn http(_: &str, _: &[(String, String)], _: Http) -> Result<Location, OpenError> {
    Err(OpenError::Unsupported("a URL needs the feature `http-client` of duplexer"))
}

impl std::fmt::Debug for ServerEntry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ServerEntry").field("name", &self.name).finish_non_exhaustive()
    }
}

/// Reads members of one object and reports their faults.
struct Members<'a> {
    file: &'a str,
    line: usize,
    member: &'a str,
}

impl Members<'_> {
    fn fault(&self, name: &str, fault: &str) -> ConfigError {
        let separator = if name.is_empty() { "" } else { "." };
        let member = format!("{}{separator}{name}", self.member);
        let (file, line) = (self.file.to_owned(), Some(self.line));
        ConfigError::Member { file, line, member, fault: fault.to_owned() }
    }

    fn kind(&self, declared: Option<&str>) -> Result<Option<Declared>, ConfigError> {
        match declared {
            None => Ok(None),
            Some("stdio") => Ok(Some(Declared::Stdio)),
            Some("http" | "streamable-http" | "streamableHttp") => Ok(Some(Declared::Http(Http::Streamable))),
            Some("sse") => Ok(Some(Declared::Http(Http::Sse))),
            Some(other) => Err(self.fault("type", &format!("`{other}` is not `stdio`, `http` or `sse`"))),
        }
    }

    fn optional<T>(
        &self,
        members: &JsonObject,
        name: &str,
        expected: &str,
        read: impl Fn(&Value) -> Option<T>,
    ) -> Result<Option<T>, ConfigError> {
        let Some(value) = members.get(name).filter(|value| !value.is_null()) else { return Ok(None) };
        let read = value.decode().ok().and_then(|value| read(&value));
        read.map(Some).ok_or_else(|| self.fault(name, &format!("it must be {expected}")))
    }

    fn pairs(&self, members: &JsonObject, name: &str) -> Result<Vec<(String, String)>, ConfigError> {
        let Some(value) = members.get(name).filter(|value| !value.is_null()) else { return Ok(Vec::new()) };
        match value.decode::<JsonObject<String>>() {
            Ok(pairs) => Ok(pairs.into_iter().collect()),
            Err(_) => Err(self.fault(name, "it must be an object of strings with different names")),
        }
    }
}

fn strings(value: &Value) -> Option<Vec<String>> {
    value.as_array()?.iter().map(|one| one.as_str().map(str::to_owned)).collect()
}
