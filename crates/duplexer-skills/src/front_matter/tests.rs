//! Front matter of every form, and hostile YAML.

use std::fmt::Write as _;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

fn parse(yaml: &str) -> Result<FrontMatter, FrontMatterError> {
    FrontMatter::parse(&format!("---\nname: a\ndescription: d\n{yaml}\n---\nBody.\n"))
}

/// The fields besides name and description.
fn fields(yaml: &str) -> Value {
    let front_matter = parse(yaml).unwrap_or_else(|error| panic!("{error}: {yaml}"));
    let mut fields = Json::from(front_matter.fields).decode::<Value>().unwrap();
    fields.as_object_mut().unwrap().retain(|name, _| name != "name" && name != "description");
    fields
}

fn fault(yaml: &str) -> String {
    parse(yaml).expect_err(yaml).to_string()
}

/// SKL-02, SKL-06: all of it, as JSON.
#[test]
fn every_form_of_yaml_becomes_json() {
    for (yaml, expected) in [
        ("license: MIT", json!({"license": "MIT"})),
        ("text: 'it''s'\nother: \"a\\n\\u00e9\"", json!({"text": "it's", "other": "a\né"})),
        ("folded: >\n  one\n  two\n\n  three\n", json!({"folded": "one two\nthree\n"})),
        ("kept: |-\n  one\n    two\n", json!({"kept": "one\n  two"})),
        ("plain: one\n  two", json!({"plain": "one two"})),
        ("list:\n- a\n- b: 1\n  c: [x, {y: z}]", json!({"list": ["a", {"b": 1, "c": ["x", {"y": "z"}]}]})),
        (
            "metadata:\n  version: \"1.0\"\n  number: 1.0",
            json!({"metadata": {"version": "1.0", "number": 1.0}}),
        ),
        ("empty:\nnull: 1".trim_end_matches("\nnull: 1"), json!({"empty": null})),
        ("flags: [yes, true, ~, 2026-11-17]", json!({"flags": ["yes", true, null, "2026-11-17"]})),
        ("# a comment\nx: 1 # another", json!({"x": 1})),
        ("anchored: &a value", json!({"anchored": "value"})),
        ("\"quoted key\": 1\n'7': 2", json!({"quoted key": 1, "7": 2})),
        ("allowed-tools: Bash(git:*) Read", json!({"allowed-tools": "Bash(git:*) Read"})),
    ] {
        assert_eq!(fields(yaml), expected, "{yaml}");
    }
}

#[test]
fn the_order_of_the_fields_stays() {
    let front_matter = parse("z: 1\na: 2").unwrap();
    let names: Vec<_> = front_matter.fields().iter().map(|(name, _)| name).collect();
    assert_eq!(names, ["name", "description", "z", "a"]);
}

/// SKL-D3: what JSON has no place for is refused, with its line.
#[test]
fn what_json_cannot_express_is_refused_with_its_line() {
    for (yaml, expected) in [
        ("a: &x 1\nb: *x", "line 5: aliases (`*name`) are not supported"),
        ("b: *missing", "line 4: aliases (`*name`) are not supported"),
        ("*x : 1", "line 4: aliases (`*name`) are not supported"),
        ("<<: *x", "line 4: aliases (`*name`) are not supported"),
        ("a: !!binary aGk=", "line 4: tags (`!name`) are not supported"),
        ("a: !x [1]", "line 4: tags (`!name`) are not supported"),
        ("name: b", "line 4: the key `name` occurs twice"),
        ("a:\n  x: 1\n  x: 2", "line 6: the key `x` occurs twice"),
        ("7: a", "line 4: a key must be a text: quote it"),
        ("? [a]\n: b", "line 4: a key must be a text"),
        ("a: .inf", "line 4: the number is too large: quote it to make it a text"),
        ("a: 1\n...\nb: 1", "line 6: the front matter must be a single YAML document"),
    ] {
        assert_eq!(fault(yaml), expected, "{yaml}");
    }
    for broken in
        ["a: [1", "a: {b", "a: \"x", "\ta: 1", "a: b: c", "- x", "%YAML 1.2\n--- \na: 1", "a: '\u{7}'"]
    {
        parse(broken).expect_err(broken);
    }
}

/// SKL-D3: an alias is refused before anything is expanded, so the usual bombs are small.
#[test]
fn bombs_are_refused_at_once() {
    let mut laughs = String::from("a0: &a0 [lol, lol, lol, lol, lol, lol, lol, lol, lol]\n");
    for level in 1..50 {
        let aliases = vec![format!("*a{}", level - 1); 9].join(", ");
        writeln!(laughs, "a{level}: &a{level} [{aliases}]").unwrap();
    }
    assert!(fault(&laughs).contains("aliases"));
    assert!(fault("a: &a [*a]").contains("aliases"));
    for deep in ["[".repeat(60_000), "{a: ".repeat(15_000), "- ".repeat(30_000), "? ".repeat(30_000)] {
        parse(&format!("x:\n  {deep}")).expect_err("too deep");
    }
    let mut nested = String::from("x:\n");
    for level in 1..200 {
        writeln!(nested, "{}k:", "  ".repeat(level)).unwrap();
    }
    parse(&nested).expect_err("too deep");
}

#[test]
fn depth_has_an_exact_limit() {
    // The fields themselves are the first level.
    let deep = |levels: usize| format!("x: {}{}", "[".repeat(levels), "]".repeat(levels));
    assert!(parse(&deep(MAX_DEPTH - 1)).is_ok());
    assert!(parse(&deep(MAX_DEPTH)).is_err());
}

#[test]
fn size_has_an_exact_limit() {
    let sized = |bytes: usize| {
        let head = "name: a\ndescription: d\nx: ";
        format!("---\n{head}{}\n---\n", "y".repeat(bytes - head.len() - 1))
    };
    assert!(FrontMatter::parse(&sized(MAX_FRONT_MATTER)).is_ok());
    let error = FrontMatter::parse(&sized(MAX_FRONT_MATTER + 1)).unwrap_err();
    assert_eq!(error.to_string(), "line 1: the front matter is longer than 65536 bytes");
    // The end is not searched for behind the limit.
    let endless = format!("---\n{}", "a: b\n".repeat(2_000_000));
    assert!(FrontMatter::parse(&endless).unwrap_err().to_string().contains("longer than"));
}

/// Many keys cost no more than their bytes.
#[test]
fn many_keys_are_read_in_one_pass() {
    let mut many = String::new();
    for key in 0..7_000 {
        writeln!(many, "k{key}: 1").unwrap();
    }
    assert_eq!(parse(&many).unwrap().fields().len(), 7_002);
}

/// SKL-02: the file begins with the block. SKL-07: a byte order mark and other line ends are no fault.
#[test]
fn the_block_is_found() {
    let fine = "---\nname: a\ndescription: d\n---\n";
    for manifest in [
        fine.to_owned(),
        format!("\u{feff}{fine}"),
        fine.replace('\n', "\r\n"),
        fine.trim_end().to_owned(),
        fine.replace("d\n---\n", "d\n---  \t\nBody\n---\n"),
        fine.replace("d\n", "d\nx: |\n  ---\n  y\n"),
    ] {
        let front_matter =
            FrontMatter::parse(&manifest).unwrap_or_else(|error| panic!("{error}: {manifest:?}"));
        assert_eq!((front_matter.name(), front_matter.description()), ("a", "d"));
    }
    for (manifest, expected) in [
        ("", "line 1: a SKILL.md begins with a line `---`"),
        ("# A skill\n", "line 1: a SKILL.md begins with a line `---`"),
        (" ---\nname: a\n---\n", "line 1: a SKILL.md begins with a line `---`"),
        ("---\nname: a\n", "line 1: the front matter has no end: a second line `---`"),
        ("---\n---\n", "line 1: the front matter is empty"),
        ("---\njust text\n---\n", "line 2: the front matter must be fields: `name: value`"),
        ("---\ndescription: d\n---\n", "line 1: the front matter has no field `name`"),
        ("---\nname: a\n---\n", "line 1: the front matter has no field `description`"),
        ("---\nname: 7\ndescription: d\n---\n", "line 1: the field `name` must be a text that is not empty"),
        (
            "---\nname: a\ndescription: ' '\n---\n",
            "line 1: the field `description` must be a text that is not empty",
        ),
        ("---\nname: A\ndescription: d\n---\n", "line 1: a name consists of `a` to `z`, digits and `-`"),
    ] {
        assert_eq!(FrontMatter::parse(manifest).unwrap_err().to_string(), expected, "{manifest:?}");
    }
}

#[test]
fn instructions_are_what_follows() {
    let manifest = "---\r\nname: a\r\ndescription: d\r\n---\r\n# Title\n\n---\nMore.";
    assert_eq!(FrontMatter::instructions(manifest), "# Title\n\n---\nMore.");
    assert_eq!(FrontMatter::instructions("---\nname: a\n---"), "");
    assert_eq!(FrontMatter::instructions("no front matter"), "");
}

/// SKL-12: every field counts, its place does not, and neither does the notation of a number.
#[test]
fn differences_are_found_by_field() {
    let front_matter = parse("x: 1.0\ny: {a: [1, null]}").unwrap();
    let other = |json: Value| Json::from(json).decode::<JsonObject>().unwrap();
    let same = json!({"y": {"a": [1.0, null]}, "x": 1, "description": "d", "name": "a"});
    assert_eq!(front_matter.difference(&other(same.clone())), None);
    for (field, value) in
        [("description", json!("e")), ("x", json!("1")), ("y", json!({"a": [1]})), ("z", json!(null))]
    {
        let mut changed = same.clone();
        changed[field] = value;
        assert_eq!(front_matter.difference(&other(changed)).as_deref(), Some(field));
    }
    let mut less = same;
    less.as_object_mut().unwrap().remove("x");
    assert_eq!(front_matter.difference(&other(less)).as_deref(), Some("x"));
}

/// SKL-08.
#[test]
fn reserved_keys_are_found() {
    assert_eq!(
        parse("metadata: {io.modelcontextprotocol/x: 1}").unwrap().reserved_key().as_deref(),
        Some("io.modelcontextprotocol/x")
    );
    assert_eq!(parse("metadata: {com.example/x: 1}").unwrap().reserved_key(), None);
    assert_eq!(parse("metadata: text").unwrap().reserved_key(), None);
}

proptest! {
    #[test]
    fn no_text_panics(text in "(---\n)?[-a:\\[\\]{}&*!|>'\"#%@, \n\t~?0-9é]{0,200}(\n---)?") {
        let _ = FrontMatter::parse(&text);
        let _ = FrontMatter::parse(&format!("---\n{text}\n---\n"));
    }

    /// Texts of any characters survive as quoted scalars.
    #[test]
    fn texts_survive(text in "[^\\p{C}]{1,40}") {
        prop_assume!(!text.trim().is_empty());
        let quoted = text.replace('\'', "''");
        let front_matter = FrontMatter::parse(&format!("---\nname: a\ndescription: '{quoted}'\n---\n")).unwrap();
        prop_assert_eq!(front_matter.description(), text);
    }
}
