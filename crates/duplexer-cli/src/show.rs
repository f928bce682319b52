//! Formats results as text. Knows neither terminal nor session.

mod listing;
mod signature;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use duplexer::types::annotations::Role;
use duplexer::types::content::Content;
use duplexer::types::prompt::GetPromptResult;
use duplexer::types::resource::ResourceContents;
use duplexer::types::tool::CallToolResult;
use serde_json::Value;

pub(crate) use listing::listing;

/// Formats the result of a tool: its content, and the structured content if the text does not contain it.
pub(crate) fn tool_result(result: &CallToolResult) -> String {
    let mut parts: Vec<String> = Vec::new();
    let structured = result.structured_content.as_ref();
    let mut is_said = structured.is_none();
    for block in &result.content {
        match (block.as_text(), structured) {
            (Some(text), Some(value)) if same_json(text, value.as_str()) => {
                is_said = true;
                parts.push(pretty(text));
            }
            _ => parts.push(content(block)),
        }
    }
    if let Some(value) = structured.filter(|_| !is_said) {
        parts.push(pretty(value.as_str()));
    }
    parts.join("\n")
}

fn same_json(one: &str, other: &str) -> bool {
    let parse = |text: &str| serde_json::from_str::<Value>(text).ok();
    one == other || (parse(one).is_some() && parse(one) == parse(other))
}

/// Formats JSON, with line breaks for objects and arrays.
pub(crate) fn pretty(json: &str) -> String {
    let value: Option<Value> = serde_json::from_str(json).ok();
    value.and_then(|value| serde_json::to_string_pretty(&value).ok()).unwrap_or_else(|| json.to_owned())
}

/// Formats one content block.
pub(crate) fn content(block: &Content) -> String {
    match block {
        Content::Text(text) => text.text.clone(),
        Content::Image(image) => format!("[picture, {}, {}]", image.mime_type, size(&image.data)),
        Content::Audio(audio) => format!("[sound, {}, {}]", audio.mime_type, size(&audio.data)),
        Content::ResourceLink(link) => format!("[resource {}]", link.uri),
        Content::Resource(embedded) => contents(&embedded.resource),
        _ => "[something that is not known here; --json shows it]".to_owned(),
    }
}

/// Formats the contents of a resource.
pub(crate) fn contents(contents: &ResourceContents) -> String {
    match contents {
        ResourceContents::Text(text) => text.text.clone(),
        ResourceContents::Blob(blob) => {
            let kind = blob.mime_type.as_deref().unwrap_or("bytes");
            format!("[{kind}, {}; `> FILE` keeps them]", size(&blob.blob))
        }
        _ => "[something that is not known here; --json shows it]".to_owned(),
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
pub(crate) fn messages(prompt: &GetPromptResult) -> String {
    let say = |message: &duplexer::types::prompt::PromptMessage| {
        let who = if message.role == Role::User { "user" } else { message.role.as_str() };
        format!("{who}: {}", content(&message.content))
    };
    prompt.messages.iter().map(say).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use duplexer::Json;
    use duplexer::types::prompt::PromptMessage;

    use super::*;

    #[test]
    fn what_is_said_twice_is_shown_once() {
        let check = |result: CallToolResult, shown: &str| assert_eq!(tool_result(&result), shown);
        check(CallToolResult::text("a"), "a");
        check(CallToolResult::structured(Json::parse(r#"{"a":1}"#).unwrap()), "{\n  \"a\": 1\n}");
        let beside = CallToolResult::text("five").structured_content(Json::parse("5").unwrap());
        check(beside, "five\n5");
        check(CallToolResult::new([]), "");
        check(CallToolResult::new([Content::image("AAAA", "image/png")]), "[picture, image/png, 3 bytes]");
    }

    #[test]
    fn resources_are_text_or_bytes() {
        let blob = ResourceContents::blob("a:b", "AAAA");
        assert_eq!(contents(&blob), "[bytes, 3 bytes; `> FILE` keeps them]");
        assert_eq!(bytes(&blob), Some(vec![0, 0, 0]));
        assert_eq!(contents(&ResourceContents::text("a:b", "t")), "t");
    }

    #[test]
    fn a_prompt_is_a_conversation() {
        let prompt = GetPromptResult::new([PromptMessage::user("Hi"), PromptMessage::assistant("Hello")]);
        assert_eq!(messages(&prompt), "user: Hi\nassistant: Hello");
    }
}
