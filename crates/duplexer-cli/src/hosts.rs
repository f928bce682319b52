//! Programs that start servers or connect to them, and the files in which they list servers.
//!
//! `places` knows where the files are, `entry` what an entry looks like, `format` how it is put into the text of a file
//! without any other change, `file` how the file is replaced. Nothing here knows the command line.

mod data;
mod entry;
mod file;
mod format;
mod json;
mod places;
#[cfg(test)]
mod tests;
mod toml;
mod yaml;

use clap::ValueEnum;

pub(crate) use data::{Data, quoted};
pub(crate) use entry::{ConfiguredServer, described};
pub(crate) use file::{ConfigurationFile, FileError};
pub(crate) use places::{Environment, Scope};

use format::Format;
use json::Dialect;

/// A program with a list of servers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub(crate) enum Host {
    ClaudeDesktop,
    ClaudeCode,
    Cursor,
    #[value(name = "vscode", alias = "vs-code")]
    VsCode,
    Codex,
    #[value(name = "gemini", alias = "gemini-cli")]
    Gemini,
    Goose,
    Zed,
    /// This command: its other verbs take the name instead of a URL
    Duplexer,
}

impl Host {
    pub(crate) const ALL: [Self; 9] = [
        Self::ClaudeDesktop,
        Self::ClaudeCode,
        Self::Cursor,
        Self::VsCode,
        Self::Codex,
        Self::Gemini,
        Self::Goose,
        Self::Zed,
        Self::Duplexer,
    ];

    /// Returns the name for people.
    pub(crate) fn title(self) -> &'static str {
        match self {
            Self::ClaudeDesktop => "Claude Desktop",
            Self::ClaudeCode => "Claude Code",
            Self::Cursor => "Cursor",
            Self::VsCode => "VS Code",
            Self::Codex => "Codex",
            Self::Gemini => "Gemini CLI",
            Self::Goose => "Goose",
            Self::Zed => "Zed",
            Self::Duplexer => "duplexer",
        }
    }

    /// Returns the name on the command line.
    pub(crate) fn word(self) -> String {
        self.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
    }

    fn format(self) -> Format {
        match self {
            Self::ClaudeDesktop | Self::ClaudeCode | Self::Duplexer => Format::Json(Dialect::Strict),
            Self::Cursor | Self::Gemini => Format::Json(Dialect::Comments),
            Self::VsCode | Self::Zed => Format::Json(Dialect::CommentsAndCommas),
            Self::Codex => Format::Toml,
            Self::Goose => Format::Yaml,
        }
    }

    /// Returns the member of the file that holds the servers by name.
    pub(crate) fn container(self) -> &'static str {
        match self {
            Self::ClaudeDesktop | Self::ClaudeCode | Self::Cursor | Self::Gemini | Self::Duplexer => {
                "mcpServers"
            }
            Self::VsCode => "servers",
            Self::Codex => "mcp_servers",
            Self::Goose => "extensions",
            Self::Zed => "context_servers",
        }
    }
}
