//! What the entry of a server looks like in each host, and what an entry says.

use super::Host;
use super::data::Data;

/// A server as it is put into a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ConfiguredServer {
    Program { command: String, args: Vec<String>, env: Vec<(String, String)> },
    Url { url: String, headers: Vec<(String, String)> },
}

impl ConfiguredServer {
    /// Returns the entry in the words of a host. `proxy` is this command, for a host that only starts programs.
    pub(crate) fn entry(&self, host: Host, name: &str, proxy: &str) -> Data {
        match self {
            Self::Program { command, args, env } => program(host, name, command, args, env),
            Self::Url { url, headers } if host == Host::ClaudeDesktop => {
                let options = headers
                    .iter()
                    .flat_map(|(key, value)| ["--header".to_owned(), format!("{key}: {value}")]);
                let args: Vec<_> = ["proxy".to_owned(), url.clone()].into_iter().chain(options).collect();
                program(host, name, proxy, &args, &[])
            }
            Self::Url { url, headers } => remote(host, name, url, headers),
        }
    }
}

fn program(host: Host, name: &str, command: &str, args: &[String], env: &[(String, String)]) -> Data {
    let word = |key: &str, text: &str| (key.to_owned(), Data::text(text));
    let list = |key: &str| (key.to_owned(), Data::texts(args));
    let map = |key: &str| (key.to_owned(), Data::map_of(env));
    let mut members = match host {
        Host::Goose => {
            return Data::Map(vec![
                ("enabled".to_owned(), Data::Literal("true".to_owned())),
                word("type", "stdio"),
                word("name", name),
                word("cmd", command),
                list("args"),
                map("envs"),
                ("timeout".to_owned(), Data::Literal("300".to_owned())),
            ]);
        }
        Host::ClaudeCode | Host::VsCode => {
            vec![word("type", "stdio"), word("command", command), list("args")]
        }
        _ => vec![word("command", command), list("args")],
    };
    if !env.is_empty() {
        members.push(map("env"));
    }
    Data::Map(members)
}

fn remote(host: Host, name: &str, url: &str, headers: &[(String, String)]) -> Data {
    let word = |key: &str, text: &str| (key.to_owned(), Data::text(text));
    let (mut members, headers_key) = match host {
        Host::Goose => (
            vec![
                ("enabled".to_owned(), Data::Literal("true".to_owned())),
                word("type", "streamable_http"),
                word("name", name),
                word("uri", url),
                ("timeout".to_owned(), Data::Literal("300".to_owned())),
            ],
            "headers",
        ),
        Host::ClaudeCode | Host::VsCode => (vec![word("type", "http"), word("url", url)], "headers"),
        Host::Gemini => (vec![word("httpUrl", url)], "headers"),
        Host::Codex => (vec![word("url", url)], "http_headers"),
        _ => (vec![word("url", url)], "headers"),
    };
    if !headers.is_empty() {
        members.push((headers_key.to_owned(), Data::map_of(headers)));
    }
    Data::Map(members)
}

/// Returns where the server of an entry is: a URL, or a command line. Variables are left out: they can be secrets.
pub(crate) fn described(entry: &Data) -> String {
    let url = entry.member(&["url", "httpUrl", "uri", "serverUrl"]).and_then(Data::as_text);
    if let Some(url) = url {
        return url.to_owned();
    }
    let command = entry.member(&["command", "cmd"]);
    // Earlier versions of Zed have an object here.
    let program = command
        .and_then(|command| command.as_text().or_else(|| command.member(&["path"]).and_then(Data::as_text)));
    let Some(program) = program else { return "(neither a program nor a URL)".to_owned() };
    let args = entry.member(&["args"]).or_else(|| command.and_then(|command| command.member(&["args"])));
    let args = match args {
        Some(Data::List(args)) => args.as_slice(),
        _ => &[],
    };
    let args = args.iter().map(|arg| arg.as_text().map_or_else(|| "?".to_owned(), shell_word));
    [shell_word(program)].into_iter().chain(args).collect::<Vec<_>>().join(" ")
}

/// Writes a word of a command line, with quotes if it needs them.
fn shell_word(word: &str) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || "-_./:=@%+,\\".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', "'\\''"))
}
