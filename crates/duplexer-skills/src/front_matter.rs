//! Front matter: the block of YAML between two lines `---` at the begin of a `SKILL.md`.
//!
//! It is read within limits and becomes JSON. It comes from authors on a server and from peers in a client, so it is
//! never trusted.

mod scalar;
mod yaml;

use duplexer_types::json::{Json, JsonObject};
use serde_json::Value;

use crate::name;

/// Maximum size of a front matter, in bytes.
pub const MAX_FRONT_MATTER: usize = 64 * 1024;

/// Maximum number of mappings and sequences inside of each other.
pub const MAX_DEPTH: usize = 32;

/// Begin of the keys below `metadata` that only the protocol defines.
const RESERVED_METADATA: &str = "io.modelcontextprotocol/";

/// Front matter of a skill.
#[derive(Clone, Debug, PartialEq)]
pub struct FrontMatter {
    fields: JsonObject,
    name: String,
    description: String,
}

/// Fault of a front matter.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {reason}")]
pub struct FrontMatterError {
    line: usize,
    reason: String,
}

impl FrontMatterError {
    fn new(line: usize, reason: impl Into<String>) -> Self {
        Self { line, reason: reason.into() }
    }
}

impl FrontMatter {
    /// Parses the front matter at the begin of a `SKILL.md`: one YAML document without aliases, tags and repeated keys, of
    /// at most [`MAX_FRONT_MATTER`] bytes and [`MAX_DEPTH`] levels. Values are those of the core schema of YAML 1.2, so
    /// dates and `yes` are text.
    ///
    /// # Errors
    ///
    /// Returns the first fault with its line: of the YAML, or of the required fields `name` and `description`.
    pub fn parse(manifest: &str) -> Result<Self, FrontMatterError> {
        let text = yaml::to_json(block(manifest)?)?;
        let json = Json::parse(&text).map_err(|error| FrontMatterError::new(1, error.to_string()))?;
        let fields: JsonObject =
            json.decode().map_err(|error| FrontMatterError::new(1, error.to_string()))?;
        let name = required(&fields, "name")?;
        name::check(&name).map_err(|reason| FrontMatterError::new(1, reason.to_string()))?;
        let description = required(&fields, "description")?;
        Ok(Self { fields, name, description })
    }

    /// Returns the instructions of a `SKILL.md`: what follows the front matter. Empty if it has none.
    pub fn instructions(manifest: &str) -> &str {
        let Ok(yaml) = block(manifest) else { return "" };
        let rest = manifest.split_once(yaml).map_or("", |(_, rest)| rest);
        rest.split_once('\n').map_or("", |(_, instructions)| instructions)
    }

    /// Returns all fields as JSON, in the order of the file.
    pub fn fields(&self) -> &JsonObject {
        &self.fields
    }

    /// Returns the name of the skill.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns what the skill is for.
    pub fn description(&self) -> &str {
        &self.description
    }

    /// Returns the first field that differs from another front matter, or that only one of them has. The order of fields
    /// and the notation of numbers do not matter.
    pub fn difference(&self, other: &JsonObject) -> Option<String> {
        let missing = other.iter().find(|(field, _)| self.fields.get(field).is_none());
        let differs = |(field, own): &(&str, &Json)| !other.get(field).is_some_and(|json| is_same(own, json));
        self.fields.iter().find(differs).or(missing).map(|(field, _)| field.to_owned())
    }

    /// Returns a key below `metadata` that is reserved for the protocol.
    pub(crate) fn reserved_key(&self) -> Option<String> {
        let metadata: JsonObject = self.fields.get("metadata")?.decode().ok()?;
        metadata.iter().map(|(key, _)| key).find(|key| key.starts_with(RESERVED_METADATA)).map(str::to_owned)
    }
}

fn required(fields: &JsonObject, field: &str) -> Result<String, FrontMatterError> {
    let value = fields.get(field).map(Json::decode::<String>);
    match value {
        Some(Ok(text)) if !text.trim().is_empty() => Ok(text),
        Some(_) => {
            Err(FrontMatterError::new(1, format!("the field `{field}` must be a text that is not empty")))
        }
        None => Err(FrontMatterError::new(1, format!("the front matter has no field `{field}`"))),
    }
}

fn is_same(one: &Json, other: &Json) -> bool {
    match (one.decode::<Value>(), other.decode::<Value>()) {
        (Ok(one), Ok(other)) => is_same_value(&one, &other),
        _ => false,
    }
}

/// Compares values; `1` and `1.0` are the same number.
fn is_same_value(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Number(one), Value::Number(other)) => one == other || one.as_f64() == other.as_f64(),
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| is_same_value(one, other))
        }
        (Value::Object(one), Value::Object(other)) => {
            one.len() == other.len()
                && one.iter().all(|(key, one)| other.get(key).is_some_and(|other| is_same_value(one, other)))
        }
        _ => one == other,
    }
}

/// Returns the YAML between the first line and the next line that is `---`.
fn block(manifest: &str) -> Result<&str, FrontMatterError> {
    let manifest = manifest.strip_prefix('\u{feff}').unwrap_or(manifest);
    let (first, rest) = manifest.split_once('\n').unwrap_or((manifest, ""));
    if first.strip_suffix('\r').unwrap_or(first) != "---" {
        return Err(FrontMatterError::new(1, "a SKILL.md begins with a line `---`"));
    }
    let mut end = 0;
    for line in rest.split_inclusive('\n') {
        let is_end = line
            .strip_prefix("---")
            .is_some_and(|rest| rest.trim_matches([' ', '\t', '\r', '\n']).is_empty());
        if is_end {
            return rest.get(..end).ok_or_else(|| FrontMatterError::new(1, "the front matter is not text"));
        }
        end += line.len();
        if end > MAX_FRONT_MATTER {
            let reason = format!("the front matter is longer than {MAX_FRONT_MATTER} bytes");
            return Err(FrontMatterError::new(1, reason));
        }
    }
    Err(FrontMatterError::new(1, "the front matter has no end: a second line `---`"))
}

#[cfg(test)]
mod tests;
