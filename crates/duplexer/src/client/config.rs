//! Configuration files of clients, `mcp.json`: names of servers, and how each is reached.
//!
//! Both spellings are read: `mcpServers` (Claude, Cursor) and `servers` (VS Code). Variables are expanded when an entry is
//! opened, so that one that is not set fails its own server only.

mod address;
mod entry;
mod variables;

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use duplexer_types::json::{Json, JsonObject, find_member};

pub use address::ServerAddress;
pub use entry::ServerEntry;

/// Maximum size of a file, in bytes.
const MAX_SIZE: u64 = 1024 * 1024;

/// Servers of a configuration file.
///
/// ```
/// use duplexer::client::McpConfig;
///
/// let config = McpConfig::parse(r#"{"mcpServers": {
///     "files": {"command": "npx", "args": ["-y", "server-files", "${HOME}"]},
///     "weather": {"url": "https://weather.example.com/mcp", "headers": {"Authorization": "Bearer ${TOKEN:-none}"}}
/// }}"#)?;
/// assert_eq!(config.entries().len(), 2);
/// assert_eq!(config.entry("weather").map(|entry| entry.name()), Some("weather"));
/// # Ok::<_, duplexer::client::ConfigError>(())
/// ```
#[derive(Clone, Debug)]
pub struct McpConfig(Vec<ServerEntry>);

/// Fault of a configuration file. Its text names the file and the member.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// The file could not be read.
    #[error("{file} cannot be read")]
    Read {
        /// Path of the file.
        file: String,
        /// The cause.
        #[source]
        error: io::Error,
    },
    /// The text is not JSON.
    #[error("{file} is not valid JSON: {error}")]
    Syntax {
        /// Path of the file.
        file: String,
        /// The cause, with its line.
        error: serde_json::Error,
    },
    /// A member is missing or has an invalid value.
    #[error("{}: {member}: {fault}", place(file, *line))]
    Member {
        /// Path of the file.
        file: String,
        /// Line of the member, or of the object that it is missing in.
        line: Option<usize>,
        /// The member, such as `mcpServers.weather.url`.
        member: String,
        /// What is wrong with it.
        fault: String,
    },
}

impl McpConfig {
    /// Reads a file of at most 1 MiB.
    ///
    /// # Errors
    ///
    /// Fails if the file cannot be read, is larger, is not JSON, or has neither `mcpServers` nor `servers`.
    pub fn read(path: impl AsRef<Path>) -> Result<Self, ConfigError> {
        let path = path.as_ref();
        let file = path.display().to_string();
        let read = || -> io::Result<String> {
            let mut text = String::new();
            File::open(path)?.take(MAX_SIZE + 1).read_to_string(&mut text)?;
            Ok(text)
        };
        match read() {
            Ok(text) => Self::parse_file(&file, &text),
            Err(error) => Err(ConfigError::Read { file, error }),
        }
    }

    /// Reads the text of a configuration file.
    ///
    /// # Errors
    ///
    /// Fails like [`Self::read`].
    pub fn parse(text: &str) -> Result<Self, ConfigError> {
        Self::parse_file("mcp.json", text)
    }

    fn parse_file(file: &str, text: &str) -> Result<Self, ConfigError> {
        let fault = |member: &str, fault: &str| {
            let (file, line) = (file.to_owned(), Some(line_of(text, &[member])));
            ConfigError::Member { file, line, member: member.to_owned(), fault: fault.to_owned() }
        };
        if text.len() as u64 > MAX_SIZE {
            let (member, fault) = ("the file".to_owned(), "it is larger than 1 MiB".to_owned());
            return Err(ConfigError::Member { file: file.to_owned(), line: None, member, fault });
        }
        let syntax = |error| ConfigError::Syntax { file: file.to_owned(), error };
        let root: JsonObject = serde_json::from_str(text.trim_start_matches('\u{feff}')).map_err(syntax)?;
        let (name, servers) = match (root.get("mcpServers"), root.get("servers")) {
            (Some(servers), None) => ("mcpServers", servers),
            (None, Some(servers)) => ("servers", servers),
            (None, None) => return Err(fault("mcpServers", "it is missing, and so is `servers`")),
            (Some(_), Some(_)) => return Err(fault("servers", "the file has `mcpServers` too")),
        };
        let servers: JsonObject<Json> = servers
            .decode()
            .map_err(|_| fault(name, "it must be an object of servers with different names"))?;
        let entries = servers.into_iter().map(|(server, settings)| {
            let line = line_of(text, &[name, &server]);
            let read = ServerEntry::new((file, line), &format!("{name}.{server}"), &server, &settings);
            read.map_err(|error| with_line(error, text, &[name, &server]))
        });
        Ok(Self(entries.filter_map(Result::transpose).collect::<Result<_, _>>()?))
    }

    /// Returns the servers in the order of the file, without those that are disabled.
    pub fn entries(&self) -> &[ServerEntry] {
        &self.0
    }

    /// Returns the server with this name.
    pub fn entry(&self, name: &str) -> Option<&ServerEntry> {
        self.0.iter().find(|entry| entry.name() == name)
    }
}

fn place(file: &str, line: Option<usize>) -> String {
    line.map_or_else(|| file.to_owned(), |line| format!("{file}:{line}"))
}

/// Returns the fault of an entry with the line of the member that it is about.
fn with_line(error: ConfigError, text: &str, entry: &[&str]) -> ConfigError {
    let ConfigError::Member { file, member, fault, .. } = error else { return error };
    let before = entry.join(".").len() + 1;
    let inner = member.get(before..).map(|inner| inner.split('.').next().unwrap_or(inner));
    let path: Vec<&str> = entry.iter().copied().chain(inner).collect();
    ConfigError::Member { file, line: Some(line_of(text, &path)), member, fault }
}

/// Returns the line of a member, or of the innermost object on its path that exists.
fn line_of(text: &str, path: &[&str]) -> usize {
    let mut found = text.trim_start_matches('\u{feff}');
    for name in path {
        match find_member(found, name) {
            Some(member) => found = member,
            None => break,
        }
    }
    let offset = found.as_ptr().addr().saturating_sub(text.as_ptr().addr());
    text.get(..offset).unwrap_or_default().matches('\n').count() + 1
}

#[cfg(test)]
mod tests;
