//! Attacks by load and by disconnecting: memory, lost responses, and shutdown.

use std::collections::BTreeSet;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;
use tokio::process::Child;
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout};

use super::lines::spawn;
use super::site::{Post, Site, listening, running};
use super::{ERAS, echo, request};
use crate::wire::error_of;
use crate::{ENVELOPE, HANDSHAKE};

/// The shutdown budget, with a margin for a loaded machine.
pub const BOUND: Duration = Duration::from_millis(5000 + 1500);

pub fn send_shutdown_signal(child: &Child) {
    let pid = child.id().and_then(|pid| Pid::from_raw(pid.cast_signed())).expect("it runs");
    kill_process(pid, Signal::TERM).unwrap();
}

/// Returns the peak memory of a process in bytes.
#[cfg(target_os = "linux")]
pub fn peak(pid: u32) -> usize {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("a peak");
    line.trim().trim_end_matches(" kB").parse::<usize>().unwrap() * 1024
}

/// R-S23: a line of 96 MiB without an end costs at most twice the line limit.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn an_endless_line_is_not_buffered() {
    for revision in ERAS {
        let mut wire = spawn();
        wire.open(revision).await;
        wire.send(echo(revision, 1, "before")).await;
        wire.answer_to(1).await;
        let before = peak(wire.pid().unwrap());
        let piece = vec![b'x'; 1 << 20];
        for _ in 0..96 {
            wire.bytes(&piece).await;
        }
        wire.bytes(b"\n").await;
        assert_eq!(error_of(&wire.next().await).0, -32700);
        wire.send(echo(revision, 2, "after")).await;
        wire.answer_to(2).await;
        let grown = peak(wire.pid().unwrap()) - before;
        assert!(grown <= 8 << 20, "{grown}");
    }
}

/// Section 3.1, pipelined requests: none is lost, none is answered twice.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pipelined_requests_are_answered_once_each() {
    const REQUESTS: i64 = 100_000;
    for revision in ERAS {
        let mut wire = spawn();
        wire.open(revision).await;
        wire.send(echo(revision, -1, "open")).await;
        wire.answer_to(-1).await;
        let mut writer = wire.take_writer();
        let mut writing = JoinSet::new();
        writing.spawn(async move {
            let lines = (0..REQUESTS).map(|id| echo(revision, id, "x").to_string() + "\n");
            let text: String = lines.collect();
            tokio::io::AsyncWriteExt::write_all(&mut writer, text.as_bytes()).await.unwrap();
            // Keeps the input open: after its end the time for pending responses is limited.
            writer
        });
        let mut ids = BTreeSet::new();
        for _ in 0..REQUESTS {
            let answer = wire.next().await;
            assert!(answer.get("result").is_some() && ids.insert(answer["id"].as_i64()), "{answer}");
        }
        drop(writing.join_next().await);
        let (rest, ended) = wire.rest().await;
        assert!(rest.is_empty() && ended.is_orderly(), "{rest:?} {ended:?}");
    }
}

/// Section 3.1, cancel storm: two hundred cancellations among two hundred calls lose no response.
#[tokio::test]
async fn a_storm_of_cancels_costs_no_answer() {
    for revision in ERAS {
        let mut wire = spawn();
        wire.open(revision).await;
        for id in 0..200 {
            wire.send(request(revision, 1000 + id, "tools/call", json!({ "name": "wait" }))).await;
            wire.send(echo(revision, id, "x")).await;
            wire.notify("notifications/cancelled", json!({ "requestId": 1000 + id })).await;
        }
        for id in 0..200 {
            assert!(wire.answer_to(id).await.get("result").is_some());
        }
        let (rest, ended) = wire.finish().await;
        assert!(rest.is_empty() && ended.is_orderly(), "{rest:?}");
    }
}

/// R-S69; section 3.1, panics: a thousand panics among a thousand calls give two thousand responses.
#[tokio::test]
async fn panics_are_answers() {
    for revision in ERAS {
        let mut wire = spawn();
        wire.open(revision).await;
        let (mut answered, mut failed) = (BTreeSet::new(), 0);
        for round in 0..10 {
            for id in (200 * round..200 * (round + 1)).step_by(2) {
                wire.send(request(revision, 10 + id, "tools/call", json!({ "name": "panic" }))).await;
                wire.send(echo(revision, 11 + id, "x")).await;
            }
            for _ in 0..200 {
                let answer = wire.next().await;
                failed += usize::from(answer["error"]["code"] == -32603);
                assert!(answered.insert(answer["id"].as_i64()), "{answer}");
            }
        }
        assert_eq!((answered.len(), failed), (2000, 1000));
        let (rest, ended) = wire.finish().await;
        assert!(rest.is_empty() && ended.is_orderly(), "{rest:?} {ended:?}");
    }
}

/// Section 3.1, half-open peers: peers that never finish their request do not delay others.
#[tokio::test]
async fn half_open_peers_do_not_delay_others() {
    let site = Site::open().await;
    let mut half = Vec::new();
    for turn in 0..400 {
        let mut socket = site.connect().await;
        let start = match turn % 3 {
            0 => "P".to_owned(),
            1 => "POST /mcp HTTP/1.1\r\nhost: local".to_owned(),
            _ => format!("{}content-length: 100\r\n\r\n{{", Post::raw(ENVELOPE, "").head()),
        };
        socket.send(start.as_bytes()).await;
        half.push(socket);
    }
    site.serves().await;
}

/// GHSA-j975-95f5-7wqh: peers that disconnect in the middle, orderly or by reset, have no effect.
#[tokio::test]
async fn peers_that_disconnect_have_no_effect() {
    let site = Site::open().await;
    for revision in ERAS {
        for turn in 0..100 {
            let mut socket =
                if turn % 4 == 0 { running(&site, revision, "wait").await } else { site.connect().await };
            match turn % 4 {
                0 => {}
                1 => socket.send(&Post::tool(revision, "wait").bytes()).await,
                2 => socket.send(Post::tool(revision, "wait").head().as_bytes()).await,
                _ => socket.send(&Post::of(revision, &echo(revision, 1, "x")).bytes()).await,
            }
            if turn % 2 == 0 {
                // The connection is reset instead of closed.
                socket.stream.set_zero_linger().unwrap();
            }
        }
    }
    site.serves().await;
}

/// Section 3.1, many at once: each caller gets its own response.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_callers_get_their_own_answers() {
    let site = std::sync::Arc::new(Site::open().await);
    let mut callers = JoinSet::new();
    for caller in 0..300 {
        let site = std::sync::Arc::clone(&site);
        callers.spawn(async move {
            let (revision, text) = (ERAS[caller % 2], format!("caller {caller}"));
            // All callers use the same id.
            let reply = site.send(&Post::of(revision, &echo(revision, 1, &text))).await;
            assert_eq!(reply.text_of_tool(), text);
        });
    }
    while let Some(caller) = callers.join_next().await {
        caller.unwrap();
    }
}

/// R-H121: a call that finishes in time is answered, although the process has received a shutdown signal.
#[tokio::test]
async fn calls_are_finished_before_the_end() {
    for revision in ERAS {
        let mut site = Site::open().await;
        let mut call = running(&site, revision, "finish").await;
        send_shutdown_signal(&site.child);
        assert!(call.until(b"finished").await.is_some());
        assert!(timeout(BOUND, site.child.wait()).await.expect("an end").unwrap().success());
    }
}

/// R-H120: neither a call that never finishes nor an open stream prevents the process from exiting.
#[tokio::test]
async fn nothing_prevents_the_exit() {
    let mut site = Site::open().await;
    let mut stream = listening(&site).await;
    let _stuck = [running(&site, HANDSHAKE, "wait").await, running(&site, ENVELOPE, "wait").await];
    let start = Instant::now();
    send_shutdown_signal(&site.child);
    assert!(stream.until(b"\"resultType\":\"complete\"").await.is_some(), "a stream ends with its result");
    let status = timeout(2 * BOUND, site.child.wait()).await.expect("an end").unwrap();
    assert!(start.elapsed() < BOUND && status.success(), "{:?} {status}", start.elapsed());
}
