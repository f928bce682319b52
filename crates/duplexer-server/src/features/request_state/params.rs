//! Finds the members of an object that request state depends on, and replaces one of them.

pub(super) use duplexer_types::json::{Occurrence, find_members as find};

/// Returns whether an object with this text can have a member `name`: a cheap test before the look-up.
///
/// JSON spells a letter either verbatim or as a `\u` escape.
pub(super) fn may_have(text: &str, name: &str) -> bool {
    memchr::memmem::find(text.as_bytes(), name.as_bytes()).is_some()
        || memchr::memmem::find(text.as_bytes(), b"\\u").is_some()
}

/// Returns `text` with `part`, a slice of it, replaced by the JSON string `value`.
pub(super) fn replace(text: &str, part: &str, value: &str) -> Result<String, serde_json::Error> {
    let start = part.as_ptr().addr().wrapping_sub(text.as_ptr().addr());
    let (before, rest) = text.split_at_checked(start).unwrap_or((text, ""));
    let after = rest.strip_prefix(part).unwrap_or_default();
    Ok([before, &serde_json::to_string(value)?, after].concat())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_are_found_in_every_spelling_and_never_picked_from_several() {
        let text = r#"{"a":{"b":1},"\u0062": "x" ,"c":1,"c":2,"A":3}"#;
        let found = find(text, ["a", "b", "c", "d"]).unwrap();
        assert_eq!(
            found,
            [
                Occurrence::One(r#"{"b":1}"#),
                Occurrence::One("\"x\""),
                Occurrence::Several,
                Occurrence::Absent
            ]
        );
        assert!(["[]", "1", "", "{} {}", "{"].iter().all(|text| find(text, ["a"]).is_err()));
        assert!(may_have(text, "a") && may_have(r#"{"\u0071":1}"#, "q") && !may_have("{\"x\":1}", "y"));
    }

    #[test]
    fn one_value_is_replaced_and_everything_else_stays() {
        let text = r#"{"x": 1 ,"s": "old", "x":2}"#;
        let [Occurrence::One(part)] = find(text, ["s"]).unwrap() else { panic!("it is there once") };
        assert_eq!(replace(text, part, "n\"é").unwrap(), r#"{"x": 1 ,"s": "n\"é", "x":2}"#);
    }
}
