//! The scanner accepts what `serde_json` accepts, at every depth and alignment, and numbers of any size.

use proptest::prelude::*;

use super::*;

fn accepts(text: &str) -> bool {
    let mut scanner = Scanner::new(text);
    scanner.value(0).is_ok() && scanner.end().is_ok()
}

/// The verdict of `serde_json`, but for the size of numbers, which it checks only where it decodes them.
fn expected(text: &str) -> bool {
    match serde_json::from_str::<serde_json::Value>(text) {
        Ok(_) => true,
        Err(error) if error.to_string().starts_with("number out of range") => {
            serde_json::from_str::<&serde_json::value::RawValue>(text).is_ok()
        }
        Err(_) => false,
    }
}

#[test]
fn verdicts_are_those_of_serde_json() {
    for text in [
        "",
        " ",
        "null",
        "nul",
        "nulls",
        "true",
        "tru",
        "false",
        "0",
        "-0",
        "00",
        "01",
        "-",
        "1.",
        ".5",
        "1.5",
        "1e",
        "1e5",
        "1E+5",
        "1e-5",
        "1e999",
        "-1e999",
        "1e-999",
        "+1",
        "\"",
        "\"\"",
        "\"a",
        "\"\\\"",
        "\"\\x\"",
        "\"\\u12\"",
        "\"\\u1234\"",
        "\"\\ud800\"",
        "\"\\ud800\\udc00\"",
        "\"\\udc00\"",
        "\"\\ud800\\u0041\"",
        "\"\\u+123\"",
        "\"\u{1}\"",
        "\"\t\"",
        "[",
        "[]",
        "[ ]",
        "[,]",
        "[1,]",
        "[1 2]",
        "[1,2]",
        "{",
        "{}",
        "{ }",
        "{\"a\"}",
        "{\"a\":}",
        "{\"a\":1,}",
        "{\"a\":1,\"b\":[{}]}",
        "{a:1}",
        "[}",
        "{]",
        "[[]",
        "[]]",
        "1 1",
        " [ 1 , { \"a\" : null } ] ",
        "\"日本語🦀\"",
        "NaN",
        "Infinity",
        "'a'",
        "[1]x",
        "\u{feff}1",
    ] {
        assert_eq!(accepts(text), expected(text), "{text:?}");
    }
}

#[test]
fn numbers_of_any_size_are_accepted() {
    for text in ["9".repeat(308), "9".repeat(400), format!("0.{}", "9".repeat(400)), "-1e400".to_owned()] {
        assert!(accepts(&text), "{text}");
        assert!(!accepts(&format!("{text}e")), "{text}");
    }
}

/// Robustness, "Nesting": 128 levels at most; a hundred thousand are refused without recursion.
#[test]
fn depth_is_counted_and_never_recursed_into() {
    for (depth, too_deep) in [(1, false), (127, false), (128, false), (129, true), (100_000, true)] {
        let text = format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        let mut scanner = Scanner::new(&text);
        assert_eq!(scanner.value(0), Ok(&*text));
        assert_eq!(scanner.too_deep(), too_deep, "{depth}");
    }
    let mixed = format!("{}1{}", "{\"a\":[".repeat(300), "]}".repeat(300));
    assert!(accepts(&mixed));
    assert!(!accepts(&mixed.replacen("]}", "}]", 1)));
}

#[test]
fn strings_are_found_at_every_alignment() {
    for length in 0..40 {
        for (special, ok) in [("\"", true), ("\\n\"", true), ("\u{1f}\"", false), ("é\"", true)] {
            let text = format!("\"{}{special}", "x".repeat(length));
            assert_eq!(accepts(&text), ok, "{text:?}");
        }
    }
}

proptest! {
    #[test]
    fn any_text_gets_the_verdict_of_serde_json(text in "[\\[\\]{}:,\"\\\\a0-9eE.+\\- \tun]{0,24}") {
        prop_assert_eq!(accepts(&text), expected(&text));
    }
}
