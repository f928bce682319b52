//! Negotiation of a session.

use std::time::Duration;

use duplexer_types::capabilities::{ElicitationCapability, ServerCapabilities};
use duplexer_types::elicitation::ElicitResult;
use duplexer_types::json::{Json, JsonObject};
use duplexer_types::lifecycle::DiscoverResult;
use duplexer_types::roots::ListRootsResult;
use duplexer_types::version::{Era, Window};
use serde_json::json;
use tokio::time::Instant;

use super::super::{Client, ClientBuilder, ConnectError, ErrorKind, Negotiation, PinnedVersion};
use super::{
    ScriptedServer, builder, connect_with, discover_result, envelope_session, handshake_builder,
    handshake_session, initialize_result,
};
use duplexer_core::error::{CallError, McpError};
use duplexer_core::transport::{Transport, memory};

/// CLT-02, P-META-1, P-META-2, P-META-3, P-DISC-5: the probe carries the envelope; nothing else is sent to open.
#[tokio::test(start_paused = true)]
async fn a_server_that_supports_discovery_gets_no_handshake() {
    let (client, mut server, probe) = connect_with(builder(), async |server| {
        let probe = server.expect("server/discover").await;
        server.respond(&probe, discover_result(&["2025-11-25", "2026-07-28", "2099-01-01"])).await;
        probe
    })
    .await;
    let client = client.unwrap();
    assert_eq!(
        probe["params"]["_meta"],
        json!({"io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientInfo": {"name": "c", "version": "1"},
            "io.modelcontextprotocol/clientCapabilities": {}})
    );
    assert_eq!((client.protocol_version().as_str(), client.era()), ("2026-07-28", Era::Envelope));
    assert_eq!(client.server_info().unwrap().name, "s");
    assert_eq!(client.instructions(), Some("be kind"));
    assert!(client.server_capabilities().tools.is_some());
    client.close().await.unwrap();
    assert_eq!(server.next_message().await, None);
}

/// CLT-02, P-ERA-4, P-ERA-5: any other error in response to `server/discover` leads to a handshake.
#[tokio::test(start_paused = true)]
async fn any_other_refusal_leads_to_a_handshake() {
    for code in [-32601, -32602, -32600, -32603, -32000, -32021, -32020, 0, 42] {
        let (client, _server, opening) = connect_with(builder(), async |server| {
            let probe = server.expect("server/discover").await;
            server.respond_with_error(&probe, code, None).await;
            server.handshake("2025-11-25").await
        })
        .await;
        assert_eq!(client.unwrap().protocol_version().as_str(), "2025-11-25", "{code}");
        assert!(opening["params"].get("_meta").is_none());
    }
}

/// CLT-02: an invalid discovery result, and one without a common revision, lead to a handshake.
#[tokio::test(start_paused = true)]
async fn a_discovery_without_a_common_revision_leads_to_a_handshake() {
    for answer in
        [json!({}), json!({"supportedVersions": 7}), discover_result(&[]), discover_result(&["2025-11-25"])]
    {
        let (client, ..) = connect_with(builder(), async |server| {
            let probe = server.expect("server/discover").await;
            server.respond(&probe, answer).await;
            server.handshake("2025-06-18").await
        })
        .await;
        assert_eq!(client.unwrap().protocol_version().as_str(), "2025-06-18");
    }
}

/// CLT-02, P-ERA-4: a silent server gets a handshake after 10 s. Then `server/discover` is cancelled, because its POST would
/// stay open.
#[tokio::test(start_paused = true)]
async fn a_silent_server_gets_a_handshake_after_ten_seconds() {
    let (client, mut server, ()) = connect_with(builder(), async |server| {
        server.expect("server/discover").await;
        let probed = Instant::now();
        server.handshake("2025-11-25").await;
        assert_eq!(probed.elapsed(), Duration::from_secs(10));
    })
    .await;
    assert_eq!(client.unwrap().era(), Era::Handshake);
    server.expect("notifications/cancelled").await;
}

/// D-12: a server that is merely slow is not taken for an old one. Its refusal of the handshake waits for the probe.
#[tokio::test(start_paused = true)]
async fn a_slow_server_is_not_taken_for_an_old_one() {
    let (client, ..) = connect_with(builder(), async |server| {
        let probe = server.expect("server/discover").await;
        let opening = server.expect("initialize").await;
        server.respond_with_error(&opening, -32600, None).await;
        tokio::time::sleep(Duration::from_secs(15)).await;
        server.respond(&probe, discover_result(&["2026-07-28"])).await;
    })
    .await;
    assert_eq!(client.unwrap().era(), Era::Envelope);

    // The probe can also be answered while the handshake is open.
    let (client, ..) = connect_with(builder(), async |server| {
        let probe = server.expect("server/discover").await;
        server.expect("initialize").await;
        server.respond(&probe, discover_result(&["2026-07-28"])).await;
    })
    .await;
    assert_eq!(client.unwrap().era(), Era::Envelope);

    // A probe that is refused late leaves the decision to the handshake.
    let (client, ..) = connect_with(builder(), async |server| {
        let probe = server.expect("server/discover").await;
        let opening = server.expect("initialize").await;
        server.respond_with_error(&probe, -32601, None).await;
        server.respond(&opening, initialize_result("2025-06-18")).await;
        server.expect("notifications/initialized").await;
    })
    .await;
    assert_eq!(client.unwrap().protocol_version().as_str(), "2025-06-18");
}

/// D-6, D-12: a mute server is waited for as long as the session's limit, in every mode; a longer one can be set.
#[tokio::test(start_paused = true)]
async fn a_mute_server_is_given_up_after_the_limit_of_the_session() {
    let pinned = || builder().negotiation(Negotiation::Pinned(PinnedVersion::new("2026-07-28")));
    let cases = [
        (builder(), 30),
        (handshake_builder(), 30),
        (pinned(), 30),
        (pinned().handshake_timeout(Duration::from_secs(90)), 90),
        (builder().timeout(Duration::from_secs(20)), 20),
        (builder().no_timeout(), 30),
    ];
    for (builder, seconds) in cases {
        let start = Instant::now();
        let (client, _server, ()) = connect_with(builder, async |_| ()).await;
        let error = client.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Timeout);
        let text =
            format!("could not open the session: the server did not open the session within {seconds} s");
        assert_eq!(error.to_string(), text);
        assert!(start.elapsed() >= Duration::from_secs(seconds) && start.elapsed().as_secs() < seconds + 5);
    }
}

/// CLT-02, P-VER-3: a revision in common is tried once.
#[tokio::test(start_paused = true)]
async fn a_revision_in_common_is_tried_once() {
    let offer = json!({"supported": ["2099-01-01", "2026-07-28"], "requested": "2026-07-28"});
    let (client, ..) = connect_with(builder(), async |server| {
        let first = server.expect("server/discover").await;
        server.respond_with_error(&first, -32022, Some(offer.clone())).await;
        let second = server.expect("server/discover").await;
        assert_ne!(first["id"], second["id"]);
        server.respond(&second, discover_result(&["2026-07-28"])).await;
    })
    .await;
    assert_eq!(client.unwrap().era(), Era::Envelope);

    let (client, mut server, ()) = connect_with(builder(), async |server| {
        for _ in 0..2 {
            let probe = server.expect("server/discover").await;
            server.respond_with_error(&probe, -32022, Some(offer.clone())).await;
        }
    })
    .await;
    assert!(matches!(client, Err(ConnectError::NoCommonVersion(_))));
    assert_eq!(server.next_message().await, None);
}

/// CLT-02, P-VER-4, P-ERA-6: a server that offers only unknown revisions gets no handshake.
#[tokio::test(start_paused = true)]
async fn no_revision_in_common_is_an_error_and_no_handshake() {
    let (client, mut server, ()) = connect_with(builder(), async |server| {
        let probe = server.expect("server/discover").await;
        let offer = json!({"supported": ["2099-01-01"], "requested": "2026-07-28"});
        server.respond_with_error(&probe, -32022, Some(offer)).await;
    })
    .await;
    let error = client.unwrap_err();
    assert_eq!(error.to_string(), "no protocol revision in common; the server offers 2099-01-01");
    assert_eq!(server.next_message().await, None);
}

/// CLT-02: an offered handshake revision leads to a handshake; so does an offer that cannot be decoded.
#[tokio::test(start_paused = true)]
async fn an_offered_handshake_revision_leads_to_a_handshake() {
    let offers = [
        Some(json!({"supported": ["2099-01-01", "2025-06-18"], "requested": "2026-07-28"})),
        Some(json!("2099-01-01")),
        None,
    ];
    for offer in offers {
        let (client, ..) = connect_with(builder(), async |server| {
            let probe = server.expect("server/discover").await;
            server.respond_with_error(&probe, -32022, offer).await;
            server.handshake("2025-06-18").await
        })
        .await;
        assert_eq!(client.unwrap().protocol_version().as_str(), "2025-06-18");
    }
}

/// CLT-02: a server that refuses the handshake because of its revision is probed once more.
#[tokio::test(start_paused = true)]
async fn a_refused_handshake_leads_to_one_more_probe() {
    let offer = json!({"supported": ["2026-07-28"], "requested": "2025-11-25"});
    let (client, ..) = connect_with(builder(), async |server| {
        server.expect("server/discover").await;
        let opening = server.expect("initialize").await;
        server.respond_with_error(&opening, -32022, Some(offer.clone())).await;
        let again = server.expect("server/discover").await;
        server.respond(&again, discover_result(&["2026-07-28"])).await;
    })
    .await;
    assert_eq!(client.unwrap().era(), Era::Envelope);

    let (client, mut server, ()) = connect_with(builder(), async |server| {
        server.expect("server/discover").await;
        let opening = server.expect("initialize").await;
        server.respond_with_error(&opening, -32022, Some(offer)).await;
        let again = server.expect("server/discover").await;
        server.respond_with_error(&again, -32601, None).await;
    })
    .await;
    let Err(ConnectError::Call(CallError::Rpc(refusal))) = client else { panic!("{client:?}") };
    assert_eq!(refusal.code.0, -32022);
    server.expect("notifications/cancelled").await;
    assert_eq!(server.next_message().await, None);
}

/// CLT-02: a lost connection does not count as a response.
#[tokio::test(start_paused = true)]
async fn a_broken_connection_is_reported_as_such() {
    let (ours, theirs) = memory::pair();
    let (reader, writer) = theirs.split();
    let mut server = ScriptedServer { reader, writer };
    let script = async move {
        server.expect("server/discover").await;
    };
    let (client, ()) = tokio::join!(builder().connect(ours), script);
    assert!(matches!(client, Err(ConnectError::Call(CallError::Closed))), "{client:?}");
}

/// CLT-03: the client proposes the newest handshake revision, adopts the server's, and sends `initialized` once.
#[tokio::test(start_paused = true)]
async fn a_handshake_offers_the_newest_revision_it_has() {
    let (client, mut server, opening) =
        connect_with(handshake_builder(), async |server| server.handshake("2024-11-05").await).await;
    let client = client.unwrap();
    assert_eq!(
        opening["params"],
        json!({"protocolVersion": "2025-11-25", "capabilities": {},
            "clientInfo": {"name": "c", "version": "1"}})
    );
    assert_eq!((client.protocol_version().as_str(), client.era()), ("2024-11-05", Era::Handshake));
    assert_eq!(client.server_info().unwrap().version, "2");
    client.close().await.unwrap();
    assert_eq!(server.next_message().await, None);
}

/// CLT-03: a revision without a handshake cannot be the answer to one.
#[tokio::test(start_paused = true)]
async fn an_unknown_answer_to_the_handshake_is_refused() {
    for version in ["2026-07-28", "2099-01-01", ""] {
        let (client, mut server, ()) = connect_with(handshake_builder(), async |server| {
            let opening = server.expect("initialize").await;
            server.respond(&opening, initialize_result(version)).await;
        })
        .await;
        let Err(ConnectError::UnsupportedVersion(wanted)) = client else { panic!("{client:?}") };
        assert_eq!(wanted, version);
        assert_eq!(server.next_message().await, None);
    }
}

/// P-CAN-3: neither a timeout nor a dropped `connect` cancels the handshake.
#[tokio::test(start_paused = true)]
async fn a_handshake_is_never_cancelled() {
    let (client, mut server, _) =
        connect_with(handshake_builder().timeout(Duration::from_secs(1)), async |server| {
            server.expect("initialize").await
        })
        .await;
    assert!(matches!(client, Err(ConnectError::Call(CallError::Timeout(_)))));
    assert_eq!(server.next_message().await, None);

    let (ours, theirs) = memory::pair();
    let (reader, writer) = theirs.split();
    let mut server = ScriptedServer { reader, writer };
    tokio::select! {
        _ = handshake_builder().connect(ours) => panic!("the server has not responded"),
        _ = server.expect("initialize") => {}
    }
    assert_eq!(server.next_message().await, None);
}

/// CLT-01: a session is pinned to a revision of the envelope era only; `connect` reports it and sends nothing.
#[tokio::test(start_paused = true)]
async fn connect_refuses_a_pin_to_a_handshake_revision() {
    for version in ["2025-11-25", "2024-11-05", "2099-01-01", ""] {
        let pinned = builder().negotiation(Negotiation::Pinned(PinnedVersion::new(version)));
        let (client, mut server, ()) = connect_with(pinned, async |_| ()).await;
        let error = client.unwrap_err().to_string();
        assert!(error.contains("2026-07-28") && error.contains(&format!("`{version}`")), "{error}");
        assert_eq!(server.next_message().await, None);
    }
}

#[tokio::test(start_paused = true)]
async fn connect_refuses_extension_settings_that_are_no_object() {
    let invalid = builder().extension("com.example/x", json!([1]));
    let (client, mut server, ()) = connect_with(invalid, async |_| ()).await;
    let error = client.unwrap_err().to_string();
    assert_eq!(error, "the settings of the extension `com.example/x` are not a JSON object");
    assert_eq!(server.next_message().await, None);
}

/// CLT-01, P-ERA-10: without a prior result the client sends `server/discover`, and never falls back to a handshake.
#[tokio::test(start_paused = true)]
async fn a_pinned_session_never_falls_back() {
    let pinned = || builder().negotiation(Negotiation::Pinned(PinnedVersion::new("2026-07-28")));
    let (client, mut server, ()) = connect_with(pinned(), async |server| {
        let probe = server.expect("server/discover").await;
        server.respond_with_error(&probe, -32601, None).await;
    })
    .await;
    assert!(matches!(client, Err(ConnectError::Call(CallError::Rpc(_)))));
    assert_eq!(server.next_message().await, None);

    let (client, ..) = connect_with(pinned(), async |server| {
        let probe = server.expect("server/discover").await;
        server.respond(&probe, discover_result(&["2099-01-01"])).await;
    })
    .await;
    assert!(matches!(client, Err(ConnectError::NoCommonVersion(_))));
}

/// CLT-01, P-DISC-4: with a prior result nothing is sent to open the session.
#[tokio::test(start_paused = true)]
async fn a_pinned_session_with_a_prior_result_opens_without_a_request() {
    let found = DiscoverResult::new(["2026-07-28".to_owned()], ServerCapabilities::new());
    let pin = PinnedVersion::new("2026-07-28").prior(found.instructions("known"));
    let (client, mut server, ()) =
        connect_with(builder().negotiation(Negotiation::Pinned(pin)), async |_| ()).await;
    let client = client.unwrap();
    assert_eq!((client.instructions(), client.server_info()), (Some("known"), None));
    client.close().await.unwrap();
    assert_eq!(server.next_message().await, None);
}

fn capable() -> ClientBuilder {
    builder()
        .on_sampling(|_| async { Err(McpError::internal("unused")) })
        .on_elicitation(|_| async { Ok(ElicitResult::decline()) })
        .on_roots(|| async { Ok(ListRootsResult::new([])) })
        .extension("com.example/x", Json::object())
        .extension_in("com.example/all", json!({"a": 1}), Window::ALWAYS)
}

/// CLT-05, P-ELI-1, EXF-02, EXF-D1, F-15: the client declares the capabilities that have callbacks, in the form of each era.
#[tokio::test(start_paused = true)]
async fn capabilities_follow_from_callbacks() {
    let (_client, _server, opening) =
        connect_with(capable().negotiation(Negotiation::Handshake), async |server| {
            server.handshake("2025-11-25").await
        })
        .await;
    assert_eq!(
        opening["params"]["capabilities"],
        json!({"sampling": {}, "elicitation": {"form": {}, "url": {}}, "roots": {"listChanged": true},
            "extensions": {"com.example/all": {"a": 1}}})
    );

    let forms = capable().elicitation_capability(ElicitationCapability::new().form(JsonObject::new()));
    let (client, mut server) = envelope_session(forms).await;
    let ((), call) = tokio::join!(request_and_drop(client), server.expect("tools/list"));
    assert_eq!(
        call["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"],
        json!({"sampling": {}, "elicitation": {"form": {}}, "roots": {},
            "extensions": {"com.example/x": {}, "com.example/all": {"a": 1}}})
    );
}

/// Sends a request, waits for a second and drops it.
async fn request_and_drop(client: Client) {
    let _ = tokio::time::timeout(Duration::from_secs(1), client.list_tools()).await;
}

/// Dropping the last clone ends the connection.
#[tokio::test(start_paused = true)]
async fn a_session_ends_with_its_last_clone() {
    let (client, mut server) = handshake_session(builder(), "2025-11-25").await;
    let other = client.clone();
    drop(client);
    let (answered, ping) = tokio::join!(async { other.ping().await }, async {
        let ping = server.expect("ping").await;
        server.respond(&ping, json!({})).await;
        ping
    });
    answered.unwrap();
    assert!(ping["id"].is_number());
    drop(other);
    assert_eq!(server.next_message().await, None);
}
