//! Words that only a server knows: its tools, their arguments, its resources and prompts.
//!
//! Only servers at URLs are asked, and without a login: a key press must not start a program or open a browser.

use std::path::Path;
use std::time::Duration;

use duplexer::client::{Client, OpenWith as _};
use serde_json::Value;
use tokio::time::timeout;

use super::Candidate;
use super::line::Typed;
use crate::hosts::{ConfigurationFile, Data, Environment, Host, Scope};

/// Maximum time for everything that a server is asked.
const PATIENCE: Duration = Duration::from_millis(1500);

/// Returns what can stand at the end of the words of a verb.
pub(super) async fn words(typed: &Typed<'_>) -> Vec<Candidate> {
    let known = servers();
    match (&typed.words[..], &typed.verbs[..]) {
        ([], _) if typed.takes_target() => known.iter().map(|(name, at)| Candidate::new(name, at)).collect(),
        ([], ["uninstall"]) => installed(),
        ([target, rest @ ..], [verb]) => {
            let Some(url) = url_of(target, &known) else { return Vec::new() };
            timeout(PATIENCE, ask(&url, verb, rest)).await.ok().flatten().unwrap_or_default()
        }
        _ => Vec::new(),
    }
}

/// Returns the names that can be given instead of a URL, and where their servers are.
fn servers() -> Vec<(String, String)> {
    let user = Environment::current().file(Host::Duplexer, Scope::User);
    let files = [Some(Path::new(".mcp.json").to_owned()), Some(Path::new("mcp.json").to_owned()), user];
    let files =
        files.into_iter().flatten().filter_map(|path| ConfigurationFile::read(Host::Duplexer, &path).ok());
    let entries = files.flat_map(|file| file.entries().unwrap_or_default());
    entries.map(|(name, entry)| (name, url_in(&entry).unwrap_or_default())).collect()
}

/// Returns the names of servers in all hosts.
fn installed() -> Vec<Candidate> {
    let environment = Environment::current();
    let files = Host::ALL.into_iter().filter_map(|host| {
        let path = environment.file(host, Scope::User)?;
        Some((host, ConfigurationFile::read(host, &path).ok()?.entries().ok()?))
    });
    files
        .flat_map(|(host, entries)| {
            entries.into_iter().map(move |(name, _)| Candidate::new(name, host.title()))
        })
        .collect()
}

fn url_in(entry: &Data) -> Option<String> {
    entry.member(&["url"]).and_then(Data::as_text).map(str::to_owned)
}

fn url_of(target: &str, known: &[(String, String)]) -> Option<String> {
    let is_url = |text: &str| text.starts_with("http://") || text.starts_with("https://");
    if is_url(target) {
        return Some(target.to_owned());
    }
    known.iter().find(|(name, at)| name == target && is_url(at)).map(|(_, at)| at.clone())
}

async fn ask(url: &str, verb: &str, rest: &[&str]) -> Option<Vec<Candidate>> {
    let client = Client::builder("duplexer", env!("CARGO_PKG_VERSION")).open(url).await.ok()?;
    match (verb, rest) {
        ("call" | "list" | "bench", []) => {
            let tools = client.all_tools().await.ok()?;
            let tools = tools
                .iter()
                .map(|tool| Candidate::new(&tool.name, tool.description.as_deref().unwrap_or_default()));
            Some(tools.collect())
        }
        ("call" | "bench", [name, given @ ..]) => {
            let tools = client.all_tools().await.ok()?;
            let tool = tools.iter().find(|tool| tool.name == *name)?;
            let schema: Value = tool.input_schema.decode().ok()?;
            Some(arguments(&schema, given))
        }
        ("read" | "listen", _) => {
            let resources = client.all_resources().await.ok()?;
            let resources = resources.iter().map(|one| Candidate::new(&one.uri, &one.name));
            Some(resources.collect())
        }
        ("prompt" | "complete", []) => {
            let prompts = client.all_prompts().await.ok()?;
            let prompts = prompts
                .iter()
                .map(|one| Candidate::new(&one.name, one.description.as_deref().unwrap_or_default()));
            Some(prompts.collect())
        }
        ("prompt" | "complete", [name, ..]) => {
            let prompts = client.all_prompts().await.ok()?;
            let prompt = prompts.iter().find(|one| one.name == *name)?;
            let arguments = prompt.arguments.iter().flatten();
            Some(
                arguments
                    .map(|one| {
                        Candidate::new(
                            format!("{}=", one.name),
                            one.description.as_deref().unwrap_or_default(),
                        )
                    })
                    .collect(),
            )
        }
        _ => None,
    }
}

/// Returns the arguments of a tool that are not given yet, and the values of those that have a list.
fn arguments(schema: &Value, given: &[&str]) -> Vec<Candidate> {
    let Some(properties) = schema.get("properties").and_then(Value::as_object) else { return Vec::new() };
    let mut candidates = Vec::new();
    for (name, property) in properties {
        if given.iter().any(|word| word.split(['=', ':']).next() == Some(name)) {
            continue;
        }
        let help = property.get("description").and_then(Value::as_str).unwrap_or_default();
        let is_text = property.get("type").is_none_or(|kind| kind == "string");
        candidates.push(Candidate::new(format!("{name}{}", if is_text { "=" } else { ":=" }), help));
        let values = property.get("enum").and_then(Value::as_array).into_iter().flatten();
        let values = values.filter_map(Value::as_str);
        candidates.extend(values.map(|value| Candidate::new(format!("{name}={value}"), help)));
    }
    candidates
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn arguments_of_a_tool_have_their_sign() {
        let schema = json!({ "properties": {
            "a": { "type": "integer" }, "day": { "type": "string", "enum": ["Monday", "Friday"] }, "any": {},
        } });
        let found = |given: &[&str]| -> Vec<String> {
            arguments(&schema, given).into_iter().map(|one| one.word).collect()
        };
        assert_eq!(found(&[]), ["a:=", "any=", "day=", "day=Monday", "day=Friday"]);
        assert_eq!(found(&["a:=5", "day=Monday"]), ["any="]);
        assert!(arguments(&json!(true), &[]).is_empty());
    }
}
