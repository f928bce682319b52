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
    Http { url: String, headers: Vec<(String, String)> },
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
        let kind = match (text("type")?.as_deref(), text("command")?, text("url")?) {
            (None | Some("stdio"), Some(command), None) => Kind::Stdio {
                command,
                args: reader.optional(&members, "args", "an array of strings", strings)?.unwrap_or_default(),
                env: reader.pairs(&members, "env")?,
                cwd: text("cwd")?,
            },
            (None | Some("http" | "streamable-http" | "streamableHttp"), None, Some(url)) => {
                Kind::Http { url, headers: reader.pairs(&members, "headers")? }
            }
            (_, Some(_), Some(_)) => return Err(reader.fault("url", "the entry has a `command` too")),
            (Some("stdio"), None, _) | (None, None, None) => {
                return Err(reader.fault("command", "it is missing"));
            }
            (Some("http" | "streamable-http" | "streamableHttp"), _, None) => {
                return Err(reader.fault("url", "it is missing"));
            }
            (Some(other), ..) => {
                return Err(reader.fault("type", &format!("`{other}` is not `stdio` or `http`")));
            }
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
            Kind::Http { url, headers } => {
                let headers = headers
                    .iter()
                    .map(|(name, value)| Ok((name, expanded(&format!("headers.{name}"), value)?)))
                    .collect::<Result<Vec<_>, OpenError>>()?;
                http(&expanded("url", url)?, &headers)
            }
            #[cfg(unix)]
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
            #[cfg(not(unix))]
            Kind::Stdio { .. } => {
                Err(OpenError::Unsupported("server processes are not supported on this platform"))
            }
        }
    }
}

#[cfg(feature = "http-client")]
fn http(url: &str, headers: &[(&String, String)]) -> Result<Location, OpenError> {
    let mut transport = duplexer_http_client::HttpTransport::builder(url);
    for (name, value) in headers {
        transport = transport.header(name, value);
    }
    Ok(Location::Http(Box::new(transport.build()?)))
}

#[cfg(not(feature = "http-client"))]
fn http(_: &str, _: &[(&String, String)]) -> Result<Location, OpenError> {
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
