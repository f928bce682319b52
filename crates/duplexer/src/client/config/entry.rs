//! One server of a configuration file.

use duplexer_types::json::{Json, JsonObject};
use serde_json::Value;

use super::ConfigError;
use super::variables::expand;
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
    /// Path of the member in the file.
    member: String,
    name: String,
    kind: Kind,
}

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
        file: &str,
        member: &str,
        name: String,
        settings: &Json,
    ) -> Result<Option<Self>, ConfigError> {
        let reader = Members { file, member };
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
        let (file, member) = (file.to_owned(), member.to_owned());
        Ok(Some(Self { file, member, name, kind }))
    }

    /// Returns the name of the server.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns where the server is, with the variables of the environment.
    pub(in crate::client) fn location(&self) -> Result<Location, OpenError> {
        self.location_with(|name| std::env::var(name).ok())
    }

    pub(super) fn location_with(
        &self,
        lookup: impl Fn(&str) -> Option<String>,
    ) -> Result<Location, OpenError> {
        let reader = Members { file: &self.file, member: &self.member };
        let expanded = |member: &str, text: &str| {
            expand(text, &lookup).map_err(|fault| OpenError::Config(reader.fault(member, &fault)))
        };
        match &self.kind {
            Kind::Http { url, headers, version } => {
                let headers = headers
                    .iter()
                    .map(|(name, value)| Ok((name, expanded(&format!("headers.{name}"), value)?)))
                    .collect::<Result<Vec<_>, OpenError>>()?;
                http(&expanded("url", url)?, &headers, *version)
            }
            Kind::Stdio { command, args, env, cwd } => {
                let mut child = crate::transport::child::ChildCommand::new(expanded("command", command)?);
                for arg in args {
                    child = child.args([expanded("args", arg)?]);
                }
                for (name, value) in env {
                    child = child.env(name, expanded(&format!("env.{name}"), value)?);
                }
                if let Some(cwd) = cwd {
                    child = child.current_dir(expanded("cwd", cwd)?);
                }
                Ok(Location::Command(Box::new(child)))
            }
        }
    }
}

#[cfg(feature = "http-client")]
fn http(url: &str, headers: &[(&String, String)], version: Http) -> Result<Location, OpenError> {
    let mut transport = duplexer_http_client::HttpTransport::builder(url);
    for (name, value) in headers {
        transport = transport.header(name, value);
    }
    Ok(match version {
        Http::Streamable => Location::Http(Box::new(transport.build()?)),
        Http::Sse => Location::HttpSse(Box::new(transport.build_http_sse()?)),
    })
}

#[cfg(not(feature = "http-client"))]
fn http(_: &str, _: &[(&String, String)], _: Http) -> Result<Location, OpenError> {
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
    member: &'a str,
}

impl Members<'_> {
    fn fault(&self, name: &str, fault: &str) -> ConfigError {
        let separator = if name.is_empty() { "" } else { "." };
        let member = format!("{}{separator}{name}", self.member);
        ConfigError::Member { file: self.file.to_owned(), member, fault: fault.to_owned() }
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
