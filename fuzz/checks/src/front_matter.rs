//! Front matter of skills: the fields that were read are JSON, and JSON is YAML that gives the same fields.

use duplexer_skills::{FrontMatter, MAX_FRONT_MATTER};
use duplexer_types::json::Json;

/// Maximum size of fields that are read again: a longer key is no key in YAML.
const MAX_AGAIN: usize = 1000;

/// Reads any bytes as a `SKILL.md`.
pub fn front_matter(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let Ok(found) = FrontMatter::parse(text) else { return };
    assert!(!found.name().is_empty() && !found.description().trim().is_empty());
    assert_eq!(found.difference(found.fields()), None);
    let json = Json::from(found.fields().clone());
    // Each character has at most six in JSON.
    assert!(json.as_str().len() <= 6 * MAX_FRONT_MATTER + 64);
    let is_plain = json.as_str().bytes().all(|byte| (b' '..=b'~').contains(&byte));
    if is_plain && json.as_str().len() < MAX_AGAIN {
        let again = FrontMatter::parse(&format!("---\n{json}\n---\n"));
        assert!(again.is_ok_and(|again| again.difference(found.fields()).is_none()), "{json}");
    }
}
