//! Emitted headers, and every difference between headers and arguments.

use super::*;

fn headers() -> ParamHeaders {
    let schema = serde_json::json!({ "properties": {
        "region": { "type": "string", "x-mcp-header": "Region" },
        "count": { "type": "integer", "x-mcp-header": "Count" },
        "on": { "type": "boolean", "x-mcp-header": "On" },
        "where": { "properties": { "zone": { "type": "string", "x-mcp-header": "Zone" } } },
    }});
    ParamHeaders::from_schema(&Json::from(schema)).unwrap()
}

fn emitted(arguments: &str) -> Vec<String> {
    headers().emit(Some(arguments)).iter().map(|(name, value)| format!("{name}: {value}")).collect()
}

/// Checks `arguments` against the headers `sent` and returns the error message.
fn verdict(arguments: Option<&str>, sent: &[(&str, &str)]) -> Result<(), String> {
    let lookup = |name: &str| {
        let same = sent.iter().filter(|(sent, _)| sent.eq_ignore_ascii_case(name));
        same.map(|(_, value)| value.as_bytes()).collect()
    };
    headers().check(arguments, lookup).map_err(|error| {
        assert_eq!(error.code, ErrorCode::HEADER_MISMATCH);
        error.message.into_owned()
    })
}

/// HDR-05, P-HDR-15, P-HDR-16, P-HDR-20, P-HDR-26.
#[test]
fn annotated_arguments_are_emitted_in_their_plainest_form() {
    assert_eq!(
        emitted(r#"{"other":1,"region":"us\u002dwest1","count":42,"on":true,"where":{"zone":"日本"}}"#),
        [
            "Mcp-Param-Count: 42",
            "Mcp-Param-On: true",
            "Mcp-Param-Region: us-west1",
            "Mcp-Param-Zone: =?base64?5pel5pys?="
        ],
    );
    assert_eq!(emitted(r#"{"count":4.20e1,"region":""}"#), ["Mcp-Param-Count: 42", "Mcp-Param-Region: "]);
    assert_eq!(emitted(r#"{"count":1.5,"region":1e2}"#), ["Mcp-Param-Count: 1.5", "Mcp-Param-Region: 1e2"]);
    assert_eq!(
        emitted(r#"{"count":123456789012345678901234567890}"#),
        ["Mcp-Param-Count: 123456789012345678901234567890"],
    );
    for nothing in [r#"{"region":null,"on":[],"count":{},"where":7}"#, "{}", "null", "[]", "", "{bad"] {
        assert_eq!(emitted(nothing), [""; 0], "{nothing}");
    }
    assert!(headers().emit(None).is_empty());
}

/// HDR-06: the exact texts, in their order.
#[test]
fn each_difference_has_its_text() {
    let check = |arguments: &str, sent: &[(&str, &str)], text: &str| {
        assert_eq!(verdict(Some(arguments), sent), Err(text.to_owned()), "{arguments} {sent:?}");
    };
    let region = r#"{"region":"eu"}"#;
    check(
        region,
        &[("mcp-param-region", "eu"), ("MCP-PARAM-REGION", "eu")],
        "Mcp-Param-Region header appears more than once",
    );
    for absent in ["{}", r#"{"region":null}"#] {
        check(
            absent,
            &[("mcp-param-region", "eu")],
            "Mcp-Param-Region header is present but the request body's 'region' argument is absent",
        );
    }
    check(
        r#"{"where":{"zone":"a"}}"#,
        &[],
        "Mcp-Param-Zone header is missing but the request body's 'where.zone' argument is present",
    );
    for malformed in ["=?base64?ZXU?=", "=?base64?ZX!?=", "=?base64?/w==?="] {
        check(
            region,
            &[("mcp-param-region", malformed)],
            "Mcp-Param-Region header carries a malformed base64 sentinel value",
        );
    }
    for (arguments, value) in [
        (region, "EU"),
        (region, ""),
        (region, "\"eu\""),
        (r#"{"region":{}}"#, "{}"),
        (r#"{"region":"é"}"#, "é"),
    ] {
        check(
            arguments,
            &[("mcp-param-region", value)],
            "Mcp-Param-Region header does not match the request body's 'region' argument",
        );
    }
}

/// HDR-06, P-HDR-10, P-HDR-11, P-HDR-18.
#[test]
fn what_agrees_is_accepted() {
    let region = r#"{"region":"eu"}"#;
    for (arguments, sent) in [
        (region, vec![("mcp-param-region", "eu")]),
        (region, vec![("Mcp-Param-Region", " eu\t")]),
        (region, vec![("Mcp-Param-Region", "=?base64?ZXU=?=")]),
        (region, vec![("Mcp-Param-Region", "eu"), ("Mcp-Param-Unknown", "1"), ("Mcp-Param-Unknown", "2")]),
        (r#"{"on":false}"#, vec![("mcp-param-on", "false")]),
        (r#"{"region":""}"#, vec![("mcp-param-region", "")]),
        (r#"{"region":{"a":1}}"#, vec![]),
        ("{}", vec![]),
    ] {
        assert_eq!(verdict(Some(arguments), &sent), Ok(()), "{arguments} {sent:?}");
    }
}

/// HDR-07, P-HDR-19.
#[test]
fn integers_are_compared_by_value_and_exactly() {
    let agree = |argument: &str, header: &str| {
        let arguments = format!(r#"{{"count":{argument}}}"#);
        verdict(Some(&arguments), &[("mcp-param-count", header)]).is_ok()
    };
    for (argument, header) in [
        ("42", "42.0"),
        ("42.0", "42"),
        ("4.2e1", "42"),
        ("4.2e1", "4.2e1"),
        ("123456789012345678901234567890", "123456789012345678901234567890.0"),
        ("1.5", "1.5"),
        ("\"7\"", "7"),
    ] {
        assert!(agree(argument, header), "{argument} {header}");
    }
    for (argument, header) in [
        ("42", "4.2e1"),
        ("42", "042"),
        ("42", "+42"),
        ("9007199254740993", "9007199254740992"),
        ("1.5", "1.50"),
        ("\"7\"", "7.0"),
        ("true", "1"),
    ] {
        assert!(!agree(argument, header), "{argument} {header}");
    }
    let region = verdict(Some(r#"{"region":42}"#), &[("mcp-param-region", "42.0")]);
    assert!(region.is_err(), "only integer properties are compared by value");
}

/// HDR-08.
#[test]
fn arguments_that_are_not_an_object_are_not_compared() {
    let sent = [("mcp-param-region", "eu")];
    for skipped in ["[]", "7", "\"x\""] {
        assert_eq!(verdict(Some(skipped), &sent), Ok(()));
    }
    assert_eq!(verdict(None, &[]), Ok(()));
    for absent in [None, Some("null")] {
        assert!(verdict(absent, &sent).is_err());
    }
}

/// A gateway and a handler must not be able to read different values (robustness 1.1).
#[test]
fn a_repeated_argument_matches_nothing() {
    for arguments in [
        r#"{"region":"eu","region":"us"}"#,
        r#"{"region":"us","\u0072egion":"eu"}"#,
        r#"{"region":"eu","region":null}"#,
    ] {
        assert!(verdict(Some(arguments), &[("mcp-param-region", "eu")]).is_err(), "{arguments}");
        assert!(verdict(Some(arguments), &[]).is_err(), "{arguments}");
        assert!(emitted(arguments).is_empty());
    }
    let nested = r#"{"where":{"zone":"a"},"where":{}}"#;
    assert!(verdict(Some(nested), &[("mcp-param-zone", "a")]).is_err());
}
