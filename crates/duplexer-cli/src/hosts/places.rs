//! Where hosts have their files, on each platform.

use std::env;
use std::path::{Path, PathBuf};

use super::Host;

/// Whom a file is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scope {
    /// All projects of the user.
    User,
    /// The project in the current directory.
    Project,
}

/// A platform, by where programs have their files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Platform {
    Linux,
    Mac,
    Windows,
}

/// The directories that files of hosts are in.
#[derive(Clone, Debug)]
pub(crate) struct Environment {
    pub(super) platform: Platform,
    pub(super) home: Option<PathBuf>,
    /// `$XDG_CONFIG_HOME`, or `.config` in the home directory.
    pub(super) config: Option<PathBuf>,
    /// `%APPDATA%`.
    pub(super) app_data: Option<PathBuf>,
    /// `$CODEX_HOME`.
    pub(super) codex: Option<PathBuf>,
}

impl Environment {
    /// Returns the directories of this process.
    pub(crate) fn current() -> Self {
        let set = |name: &str| env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        let platform = if cfg!(windows) {
            Platform::Windows
        } else if cfg!(target_os = "macos") {
            Platform::Mac
        } else {
            Platform::Linux
        };
        let home = env::home_dir().filter(|home| !home.as_os_str().is_empty());
        let config = set("XDG_CONFIG_HOME").filter(|path| path.is_absolute());
        let config = config.or_else(|| home.as_ref().map(|home| home.join(".config")));
        Self { platform, home, config, app_data: set("APPDATA"), codex: set("CODEX_HOME") }
    }

    /// Returns the file of a host. Some hosts have none in projects.
    pub(crate) fn file(&self, host: Host, scope: Scope) -> Option<PathBuf> {
        match scope {
            Scope::User => self.user_file(host),
            Scope::Project => project_file(host),
        }
    }

    fn user_file(&self, host: Host) -> Option<PathBuf> {
        let home = |path: &str| self.home.as_ref().map(|home| home.join(path));
        let config = |path: &str| self.config.as_ref().map(|config| config.join(path));
        let app_data = |path: &str| self.app_data.as_ref().map(|data| data.join(path));
        // Applications with a folder of their own.
        let application = |path: &str| match self.platform {
            Platform::Linux => config(path),
            Platform::Mac => home(&format!("Library/Application Support/{path}")),
            Platform::Windows => app_data(path),
        };
        match host {
            Host::ClaudeDesktop => application("Claude/claude_desktop_config.json"),
            Host::ClaudeCode => home(".claude.json"),
            Host::Cursor => home(".cursor/mcp.json"),
            Host::VsCode => application("Code/User/mcp.json"),
            Host::Codex => match &self.codex {
                Some(codex) => Some(codex.join("config.toml")),
                None => home(".codex/config.toml"),
            },
            Host::Gemini => home(".gemini/settings.json"),
            Host::Goose if self.platform == Platform::Windows => app_data("Block/goose/config/config.yaml"),
            Host::Goose => config("goose/config.yaml"),
            Host::Zed if self.platform == Platform::Windows => app_data("Zed/settings.json"),
            Host::Zed => config("zed/settings.json"),
            Host::Duplexer => config("duplexer/mcp.json"),
        }
    }

    /// Returns whether a host seems to be used here: its file, or the folder that is only its own, exists.
    pub(crate) fn has(&self, host: Host) -> bool {
        let Some(file) = self.user_file(host) else { return false };
        let folder = match host {
            Host::ClaudeCode => self.home.as_ref().map(|home| home.join(".claude")),
            _ => file.parent().map(Path::to_owned),
        };
        file.exists() || folder.is_some_and(|folder| folder.is_dir())
    }
}

fn project_file(host: Host) -> Option<PathBuf> {
    let file = match host {
        Host::ClaudeCode | Host::Duplexer => ".mcp.json",
        Host::Cursor => ".cursor/mcp.json",
        Host::VsCode => ".vscode/mcp.json",
        Host::Gemini => ".gemini/settings.json",
        Host::Zed => ".zed/settings.json",
        Host::ClaudeDesktop | Host::Codex | Host::Goose => return None,
    };
    Some(PathBuf::from(file))
}
