//! Formats results as text. Knows neither terminal nor session.

mod json;
mod listing;
mod signature;
mod skill;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use duplexer::types::annotations::Role;
use duplexer::types::content::Content;
use duplexer::types::prompt::GetPromptResult;
use duplexer::types::resource::ResourceContents;
use duplexer::types::tool::CallToolResult;
use serde_json::Value;

pub(crate) use json::{pretty, verbatim};
pub(crate) use listing::{Details, describes, listing, name};
pub(crate) use skill::{loaded_skill, skills};

use crate::text::{Style, Text, lines};

/// Formats the result of a tool: its content, and the structured content if the text does not contain it. `saved` are the
/// files into which its binary parts were written, in their order.
pub(crate) fn tool_result(result: &CallToolResult, saved: &[String]) -> Text {
    let mut parts: Vec<Text> = Vec::new();
    let structured = result.structured_content.as_ref();
    let mut is_said = structured.is_none();
    let mut saved = saved.iter();
    for block in &result.content {
        match (block.as_text(), structured) {
            (Some(text), Some(value)) if same_json(text, value.as_str()) => {
                is_said = true;
                parts.push(pretty(text));
            }
            _ => {
                let file = if binary(block).is_some() { saved.next() } else { None };
                parts.push(content(block, file.map(String::as_str)));
            }
        }
    }
    if let Some(value) = structured.filter(|_| !is_said) {
        parts.push(pretty(value.as_str()));
    }
    lines(parts)
}

fn same_json(one: &str, other: &str) -> bool {
    let parse = |text: &str| serde_json::from_str::<Value>(text).ok();
    one == other || (parse(one).is_some() && parse(one) == parse(other))
}

/// Formats one content block.
fn content(block: &Content, file: Option<&str>) -> Text {
    match block {
        Content::Text(text) => Text::plain(&text.text),
        Content::Image(image) => binary_note("picture", Some(&image.mime_type), &image.data, file),
        Content::Audio(audio) => binary_note("sound", Some(&audio.mime_type), &audio.data, file),
        Content::ResourceLink(link) => Text::new().then(Style::Faint, format!("[resource {}]", link.uri)),
        Content::Resource(embedded) => contents(&embedded.resource, file),
        _ => unknown(),
    }
}

/// Formats the contents of a resource.
pub(crate) fn contents(contents: &ResourceContents, file: Option<&str>) -> Text {
    match contents {
        ResourceContents::Text(text) => Text::plain(&text.text),
        ResourceContents::Blob(blob) => binary_note("bytes", blob.mime_type.as_deref(), &blob.blob, file),
        _ => unknown(),
    }
}

fn unknown() -> Text {
    Text::new().then(Style::Faint, "[something that is not known here; --json shows it]")
}

/// Describes binary data, and where it is or could be.
fn binary_note(what: &str, mime_type: Option<&str>, base64: &str, file: Option<&str>) -> Text {
    let kind = mime_type.map(|mime_type| format!(", {mime_type}")).unwrap_or_default();
    let place = match file {
        Some(file) => format!("in {file}"),
        None => "--output FILE keeps it".to_owned(),
    };
    Text::new().then(Style::Faint, format!("[{what}{kind}, {}; {place}]", size(base64)))
}

/// Returns the bytes of a picture, a sound or a binary resource.
pub(crate) fn binary(block: &Content) -> Option<Vec<u8>> {
    match block {
        Content::Image(image) => STANDARD.decode(&image.data).ok(),
        Content::Audio(audio) => STANDARD.decode(&audio.data).ok(),
        Content::Resource(embedded) => bytes(&embedded.resource),
        _ => None,
    }
}

/// Returns the bytes of a binary resource.
pub(crate) fn bytes(contents: &ResourceContents) -> Option<Vec<u8>> {
    match contents {
        ResourceContents::Blob(blob) => STANDARD.decode(&blob.blob).ok(),
        _ => None,
    }
}

fn size(base64: &str) -> String {
    match STANDARD.decode(base64) {
        Ok(bytes) => format!("{} bytes", bytes.len()),
        Err(_) => "which cannot be decoded".to_owned(),
    }
}

/// Formats the messages of a prompt with their roles.
pub(crate) fn messages(prompt: &GetPromptResult) -> Text {
    lines(prompt.messages.iter().map(|message| {
        let who = if message.role == Role::User { "user" } else { message.role.as_str() };
        let mut line = Text::new().then(Style::Name, format!("{who}:")).then(Style::Plain, " ");
        line.append(&content(&message.content, None));
        line
    }))
}

#[cfg(test)]
mod tests {
    use duplexer::Json;
    use duplexer::types::prompt::PromptMessage;

    use super::*;

    #[test]
    fn what_is_said_twice_is_shown_once() {
        let check =
            |result: CallToolResult, shown: &str| assert_eq!(tool_result(&result, &[]).as_str(), shown);
        check(CallToolResult::text("a"), "a");
        check(CallToolResult::structured(Json::parse(r#"{"b":1}"#).unwrap()), "{\n  \"b\": 1\n}");
        let beside = CallToolResult::text("five").structured_content(Json::parse("5").unwrap());
        check(beside, "five\n5");
        check(CallToolResult::new([]), "");
        check(
            CallToolResult::new([Content::image("AAAA", "image/png")]),
            "[picture, image/png, 3 bytes; --output FILE keeps it]",
        );
    }

    #[test]
    fn a_saved_part_says_where_it_is() {
        let pictures =
            [Content::text("x"), Content::image("AAAA", "image/png"), Content::image("AA==", "a/b")];
        let shown = tool_result(&CallToolResult::new(pictures), &["one".to_owned(), "two".to_owned()]);
        assert_eq!(
            shown.as_str(),
            "x\n[picture, image/png, 3 bytes; in one]\n[picture, a/b, 1 bytes; in two]"
        );
    }

    #[test]
    fn resources_are_text_or_bytes() {
        let blob = ResourceContents::blob("a:b", "AAAA");
        assert_eq!(contents(&blob, None).as_str(), "[bytes, 3 bytes; --output FILE keeps it]");
        assert_eq!(bytes(&blob), Some(vec![0, 0, 0]));
        assert_eq!(contents(&ResourceContents::text("a:b", "t"), None).as_str(), "t");
    }

    #[test]
    fn a_prompt_is_a_conversation() {
        let prompt = GetPromptResult::new([PromptMessage::user("Hi"), PromptMessage::assistant("Hello")]);
        assert_eq!(messages(&prompt).as_str(), "user: Hi\nassistant: Hello");
    }
}
