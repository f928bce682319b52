//! Separation of code, literals, comments and test code.

use super::{Scan, Text};

fn text(line: usize, text: &str) -> Text {
    Text { line, text: text.to_owned() }
}

#[test]
fn comments_are_not_code() {
    let scan = Scan::of("let a = 1; // one\n/* two\n /* three */ four */ let b;\n");
    assert_eq!(scan.code, ["let a = 1; ", "", " let b;", ""]);
    assert_eq!(scan.comments, [text(1, " one"), text(2, " two"), text(3, "  three  four ")]);
}

#[test]
fn string_literals_are_not_code() {
    let check = |source: &str, code: &str, inside: &str| {
        let scan = Scan::of(source);
        assert_eq!(scan.code.join("\n"), code, "{source}");
        assert_eq!(scan.strings, [text(1, inside)], "{source}");
    };
    check(r#"f("a // b");"#, r#"f("");"#, "a // b");
    check(r#"f("a \" b");"#, r#"f("");"#, r#"a \" b"#);
    check(r#"f("a\\");"#, r#"f("");"#, r"a\\");
    check(r#"f(r"a\");"#, r#"f("");"#, r"a\");
    check("f(r#\"a\"b\"#);", r#"f("");"#, "a\"b");
    check("f(br#\"a\"#);", r#"f(b"");"#, "a");
    check("f(b\"a\");", r#"f(b"");"#, "a");
}

#[test]
fn a_string_over_several_lines_keeps_the_numbers_of_those_behind_it() {
    let scan = Scan::of("a(\"x\ny\");\nb(\"z\");");
    assert_eq!(scan.strings, [text(1, "x\ny"), text(3, "z")]);
    assert_eq!(scan.code.len(), 3);
}

#[test]
fn characters_and_lifetimes_are_distinguished() {
    let scan = Scan::of("fn f<'a>(x: &'a str) { g('\"', '\\'', '\\u{7d}', b'{'); \"s\" }");
    assert_eq!(scan.code, ["fn f<'a>(x: &'a str) { g(, , , b); \"\" }"]);
    assert_eq!(scan.strings, [text(1, "s")]);
}

#[test]
fn a_raw_identifier_is_code() {
    assert_eq!(Scan::of("let r#type = for_r;").code, ["let r#type = for_r;"]);
}

fn test_lines(source: &str) -> Vec<usize> {
    let scan = Scan::of(source);
    (1..=scan.code.len()).filter(|line| scan.is_test(*line)).collect()
}

#[test]
fn a_test_module_is_test_code_and_what_follows_is_not() {
    assert_eq!(test_lines("a();\n#[cfg(test)]\nmod tests {\n  fn f() { \"}\"; }\n}\nb();\n"), [2, 3, 4, 5]);
}

#[test]
fn a_test_item_ends_at_its_semicolon() {
    assert_eq!(test_lines("#[cfg(test)]\nuse a::b;\nfn c() {}"), [1, 2]);
    assert_eq!(test_lines("#[cfg(test)]\n#[path = \"x.rs\"]\nmod tests;\nfn c() {}"), [1, 2, 3]);
    assert_eq!(test_lines("#[cfg(all(test, unix))]\nfn c() -> [u8; 2] {\n}\nd();"), [1, 2, 3]);
}

#[test]
fn a_test_field_ends_with_its_struct() {
    assert_eq!(test_lines("struct A {\n#[cfg(test)]\nx: u8,\n}\nfn f() {}"), [2, 3, 4]);
}

#[test]
fn a_file_that_is_only_for_tests_says_so_at_its_top() {
    assert_eq!(test_lines("#![cfg(test)]\nfn f() {}"), [1, 2]);
}

#[test]
fn a_remark_that_mentions_the_attribute_marks_nothing() {
    assert_eq!(test_lines("// #[cfg(test)]\nfn f() {}"), Vec::<usize>::new());
}

#[test]
fn a_source_that_ends_in_the_middle_of_something_is_still_read() {
    for source in ["\"abc", "r#\"abc", "/* abc", "'", "'\\", "#[cfg(test)]", ""] {
        assert_eq!(Scan::of(source).code.len(), 1, "{source}");
    }
}
