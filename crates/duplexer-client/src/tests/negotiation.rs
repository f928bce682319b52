//! How a session is opened.

use std::time::Duration;

use duplexer_types::capabilities::{ElicitationCapability, ServerCapabilities};
use duplexer_types::elicitation::ElicitResult;
use duplexer_types::json::{Json, JsonObject};
use duplexer_types::lifecycle::DiscoverResult;
use duplexer_types::roots::ListRootsResult;
use duplexer_types::version::Era;
use serde_json::json;
use tokio::time::Instant;

use super::super::{Client, ClientBuilder, ConnectError, Negotiation, PinnedVersion};
use super::{Script, connecting, described, handshake, in_envelope, in_handshake, options, welcome};
use duplexer_core::error::{CallError, McpError};
use duplexer_core::transport::{Transport, memory};

/// CLT-02, P-META-1, P-META-2, P-META-3, P-DISC-5: the probe carries the envelope; nothing else is sent to open.
#[tokio::test(start_paused = true)]
async fn a_server_that_describes_itself_is_spoken_to_without_a_handshake() {
    let (client, mut server, probe) = connecting(options(), async |server| {
        let probe = server.next("server/discover").await;
        server.answer(&probe, described(&["2025-11-25", "2026-07-28", "2099-01-01"])).await;
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
    assert_eq!(server.maybe_next().await, None);
}

/// CLT-02, P-ERA-4, P-ERA-5: whatever a server of the handshake era says to the question, it gets a handshake.
#[tokio::test(start_paused = true)]
async fn any_other_refusal_leads_to_a_handshake() {
    for code in [-32601, -32602, -32600, -32603, -32000, -32021, -32020, 0, 42] {
        let (client, _server, opening) = connecting(options(), async |server| {
            let probe = server.next("server/discover").await;
            server.refuse(&probe, code, None).await;
            server.shake_hands("2025-11-25").await
        })
        .await;
        assert_eq!(client.unwrap().protocol_version().as_str(), "2025-11-25", "{code}");
        assert!(opening["params"].get("_meta").is_none());
    }
}

/// CLT-02: an answer that describes nothing, or nothing we could speak that way, leads to a handshake.
#[tokio::test(start_paused = true)]
async fn an_answer_that_does_not_help_leads_to_a_handshake() {
    for answer in [json!({}), json!({"supportedVersions": 7}), described(&[]), described(&["2025-11-25"])] {
        let (client, ..) = connecting(options(), async |server| {
            let probe = server.next("server/discover").await;
            server.answer(&probe, answer).await;
            server.shake_hands("2025-06-18").await
        })
        .await;
        assert_eq!(client.unwrap().protocol_version().as_str(), "2025-06-18");
    }
}

/// CLT-02, P-ERA-4: a silent server gets its handshake after 10 s, and is not told to forget the question.
#[tokio::test(start_paused = true)]
async fn a_silent_server_gets_a_handshake_after_ten_seconds() {
    let (client, ..) = connecting(options(), async |server| {
        server.next("server/discover").await;
        let asked = Instant::now();
        server.shake_hands("2025-11-25").await;
        assert_eq!(asked.elapsed(), Duration::from_secs(10));
    })
    .await;
    assert_eq!(client.unwrap().era(), Era::Handshake);
}

/// CLT-02, P-VER-3: a revision in common is tried once.
#[tokio::test(start_paused = true)]
async fn a_revision_in_common_is_tried_once() {
    let offer = json!({"supported": ["2099-01-01", "2026-07-28"], "requested": "2026-07-28"});
    let (client, ..) = connecting(options(), async |server| {
        let first = server.next("server/discover").await;
        server.refuse(&first, -32022, Some(offer.clone())).await;
        let second = server.next("server/discover").await;
        assert_ne!(first["id"], second["id"]);
        server.answer(&second, described(&["2026-07-28"])).await;
    })
    .await;
    assert_eq!(client.unwrap().era(), Era::Envelope);

    let (client, mut server, ()) = connecting(options(), async |server| {
        for _ in 0..2 {
            let probe = server.next("server/discover").await;
            server.refuse(&probe, -32022, Some(offer.clone())).await;
        }
    })
    .await;
    assert!(matches!(client, Err(ConnectError::NoCommonVersion(_))));
    assert_eq!(server.maybe_next().await, None);
}

/// CLT-02, P-VER-4, P-ERA-6: a server that offers only what we do not know gets no handshake.
#[tokio::test(start_paused = true)]
async fn no_revision_in_common_is_an_error_and_no_handshake() {
    let (client, mut server, ()) = connecting(options(), async |server| {
        let probe = server.next("server/discover").await;
        let offer = json!({"supported": ["2099-01-01"], "requested": "2026-07-28"});
        server.refuse(&probe, -32022, Some(offer)).await;
    })
    .await;
    let error = client.unwrap_err();
    assert_eq!(error.to_string(), "no protocol revision in common; the server offers 2099-01-01");
    assert_eq!(server.maybe_next().await, None);
}

/// CLT-02: a handshake revision on offer is taken with a handshake; so is an offer nobody can read.
#[tokio::test(start_paused = true)]
async fn an_offered_handshake_is_taken() {
    let offers = [
        Some(json!({"supported": ["2099-01-01", "2025-06-18"], "requested": "2026-07-28"})),
        Some(json!("2099-01-01")),
        None,
    ];
    for offer in offers {
        let (client, ..) = connecting(options(), async |server| {
            let probe = server.next("server/discover").await;
            server.refuse(&probe, -32022, offer).await;
            server.shake_hands("2025-06-18").await
        })
        .await;
        assert_eq!(client.unwrap().protocol_version().as_str(), "2025-06-18");
    }
}

/// CLT-02: a server that refuses the handshake for its revision is asked once more.
#[tokio::test(start_paused = true)]
async fn a_refused_handshake_leads_to_one_more_question() {
    let offer = json!({"supported": ["2026-07-28"], "requested": "2025-11-25"});
    let (client, ..) = connecting(options(), async |server| {
        server.next("server/discover").await;
        let opening = server.next("initialize").await;
        server.refuse(&opening, -32022, Some(offer.clone())).await;
        let again = server.next("server/discover").await;
        server.answer(&again, described(&["2026-07-28"])).await;
    })
    .await;
    assert_eq!(client.unwrap().era(), Era::Envelope);

    let (client, mut server, ()) = connecting(options(), async |server| {
        server.next("server/discover").await;
        let opening = server.next("initialize").await;
        server.refuse(&opening, -32022, Some(offer)).await;
        let again = server.next("server/discover").await;
        server.refuse(&again, -32601, None).await;
    })
    .await;
    let Err(ConnectError::Call(CallError::Peer(refusal))) = client else { panic!("{client:?}") };
    assert_eq!(refusal.code.0, -32022);
    assert_eq!(server.maybe_next().await, None);
}

/// CLT-02: a broken connection is no answer.
#[tokio::test(start_paused = true)]
async fn a_broken_connection_is_reported_as_such() {
    let (ours, theirs) = memory::pair();
    let (reader, writer) = theirs.split();
    let mut server = Script { reader, writer };
    let script = async move {
        server.next("server/discover").await;
    };
    let (client, ()) = tokio::join!(options().connect(ours), script);
    assert!(matches!(client, Err(ConnectError::Call(CallError::Closed))), "{client:?}");
}

/// CLT-03: the newest handshake revision is offered, the answer is taken, `initialized` is said once.
#[tokio::test(start_paused = true)]
async fn a_handshake_offers_the_newest_revision_it_has() {
    let (client, mut server, opening) =
        connecting(handshake(), async |server| server.shake_hands("2024-11-05").await).await;
    let client = client.unwrap();
    assert_eq!(
        opening["params"],
        json!({"protocolVersion": "2025-11-25", "capabilities": {},
            "clientInfo": {"name": "c", "version": "1"}})
    );
    assert_eq!((client.protocol_version().as_str(), client.era()), ("2024-11-05", Era::Handshake));
    assert_eq!(client.server_info().unwrap().version, "2");
    client.close().await.unwrap();
    assert_eq!(server.maybe_next().await, None);
}

/// CLT-03: a revision without a handshake cannot be the answer to one.
#[tokio::test(start_paused = true)]
async fn an_unknown_answer_to_the_handshake_is_refused() {
    for version in ["2026-07-28", "2099-01-01", ""] {
        let (client, mut server, ()) = connecting(handshake(), async |server| {
            let opening = server.next("initialize").await;
            server.answer(&opening, welcome(version)).await;
        })
        .await;
        let Err(ConnectError::UnsupportedVersion(wanted)) = client else { panic!("{client:?}") };
        assert_eq!(wanted, version);
        assert_eq!(server.maybe_next().await, None);
    }
}

/// P-CAN-3: neither a timeout nor a caller that goes away calls the handshake off.
#[tokio::test(start_paused = true)]
async fn a_handshake_is_never_called_off() {
    let (client, mut server, _) = connecting(handshake().timeout(Duration::from_secs(1)), async |server| {
        server.next("initialize").await
    })
    .await;
    assert!(matches!(client, Err(ConnectError::Call(CallError::Timeout(_)))));
    assert_eq!(server.maybe_next().await, None);

    let (ours, theirs) = memory::pair();
    let (reader, writer) = theirs.split();
    let mut server = Script { reader, writer };
    tokio::select! {
        _ = handshake().connect(ours) => panic!("nobody has answered"),
        _ = server.next("initialize") => {}
    }
    assert_eq!(server.maybe_next().await, None);
}

/// CLT-01: a session is pinned to a revision of the envelope era only; `connect` reports it and sends nothing.
#[tokio::test(start_paused = true)]
async fn connect_refuses_a_pin_to_a_handshake_revision() {
    for version in ["2025-11-25", "2024-11-05", "2099-01-01", ""] {
        let pinned = options().negotiation(Negotiation::Pinned(PinnedVersion::new(version)));
        let (client, mut server, ()) = connecting(pinned, async |_| ()).await;
        let error = client.unwrap_err().to_string();
        assert!(error.contains("2026-07-28") && error.contains(&format!("`{version}`")), "{error}");
        assert_eq!(server.maybe_next().await, None);
    }
}

#[tokio::test(start_paused = true)]
async fn connect_refuses_extension_settings_that_are_no_object() {
    let invalid = options().extension("com.example/x", json!([1]));
    let (client, mut server, ()) = connecting(invalid, async |_| ()).await;
    let error = client.unwrap_err().to_string();
    assert_eq!(error, "the settings of the extension `com.example/x` are not a JSON object");
    assert_eq!(server.maybe_next().await, None);
}

/// CLT-01, P-ERA-10: without a description the server is asked, and never gets a handshake.
#[tokio::test(start_paused = true)]
async fn a_pinned_session_never_falls_back() {
    let pinned = || options().negotiation(Negotiation::Pinned(PinnedVersion::new("2026-07-28")));
    let (client, mut server, ()) = connecting(pinned(), async |server| {
        let probe = server.next("server/discover").await;
        server.refuse(&probe, -32601, None).await;
    })
    .await;
    assert!(matches!(client, Err(ConnectError::Call(CallError::Peer(_)))));
    assert_eq!(server.maybe_next().await, None);

    let (client, ..) = connecting(pinned(), async |server| {
        let probe = server.next("server/discover").await;
        server.answer(&probe, described(&["2099-01-01"])).await;
    })
    .await;
    assert!(matches!(client, Err(ConnectError::NoCommonVersion(_))));
}

/// CLT-01, P-DISC-4: with an earlier description nothing at all is sent to open.
#[tokio::test(start_paused = true)]
async fn a_pinned_session_with_a_description_opens_without_a_word() {
    let found = DiscoverResult::new(["2026-07-28".to_owned()], ServerCapabilities::new());
    let pin = PinnedVersion::new("2026-07-28").prior(found.instructions("known"));
    let (client, mut server, ()) =
        connecting(options().negotiation(Negotiation::Pinned(pin)), async |_| ()).await;
    let client = client.unwrap();
    assert_eq!((client.instructions(), client.server_info()), (Some("known"), None));
    client.close().await.unwrap();
    assert_eq!(server.maybe_next().await, None);
}

fn able() -> ClientBuilder {
    options()
        .on_sampling(|_| async { Err(McpError::internal("unused")) })
        .on_elicitation(|_| async { Ok(ElicitResult::decline()) })
        .on_roots(|| async { Ok(ListRootsResult::new([])) })
        .extension("com.example/x", Json::object())
}

/// CLT-05, P-ELI-1: what the client can do is what it has callbacks for, as each era says it.
#[tokio::test(start_paused = true)]
async fn capabilities_follow_from_callbacks() {
    let (_client, _server, opening) =
        connecting(able().negotiation(Negotiation::Handshake), async |server| {
            server.shake_hands("2025-11-25").await
        })
        .await;
    assert_eq!(
        opening["params"]["capabilities"],
        json!({"sampling": {}, "elicitation": {"form": {}, "url": {}}, "roots": {"listChanged": true}})
    );

    let forms = able().elicitation_capability(ElicitationCapability::new().form(JsonObject::new()));
    let (client, mut server) = in_envelope(forms).await;
    let ((), call) = tokio::join!(ask_and_go(client), server.next("tools/list"));
    assert_eq!(
        call["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"],
        json!({"sampling": {}, "elicitation": {"form": {}}, "roots": {}, "extensions": {"com.example/x": {}}})
    );
}

/// Sends a request and goes away after it.
async fn ask_and_go(client: Client) {
    let _ = tokio::time::timeout(Duration::from_secs(1), client.list_tools()).await;
}

/// The last clone that goes ends the connection.
#[tokio::test(start_paused = true)]
async fn a_session_ends_with_its_last_clone() {
    let (client, mut server) = in_handshake(options(), "2025-11-25").await;
    let other = client.clone();
    drop(client);
    let (answered, ping) = tokio::join!(async { other.ping().await }, async {
        let ping = server.next("ping").await;
        server.answer(&ping, json!({})).await;
        ping
    });
    answered.unwrap();
    assert!(ping["id"].is_number());
    drop(other);
    assert_eq!(server.maybe_next().await, None);
}
