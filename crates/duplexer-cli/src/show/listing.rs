//! Lists of tools, resources and prompts as text.

use duplexer::Json;
use duplexer::types::prompt::PromptDefinition;
use duplexer::types::resource::{ResourceDefinition, ResourceTemplate};
use duplexer::types::tool::ToolDefinition;

use super::signature::signature;
use crate::verbs::Kind;

/// Formats the entries of one kind under a heading: name, then description.
pub(crate) fn listing(kind: Kind, entries: &[Json]) -> String {
    let mut lines = vec![kind.heading().to_owned()];
    if entries.is_empty() {
        lines.push("  none".to_owned());
    }
    for entry in entries {
        let (call, about) = described(kind, entry);
        lines.push(format!("  {call}"));
        lines.extend(
            about
                .iter()
                .flat_map(|about| about.lines())
                .map(|line| format!("      {line}").trim_end().to_owned()),
        );
    }
    lines.join("\n")
}

/// Returns usage and description of an entry. An entry that cannot be read is shown verbatim.
fn described(kind: Kind, entry: &Json) -> (String, Option<String>) {
    let known = match kind {
        Kind::Tools => entry.decode().map(|tool: ToolDefinition| {
            (signature(&tool.name, &tool.input_schema), tool.description.or(tool.title))
        }),
        Kind::Resources => entry.decode().map(|resource: ResourceDefinition| {
            let about = resource.description.or(resource.title).unwrap_or(resource.name);
            (with_type(resource.uri, resource.mime_type), Some(about))
        }),
        Kind::Templates => entry.decode().map(|template: ResourceTemplate| {
            let about = template.description.or(template.title).unwrap_or(template.name);
            (with_type(template.uri_template, template.mime_type), Some(about))
        }),
        Kind::Prompts => entry.decode().map(|prompt: PromptDefinition| {
            let argument = |argument: &duplexer::types::prompt::PromptArgument| {
                let mark = if argument.required == Some(true) { "" } else { "?" };
                format!("{}{mark}", argument.name)
            };
            let arguments: Vec<_> = prompt.arguments.iter().flatten().map(argument).collect();
            (format!("{}({})", prompt.name, arguments.join(", ")), prompt.description.or(prompt.title))
        }),
    };
    known.unwrap_or_else(|_| (entry.as_str().to_owned(), None))
}

fn with_type(uri: String, mime_type: Option<String>) -> String {
    match mime_type {
        Some(mime_type) => format!("{uri} ({mime_type})"),
        None => uri,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_says_how_each_thing_is_used() {
        let check = |kind, entry: &str, shown: &str| {
            assert_eq!(listing(kind, &[Json::parse(entry).unwrap()]), shown);
        };
        check(
            Kind::Tools,
            r#"{"name":"add","inputSchema":{"properties":{"a":{"type":"number"}},"required":["a"]},"description":"Adds.\nWell."}"#,
            "Tools\n  add(a: number)\n      Adds.\n      Well.",
        );
        check(
            Kind::Resources,
            r#"{"uri":"a:b","name":"b","mimeType":"text/plain"}"#,
            "Resources\n  a:b (text/plain)\n      b",
        );
        check(Kind::Templates, r#"{"uriTemplate":"a:{b}","name":"b"}"#, "Templates\n  a:{b}\n      b");
        check(
            Kind::Prompts,
            r#"{"name":"p","arguments":[{"name":"a","required":true},{"name":"b"}]}"#,
            "Prompts\n  p(a, b?)",
        );
        check(Kind::Prompts, r#"{"nameless":1}"#, "Prompts\n  {\"nameless\":1}");
        assert_eq!(listing(Kind::Tools, &[]), "Tools\n  none");
    }
}
