//! Tables of templates and URIs.

use proptest::prelude::*;

use super::*;

fn matched(template: &str, uri: &str) -> Option<Vec<String>> {
    let template = UriTemplate::parse(template).unwrap();
    let values = template.matches(uri)?;
    Some(values.into_iter().map(|(name, value)| format!("{name}={}", value.parts().join("|"))).collect())
}

/// URI-02, URI-04.
#[test]
fn uris_are_matched_as_the_template_says() {
    let check = |template: &str, uri: &str, expected: Option<&[&str]>| {
        let expected = expected.map(|all| all.iter().map(ToString::to_string).collect());
        assert_eq!(matched(template, uri), expected, "{template} {uri}");
    };
    check("db://{table}/{id}", "db://users/7", Some(&["table=users", "id=7"]));
    check("db://{table}/{id}", "db://users/7/8", None);
    check("db://{table}/{id}", "db://users/", None);
    check("db://{table}/{id}", "db://users", None);
    check("db://{table}/{id}", "xdb://users/7", None);
    check("config://app", "config://app", Some(&[]));
    check("config://app", "config://app2", None);
    check("f:{a}-{b}", "f:x-y-z", Some(&["a=x-y", "b=z"]));
    check("f:{a,b}", "f:1,2", Some(&["a=1", "b=2"]));
    check("file:///{+path}", "file:///a/b/c.txt", Some(&["path=a/b/c.txt"]));
    check("file:///{+path}", "file:///", Some(&["path="]));
    check("{x}-{+p}/{a}-{b}", "m-n/o/x-y-z", Some(&["x=m", "p=n/o", "a=x-y", "b=z"]));
    check("t:{a}{/b}", "t:1/2", Some(&["a=1", "b=2"]));
    check("t:{a}{.ext}", "t:x.y.png", Some(&["a=x.y", "ext=png"]));
    check("t:{+a}{.ext}", "t:x.y.png", Some(&["a=x.y", "ext=png"]));
    check("t:{/parts*}", "t:/a/b%2Fc", Some(&["parts=a|b/c"]));
    check("t:{/parts*}", "t:", Some(&["parts="]));
    check("t:x{;v}", "t:x;v=5", Some(&["v=5"]));
    check("t:x{;v}", "t:x;v", Some(&["v="]));
    check("t:{a}{#frag}", "t:x#y/z?w", Some(&["a=x", "frag=y/z?w"]));
    check("t:{a}", "t:b%20c", Some(&["a=b c"]));
    check("t:{a}", "t:b%2Fc", Some(&["a=b/c"]));
    check("t:{a}", "t:b%252F", Some(&["a=b%2F"]));
    check("t:{a}", "t:%", None);
    check("t:{a}", "t:%FF", None);
    let long = format!("t:{}", "x".repeat(LONGEST));
    check("t:{a}", &long, None);
}

/// URI-03.
#[test]
fn a_query_at_the_end_is_read_leniently() {
    let check = |template: &str, uri: &str, expected: Option<&[&str]>| {
        let expected = expected.map(|all| all.iter().map(ToString::to_string).collect());
        assert_eq!(matched(template, uri), expected, "{template} {uri}");
    };
    check("s:{kind}{?q,lang}", "s:x?lang=no&q=a+b&q=c&extra=1#top", Some(&["kind=x", "lang=no", "q=a+b"]));
    check("s:{kind}{?q,lang}", "s:x", Some(&["kind=x"]));
    check("s:{kind}{?q}{&page}", "s:x?page=2", Some(&["kind=x", "page=2"]));
    check("s:x?fixed=1{&q}", "s:x?fixed=1&q=2", Some(&["q=2"]));
    check("s:x?fixed=1{&q}", "s:x?q=2&fixed=1", None);
}

/// URI-01.
#[test]
fn templates_that_would_need_guessing_are_refused() {
    for template in [
        "a:{b",
        "a:b}",
        "a:{}",
        "a:{b c}",
        "a:{b:3}",
        "a:{b*}",
        "a:{+b*}",
        "a:{?b*}",
        "a:{b}{c}",
        "a:{b}{+c}",
        "a:{b}/{b}",
        "a:{?b}{?c}",
        "a:{+b}/{+c}",
        "a:{+b}/{#c}",
        "a:{/b*}x{/c*}",
    ] {
        assert!(UriTemplate::parse(template).is_err(), "{template}");
    }
    let error = UriTemplate::parse("db://{table}/{").unwrap_err();
    assert_eq!(error.to_string(), "this '{' is never closed (at byte 13 of 'db://{table}/{')");
}

/// URI-05.
#[test]
fn templates_are_expanded() {
    let check = |template: &str, values: &[(&str, &str)], expected: &str| {
        let values: Vec<_> = values
            .iter()
            .map(|(name, value)| ((*name).to_owned(), Value::One((*value).to_owned())))
            .collect();
        assert_eq!(UriTemplate::parse(template).unwrap().expand(&values), expected);
    };
    check("db://{table}/{id}", &[("table", "a b"), ("id", "x/y")], "db://a%20b/x%2Fy");
    check("f:{+path}", &[("path", "a/b%20c d")], "f:a/b%20c%20d");
    check("s:x{?q,r}", &[("r", "1")], "s:x?r=1");
    check("s:x{?q}", &[("q", "")], "s:x?q=");
    check("s:x{;v,w}", &[("v", ""), ("w", "1")], "s:x;v;w=1");
    check("s:x{?q}", &[], "s:x");
}

proptest! {
    /// An expanded URI matches its template again, for all values.
    #[test]
    fn matching_undoes_expansion(table in "[^\0]{1,12}", id in "[a-z0-9é /%?#&,.]{1,12}") {
        let template = UriTemplate::parse("db://{table}/{id}{?q}").unwrap();
        let values =
            vec![("table".to_owned(), Value::One(table)), ("id".to_owned(), Value::One(id.clone())), ("q".to_owned(), Value::One(id))];
        prop_assert_eq!(template.matches(&template.expand(&values)), Some(values));
    }
}
