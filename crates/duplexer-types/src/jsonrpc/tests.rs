//! Frames, read and written.

use proptest::prelude::*;

use super::*;

fn call<'a>(method: &'a str, params: Option<&'a str>, meta: Option<&'a str>) -> RawCall<'a> {
    let mut landmarks = Landmarks::default();
    params.map(|params| params_object(&mut Scanner::new(params), 0, &mut landmarks));
    RawCall { method: method.into(), params, meta, longest: landmarks.longest }
}

#[test]
fn the_longest_member_of_the_params_is_recorded_beside_meta() {
    let longest = |params: &str| {
        let text = format!(r#"{{"jsonrpc":"2.0","method":"m","params":{params}}}"#);
        match read(&text) {
            Ok(RawFrame::Notification(call)) => call.longest.map(str::to_owned),
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(
        longest(r#"{"a":1,"b":{"c": "d"},"e":[2],"_meta":{"long":"longer than all"}}"#).unwrap(),
        r#"{"c": "d"}"#
    );
    assert_eq!(longest(r#"{"_meta":{}}"#), None);
}

#[expect(clippy::unnecessary_wraps, reason = "the type that `read` returns")]
fn request(id: impl Into<RequestId>, call: RawCall<'_>) -> Result<RawFrame<'_>, Malformed> {
    Ok(RawFrame::Request { id: id.into(), call })
}

/// TYP-01, TYP-04, TYP-05: the kind of a frame follows from its members; unknown ones are ignored.
#[test]
fn the_kind_of_a_frame_follows_from_its_members() {
    let check =
        |text: &str, expected: Result<RawFrame<'_>, Malformed>| assert_eq!(read(text), expected, "{text}");
    check(r#"{"jsonrpc":"2.0","id":1,"method":"m"}"#, request(1_i64, call("m", None, None)));
    check(
        r#" { "x" : [1] , "params" : { "a" : 1 , "_meta" : {"k":2} } , "method" : "m" , "id" : "1" , "jsonrpc" : "2.0" } "#,
        request("1", call("m", Some(r#"{ "a" : 1 , "_meta" : {"k":2} }"#), Some(r#"{"k":2}"#))),
    );
    check(r#"{"jsonrpc":"2.0","id":1,"method":"m","params":null}"#, request(1_i64, call("m", None, None)));
    check(r#"{"jsonrpc":"2.0","id":1,"method":"m","result":{}}"#, request(1_i64, call("m", None, None)));
    check(r#"{"jsonrpc":"2.0","method":"m"}"#, Ok(RawFrame::Notification(call("m", None, None))));
    check(
        r#"{"jsonrpc":"2.0","id":1,"result":{"a":1}}"#,
        Ok(RawFrame::Success { id: 1_i64.into(), result: r#"{"a":1}"# }),
    );
    check(
        r#"{"jsonrpc":"2.0","id":1,"error":{"code":1},"result":{}}"#,
        Ok(RawFrame::Failure { id: Some(1_i64.into()), error: r#"{"code":1}"# }),
    );
    for id in ["", r#""id":null,"#] {
        let text = format!(r#"{{"jsonrpc":"2.0",{id}"error":{{}}}}"#);
        check(&text, Ok(RawFrame::Failure { id: None, error: "{}" }));
    }
    check("[1]", Ok(RawFrame::Batch("[1]")));
}

/// Names are compared after decoding, exactly: no case folding, no NUL tricks (CVE-2026-27896, GHSA-q382-vc8q-7jhj).
#[test]
fn member_names_are_compared_exactly() {
    assert_eq!(
        read(
            r#"{"jsonrpc":"2.0","id":1,"\u006dethod":"m","Method":"evil","method\u0000":"evil","param\u017f":{}}"#
        ),
        request(1_i64, call("m", None, None)),
    );
    assert!(matches!(
        read(r#"{"jsonrpc":"2.0","id":1,"METHOD":"m"}"#),
        Err(Malformed::Invalid { id: Some(_), .. })
    ));
    assert_eq!(
        read(r#"{"jsonrpc":"2.0","id":1,"method":"tools\/x"}"#),
        request(1_i64, call("tools/x", None, None)),
    );
}

/// A malformed request gets an error response with its id if that is readable; responses and notifications get none.
#[test]
fn a_malformed_frame_keeps_its_readable_id() {
    let check = |text: &str, code: Option<i64>, id: Option<&str>| {
        let malformed = read(text).expect_err(text);
        let answer = malformed.answer().map(|(id, error)| (id.map(ToString::to_string), error.code.0));
        assert_eq!(answer, code.map(|code| (id.map(ToOwned::to_owned), code)), "{text}");
    };
    let invalid = Some(-32600);
    for text in ["", "{bad", "{} {}", r#"{"jsonrpc":"2.0","id":1,"method":"m"}}"#, r#"{"id":1,"a":"\ud800"}"#]
    {
        check(text, Some(-32700), None);
    }
    for text in ["1", "null", "\"x\"", "{}", r#"{"jsonrpc":"2.0"}"#] {
        check(text, invalid, None);
    }
    for text in [
        r#"{"id":7,"method":"m"}"#,
        r#"{"jsonrpc":"1.0","id":7,"method":"m"}"#,
        r#"{"jsonrpc":2.0,"id":7,"method":"m"}"#,
        r#"{"jsonrpc":"2.0","id":7}"#,
        r#"{"jsonrpc":"2.0","id":7,"method":5}"#,
        r#"{"jsonrpc":"2.0","id":7,"method":"m","params":[1]}"#,
        r#"{"jsonrpc":"2.0","id":7,"method":"m","params":"x"}"#,
        r#"{"jsonrpc":"2.0","id":7,"method":"m","method":"n"}"#,
        r#"{"jsonrpc":"2.0","id":7,"method":"m","params":{"_meta":{},"_meta":{}}}"#,
    ] {
        check(text, invalid, Some("7"));
    }
    for id in ["null", "true", "1.5", "1.0", "{}", "[7]"] {
        check(&format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"m"}}"#), invalid, None);
    }
    check(r#"{"jsonrpc":"2.0","id":7,"id":8,"method":"m"}"#, invalid, None);
    for text in [
        r#"{"jsonrpc":"2.0","result":{}}"#,
        r#"{"jsonrpc":"2.0","id":null,"result":{}}"#,
        r#"{"id":1,"result":{}}"#,
        r#"{"id":1,"error":{}}"#,
        r#"{"method":"m"}"#,
        r#"{"jsonrpc":"2.0","method":"m","params":[]}"#,
    ] {
        check(text, None, None);
    }
}

/// The usual first member is skipped as a whole. Every other spelling of it means the same.
#[test]
fn the_version_is_recognized_in_every_spelling_and_once() {
    for start in [
        r#"{"jsonrpc":"2.0","#,
        r#"{ "jsonrpc":"2.0","#,
        r#"{"jsonrpc" :"2.0","#,
        r#"{"jsonrpc": "2.0" ,"#,
        r#"{"json\u0072pc":"2.0","#,
        r#"{"jsonrpc":"\u0032.0","#,
    ] {
        let text = format!(r#"{start}"id":1,"method":"m"}}"#);
        assert_eq!(read(&text), request(1_i64, call("m", None, None)), "{text}");
        let twice = format!(r#"{start}"jsonrpc":"2.0","id":1,"method":"m"}}"#);
        assert!(matches!(read(&twice), Err(Malformed::Invalid { id: Some(_), .. })), "{twice}");
    }
    for broken in
        [r#"{"jsonrpc":"2.0""#, r#"{"jsonrpc":"2.0"x}"#, r#"{"jsonrpc":"2.0","#, r#"{"jsonrpc":"2.0",}"#]
    {
        assert_eq!(read(broken), Err(Malformed::NotJson), "{broken}");
    }
    assert!(matches!(read(r#"{"jsonrpc":"2.0"}"#), Err(Malformed::Invalid { id: None, .. })));
    assert!(matches!(read(r#"{"jsonrpc":"2.0.1","id":1,"method":"m"}"#), Err(Malformed::Invalid { .. })));
}

/// A request that is nested too deeply is refused with its id, even if the id follows the nested part.
#[test]
fn nesting_is_bounded_and_the_id_still_found() {
    let deep = |levels: usize| {
        let value = format!("{}{}", "[".repeat(levels), "]".repeat(levels));
        format!(r#"{{"jsonrpc":"2.0","method":"m","params":{{"a":{value}}},"id":7}}"#)
    };
    assert!(read(&deep(MAX_DEPTH - 2)).is_ok());
    for levels in [MAX_DEPTH - 1, 100_000] {
        assert_eq!(
            read(&deep(levels)),
            Err(Malformed::Invalid { id: Some(7_i64.into()), reason: "nested too deeply" }),
        );
    }
}

#[test]
fn a_batch_is_split_into_its_messages() {
    assert_eq!(batch(r#" [ {"a":[1,2]} , 3,"x" ] "#), Ok(vec![r#"{"a":[1,2]}"#, "3", "\"x\""]));
    assert!(matches!(batch("[]"), Err(Malformed::Invalid { .. })));
    for text in ["[1", "[1,]", "[1]]", "{}"] {
        assert_eq!(batch(text), Err(Malformed::NotJson), "{text}");
    }
}

#[test]
fn meta_is_found_without_decoding_the_rest() {
    assert_eq!(find_meta(r#"{"a":{"_meta":1},"_meta":{"b":2}}"#), Some(r#"{"b":2}"#));
    assert_eq!(find_meta(r#"{"a":{"_meta":1}}"#), None);
    assert_eq!(find_meta(r#"{"_meta":1,"_meta":2}"#), None);
    assert_eq!(find_meta("[]"), None);
}

/// TYP-06: absent params are not written.
#[test]
fn written_frames_are_compact_and_read_back() {
    let mut out = Vec::new();
    write_request::<str>(&mut out, &1_i64.into(), "m", None).unwrap();
    write_request(&mut out, &"a\"".into(), "m", Some(r#"{"x":1}"#)).unwrap();
    write_notification::<str>(&mut out, "n", None).unwrap();
    write_success(&mut out, &1_i64.into(), "{}").unwrap();
    write_failure(&mut out, Some(&1_i64.into()), &ErrorObject::internal());
    write_failure(&mut out, None, &ErrorObject::new(ErrorCode::PARSE_ERROR, "Parse error"));
    let expected = concat!(
        r#"{"jsonrpc":"2.0","id":1,"method":"m"}"#,
        r#"{"jsonrpc":"2.0","id":"a\"","method":"m","params":{"x":1}}"#,
        r#"{"jsonrpc":"2.0","method":"n"}"#,
        r#"{"jsonrpc":"2.0","id":1,"result":{}}"#,
        r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"Internal server error"}}"#,
        r#"{"jsonrpc":"2.0","error":{"code":-32700,"message":"Parse error"}}"#,
    );
    assert_eq!(String::from_utf8(out).unwrap(), expected);
}

#[test]
fn a_body_that_fails_leaves_nothing_behind() {
    struct Broken;
    impl Body for Broken {
        fn write(&self, out: &mut Vec<u8>) -> Result<(), serde_json::Error> {
            out.extend_from_slice(b"{\"half");
            Err(serde::ser::Error::custom("broken"))
        }
    }
    let mut out = b"before".to_vec();
    assert!(write_success(&mut out, &1_i64.into(), &Broken).is_err());
    assert!(write_request(&mut out, &1_i64.into(), "m", Some(&Broken)).is_err());
    assert_eq!(out, b"before");
}

proptest! {
    /// A written frame reads back the same for any strings, and is one line.
    #[test]
    fn frames_round_trip(number in any::<i64>(), text in ".*", method in ".*") {
        let params = serde_json::json!({ "text": text, "_meta": { "k": text } }).to_string();
        for id in [RequestId::from(number), RequestId::from(text.as_str())] {
            let mut out = Vec::new();
            write_request(&mut out, &id, &method, Some(params.as_str())).unwrap();
            let line = String::from_utf8(out).unwrap();
            prop_assert!(!line.contains(['\n', '\r']));
            let meta = find_meta(&params);
            prop_assert_eq!(read(&line), request(id, call(&method, Some(&params), meta)));
        }
    }
}
