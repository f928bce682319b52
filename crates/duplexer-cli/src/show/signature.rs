//! The signature of a tool on one line: `count(to: integer, pause?: integer = 100)`.

use duplexer::Json;
use duplexer::types::json::JsonObject;
use serde_json::Value;

/// Formats the name of a tool and the arguments in its schema.
pub(super) fn signature(name: &str, schema: &Json) -> String {
    let member = |member: &str| schema.member(member).and_then(|text| Json::parse(text).ok());
    let properties: JsonObject<Value> =
        member("properties").and_then(|properties| properties.decode().ok()).unwrap_or_default();
    let required: Vec<String> =
        member("required").and_then(|required| required.decode().ok()).unwrap_or_default();
    let one = |(name, about): (&str, &Value)| {
        let mark = if required.iter().any(|one| one == name) { "" } else { "?" };
        let default = about.get("default").map(|default| format!(" = {default}")).unwrap_or_default();
        format!("{name}{mark}: {}{default}", kind(about))
    };
    let arguments: Vec<String> = properties.iter().map(one).collect();
    format!("{name}({})", arguments.join(", "))
}

/// Returns the type of a value in one word.
fn kind(about: &Value) -> String {
    let word = |value: &Value| value.as_str().map(str::to_owned);
    if let Some(choices) = about.get("enum").and_then(Value::as_array) {
        return choices.iter().map(ToString::to_string).collect::<Vec<_>>().join("|");
    }
    match about.get("type") {
        Some(Value::Array(kinds)) => {
            let kinds: Vec<_> = kinds.iter().filter_map(word).filter(|kind| kind != "null").collect();
            kinds.join("|")
        }
        Some(kind) => word(kind).unwrap_or_else(|| "any".to_owned()),
        None => "any".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signature_is_read_from_a_schema() {
        let check =
            |schema: &str, shown: &str| assert_eq!(signature("t", &Json::parse(schema).unwrap()), shown);
        check(r#"{"type":"object"}"#, "t()");
        check(
            r#"{"properties":{"to":{"type":"integer"},"pause":{"type":"integer","default":100}},"required":["to"]}"#,
            "t(to: integer, pause?: integer = 100)",
        );
        check(
            r#"{"properties":{"a":{"enum":["x","y"]},"b":{"type":["string","null"]},"c":true}}"#,
            r#"t(a?: "x"|"y", b?: string, c?: any)"#,
        );
    }
}
