//! What a server offers: lists, their entries, and the schemas of tools. The same over every transport.

use std::collections::HashSet;

use duplexer::types::error::ErrorCode;
use duplexer::types::methods::Method;
use duplexer::types::text::{is_invisible, shown};
use duplexer::types::version::Era;
use serde_json::{Value, json};

use super::messages::{Answer, brief};
use super::report::Report;
use super::{rules, schemas};

/// Maximum pages of a list that are read.
const MAX_PAGES: usize = 200;
/// Maximum entries of a list that are checked.
const MAX_ENTRIES: usize = 10_000;
/// Maximum characters of a tool's name that all hosts accept.
const MAX_NAME: usize = 64;

/// Requests to a server, in one era.
pub(super) trait Channel {
    fn era(&self) -> Era;

    async fn ask(&mut self, method: Method, params: Value) -> Answer;
}

/// A list of a server.
struct List {
    method: Method,
    capability: &'static str,
    /// The member that holds the entries.
    member: &'static str,
    /// Members that every entry has.
    required: &'static [&'static str],
    /// What an entry is, for people.
    entry: &'static str,
}

const LISTS: [List; 4] = [
    List {
        method: Method::ToolsList,
        capability: "tools",
        member: "tools",
        required: &["name"],
        entry: "tool",
    },
    List {
        method: Method::PromptsList,
        capability: "prompts",
        member: "prompts",
        required: &["name"],
        entry: "prompt",
    },
    List {
        method: Method::ResourcesList,
        capability: "resources",
        member: "resources",
        required: &["uri", "name"],
        entry: "resource",
    },
    List {
        method: Method::ResourcesTemplatesList,
        capability: "resources",
        member: "resourceTemplates",
        required: &["uriTemplate", "name"],
        entry: "resource template",
    },
];

impl List {
    fn is_declared(&self, capabilities: &Value) -> bool {
        capabilities.get(self.capability).is_some()
    }
}

/// Checks all lists.
pub(super) async fn check(channel: &mut impl Channel, capabilities: &Value, report: &mut Report) {
    for list in &LISTS {
        let Some(entries) = entries(channel, list, capabilities, report).await else { continue };
        for entry in &entries {
            shape(list, entry, report);
        }
        if list.method == Method::ToolsList {
            tools(&entries, channel.era(), report);
        }
    }
}

/// Reads a list to its end.
async fn entries(
    channel: &mut impl Channel,
    list: &List,
    capabilities: &Value,
    report: &mut Report,
) -> Option<Vec<Value>> {
    let (mut all, mut cursors) = (Vec::new(), HashSet::new());
    let mut params = json!({});
    for page in 0..MAX_PAGES {
        let answer = channel.ask(list.method, params).await;
        let Answer::Result(result) = answer else {
            if page > 0 {
                let what = format!("page {} of the list of {}: {}", page + 1, list.member, answer.describe());
                report.find(rules::PAGES, what);
                break;
            }
            refused(list, capabilities, &answer, report);
            return None;
        };
        if page == 0 {
            report.pass(rules::CAPABILITIES);
        }
        if channel.era() == Era::Envelope {
            report.expect(rules::RESULT_TYPE, result.get("resultType").is_some_and(Value::is_string), || {
                format!("the list of {}: {}", list.member, brief(&result))
            });
        }
        let Some(entries) = result.get(list.member).and_then(Value::as_array) else {
            let what = format!("the list has no array `{}`: {}", list.member, brief(&result));
            report.find(rules::LIST_SHAPE, what);
            break;
        };
        all.extend(entries.iter().take(MAX_ENTRIES.saturating_sub(all.len())).cloned());
        let Some(cursor) = result.get("nextCursor").filter(|cursor| !cursor.is_null()) else {
            report.pass(rules::PAGES);
            break;
        };
        if !cursors.insert(cursor.to_string()) {
            let what = format!("the list of {} repeats the cursor {}", list.member, brief(cursor));
            report.find(rules::PAGES, what);
            break;
        }
        if page + 1 == MAX_PAGES {
            report.find(rules::PAGES, format!("the list of {} has more than {MAX_PAGES} pages", list.member));
        }
        params = json!({"cursor": cursor});
    }
    if !all.is_empty() {
        report.expect(rules::UNDECLARED, list.is_declared(capabilities), || {
            format!("there are {}, and the capability `{}` is not declared", list.member, list.capability)
        });
    }
    Some(all)
}

/// A list that is not served. Templates are optional for a server with resources.
fn refused(list: &List, capabilities: &Value, answer: &Answer, report: &mut Report) {
    let is_absent = matches!(answer, Answer::Error { code, .. } if *code == ErrorCode::METHOD_NOT_FOUND.0);
    let is_optional = list.method == Method::ResourcesTemplatesList && is_absent;
    if list.is_declared(capabilities) && !is_optional {
        let what = format!(
            "the capability `{}` is declared, and its list is {}",
            list.capability,
            answer.describe()
        );
        report.find(rules::CAPABILITIES, what);
    }
}

fn shape(list: &List, entry: &Value, report: &mut Report) {
    let missing: Vec<&str> = list
        .required
        .iter()
        .copied()
        .filter(|member| !entry.get(member).is_some_and(Value::is_string))
        .collect();
    report.expect(rules::LIST_SHAPE, missing.is_empty(), || {
        format!("a {} without {}: {}", list.entry, missing.join(" and "), brief(entry))
    });
    for member in ["name", "title", "description"] {
        let Some(text) = entry.get(member).and_then(Value::as_str) else { continue };
        let is_hidden = |c: char| is_invisible(c) || c.is_control() && !matches!(c, '\n' | '\r' | '\t');
        report.expect(rules::HIDDEN_TEXT, !text.contains(is_hidden), || {
            let name = entry.get("name").and_then(Value::as_str).unwrap_or_default();
            let at = text.chars().position(is_hidden).unwrap_or_default();
            let around: String = text.chars().skip(at.saturating_sub(10)).take(30).collect();
            format!("the {member} of the {} `{}` has `{}`", list.entry, shown(name), shown(&around))
        });
    }
}

fn tools(tools: &[Value], era: Era, report: &mut Report) {
    let mut names = HashSet::new();
    for tool in tools {
        let Some(name) = tool.get("name").and_then(Value::as_str) else { continue };
        let label = shown(name);
        report.expect(rules::TOOL_UNIQUE, names.insert(name), || format!("there are two tools `{label}`"));
        let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
        let is_sound = (1..=MAX_NAME).contains(&name.chars().count()) && name.chars().all(is_plain);
        report.expect(rules::TOOL_NAME, is_sound, || format!("the tool `{label}`"));
        let description = tool.get("description").and_then(Value::as_str).unwrap_or_default();
        report.expect(rules::DESCRIPTION, !description.trim().is_empty(), || {
            format!("the tool `{label}` has none")
        });
        schemas::input(&label, tool.get("inputSchema").unwrap_or(&Value::Null), report);
        if let Some(schema) = tool.get("outputSchema") {
            schemas::output(&label, schema, era, report);
        }
    }
}
