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

/// What is shown in the place of a secret.
const HIDDEN: &str = "…";

/// Returns where the server of an entry is: a URL, or a command line. What can be a secret is left out: variables, headers,
/// values of options that are named after one, and the user and the query of a URL.
pub(crate) fn described(entry: &Data) -> String {
    let url = entry.member(&["url", "httpUrl", "uri", "serverUrl"]).and_then(Data::as_text);
    if let Some(url) = url {
        return public_url(url);
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
    let mut words = vec![shell_word(program)];
    let mut is_secret = false;
    for arg in args {
        let word = arg.as_text().unwrap_or("?");
        words.push(if std::mem::take(&mut is_secret) { HIDDEN.to_owned() } else { public_word(word) });
        is_secret = takes_secret(word);
    }
    words.join(" ")
}

/// Returns a URL without its user and its query.
fn public_url(url: &str) -> String {
    let (rest, query) =
        url.split_once('?').map_or((url, String::new()), |(rest, _)| (rest, format!("?{HIDDEN}")));
    let Some((scheme, rest)) = rest.split_once("://") else { return format!("{rest}{query}") };
    let (host, path) = rest.find('/').map_or((rest, ""), |at| rest.split_at(at));
    let host = host.rsplit_once('@').map_or_else(|| host.to_owned(), |(_, host)| format!("{HIDDEN}@{host}"));
    format!("{scheme}://{host}{path}{query}")
}

/// Returns a word of a command line as it is shown.
fn public_word(word: &str) -> String {
    match word.split_once('=') {
        Some((option, _)) if takes_secret(option) => format!("{option}={HIDDEN}"),
        _ if word.starts_with("http://") || word.starts_with("https://") => public_url(word),
        _ => shell_word(word),
    }
}

/// Returns whether a word is an option whose value can be a secret.
fn takes_secret(word: &str) -> bool {
    const NAMES: [&str; 8] = ["header", "env", "token", "key", "secret", "password", "auth", "credential"];
    let name = word.strip_prefix("--").map(str::to_ascii_lowercase);
    let is_named =
        name.is_some_and(|name| !name.contains('=') && NAMES.iter().any(|part| name.contains(part)));
    is_named || matches!(word, "-H" | "-e")
}

/// Writes a word of a command line, with quotes if it needs them.
fn shell_word(word: &str) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || "-_./:=@%+,\\".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', "'\\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_can_be_a_secret_is_not_described() {
        let check = |words: &str, expected: &str| {
            let args: Vec<String> = words.split(' ').map(str::to_owned).collect();
            let entry = program(Host::Cursor, "a", "/bin/server", &args, &[]);
            assert_eq!(described(&entry), format!("/bin/server {expected}"));
        };
        check("--stdio --port 8000", "--stdio --port 8000");
        check("proxy https://a/mcp --header X-Key:abc -v", "proxy https://a/mcp --header … -v");
        check("-H X-Key:abc -e KEY=abc", "-H … -e …");
        check("--api-key abc --token=abc --level=1", "--api-key … --token=… --level=1");
        check("https://me:pw@a/mcp?key=abc", "https://…@a/mcp?…");
        let url = |url: &str| described(&remote(Host::Cursor, "a", url, &[]));
        assert_eq!(url("https://mcp.example.com/mcp"), "https://mcp.example.com/mcp");
        assert_eq!(url("https://me:pw@mcp.example.com?key=@a/b"), "https://…@mcp.example.com?…");
        assert_eq!(url("https://mcp.example.com/a@b"), "https://mcp.example.com/a@b");
    }
}
