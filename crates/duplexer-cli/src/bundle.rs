//! `duplexer bundle`: an MCPB bundle, which hosts install with a click: a ZIP archive with the program and a manifest
//! (version 0.3). Name, version and tools are asked of the server itself.

mod zip;

use std::ffi::OsString;
use std::fs;
use std::path::{Component, Path, PathBuf};
use std::time::Duration;

use duplexer::client::{Client, OpenWith as _};
use duplexer::transport::child::ChildCommand;
use serde_json::{Map, Value, json};
use tokio::time::timeout;

use self::zip::{Archive, Mode};
use crate::arguments::BundleArguments;
use crate::failure::{Exit, Failure, chain};
use crate::install::absolute_program;
use crate::terminal::print;
use crate::text::{Style, Text};

/// Maximum time in which the server says what it has.
const PATIENCE: Duration = Duration::from_secs(30);
/// Maximum number of files, of directories in each other, and of bytes.
const MAX_FILES: usize = 10_000;
const MAX_DEPTH: usize = 32;
const MAX_BYTES: u64 = 1 << 30;

/// Writes the bundle.
pub(crate) async fn write(arguments: &BundleArguments) -> Result<(), Failure> {
    let (program, rest) =
        arguments.command.split_first().ok_or_else(|| Failure::usage("no program was given"))?;
    let program = absolute_program(program)?;
    let files = extra_files(&arguments.files)?;
    let server = timeout(PATIENCE, Box::pin(Asked::of(&program, rest, arguments))).await;
    let server =
        server.map_err(|_| Failure::new(Exit::Timeout, "the server did not answer within 30 s"))??;
    let binary = name_in_bundle(&program)?;
    let manifest = manifest(arguments, &server, &binary, &files)?;
    let output = arguments
        .output
        .clone()
        .unwrap_or_else(|| PathBuf::from(format!("{}.mcpb", file_name(&server.name))));
    if output.exists() && !arguments.force {
        return Err(Failure::usage(format!("{} exists; --force replaces it", output.display())));
    }
    let mut archive = Archive::new();
    let mut total = 0;
    let text = serde_json::to_vec_pretty(&manifest).map_err(|error| Failure::usage(error.to_string()))?;
    archive.add("manifest.json", &text, Mode::Plain);
    archive.add(&format!("server/{binary}"), &read(&program, &mut total)?, Mode::Program);
    for file in &files {
        archive.add(&format!("server/{}", file.name), &read(&file.path, &mut total)?, file.mode);
    }
    if let Some(icon) = &arguments.icon {
        archive.add("icon.png", &picture(icon, &mut total)?, Mode::Plain);
    }
    let bytes = archive.finish();
    fs::write(&output, &bytes)
        .map_err(|error| Failure::usage(format!("{} cannot be written: {error}", output.display())))?;
    print(&Text::new().then(Style::Name, output.display().to_string()).then(
        Style::Plain,
        format!(
            ": {} {}, {} tools, {} files, {} KiB, for {}",
            server.name,
            server.version,
            server.tools.len(),
            files.len() + 2,
            bytes.len().div_ceil(1024),
            platform()
        ),
    ));
    Ok(())
}

/// What the server has said.
struct Asked {
    name: String,
    title: Option<String>,
    version: String,
    instructions: Option<String>,
    tools: Vec<Value>,
    has_prompts: bool,
}

impl Asked {
    async fn of(program: &Path, rest: &[OsString], arguments: &BundleArguments) -> Result<Self, Failure> {
        let command = ChildCommand::new(program).args(rest);
        let command = arguments.env.iter().fold(command, |command, (name, value)| command.env(name, value));
        let client = Client::builder("duplexer", env!("CARGO_PKG_VERSION")).open(command).await;
        let client = client.map_err(|error| Failure::new(Exit::Connect, chain(&error)))?;
        let info = client.server_info().cloned();
        let info = info.ok_or_else(|| Failure::new(Exit::Protocol, "the server does not say what it is"))?;
        let has_tools = client.server_capabilities().tools.is_some();
        let tools = if has_tools { client.all_tools().await? } else { Vec::new() };
        let tools = tools.iter().map(|tool| {
            let mut entry = Map::from_iter([("name".to_owned(), json!(tool.name))]);
            entry.extend(tool.description.as_ref().map(|text| ("description".to_owned(), json!(text))));
            Value::Object(entry)
        });
        let asked = Self {
            name: info.name,
            title: info.title,
            version: info.version,
            instructions: client.instructions().map(str::to_owned),
            tools: tools.collect(),
            has_prompts: client.server_capabilities().prompts.is_some(),
        };
        // What it has said counts; an error while it ends does not.
        let _ = client.close().await;
        Ok(asked)
    }
}

fn manifest(
    arguments: &BundleArguments,
    server: &Asked,
    binary: &str,
    files: &[BundledFile],
) -> Result<Value, Failure> {
    let version = arguments.bundle_version.as_ref().unwrap_or(&server.version);
    if !is_version(version) {
        return Err(Failure::usage(format!(
            "`{version}` is not a version such as 1.2.3, which a bundle needs; --bundle-version gives one"
        )));
    }
    let first_line = server.instructions.as_deref().and_then(|text| text.lines().next());
    let description = arguments.description.as_deref().or(first_line).or(server.title.as_deref());
    let args =
        arguments.command.iter().skip(1).map(|word| argument(word, files)).collect::<Result<Vec<_>, _>>()?;
    let env: Map<String, Value> =
        arguments.env.iter().map(|(name, value)| (name.clone(), json!(value))).collect();
    let mut config = json!({ "command": format!("${{__dirname}}/server/{binary}"), "args": args });
    if !env.is_empty() {
        config["env"] = Value::Object(env);
    }
    let mut manifest = json!({
        "manifest_version": "0.3",
        "name": server.name,
        "version": version,
        "description": description.unwrap_or(&server.name),
        "author": { "name": arguments.author },
        "server": { "type": "binary", "entry_point": format!("server/{binary}"), "mcp_config": config },
        "tools": server.tools,
        "compatibility": { "platforms": [platform()] },
    });
    if let Some(title) = &server.title {
        manifest["display_name"] = json!(title);
    }
    if server.has_prompts {
        manifest["prompts_generated"] = json!(true);
    }
    if arguments.icon.is_some() {
        manifest["icon"] = json!("icon.png");
    }
    Ok(manifest)
}

/// Returns the name of this platform in manifests.
fn platform() -> &'static str {
    match std::env::consts::OS {
        "macos" => "darwin",
        "windows" => "win32",
        other => other,
    }
}

/// Returns whether a text is a semantic version.
fn is_version(text: &str) -> bool {
    let (core, rest) = match text.find(['-', '+']) {
        Some(at) => text.split_at(at),
        None => (text, "-x"),
    };
    let numbers: Vec<_> = core.split('.').collect();
    let is_number = |part: &&str| !part.is_empty() && part.chars().all(|c| c.is_ascii_digit());
    numbers.len() == 3
        && numbers.iter().all(is_number)
        && rest.len() > 1
        && rest.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '+' | '.'))
}

/// Returns an argument of the program; the path of a bundled file as its place in the bundle.
fn argument(word: &OsString, files: &[BundledFile]) -> Result<String, Failure> {
    let text =
        word.to_str().ok_or_else(|| Failure::usage(format!("`{}` is not UTF-8", word.to_string_lossy())))?;
    let bundled = relative_name(Path::new(text)).filter(|name| files.iter().any(|file| file.name == *name));
    Ok(bundled.map_or_else(|| text.to_owned(), |name| format!("${{__dirname}}/server/{name}")))
}

/// A file in the bundle.
struct BundledFile {
    path: PathBuf,
    /// With `/` between its parts.
    name: String,
    mode: Mode,
}

/// Collects the files of `--file`. Each has the path that it has below the current directory; none can be elsewhere.
fn extra_files(paths: &[PathBuf]) -> Result<Vec<BundledFile>, Failure> {
    let mut files = Vec::new();
    for path in paths {
        let outside = || Failure::usage(format!("{} is not within the current directory", path.display()));
        relative_name(path).ok_or_else(outside)?;
        collect(path, 0, &mut files)?;
    }
    files.sort_by(|this, that| this.name.cmp(&that.name));
    files.dedup_by(|this, that| this.name == that.name);
    Ok(files)
}

fn collect(path: &Path, depth: usize, files: &mut Vec<BundledFile>) -> Result<(), Failure> {
    let unreadable =
        |error: std::io::Error| Failure::usage(format!("{} cannot be read: {error}", path.display()));
    let metadata = fs::symlink_metadata(path).map_err(unreadable)?;
    if metadata.is_symlink() {
        return Err(Failure::usage(format!("{} is a link, which a bundle cannot hold", path.display())));
    }
    if !metadata.is_dir() {
        let name = relative_name(path);
        let name =
            name.ok_or_else(|| Failure::usage(format!("{} has no name for a bundle", path.display())))?;
        files.push(BundledFile { path: path.to_owned(), name, mode: mode(&metadata) });
        return Ok(());
    }
    if depth >= MAX_DEPTH {
        return Err(Failure::usage(format!("{} is nested too deeply", path.display())));
    }
    for entry in fs::read_dir(path).map_err(unreadable)? {
        collect(&entry.map_err(unreadable)?.path(), depth + 1, files)?;
        if files.len() > MAX_FILES {
            return Err(Failure::usage(format!("a bundle holds at most {MAX_FILES} files")));
        }
    }
    Ok(())
}

#[cfg(unix)]
fn mode(metadata: &fs::Metadata) -> Mode {
    use std::os::unix::fs::PermissionsExt as _;
    if metadata.permissions().mode() & 0o111 == 0 { Mode::Plain } else { Mode::Program }
}

#[cfg(not(unix))]
fn mode(_: &fs::Metadata) -> Mode {
    Mode::Plain
}

/// Returns a relative path as a name in the bundle. One that leads elsewhere, or that a ZIP archive cannot hold, has none.
fn relative_name(path: &Path) -> Option<String> {
    let mut parts = Vec::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::Normal(part) => {
                let part = part.to_str()?;
                if part.contains(|c: char| c == '\\' || c == ':' || c.is_control()) {
                    return None;
                }
                parts.push(part);
            }
            Component::Prefix(_) | Component::RootDir | Component::ParentDir => return None,
        }
    }
    (!parts.is_empty()).then(|| parts.join("/"))
}

fn name_in_bundle(program: &Path) -> Result<String, Failure> {
    let name = program.file_name().and_then(|name| relative_name(Path::new(name)));
    name.ok_or_else(|| Failure::usage(format!("{} has no name for a bundle", program.display())))
}

/// Returns the name of a server as a file name.
fn file_name(name: &str) -> String {
    let plain: String = name
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.') { c } else { '-' })
        .collect();
    let plain = plain.trim_start_matches(['.', '-']);
    if plain.is_empty() { "server".to_owned() } else { plain.chars().take(64).collect() }
}

fn read(path: &Path, total: &mut u64) -> Result<Vec<u8>, Failure> {
    let unreadable =
        |error: std::io::Error| Failure::usage(format!("{} cannot be read: {error}", path.display()));
    *total += fs::metadata(path).map_err(unreadable)?.len();
    if *total > MAX_BYTES {
        return Err(Failure::usage("a bundle holds at most 1 GiB"));
    }
    fs::read(path).map_err(unreadable)
}

fn picture(path: &Path, total: &mut u64) -> Result<Vec<u8>, Failure> {
    let bytes = read(path, total)?;
    if bytes.starts_with(b"\x89PNG\r\n\x1a\n") {
        Ok(bytes)
    } else {
        Err(Failure::usage(format!("{} is not a PNG picture", path.display())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_stay_within_the_bundle() {
        let name = |path: &str| relative_name(Path::new(path));
        assert_eq!(name("./data/a.txt").as_deref(), Some("data/a.txt"));
        for outside in ["../a", "a/../../b", "/etc/passwd", "", ".", "a\\..\\b", "c:evil", "a\u{1b}"] {
            assert_eq!(name(outside), None, "{outside}");
        }
    }

    #[test]
    fn a_server_does_not_choose_where_the_bundle_is_written() {
        assert_eq!(file_name("../../etc/cron.d/x"), "etc-cron.d-x");
        assert_eq!(file_name("notes"), "notes");
        assert_eq!(file_name("..."), "server");
        assert_eq!(file_name("a\u{1b}[2Jb\n"), "a--2Jb-");
        assert_eq!(file_name(&"x".repeat(500)).len(), 64);
    }

    #[test]
    fn a_bundle_needs_a_semantic_version() {
        assert!(is_version("1.2.3") && is_version("0.1.0-rc.1+7"));
        for wrong in ["1", "1.2", "v1.2.3", "1.2.3-", "1.2.x", "", "1.2.3 ", "1.2.3.4"] {
            assert!(!is_version(wrong), "{wrong}");
        }
    }
}
