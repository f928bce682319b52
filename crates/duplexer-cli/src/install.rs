//! `duplexer install`, `uninstall` and `servers`: entries in the configuration of hosts.

use std::collections::BTreeMap;
use std::env;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use serde_json::json;

use crate::arguments::{FileArguments, InstallArguments, ServersArguments, UninstallArguments};
use crate::failure::Failure;
use crate::hosts::{
    ConfigurationFile, ConfiguredServer, Data, Environment, FileError, Host, Scope, described,
};
use crate::terminal::{Terminal, print};
use crate::text::{Style, Text, lines};

/// Maximum length of a name: hosts prefix the names of tools with it.
const MAX_NAME: usize = 64;

impl From<FileError> for Failure {
    fn from(error: FileError) -> Self {
        Self::usage(error.to_string())
    }
}

/// Puts a server into the files of hosts: into all of them, or into none if one has a fault.
pub(crate) fn install(arguments: &InstallArguments) -> Result<(), Failure> {
    let name = &arguments.name;
    check_name(name)?;
    let server = server(arguments)?;
    let this = env::current_exe().ok().and_then(|path| path.into_os_string().into_string().ok());
    let proxy = this.unwrap_or_else(|| "duplexer".to_owned());
    let files = files(&arguments.files)?;
    let mut changes = Vec::new();
    for (host, path) in &files {
        let entry = server.entry(*host, name, &proxy);
        // What is printed is a file with nothing else in it.
        let path = if arguments.print { Path::new("") } else { path.as_path() };
        let file = ConfigurationFile::read(*host, path)?;
        let earlier = file.entries()?.into_iter().find(|(other, _)| other == name);
        let state = match earlier {
            Some((_, earlier)) if earlier.same(&entry) => State::Same,
            Some(_) if !arguments.force => {
                return Err(Failure::usage(format!(
                    "{} has another `{name}` in {}; --force replaces it, `duplexer servers` shows it",
                    host.title(),
                    file.path().display()
                )));
            }
            Some(_) => State::Replaced(file.with(name, &entry)?),
            None => State::New(file.with(name, &entry)?),
        };
        changes.push((*host, file, state));
    }
    if arguments.print {
        print(&snippets(&files, &changes));
        return Ok(());
    }
    for (host, file, state) in &changes {
        let text = match state {
            State::Same => None,
            State::New(text) | State::Replaced(text) => Some(text),
        };
        if let Some(text) = text {
            file.replace(Some(text))?;
        }
        let verb = match state {
            State::Same => "is there already:",
            State::New(_) => "installed in",
            State::Replaced(_) => "replaced in",
        };
        print(&outcome(*host, verb, file.path()));
    }
    if changes.iter().any(|(host, ..)| *host == Host::ClaudeDesktop) {
        Terminal::new()
            .note("Claude Desktop reads its file when it starts: quit it completely and start it again.");
    }
    Ok(())
}

/// What installing does to a file.
enum State {
    Same,
    New(String),
    Replaced(String),
}

/// Removes a server from the files of hosts.
pub(crate) fn uninstall(arguments: &UninstallArguments) -> Result<(), Failure> {
    let name = &arguments.name;
    let mut changes = Vec::new();
    for (host, path) in files(&arguments.files)? {
        let file = ConfigurationFile::read(host, &path)?;
        if let Some(rest) = file.without(name)? {
            changes.push((host, file, rest));
        }
    }
    if changes.is_empty() {
        return Err(Failure::usage(format!("no host has a server `{name}`; `duplexer servers` lists them")));
    }
    for (host, file, rest) in changes {
        file.replace(rest.text())?;
        print(&outcome(host, "removed from", file.path()));
    }
    Ok(())
}

/// Lists the servers of all files. A file with a fault is reported and does not hide the others.
pub(crate) fn servers(arguments: &ServersArguments) -> Result<(), Failure> {
    let environment = Environment::current();
    let mut listed: BTreeMap<(Host, PathBuf), Vec<(String, Data)>> = BTreeMap::new();
    let mut fault = None;
    for host in
        Host::ALL.into_iter().filter(|host| arguments.hosts.is_empty() || arguments.hosts.contains(host))
    {
        for scope in [Scope::User, Scope::Project] {
            // The project's file of this command is the one of Claude Code.
            let is_twice = host == Host::Duplexer && scope == Scope::Project && arguments.hosts.is_empty();
            let Some(path) = environment.file(host, scope).filter(|_| !is_twice) else { continue };
            // In the home directory, the file of a project can be that of the user.
            let is_listed = |real: &PathBuf| {
                listed
                    .keys()
                    .any(|(other, path)| *other == host && path.canonicalize().ok().as_ref() == Some(real))
            };
            if path.canonicalize().is_ok_and(|real| is_listed(&real)) {
                continue;
            }
            match ConfigurationFile::read(host, &path).and_then(|file| Ok((file.entries()?, file.exists()))) {
                Ok((entries, true)) => drop(listed.insert((host, path), entries)),
                Ok((_, false)) => {}
                Err(error) => {
                    Terminal::new().note(&error.to_string());
                    fault = Some(Failure::usage("not every file could be read"));
                }
            }
        }
    }
    if arguments.json {
        let files: Vec<_> =
            listed.iter().map(|((host, path), entries)| as_json(*host, path, entries)).collect();
        print(&Text::plain(json!(files).to_string()));
    } else if listed.is_empty() {
        Terminal::new().note("No host is configured here; `duplexer install NAME -- COMMAND` adds a server.");
    } else {
        print(&lines(
            listed
                .iter()
                .enumerate()
                .map(|(index, ((host, path), entries))| section(index, *host, path, entries)),
        ));
    }
    fault.map_or(Ok(()), Err)
}

fn as_json(host: Host, path: &Path, entries: &[(String, Data)]) -> serde_json::Value {
    let servers: Vec<_> =
        entries.iter().map(|(name, entry)| json!({ "name": name, "at": described(entry) })).collect();
    json!({ "host": host.word(), "file": path.display().to_string(), "servers": servers })
}

fn section(index: usize, host: Host, path: &Path, entries: &[(String, Data)]) -> Text {
    let mut text = Text::new();
    if index > 0 {
        text.push(Style::Plain, "\n");
    }
    text.push(Style::Heading, host.title());
    text.push(Style::Faint, &format!("  {}", path.display()));
    if entries.is_empty() {
        text.push(Style::Faint, "\n  no servers");
    }
    for (name, entry) in entries {
        text.push(Style::Plain, "\n  ");
        text.push(Style::Name, &one_line(name));
        text.push(Style::Plain, &format!("  {}", one_line(&described(entry))));
    }
    text
}

/// Returns a text of a file without line breaks, which could imitate another entry.
fn one_line(text: &str) -> String {
    text.replace(['\n', '\r', '\t'], " ")
}

fn outcome(host: Host, verb: &str, path: &Path) -> Text {
    Text::new()
        .then(Style::Name, host.title())
        .then(Style::Plain, format!(": {verb} "))
        .then(Style::Plain, path.display().to_string())
}

fn snippets(files: &[(Host, PathBuf)], changes: &[(Host, ConfigurationFile, State)]) -> Text {
    let mut text = Text::new();
    for (index, ((host, path), (_, _, state))) in files.iter().zip(changes).enumerate() {
        let (State::New(snippet) | State::Replaced(snippet)) = state else { continue };
        if files.len() > 1 {
            let gap = if index > 0 { "\n\n" } else { "" };
            text.push(Style::Plain, gap);
            text.push(Style::Heading, &format!("{}, {}", host.title(), path.display()));
            text.push(Style::Plain, "\n");
        }
        text.push(Style::Plain, snippet.trim_end());
    }
    text
}

/// Checks a name against the rule of the strictest host.
fn check_name(name: &str) -> Result<(), Failure> {
    let is_allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    if name.is_empty() || name.len() > MAX_NAME || !name.chars().all(is_allowed) {
        let text = format!("a name has 1 to {MAX_NAME} letters, digits, - and _");
        let name = name.escape_debug();
        return Err(Failure::usage(format!("`{name}` cannot be the name of a server: {text}")));
    }
    Ok(())
}

/// Returns the hosts and their files.
fn files(arguments: &FileArguments) -> Result<Vec<(Host, PathBuf)>, Failure> {
    let environment = Environment::current();
    if let Some(path) = &arguments.config {
        return match arguments.hosts[..] {
            [host] => Ok(vec![(host, path.clone())]),
            _ => Err(Failure::usage("--config is the file of one host; give one --host")),
        };
    }
    let scope = if arguments.project { Scope::Project } else { Scope::User };
    let chosen = |host: &Host| match arguments.hosts[..] {
        [] => environment.has(*host) && (scope == Scope::User || environment.file(*host, scope).is_some()),
        _ => arguments.hosts.contains(host),
    };
    let mut files: Vec<(Host, PathBuf)> = Vec::new();
    for host in Host::ALL.into_iter().filter(chosen) {
        let Some(path) = environment.file(host, scope) else {
            let text = match scope {
                Scope::User => "its file is not known here; --config names it",
                Scope::Project => "it has no file in projects",
            };
            return Err(Failure::usage(format!("{}: {text}", host.title())));
        };
        // This command and Claude Code share the file of a project.
        if !files.iter().any(|(_, other)| *other == path) {
            files.push((host, path));
        }
    }
    if files.is_empty() {
        let words = Host::ALL.map(Host::word).join(", ");
        return Err(Failure::usage(format!(
            "no host was found on this machine; --host names one of {words}"
        )));
    }
    Ok(files)
}

fn server(arguments: &InstallArguments) -> Result<ConfiguredServer, Failure> {
    if let Some(url) = &arguments.url {
        let parsed = url::Url::parse(url).ok().filter(|url| matches!(url.scheme(), "http" | "https"));
        if parsed.is_none() {
            return Err(Failure::usage(format!(
                "`{url}` is not the URL of a server: it begins with http:// or https://; a program goes to the end: \
                 `-- COMMAND`"
            )));
        }
        return Ok(ConfiguredServer::Url { url: url.clone(), headers: arguments.headers.clone() });
    }
    let (program, rest) =
        arguments.command.split_first().ok_or_else(|| Failure::usage("no program was given"))?;
    let command = text(absolute_program(program)?.as_os_str())?;
    let mut args = rest.iter().map(|word| absolute_argument(word)).collect::<Result<Vec<_>, _>>()?;
    // `duplexer dev -- COMMAND` and its like start a program themselves.
    let inner = rest.iter().position(|word| word == "--").map(|at| at + 1);
    let inner = inner.filter(|at| is_called(program, "duplexer") && *at < rest.len());
    if let Some((given, written)) = inner.and_then(|at| Some((rest.get(at)?, args.get_mut(at)?))) {
        *written = text(absolute_program(given)?.as_os_str())?;
    }
    let started = inner.and_then(|at| rest.get(at)).unwrap_or(program);
    if is_called(started, "cargo") && !args.iter().any(|arg| arg.starts_with("--manifest-path")) {
        Terminal::new().note(
            "Hosts do not start it in the folder of the project: add --manifest-path, or install the built program.",
        );
    }
    Ok(ConfiguredServer::Program { command, args, env: arguments.env.clone() })
}

/// Returns whether a program has this name, whatever its directory and its extension.
pub(crate) fn is_called(program: &OsStr, name: &str) -> bool {
    Path::new(program).file_stem() == Some(OsStr::new(name))
}

fn text(word: &OsStr) -> Result<String, Failure> {
    let wrong =
        || Failure::usage(format!("`{}` is not UTF-8, as files of hosts are", word.to_string_lossy()));
    word.to_str().map(str::to_owned).ok_or_else(wrong)
}

/// Returns the absolute path of a program: hosts have another PATH, and start it in another folder.
pub(crate) fn absolute_program(program: &OsStr) -> Result<PathBuf, Failure> {
    let paths = env::var_os("PATH").unwrap_or_default();
    program_in(program, env::split_paths(&paths).filter(|folder| folder.is_absolute()))
}

/// Returns the absolute path of a program that has a folder of its own, or is in one of the folders.
pub(crate) fn program_in(
    program: &OsStr,
    mut folders: impl Iterator<Item = PathBuf>,
) -> Result<PathBuf, Failure> {
    let given = Path::new(program);
    let found = if given.components().count() > 1 {
        std::path::absolute(given).ok().and_then(|path| runnable(&path))
    } else {
        folders.find_map(|folder| runnable(&folder.join(given)))
    };
    found.ok_or_else(|| Failure::usage(format!("there is no program `{}`", program.to_string_lossy())))
}

/// Returns a file that can be run; on Windows also one with an extension that is left out.
fn runnable(path: &Path) -> Option<PathBuf> {
    let with_exe = || (cfg!(windows) && path.extension().is_none()).then(|| path.with_extension("exe"));
    [Some(path.to_owned()), with_exe()].into_iter().flatten().find(|path| is_runnable(path))
}

#[cfg(unix)]
fn is_runnable(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt as _;
    path.metadata().is_ok_and(|metadata| metadata.is_file() && metadata.permissions().mode() & 0o111 != 0)
}

#[cfg(not(unix))]
fn is_runnable(path: &Path) -> bool {
    path.is_file()
}

/// Returns an argument; one that clearly is a path of something that exists, as an absolute path.
fn absolute_argument(word: &OsStr) -> Result<String, Failure> {
    let path = Path::new(word);
    let looks_like_path = path.components().count() > 1 || path.extension().is_some();
    let is_path = path.is_relative() && looks_like_path && path.exists();
    match std::path::absolute(path) {
        Ok(absolute) if is_path => text(absolute.as_os_str()),
        _ => text(word),
    }
}
