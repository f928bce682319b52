//! Attacks on standard input.

use std::process::Stdio;

use serde_json::{Value, json};

use super::{ERAS, echo, request, reveals_no_internals};
use crate::wire::{Wire, error_of};
use crate::{ENVELOPE, HANDSHAKE};

pub fn spawn() -> Wire {
    Wire::spawn_program(env!("CARGO_BIN_EXE_attacked"), &["stdio"], Stdio::null())
}

/// Runs an attack against an open connection of each era. Afterwards the server must serve, send nothing more, and exit
/// cleanly.
async fn survives<F: Future<Output = Wire>>(attack: impl Fn(Wire) -> F) {
    for revision in ERAS {
        let mut wire = spawn();
        wire.open(revision).await;
        // Without a handshake the first request decides the era.
        if wire.is_enveloped() {
            wire.result("server/discover", json!({})).await;
        }
        let mut wire = attack(wire).await;
        wire.send(echo(revision, "honest", "still here")).await;
        assert_eq!(wire.answer_to("honest").await["result"]["content"][0]["text"], "still here");
        let (rest, ended) = wire.finish().await;
        assert!(rest.is_empty() && ended.is_orderly(), "{rest:?} {ended:?}");
    }
}

/// Sends an invalid request that has an id, and checks the error with that id.
async fn refused(wire: &mut Wire, line: String, id: Value, code: i64) {
    wire.line(&line).await;
    assert_eq!(error_of(&wire.answer_to(id).await).0, code, "{line}");
}

/// R-S30, R-S31, R-S40, R-S57, R-S45, R-S46, R-S59: the error for a malformed request carries its id if it can be read.
#[tokio::test]
async fn a_malformed_request_is_answered_under_its_id() {
    survives(async |mut wire| {
        for (line, code) in [
            (r#"{"id":30,"method":"tools/list","params":{}}"#, -32600),
            (r#"{"jsonrpc":"1.0","id":31,"method":"tools/list"}"#, -32600),
            (r#"{"jsonrpc":2.0,"id":32,"method":"tools/list"}"#, -32600),
            (r#"{"jsonrpc":"2.0","id":40,"params":{}}"#, -32600),
            (r#"{"jsonrpc":"2.0","id":57,"method":5}"#, -32600),
            (r#"{"jsonrpc":"2.0","id":45,"method":"tools/list","params":[]}"#, -32600),
            (r#"{"jsonrpc":"2.0","id":46,"method":"tools/list","params":"x"}"#, -32600),
            (r#"{"jsonrpc":"2.0","id":59,"method":"no/such","params":{"_meta":"x"}}"#, 0),
        ] {
            let frame: Value = serde_json::from_str(line).unwrap();
            wire.line(line).await;
            let (answered, ..) = error_of(&wire.answer_to(frame["id"].clone()).await);
            assert!(
                answered == code || (code == 0 && [-32601, -32602].contains(&answered)),
                "{line}: {answered}"
            );
        }
        wire
    })
    .await;
}

/// R-S50, R-S51, R-S54, R-S56: messages that are not requests are not answered and end nothing, even directly after the
/// handshake.
#[tokio::test]
async fn unsolicited_messages_are_ignored() {
    survives(async |mut wire| {
        wire.line(r#"{"jsonrpc":"2.0","id":99,"result":{}}"#).await;
        wire.line(r#"{"jsonrpc":"2.0","id":"99","error":{"code":1,"message":"x"}}"#).await;
        for _ in 0..50 {
            wire.line(r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"Parse error"}}"#).await;
        }
        for line in [
            r#"{"jsonrpc":"2.0","method":"notifications/absent","params":{}}"#,
            r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":{}}}"#,
            r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":12345}}"#,
            r#"{"jsonrpc":"2.0","method":"notifications/cancelled"}"#,
            r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progress":"x"}}"#,
            r#"{"jsonrpc":"2.0","method":"notifications/initialized","params":[]}"#,
            r#"{"jsonrpc":"2.0","method":"tools/call","params":{"name":"panic"}}"#,
            r#"{"jsonrpc":"2.0","method":""}"#,
        ] {
            wire.line(line).await;
        }
        wire
    })
    .await;
}

/// R-S65, R-S58, R-S63: invalid params are reported as such, not as a missing method.
#[tokio::test]
async fn invalid_params_are_reported_as_such() {
    survives(async |mut wire| {
        let revision = wire.revision().to_owned();
        for params in [
            json!({}),
            json!({ "name": 5 }),
            json!({ "name": null }),
            json!({ "name": "echo", "arguments": [] }),
            json!({ "name": "echo", "arguments": "x" }),
            json!({ "name": "absent" }),
        ] {
            let line = request(&revision, 65, "tools/call", params).to_string();
            refused(&mut wire, line, json!(65), -32602).await;
        }
        wire
    })
    .await;
}

/// R-S61, R-S67: bad arguments and bugs are reported without internal details.
#[tokio::test]
async fn nothing_internal_is_revealed() {
    survives(async |mut wire| {
        let revision = wire.revision().to_owned();
        for arguments in [json!({}), json!({ "text": 5 }), json!({ "text": null }), json!({ "text": ["x"] })]
        {
            let call = json!({ "name": "echo", "arguments": arguments });
            wire.send(request(&revision, 61, "tools/call", call)).await;
            assert_eq!(wire.answer_to(61).await["result"]["isError"], true);
        }
        wire.send(request(&revision, 67, "tools/call", json!({ "name": "panic" }))).await;
        let (code, text, data) = error_of(&wire.answer_to(67).await);
        assert_eq!((code, &*text, data), (-32603, "Internal server error", Value::Null));
        reveals_no_internals(&wire.transcript());
        wire
    })
    .await;
}

/// R-S83: an id is reused while in flight: the second request is rejected, the first continues.
#[tokio::test]
async fn an_id_in_flight_is_not_taken_over() {
    survives(async |mut wire| {
        let revision = wire.revision().to_owned();
        wire.send(request(&revision, 83, "tools/call", json!({ "name": "wait" }))).await;
        wire.send(echo(&revision, 83, "newcomer")).await;
        assert_eq!(error_of(&wire.answer_to(83).await).0, -32600);
        // The first request can still be cancelled, and its id is free afterwards.
        wire.notify("notifications/cancelled", json!({ "requestId": 83 })).await;
        wire.send(echo(&revision, 83, "again")).await;
        assert_eq!(wire.answer_to(83).await["result"]["content"][0]["text"], "again");
        wire
    })
    .await;
}

/// R-S89: a cancellation applies to the exact id, if a request with it is in flight.
#[tokio::test]
async fn a_cancel_applies_to_the_exact_id() {
    survives(async |mut wire| {
        let revision = wire.revision().to_owned();
        for id in [json!(5), json!("5")] {
            wire.send(request(&revision, id, "tools/call", json!({ "name": "wait" }))).await;
        }
        wire.notify("notifications/cancelled", json!({ "requestId": "5" })).await;
        // The string id is free again, the number is not.
        wire.send(echo(&revision, "5", "text")).await;
        assert_eq!(wire.answer_to("5").await["result"]["content"][0]["text"], "text");
        wire.send(echo(&revision, 5, "number")).await;
        assert_eq!(error_of(&wire.answer_to(5).await).0, -32600);
        wire.notify("notifications/cancelled", json!({ "requestId": 5 })).await;
        wire
    })
    .await;
}

/// CVE-2026-27896, GHSA-q382-vc8q-7jhj: member names are case-sensitive and must not be repeated.
#[tokio::test]
async fn member_names_are_taken_literally() {
    survives(async |mut wire| {
        for (line, id) in [
            (r#"{"jsonrpc":"2.0","id":1,"Method":"tools/list"}"#, 1),
            (r#"{"jsonrpc":"2.0","id":2,"method\u0000":"tools/list"}"#, 2),
            (r#"{"jsonrpc":"2.0","id":3,"METHOD":"tools/list","PARAMS":{}}"#, 3),
            (r#"{"jsonrpc":"2.0","id":4,"method":"tools/list","method":"tools/call"}"#, 4),
            (r#"{"jsonrpc":"2.0","id":5,"method":"tools/list","params":{},"params":{}}"#, 5),
        ] {
            refused(&mut wire, line.to_owned(), json!(id), -32600).await;
        }
        let revision = wire.revision().to_owned();
        let mut hidden =
            request(&revision, 6, "tools/call", json!({ "name": "echo", "Arguments": { "text": "x" } }));
        hidden["param\u{17f}"] = json!({ "name": "panic" });
        wire.send(hidden).await;
        assert_eq!(wire.answer_to(6).await["result"]["isError"], true, "there is no argument of that name");
        wire
    })
    .await;
}

/// Invalid or too deeply nested JSON gets a short error response and has no other effect.
#[tokio::test]
async fn junk_gets_an_error() {
    survives(async |mut wire| {
        let deep = |levels: usize| {
            let (open, close) = ("[".repeat(levels), "]".repeat(levels));
            format!(r#"{{"jsonrpc":"2.0","id":7,"method":"no/such","params":{{"a":{open}{close}}}}}"#)
        };
        refused(&mut wire, deep(200), json!(7), -32600).await;
        refused(&mut wire, deep(100_000), json!(7), -32600).await;
        for junk in [&b"\xff\xfe\xfd"[..], b"NaN", b"{]", b"\"\\ud800\"x"] {
            wire.bytes(junk).await;
            wire.bytes(b"\n").await;
            let error = wire.next().await;
            assert_eq!((error_of(&error).0, error.get("id")), (-32700, None));
        }
        // Blank lines and carriage returns are not messages.
        wire.bytes(b"\n\r\n   \n").await;
        let revision = wire.revision().to_owned();
        // Invalid UTF-8 is replaced, and the rest of the message is read.
        let line = echo(&revision, 9, "HERE").to_string().into_bytes();
        let at = line.windows(4).position(|part| part == b"HERE").unwrap();
        wire.bytes(&[&line[..at], b"\xc3\x28", &line[at + 4..], b"\n"].concat()).await;
        assert_eq!(wire.answer_to(9).await["result"]["content"][0]["text"], "\u{fffd}(");
        // Numbers are kept as text, even beyond the range of a double.
        let line =
            request(&revision, 8, "tools/call", json!({ "name": "echo", "arguments": "HERE" })).to_string();
        let numbers = r#"{"text":"x","more":[123456789012345678901234567890,-0,1e300,1e400]}"#;
        wire.line(&line.replace("\"HERE\"", numbers)).await;
        assert_eq!(wire.answer_to(8).await["result"]["content"][0]["text"], "x");
        wire
    })
    .await;
}

/// After a few error responses the server stops answering junk, so two peers cannot answer each other's errors indefinitely.
#[tokio::test]
async fn a_storm_of_junk_is_met_with_silence() {
    survives(async |mut wire| {
        for _ in 0..1000 {
            wire.line("junk").await;
        }
        let revision = wire.revision().to_owned();
        wire.send(echo(&revision, 1, "after the storm")).await;
        wire.answer_to(1).await;
        let errors = wire.take_buffered();
        assert!(
            errors.iter().all(|error| error_of(error).0 == -32700) && errors.len() == 8,
            "{}",
            errors.len()
        );
        wire
    })
    .await;
}

/// R-M10, R-M71: an invalid filter is rejected, not acknowledged.
#[tokio::test]
async fn a_malformed_filter_is_refused() {
    for filter in [
        json!({}),
        json!({ "notifications": 5 }),
        json!({ "notifications": { "toolsListChanged": "yes" } }),
        json!({ "notifications": { "resourceSubscriptions": "test://one" } }),
        json!({ "notifications": { "resourceSubscriptions": [5] } }),
    ] {
        let mut wire = spawn();
        wire.open(ENVELOPE).await;
        assert_eq!(wire.error("subscriptions/listen", filter).await.0, -32602);
        assert!(wire.take_buffered().is_empty());
    }
}

/// R-S94: the end of the input directly after fifty requests loses none of their responses.
#[tokio::test]
async fn nothing_is_lost_at_the_end_of_the_input() {
    for revision in ERAS {
        let mut wire = spawn();
        wire.open(revision).await;
        for id in 0..50 {
            wire.send(echo(revision, 1000 + id, "x")).await;
        }
        let (rest, ended) = wire.finish().await;
        let mut ids: Vec<_> = rest.iter().map(|frame| frame["id"].as_i64().unwrap()).collect();
        ids.sort_unstable();
        assert!(ids == (1000..1050).collect::<Vec<_>>() && ended.is_orderly(), "{ids:?} {ended:?}");
    }
}

/// Junk, a response and a notification before the first request do not decide the era.
#[tokio::test]
async fn junk_before_the_first_request_changes_nothing() {
    for revision in ERAS {
        let mut wire = spawn();
        wire.line("junk").await;
        assert_eq!(error_of(&wire.next().await).0, -32700);
        wire.line(r#"{"jsonrpc":"2.0","id":1,"result":{}}"#).await;
        wire.line(r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#).await;
        wire.open(revision).await;
        wire.send(echo(revision, 1, "open")).await;
        assert_eq!(wire.answer_to(1).await["result"]["content"][0]["text"], "open");
        assert_eq!(revision == HANDSHAKE, !wire.is_enveloped());
    }
}
