//! The envelope checks, one by one.

use std::sync::Arc;

use duplexer_types::headers::ParamHeaders;
use duplexer_types::json::Json;

use super::*;
use crate::registry::Server;

const ENVELOPE: &str = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}"#;

/// The headers that belong to [`ENVELOPE`] and a call of `echo`.
const HEADERS: [(&str, &str); 3] =
    [("mcp-protocol-version", "2026-07-28"), ("mcp-method", "tools/call"), ("mcp-name", "echo")];

fn call(params: &str) -> Message {
    Message::new("tools/call", Some(params.into()))
}

fn classified(message: &Message, headers: Option<&[(&str, &str)]>) -> Result<ProtocolVersion, (i64, String)> {
    let refused = |error: ErrorObject| (error.code.0, error.message.into_owned());
    match headers {
        None => classify(message, None).map_err(refused),
        Some(headers) => with_lookup(headers, |lookup| classify(message, Some(lookup)).map_err(refused)),
    }
}

fn with_lookup<R>(headers: &[(&str, &str)], then: impl FnOnce(HeaderLookup<'_>) -> R) -> R {
    let lookup = |name: &str| {
        let named = headers.iter().filter(|(header, _)| header.eq_ignore_ascii_case(name));
        named.map(|(_, value)| value.as_bytes()).collect()
    };
    then(&lookup)
}

fn check(params: &str, headers: Option<&[(&str, &str)]>, code: i64, text: &str) {
    assert_eq!(classified(&call(params), headers), Err((code, text.to_owned())), "{params} {headers:?}");
}

fn without(name: &str) -> Vec<(&'static str, &'static str)> {
    HEADERS.into_iter().filter(|(header, _)| *header != name).collect()
}

fn with(name: &'static str, value: &'static str) -> Vec<(&'static str, &'static str)> {
    without(name).into_iter().chain([(name, value)]).collect()
}

/// ENV-02, P-META-7: client info is optional; ENV-08: whether the method exists is not checked here.
#[test]
fn a_complete_envelope_passes_all_checks() {
    let params = format!(r#"{{"name":"echo",{ENVELOPE}}}"#);
    assert_eq!(classified(&call(&params), None), Ok(ProtocolVersion::V2026_07_28));
    assert_eq!(classified(&call(&params), Some(&HEADERS)), Ok(ProtocolVersion::V2026_07_28));
    let unknown = call(&params).with_method("no/such");
    assert_eq!(classified(&unknown, Some(&with("mcp-method", "no/such"))), Ok(ProtocolVersion::V2026_07_28));
}

/// ENV-01, P-META-4: with the text that names what is missing.
#[test]
fn meta_must_be_an_object() {
    let text = "params._meta must be an object carrying the required 'io.modelcontextprotocol/protocolVersion' \
                and 'io.modelcontextprotocol/clientCapabilities' envelope keys";
    for params in ["{}", r#"{"_meta":null}"#, r#"{"_meta":[]}"#, r#"{"_meta":"x"}"#] {
        check(params, None, -32602, text);
        check(params, Some(&HEADERS), -32602, text);
    }
    let absent = classified(&Message::new("tools/call", None), None);
    assert_eq!(absent, Err((-32602, text.to_owned())));
}

/// ENV-02, P-META-5, P-META-6: presence only; what is missing is named.
#[test]
fn both_keys_must_be_there() {
    let missing = |keys: &str| format!("params._meta is missing the required envelope key(s): {keys}");
    let (version, capabilities) = (key::PROTOCOL_VERSION, key::CLIENT_CAPABILITIES);
    check(r#"{"_meta":{}}"#, None, -32602, &missing(&format!("{version}, {capabilities}")));
    check(&format!(r#"{{"_meta":{{"{version}":"x"}}}}"#), None, -32602, &missing(capabilities));
    check(&format!(r#"{{"_meta":{{"{capabilities}":null}}}}"#), Some(&[]), -32602, &missing(version));
}

/// Two readers must not see two envelopes.
#[test]
fn a_repeated_key_is_refused() {
    let twice = format!(r#"{{"_meta":{{"{0}":"2026-07-28","{0}":"x"}}}}"#, key::PROTOCOL_VERSION);
    check(&twice, None, -32602, &format!("params._meta holds the key {} twice", key::PROTOCOL_VERSION));
    assert!(is_enveloped(&call(&twice)));
}

/// ENV-03, ENV-04, ENV-05: the headers repeat the body, and none of them twice.
#[test]
fn headers_say_what_the_body_says() {
    let check = |headers: &[(&str, &str)], text: &str| {
        check(&format!(r#"{{"name":"echo",{ENVELOPE}}}"#), Some(headers), -32020, text);
    };
    let version = "mcp-protocol-version header does not match the request envelope's protocol version";
    check(&without("mcp-protocol-version"), version);
    check(&with("mcp-protocol-version", "2025-11-25"), version);
    let method = "mcp-method header does not match the request body's method";
    check(&without("mcp-method"), method);
    check(&with("mcp-method", "tools/list"), method);
    check(&with("mcp-method", "Tools/Call"), method);
    let name = "mcp-name header does not match the request body's 'name' parameter";
    check(&without("mcp-name"), name);
    check(&with("mcp-name", "other"), name);
    check(&with("mcp-name", "=?base64?!!?="), name);
    let twice: Vec<_> = HEADERS.into_iter().chain([("Mcp-Name", "echo")]).collect();
    check(&twice, "mcp-name header appears more than once");
}

/// TYP-18, P-META-7: the facts about the client are checked where the envelope has them.
#[test]
fn the_facts_about_a_client_are_checked() {
    let check = |members: &str, valid: bool| {
        let text = format!("{{{members}}}");
        let meta = RequestMeta::read(&text).unwrap();
        assert_eq!(check_identity(&meta).is_ok(), valid, "{members}");
    };
    check("", true);
    for (key, value, valid) in [
        (key::CLIENT_INFO, "null", true),
        (key::CLIENT_INFO, r#"{"name":"n","version":"1"}"#, true),
        (key::CLIENT_INFO, r#"{"name":"n"}"#, false),
        (key::CLIENT_INFO, "7", false),
        (key::CLIENT_CAPABILITIES, "{}", true),
        (key::CLIENT_CAPABILITIES, r#"{"roots":{}}"#, true),
        (key::CLIENT_CAPABILITIES, r#"{"roots":7}"#, false),
        (key::CLIENT_CAPABILITIES, "[]", false),
        (key::LOG_LEVEL, r#""error""#, true),
        (key::LOG_LEVEL, r#""loud""#, false),
    ] {
        check(&format!("\"{key}\":{value}"), valid);
    }
}

/// ENV-05: a name that HTTP cannot spell is encoded; a body without one leaves the check to the params.
#[test]
fn a_name_is_decoded_and_skipped_where_there_is_none() {
    let params = format!(r#"{{"name":"ä",{ENVELOPE}}}"#);
    assert!(classified(&call(&params), Some(&with("mcp-name", "=?base64?w6Q=?="))).is_ok());
    for body in [format!("{{{ENVELOPE}}}"), format!(r#"{{"name":5,{ENVELOPE}}}"#)] {
        assert!(classified(&call(&body), Some(&without("mcp-name"))).is_ok(), "{body}");
    }
    let read = call(&format!(r#"{{"uri":"a://b",{ENVELOPE}}}"#)).with_method("resources/read");
    let headers = [("mcp-protocol-version", "2026-07-28"), ("mcp-method", "resources/read")];
    let refused = classified(&read, Some(&headers)).unwrap_err();
    assert_eq!(refused.1, "mcp-name header does not match the request body's 'uri' parameter");
    let list = call(&format!(r#"{{"name":"echo",{ENVELOPE}}}"#)).with_method("tools/list");
    let headers = [("mcp-protocol-version", "2026-07-28"), ("mcp-method", "tools/list")];
    assert!(classified(&list, Some(&headers)).is_ok());
}

/// ENV-05: a name that looks encoded, or has white space at an end, has to be encoded: as it is it means another name.
#[test]
fn a_name_that_a_header_changes_is_compared_decoded() {
    for name in ["=?base64?w6Q=?=", " echo", "echo "] {
        let message = call(&format!(r#"{{"name":"{name}",{ENVELOPE}}}"#));
        let with_header = |header: &str| {
            let headers: Vec<_> = without("mcp-name").into_iter().chain([("mcp-name", header)]).collect();
            classified(&message, Some(&headers))
        };
        assert_eq!(with_header(name).unwrap_err().0, -32020, "{name:?}");
        assert!(with_header(&headers::encode(name)).is_ok(), "{name:?}");
    }
}

/// ENV-06: only without headers; with them it cannot equal the header.
#[test]
fn a_version_is_a_string() {
    let params = ENVELOPE.replace("\"2026-07-28\"", "20260728");
    let params = format!("{{{params}}}");
    check(&params, None, -32602, "the protocol-version envelope value must be a string");
    let mismatch = "mcp-protocol-version header does not match the request envelope's protocol version";
    check(&params, Some(&with("mcp-protocol-version", "20260728")), -32020, mismatch);
}

/// ENV-07, ENV-08, P-VER-1: a revision without envelopes is as unsupported as none; headers are compared before.
#[test]
fn an_unsupported_version_names_the_supported_ones() {
    for version in ["2025-11-25", "1900-01-01", "v999.0.0", ""] {
        let message = call(&format!("{{{}}}", ENVELOPE.replace("2026-07-28", version)));
        let error = classify(&message, None).unwrap_err();
        assert_eq!((error.code.0, &*error.message), (-32022, "Unsupported protocol version"));
        let data = serde_json::json!({ "supported": ["2026-07-28"], "requested": version });
        assert_eq!(error.data::<serde_json::Value>(), Some(data));
        assert_eq!(classified(&message, Some(&HEADERS)).unwrap_err().0, -32020, "{version}");
    }
}

/// ERA-01: any value of the version key makes an envelope, and nothing else does.
#[test]
fn the_version_key_alone_makes_an_envelope() {
    let check = |params: &str, expected| assert_eq!(is_enveloped(&call(params)), expected, "{params}");
    check(r#"{"_meta":{"io.modelcontextprotocol/protocolVersion":null}}"#, true);
    check(r#"{"_meta":{"io.modelcontextprotocol/protocolVersion":"2024-11-05"}}"#, true);
    check(r#"{"_meta":{"io.modelcontextprotocol/clientCapabilities":{}}}"#, false);
    check(r#"{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}"#, false);
    check(r#"{"_meta":"io.modelcontextprotocol/protocolVersion"}"#, false);
    check("{}", false);
}

/// SRV-12, HDR-06, HDR-08: the server's own look-up is used, for calls of tools it knows, and otherwise nothing is
/// checked.
#[tokio::test]
async fn mirrored_arguments_are_compared_with_their_headers() {
    let schema = r#"{"type":"object","properties":{"to":{"type":"string","x-mcp-header":"To"}}}"#;
    let headers = Arc::new(ParamHeaders::from_schema(&Json::parse(schema).unwrap()).unwrap());
    let lookup = move |name: &str| (name == "echo").then(|| Arc::clone(&headers));
    let builder = Server::builder("s", "0").tool_headers(lookup);
    let running = builder.build().unwrap().start().await.unwrap();
    let check = |message: &Message, header: &[(&str, &str)], expected: Option<&str>| {
        let checked = with_lookup(header, |lookup| check_param_headers(&running, message, lookup));
        assert_eq!(checked.err().map(|error| error.message.into_owned()).as_deref(), expected);
    };
    let echo = call(r#"{"name":"echo","arguments":{"to":"a"}}"#);
    check(&echo, &[("mcp-param-to", "a")], None);
    check(
        &echo,
        &[("mcp-param-to", "b")],
        Some("Mcp-Param-To header does not match the request body's 'to' argument"),
    );
    check(&echo, &[], Some("Mcp-Param-To header is missing but the request body's 'to' argument is present"));
    check(&call(r#"{"name":"other","arguments":{"to":"a"}}"#), &[("mcp-param-to", "b")], None);
    check(&call(r#"{"name":5}"#), &[("mcp-param-to", "b")], None);
    check(&echo.clone().with_method("prompts/get"), &[("mcp-param-to", "b")], None);
    let bare = Server::builder("s", "0").build().unwrap().start().await.unwrap();
    assert!(with_lookup(&[], |lookup| check_param_headers(&bare, &echo, lookup)).is_ok());
}
