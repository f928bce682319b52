//! Refusals, always with the same response, and invalid configurations.

use super::*;

/// RST-02, RST-08, P-MRTR-8: a state is opened as it was sealed or not at all.
#[tokio::test]
async fn a_state_that_was_touched_is_refused() {
    let running = start(RequestState::keys([SECRET]).unwrap()).await;
    let client = anonymous();
    let sealed = asked(&running, &client, Method::ToolsCall, FIRST).await;
    for at in 0..sealed.len() {
        let mut bytes = sealed.clone().into_bytes();
        bytes[at] ^= 1;
        let touched = String::from_utf8(bytes).unwrap();
        let outcome = call(&running, &client, Method::ToolsCall, &with_state(&touched)).await;
        assert_refused(outcome, &format!("byte {at}"));
        let outcome = call(&running, &client, Method::ToolsCall, &with_state(&sealed[..at])).await;
        assert_refused(outcome, &format!("cut at {at}"));
    }
    let again = call(&running, &client, Method::ToolsCall, &with_state(&sealed)).await.unwrap();
    assert_eq!(received_state(&again), PLAIN);
}

/// RST-08: a token has one spelling.
#[test]
fn base64_that_is_not_canonical_is_refused() {
    let ring = KeyRing::new([SECRET]).unwrap();
    // 4 + 12 + 1 + 16 bytes are 44 digits; one byte more leaves spare bits in the last digit.
    let sealed = ring.seal(b"xy").unwrap();
    let (head, last) = sealed.split_at(sealed.len() - 1);
    let alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let opened: Vec<_> =
        alphabet.chars().filter(|digit| ring.open(&format!("{head}{digit}")).is_ok()).collect();
    assert_eq!(opened, last.chars().collect::<Vec<_>>());
    for variant in [
        format!("{sealed}="),
        format!("{sealed}=="),
        format!("{sealed} "),
        format!(" {sealed}"),
        sealed.replacen("v1.", "v2.", 1),
        sealed.replacen("v1.", "V1.", 1),
        sealed.replacen("v1.", "", 1),
    ] {
        assert!(ring.open(&variant).is_err(), "{variant}");
    }
}

/// RST-05, RST-06, P-MRTR-9: time, request, audience, key and principal; whatever it is, the answer is the same.
#[tokio::test]
async fn a_state_holds_for_its_request_its_principal_its_server_and_its_time() {
    let clock = Hands::default();
    let policy = || clock.on(RequestState::keys([SECRET]).unwrap());
    let running = start(policy()).await;
    let client = anonymous();
    let sealed = asked(&running, &client, Method::ToolsCall, FIRST).await;
    let state = Json::from(sealed.as_str());
    let at = |seconds: u64, holds: bool| (seconds, with_state(&sealed), holds);
    let now = |params: String, holds: bool| (START, params, holds);
    for (seconds, params, holds) in [
        at(START, true),
        at(START + 599, true),
        at(START + 600, false),
        at(START + 100_000, false),
        at(START - 60, true),
        at(START - 61, false),
        now(format!(r#"{{"arguments":{{ "\u0061" : 1 }},"requestState":{state},"name":"\u0074"}}"#), true),
        now(format!(r#"{{"name":"u","arguments":{{"a":1}},"requestState":{state}}}"#), false),
        now(format!(r#"{{"name":"t","arguments":{{"a":2}},"requestState":{state}}}"#), false),
        now(format!(r#"{{"name":"t","arguments":{{"a":1.0}},"requestState":{state}}}"#), false),
        now(format!(r#"{{"name":"t","arguments":{{"a":1,"b":null}},"requestState":{state}}}"#), false),
        now(format!(r#"{{"name":"t","arguments":{{}},"requestState":{state}}}"#), false),
        now(format!(r#"{{"name":"t","requestState":{state}}}"#), false),
        now(format!(r#"{{"name":5,"arguments":{{"a":1}},"requestState":{state}}}"#), false),
        now(format!(r#"{{"arguments":{{"a":1}},"requestState":{state}}}"#), false),
    ] {
        clock.set(seconds);
        let outcome = call(&running, &client, Method::ToolsCall, &params).await;
        if holds {
            assert_eq!(received_state(&outcome.unwrap()), PLAIN, "{seconds} {params}");
        } else {
            assert_refused(outcome, &format!("{seconds} {params}"));
        }
    }
    clock.set(START);
    let outcome = call(&running, &client, Method::PromptsGet, &with_state(&sealed)).await;
    assert_refused(outcome, "another method");
    let other_audience = start(policy().audience("elsewhere")).await;
    let other_key = start(clock.on(RequestState::keys([[8; 32]]).unwrap())).await;
    for (other, why) in [(&other_audience, "another audience"), (&other_key, "another key")] {
        assert_refused(call(other, &client, Method::ToolsCall, &with_state(&sealed)).await, why);
    }
}

/// RST-06, RST-07, P-AUS-14: a principal's state is valid for that principal only, and a state without a principal for
/// none.
#[tokio::test]
async fn a_state_belongs_to_its_principal() {
    fn user(client: &str, issuer: Option<&str>, subject: Option<&str>) -> Arc<Connection> {
        let mut principal = Principal::new(client);
        principal.issuer = issuer.map(Into::into);
        principal.subject = subject.map(Into::into);
        authenticated(principal)
    }
    let running = start(RequestState::keys([SECRET]).unwrap()).await;
    let clients = [
        anonymous(),
        user("c", None, None),
        user("c", Some("i"), None),
        user("c", None, Some("i")),
        user("c", Some("i"), Some("s")),
        user("c", Some("i"), Some("r")),
        user("d", Some("i"), Some("s")),
        user("c\",\"i", None, Some("s")),
    ];
    for (owner, client) in clients.iter().enumerate() {
        let sealed = asked(&running, client, Method::ToolsCall, FIRST).await;
        for (thief, client) in clients.iter().enumerate() {
            let outcome = call(&running, client, Method::ToolsCall, &with_state(&sealed)).await;
            if owner == thief {
                assert_eq!(received_state(&outcome.unwrap()), PLAIN);
            } else {
                assert_refused(outcome, &format!("{owner} {thief}"));
            }
        }
    }
}

/// RST-02: a state that is no string, or is repeated, or is spelled with escapes, is refused; before validation.
#[tokio::test]
async fn nothing_gets_past_unopened() {
    let running = start(RequestState::keys([SECRET]).unwrap()).await;
    let client = anonymous();
    let sealed = asked(&running, &client, Method::ToolsCall, FIRST).await;
    for state in ["5", "true", "{}", "[]", "\"\"", "\"forged\"", "\"v1.\"", "\"v1.AAAA\""] {
        let params = format!(r#"{{"name":"t","requestState":{state}}}"#);
        assert_refused(call(&running, &client, Method::ToolsCall, &params).await, &params);
    }
    for params in [
        r#"{"name":"t","\u0072equestState":"forged"}"#.to_owned(),
        format!(
            r#"{{"name":"t","arguments":{{"a":1}},"requestState":"{sealed}","requestState":"{sealed}"}}"#
        ),
        r#"{"name":"t","x":1,"x":2,"requestState":"forged"}"#.to_owned(),
        r#"{"name":["not","a","name"],"requestState":"forged"}"#.to_owned(),
        format!(r#"{{"name":"t","arguments":{{"a":1}},"arguments":{{"a":1}},"requestState":"{sealed}"}}"#),
    ] {
        assert_refused(call(&running, &client, Method::ToolsCall, &params).await, &params);
    }
}

/// RST-02: no revision accepts a plain state from the client, not even one without states.
#[tokio::test]
async fn an_older_revision_is_no_way_around() {
    let running = start(RequestState::keys([SECRET]).unwrap()).await;
    let client = Arc::new(Connection::ready(ProtocolVersion::V2025_11_25, ClientProfile::UNKNOWN));
    let outcome = call(&running, &client, Method::ToolsCall, &with_state("forged")).await;
    assert_refused(outcome, "an older revision");
}

/// RST-06: claims of a codec without encryption are checked one by one.
#[tokio::test]
async fn claims_that_are_not_what_we_write_are_refused() {
    let clock = Hands::default();
    let running = start(clock.on(RequestState::codec(Open))).await;
    let client = anonymous();
    let sealed = asked(&running, &client, Method::ToolsCall, FIRST).await;
    let check = async |text: String| {
        let outcome = call(&running, &client, Method::ToolsCall, &with_state(&text)).await;
        assert_refused(outcome, &text);
    };
    for (name, value) in [
        ("v", serde_json::json!(2)),
        ("v", serde_json::json!("1")),
        ("s", serde_json::json!(5)),
        ("s", serde_json::json!(null)),
        ("iat", serde_json::json!("now")),
        ("exp", serde_json::json!(null)),
        ("m", serde_json::json!("resources/read")),
        ("t", serde_json::json!("")),
        ("a", serde_json::json!("")),
        ("aud", serde_json::json!(null)),
        ("aud", serde_json::json!("test2")),
        ("p", serde_json::json!("")),
        ("p", serde_json::json!("AAAA")),
    ] {
        let mut claims: serde_json::Value = serde_json::from_str(&sealed).unwrap();
        claims[name] = value;
        check(claims.to_string()).await;
        claims.as_object_mut().unwrap().remove(name);
        if name != "p" {
            check(claims.to_string()).await;
        }
    }
    for text in ["", "null", "{}", "[]", "{\"v\":1"] {
        check(text.to_owned()).await;
    }
}

/// RST-09, RST-10: mistakes are found at start-up.
#[test]
fn a_ring_of_weak_repeated_or_no_keys_cannot_be_made() {
    let error = |secrets: &[&[u8]]| KeyRing::new(secrets).unwrap_err();
    assert_eq!(error(&[]), RequestStateError::NoSecret);
    assert_eq!(error(&[&[1; 31]]), RequestStateError::ShortSecret { got: 31 });
    assert_eq!(error(&[&SECRET, b"short"]), RequestStateError::ShortSecret { got: 5 });
    assert_eq!(error(&[&SECRET, &[8; 32], &SECRET]), RequestStateError::RepeatedSecret);
    assert_eq!(RequestState::keys(Vec::<String>::new()).unwrap_err(), RequestStateError::NoSecret);
    let nothing = RequestState::ephemeral().ttl(Duration::ZERO);
    assert_eq!(nothing.unwrap_err(), RequestStateError::NoTimeToLive);
    assert!(
        !format!("{:?}", RequestState::keys(["a secret of thirty-two bytes....."]).unwrap())
            .contains("secret")
    );
}

/// RST-11: a state is for a server that has a name, or for an audience.
#[test]
fn a_server_without_a_name_needs_an_audience() {
    let build = |state: RequestState| handlers("").request_state(state).build();
    let error = build(RequestState::ephemeral()).unwrap_err();
    assert!(matches!(error, crate::builder::BuildError::NoAudience), "{error}");
    assert!(build(RequestState::ephemeral().audience("a")).is_ok());
}
