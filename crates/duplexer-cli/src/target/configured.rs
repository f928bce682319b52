//! Servers that a user has configured: `.mcp.json` or `mcp.json` of the current folder, and the user's own list.

use std::env;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use duplexer::client::{McpConfig, ServerAddress};

use super::{Endpoint, Program, Target};
use crate::failure::{Failure, chain};

/// Files of the current folder, in the order in which they are searched.
const LOCAL: [&str; 2] = [".mcp.json", "mcp.json"];

/// Returns the files with configured servers, those that exist, in the order in which they are searched.
fn files() -> Vec<PathBuf> {
    let local = LOCAL.iter().map(PathBuf::from);
    local.chain(own_list()).filter(|file| file.is_file()).collect()
}

/// Returns the user's own list of servers: `duplexer/mcp.json` in the folder for configurations.
fn own_list() -> Option<PathBuf> {
    let variable = |name: &str| env::var_os(name).filter(|value| !value.is_empty());
    let absolute = |value: OsString| Some(PathBuf::from(value)).filter(|path| path.is_absolute());
    let folder = variable("XDG_CONFIG_HOME")
        .and_then(absolute)
        .or_else(|| if cfg!(windows) { variable("APPDATA").and_then(absolute) } else { None })
        .or_else(|| variable("HOME").and_then(absolute).map(|home| home.join(".config")))?;
    Some(folder.join("duplexer").join("mcp.json"))
}

/// Returns the server with this name, from the first file that has it.
///
/// # Errors
///
/// Fails if a file on the way cannot be read, and if a variable of the entry is not set.
pub(super) fn find(name: &str) -> Result<Option<Target>, Failure> {
    find_in(&files(), name)
}

/// Returns the names of all configured servers.
pub(super) fn names() -> Vec<String> {
    let configs = files().into_iter().filter_map(|file| McpConfig::read(file).ok());
    let names = |config: McpConfig| -> Vec<String> {
        config.entries().iter().map(|entry| entry.name().to_owned()).collect()
    };
    let mut all: Vec<String> = configs.flat_map(names).collect();
    all.sort();
    all.dedup();
    all
}

fn find_in(files: &[impl AsRef<Path>], name: &str) -> Result<Option<Target>, Failure> {
    for file in files {
        let config = McpConfig::read(file).map_err(|error| Failure::usage(chain(&error)))?;
        if let Some(entry) = config.entry(name) {
            let address = entry.address().map_err(|error| Failure::usage(chain(&error)))?;
            return target(name, address).map(Some);
        }
    }
    Ok(None)
}

fn target(name: &str, address: ServerAddress) -> Result<Target, Failure> {
    match address {
        ServerAddress::Url { url, headers } if super::is_url(&url) => {
            Ok(Target::Url(Endpoint { url, headers }))
        }
        ServerAddress::Url { url, .. } => {
            Err(Failure::usage(format!("`{url}` of the configured server `{name}` is not a URL")))
        }
        ServerAddress::Program { command, args, env, cwd } => {
            let words = std::iter::once(command).chain(args).map(OsString::from).collect();
            Ok(Target::Command(Program { words, env, cwd: cwd.map(PathBuf::from) }))
        }
        _ => Err(Failure::usage(format!("the configured server `{name}` is of an unknown kind"))),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn the_first_file_with_the_name_counts() {
        let folder = env::temp_dir().join(format!("duplexer-{}-configured", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let file = |name: &str, text: &str| {
            let path = folder.join(name);
            fs::write(&path, text).unwrap();
            path
        };
        let files = [
            file(
                "one",
                r#"{"servers": {"a": {"command": "x", "args": ["y"], "env": {"K": "v"}, "cwd": "z"}}}"#,
            ),
            file(
                "two",
                r#"{"mcpServers": {"a": {"command": "no"}, "b": {"url": "http://b/mcp", "headers": {"H": "v"}},
                "c": {"url": "ftp://c"}, "d": {"command": "${DUPLEXER_NO_SUCH_VARIABLE}"}}}"#,
            ),
        ];
        let found = |name: &str| find_in(&files, name).map_err(|failure| failure.to_string());
        let program = Program {
            words: vec!["x".into(), "y".into()],
            env: vec![("K".to_owned(), "v".to_owned())],
            cwd: Some(PathBuf::from("z")),
        };
        assert_eq!(found("a"), Ok(Some(Target::Command(program))));
        let url =
            Endpoint { url: "http://b/mcp".to_owned(), headers: vec![("H".to_owned(), "v".to_owned())] };
        assert_eq!(found("b"), Ok(Some(Target::Url(url))));
        assert_eq!(found("nothing"), Ok(None));
        assert!(found("c").unwrap_err().contains("is not a URL"));
        assert!(found("d").unwrap_err().contains("DUPLEXER_NO_SUCH_VARIABLE"));
        fs::write(folder.join("one"), "{").unwrap();
        assert!(found("b").unwrap_err().contains("is not valid JSON"));
        fs::remove_dir_all(&folder).unwrap();
    }
}
