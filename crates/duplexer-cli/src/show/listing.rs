//! Lists of tools, resources and prompts as text.

use duplexer::Json;
use duplexer::types::prompt::PromptDefinition;
use duplexer::types::resource::{ResourceDefinition, ResourceTemplate};
use duplexer::types::tool::ToolDefinition;
use unicode_width::UnicodeWidthStr;

use super::json::pretty;
use super::signature::signature;
use crate::text::{Style, Text, lines, wrapped};
use crate::verbs::Kind;

/// Columns before a description.
const INDENT: usize = 6;
/// Minimum columns of a description, however narrow the terminal is.
const MIN_COLUMNS: usize = 20;

/// How much of each entry is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Details {
    Description,
    /// Also the schemas of tools.
    Schemas,
}

/// Formats the entries of one kind under a heading: name, then description. Lines fit into `columns`, if it is given.
pub(crate) fn listing(kind: Kind, entries: &[Json], details: Details, columns: Option<usize>) -> Text {
    let columns = columns.map_or(usize::MAX, |columns| columns.max(INDENT + MIN_COLUMNS));
    let mut all = vec![Text::new().then(Style::Heading, kind.heading())];
    if entries.is_empty() {
        all.push(Text::new().then(Style::Faint, "  none"));
    }
    for entry in entries {
        let (call, about) = described(kind, entry);
        all.extend(headline(&call, name(kind, entry).unwrap_or_default().as_str(), columns));
        all.extend(paragraphs(&about.unwrap_or_default(), Some(columns)));
        if details == Details::Schemas {
            all.extend(schemas(entry));
        }
    }
    lines(all)
}

/// Formats a description behind an indent. Lines fit into `columns`, if it is given.
pub(super) fn paragraphs(about: &str, columns: Option<usize>) -> Vec<Text> {
    let columns = columns.map_or(usize::MAX, |columns| columns.max(INDENT + MIN_COLUMNS));
    let lines = about.trim_end().lines().flat_map(|line| fitting(line, columns - INDENT));
    lines.map(|line| Text::plain(format!("{:INDENT$}{line}", "").trim_end())).collect()
}

/// Returns the lines of a paragraph; one that fits keeps its spaces.
fn fitting(line: &str, columns: usize) -> Vec<String> {
    if line.width() <= columns { vec![line.to_owned()] } else { wrapped(line, columns) }
}

/// Formats how an entry is used: its name, then the arguments.
fn headline(call: &str, name: &str, columns: usize) -> Vec<Text> {
    let mut broken = fitting(call, columns - INDENT);
    let rest = broken.split_off(1);
    let first = broken.concat();
    let first = match first.strip_prefix(name) {
        Some(arguments) => Text::plain("  ").then(Style::Name, name).then(Style::Plain, arguments),
        None => Text::plain(format!("  {first}")),
    };
    let rest = rest.iter().map(|line| Text::plain(format!("{:INDENT$}{line}", "")));
    std::iter::once(first).chain(rest).collect()
}

/// Formats the schemas of a tool, verbatim but for the line breaks.
fn schemas(entry: &Json) -> Vec<Text> {
    let one = |member: &str| entry.member(member).map(|schema| (member.to_owned(), pretty(schema)));
    let mut all = Vec::new();
    for (member, schema) in ["inputSchema", "outputSchema"].into_iter().filter_map(one) {
        all.push(Text::plain("    ").then(Style::Faint, format!("{member}:")));
        all.push(schema);
    }
    all
}

/// Returns the name of an entry: what a command takes to use it.
pub(crate) fn name(kind: Kind, entry: &Json) -> Option<String> {
    let member = match kind {
        Kind::Tools | Kind::Prompts => "name",
        Kind::Resources => "uri",
        Kind::Templates => "uriTemplate",
    };
    serde_json::from_str(entry.member(member)?).ok()
}

/// Returns whether a user can mean this entry by a word: its name, or the name of a resource.
pub(crate) fn describes(kind: Kind, entry: &Json, word: &str) -> bool {
    let named = |text: &str| serde_json::from_str::<String>(text).is_ok_and(|name| name == word);
    name(kind, entry).is_some_and(|name| name == word) || entry.member("name").is_some_and(named)
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
            let entries = [Json::parse(entry).unwrap()];
            assert_eq!(listing(kind, &entries, Details::Description, None).as_str(), shown);
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
        assert_eq!(listing(Kind::Tools, &[], Details::Description, None).as_str(), "Tools\n  none");
    }

    #[test]
    fn descriptions_and_signatures_fit_into_the_terminal() {
        let tool = r#"{"name":"add","inputSchema":{"properties":{"first":{"type":"number"},"second":{"type":"number"}}},
            "description":"Adds two numbers, slowly.\n\nAnd well."}"#;
        let shown = listing(Kind::Tools, &[Json::parse(tool).unwrap()], Details::Description, Some(30));
        assert_eq!(
            shown.as_str(),
            "Tools\n  add(first?: number,\n      second?: number)\n      Adds two numbers,\n      slowly.\n\n      And well."
        );
        let narrow = listing(Kind::Tools, &[Json::parse(tool).unwrap()], Details::Description, Some(0));
        assert!(narrow.as_str().lines().all(|line| line.len() <= 26), "{}", narrow.as_str());
    }

    #[test]
    fn schemas_are_shown_as_the_server_sent_them() {
        let tool = r#"{"name":"t","inputSchema":{"type":"object","b":1,"a":2}}"#;
        let shown = listing(Kind::Tools, &[Json::parse(tool).unwrap()], Details::Schemas, None);
        let expected =
            "Tools\n  t()\n    inputSchema:\n{\n  \"type\": \"object\",\n  \"b\": 1,\n  \"a\": 2\n}";
        assert_eq!(shown.as_str(), expected);
    }

    #[test]
    fn an_entry_is_found_by_its_uri_or_its_name() {
        let resource = Json::parse(r#"{"uri":"a:b","name":"b"}"#).unwrap();
        assert!(describes(Kind::Resources, &resource, "a:b") && describes(Kind::Resources, &resource, "b"));
        assert!(!describes(Kind::Resources, &resource, "a"));
    }
}
