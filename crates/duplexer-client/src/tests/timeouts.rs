//! How long calls wait, and when their clock is paused.

use std::time::Duration;

use duplexer_types::elicitation::ElicitResult;
use serde_json::json;
use tokio::time::{Instant, sleep};

use super::super::ErrorKind;
use super::{ScriptedServer, builder, connect_with, handshake_session};
use duplexer_core::dispatch::CallClock;
use duplexer_core::transport::{FrameReader, FrameWriter, Transport, memory};

const MINUTE: Duration = Duration::from_secs(60);

/// D-6: a server that says nothing is waited for 5 minutes; without a timeout, as long as it takes.
#[tokio::test(start_paused = true)]
async fn a_call_without_an_answer_ends_after_five_minutes() {
    let (client, mut server) = handshake_session(builder(), "2025-11-25").await;
    let start = Instant::now();
    let error = client.call_tool("x", ()).await.unwrap_err();
    assert_eq!((error.kind(), start.elapsed()), (ErrorKind::Timeout, 5 * MINUTE));
    server.expect("tools/call").await;
    server.expect("notifications/cancelled").await;

    let patient = client.call_tool("x", ()).no_timeout().into_future();
    let (result, ()) = tokio::join!(patient, async {
        let asked = server.expect("tools/call").await;
        sleep(100_000 * MINUTE).await;
        server.respond(&asked, json!({"content": []})).await;
    });
    result.unwrap();
}

/// Reports progress every four minutes, `count` times.
async fn report(server: &mut ScriptedServer, count: u32) -> serde_json::Value {
    let asked = server.expect("tools/call").await;
    for step in 1..=count {
        sleep(4 * MINUTE).await;
        let token = &asked["params"]["_meta"]["progressToken"];
        server.notify("notifications/progress", json!({"progressToken": token, "progress": step})).await;
    }
    asked
}

/// D-6: progress restarts the timeout, up to the total of one hour.
#[tokio::test(start_paused = true)]
async fn progress_restarts_the_timeout_up_to_the_total() {
    let (client, mut server) = handshake_session(builder(), "2025-11-25").await;
    let call = client.call_tool("x", ()).on_progress(|_| {}).into_future();
    let (result, ()) = tokio::join!(call, async {
        let asked = report(&mut server, 10).await;
        server.respond(&asked, json!({"content": []})).await;
    });
    result.unwrap();

    let start = Instant::now();
    let call = client.call_tool("x", ()).on_progress(|_| {}).into_future();
    let (result, _) = tokio::join!(call, report(&mut server, 20));
    assert_eq!(result.unwrap_err().kind(), ErrorKind::Timeout);
    assert!(start.elapsed() >= 60 * MINUTE);

    let start = Instant::now();
    let capped = client.call_tool("x", ()).on_progress(|_| {}).total_timeout(7 * MINUTE).into_future();
    server.expect("notifications/cancelled").await;
    let result = tokio::select! {
        result = capped => result,
        _ = report(&mut server, 100) => panic!("there is no end"),
    };
    assert_eq!((result.unwrap_err().kind(), start.elapsed()), (ErrorKind::Timeout, 7 * MINUTE));
}

/// D-6: time in which a callback answers a question is charged to no call.
#[tokio::test(start_paused = true)]
async fn the_clock_stands_still_while_a_callback_runs() {
    let slow = builder().on_elicitation(async |_| {
        sleep(60 * MINUTE).await;
        Ok(ElicitResult::decline())
    });
    let (client, mut server) = handshake_session(slow, "2025-11-25").await;
    let call = client.call_tool("x", ()).into_future();
    let (result, ()) = tokio::join!(call, async {
        let asked = server.expect("tools/call").await;
        sleep(4 * MINUTE).await;
        let form = json!({"message": "who?", "requestedSchema": {"type": "object", "properties": {}}});
        server
            .send(json!({"jsonrpc": "2.0", "id": "q", "method": "elicitation/create", "params": form}))
            .await;
        sleep(59 * MINUTE).await;
        assert_eq!(server.next_message().await.unwrap()["result"], json!({"action": "decline"}));
        server.respond(&asked, json!({"content": []})).await;
    });
    result.unwrap();
}

/// A transport whose clock the test pauses, as a login does.
struct Paused(memory::Memory, CallClock);

impl Transport for Paused {
    fn split(self) -> (Box<dyn FrameReader>, Box<dyn FrameWriter>) {
        self.0.split()
    }

    fn clock(&self) -> Option<CallClock> {
        Some(self.1.clone())
    }
}

/// OAC-06: the time in which a person logs in counts neither for the probe nor for the opening.
#[tokio::test(start_paused = true)]
async fn a_login_takes_as_long_as_it_takes() {
    let (ours, theirs) = memory::pair();
    let (reader, writer) = theirs.split();
    let mut server = ScriptedServer { reader, writer };
    let clock = CallClock::new();
    let login = clock.pause();
    let (client, ()) = tokio::join!(builder().connect(Paused(ours, clock)), async {
        let probe = server.expect("server/discover").await;
        sleep(10 * MINUTE).await;
        drop(login);
        server.respond(&probe, super::discover_result(&["2026-07-28"])).await;
    });
    client.unwrap();

    // Without the pause the same server is given up.
    let (client, ..) = connect_with(builder(), async |server| {
        server.expect("server/discover").await;
    })
    .await;
    assert_eq!(client.unwrap_err().kind(), ErrorKind::Timeout);
}
