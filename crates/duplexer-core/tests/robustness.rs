//! A dispatcher over real pipes, two runtime threads and a peer that is a thread of its own.
#![cfg(unix)]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "these are tests through and through"
)]

use std::collections::HashSet;
use std::io::{BufRead, BufReader, Lines, PipeReader, PipeWriter, Write};
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use duplexer_core::dispatch::{
    CallContext, Dispatch, DispatchLimits, DispatchOptions, Inbound, JsonRpcDispatcher, Message, Outbound,
    OutboundRequest,
};
use duplexer_core::error::McpError;
use duplexer_core::transport::{TransportContext, lines, memory};
use duplexer_types::error::ErrorObject;
use duplexer_types::json::Json;
use serde_json::{Value, json};
use tokio::net::unix::pipe;
use tokio::sync::Semaphore;
use tokio::time::Instant;

/// What the handlers of these tests do; each method is one way to behave.
struct Server {
    started: AtomicUsize,
    gate: Semaphore,
    begun: SyncSender<()>,
    release: Mutex<Receiver<()>>,
}

impl Inbound for Server {
    type Reply = Json;

    async fn request(self: &Arc<Self>, cx: CallContext, call: Arc<Message>) -> Result<Json, McpError> {
        self.started.fetch_add(1, Ordering::SeqCst);
        match call.method() {
            "echo" => Json::parse(call.params().unwrap_or("{}")).map_err(McpError::internal),
            "big" => Ok(Json::from("x".repeat(8000).as_str())),
            "never" => std::future::pending().await,
            "panics" => panic!("on purpose"),
            "gated" => {
                let Ok(permit) = self.gate.acquire().await else {
                    return Err(ErrorObject::internal().into());
                };
                permit.forget();
                Ok(Json::object())
            }
            "asks" => {
                let answer = cx.channel.request(OutboundRequest::new("name")).await?;
                Json::parse(&answer).map_err(McpError::internal)
            }
            "computes" => {
                let _ = self.begun.send(());
                thread::sleep(Duration::from_millis(300));
                Ok(Json::object())
            }
            "blocks" => {
                let _ = self.begun.send(());
                let _ = self.release.lock().unwrap().recv();
                Ok(Json::object())
            }
            other => Err(ErrorObject::method_not_found(other).into()),
        }
    }

    async fn notification(self: &Arc<Self>, _: CallContext, _: Arc<Message>) {}
}

/// The peer's ends of the pipes and its handles on the server.
struct Peer {
    writer: Option<PipeWriter>,
    reader: Lines<BufReader<PipeReader>>,
    server: Arc<Server>,
    begun: Receiver<()>,
    release: SyncSender<()>,
    ended: Receiver<()>,
}

impl Peer {
    fn send(&mut self, frame: &Value) {
        let mut line = frame.to_string();
        line.push('\n');
        self.writer.as_mut().unwrap().write_all(line.as_bytes()).unwrap();
    }

    fn request(&mut self, id: usize, method: &str) {
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method}));
    }

    fn receive(&mut self) -> Value {
        serde_json::from_str(&self.reader.next().expect("a line").unwrap()).unwrap()
    }

    fn answer(&mut self) -> (usize, Value) {
        let frame = self.receive();
        (usize::try_from(frame["id"].as_u64().unwrap()).unwrap(), frame)
    }

    fn end_input(&mut self) {
        self.writer = None;
    }

    /// Returns all responses by id until the server closes its side; no id occurs twice.
    fn rest(&mut self) -> Vec<(usize, Value)> {
        let mut seen = HashSet::new();
        let mut answers = Vec::new();
        for line in self.reader.by_ref() {
            let frame: Value = serde_json::from_str(&line.unwrap()).unwrap();
            let id = usize::try_from(frame["id"].as_u64().unwrap()).unwrap();
            assert!(seen.insert(id), "{id} is answered twice");
            answers.push((id, frame));
        }
        answers
    }
}

/// Serves over pipes while `peer` runs in a thread; the run must end when the peer has.
fn with_peer(
    limits: impl FnOnce(DispatchLimits) -> DispatchLimits,
    peer: impl FnOnce(Peer) + Send + 'static,
) {
    let ((input, writer), (reader, output)) = (std::io::pipe().unwrap(), std::io::pipe().unwrap());
    let ((begun, begins), (release, released), (done, ended)) =
        (sync_channel(64), sync_channel(64), sync_channel(1));
    let server = Arc::new(Server {
        started: AtomicUsize::new(0),
        gate: Semaphore::new(0),
        begun,
        release: Mutex::new(released),
    });
    let peer_server = Arc::clone(&server);
    let peer = thread::spawn(move || {
        peer(Peer {
            writer: Some(writer),
            reader: BufReader::new(reader).lines(),
            server: peer_server,
            begun: begins,
            release,
            ended,
        });
    });
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(async {
        let input = pipe::Receiver::from_owned_fd(OwnedFd::from(input)).unwrap();
        let output = pipe::Sender::from_owned_fd(OwnedFd::from(output)).unwrap();
        let context = TransportContext::stream("pipe");
        let transport = lines::over(input, output, context, lines::DEFAULT_LIMIT);
        let options = DispatchOptions::default().limits(limits(DispatchLimits::default()));
        let (dispatcher, _peer) = JsonRpcDispatcher::with_options(transport, options);
        dispatcher.run(server).await.unwrap();
        // The peer may have ended first, which is allowed.
        let _ = done.send(());
    });
    peer.join().unwrap();
}

/// Writes on a thread of its own, so that the peer reads meanwhile.
fn in_background(peer: &mut Peer, write: impl FnOnce(PipeWriter) + Send + 'static) -> thread::JoinHandle<()> {
    let writer = peer.writer.take().unwrap();
    thread::spawn(move || write(writer))
}

fn flood(writer: PipeWriter, method: &'static str, count: usize) {
    let mut writer = std::io::BufWriter::with_capacity(64 * 1024, writer);
    for id in 0..count {
        let params = json!({ "n": id });
        let call = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        writeln!(writer, "{call}").unwrap();
    }
    writer.flush().unwrap();
}

#[test]
fn of_a_hundred_thousand_pipelined_echoes_none_is_lost_or_doubled() {
    with_peer(
        |limits| limits,
        |mut peer| {
            let writing = in_background(&mut peer, |writer| flood(writer, "echo", 100_000));
            let answers = peer.rest();
            writing.join().unwrap();
            assert_eq!(answers.len(), 100_000);
            for (id, answer) in answers {
                assert_eq!(answer["result"]["n"], json!(id));
            }
        },
    );
}

/// 24 MB of responses that are not read: the number of started handlers is bounded, and every request is answered.
#[test]
fn responses_that_are_not_read_wait_within_bounds_and_all_arrive() {
    with_peer(
        |limits| limits,
        |mut peer| {
            // The input stays open: this is not about the end of it.
            let kept_open = peer.writer.as_ref().unwrap().try_clone().unwrap();
            let writing = in_background(&mut peer, |writer| flood(writer, "big", 3000));
            thread::sleep(Duration::from_secs(2));
            let started = peer.server.started.load(Ordering::SeqCst);
            // Handlers that wait with their response, two full queues of responses, and a full pipe.
            let most = 1024 + 2 * (256 * 1024 / 8000 + 1) + 64 * 1024 / 8000 + 2;
            assert!(started <= most, "{started} handlers were started");
            let mut answers: Vec<_> = (0..2999).map(|_| peer.answer()).collect();
            drop(kept_open);
            answers.extend(peer.rest());
            writing.join().unwrap();
            assert_eq!(answers.iter().map(|(id, _)| *id).collect::<HashSet<_>>().len(), 3000);
            assert!(answers.iter().all(|(_, answer)| answer["result"].as_str().map(str::len) == Some(8000)));
        },
    );
}

#[test]
fn requests_before_an_immediate_end_of_input_are_all_answered() {
    for _ in 0..20 {
        with_peer(
            |limits| limits,
            |mut peer| {
                flood(peer.writer.take().unwrap(), "echo", 50);
                assert_eq!(peer.rest().len(), 50);
            },
        );
    }
}

#[test]
fn two_hundred_cancels_cost_none_of_two_hundred_calls_its_answer() {
    with_peer(
        |limits| limits,
        |mut peer| {
            for id in 0..200 {
                peer.request(1000 + id, "never");
                peer.request(id, "echo");
                let params = json!({"requestId": 1000 + id});
                peer.send(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params}));
            }
            peer.end_input();
            let mut ids: Vec<_> = peer.rest().into_iter().map(|(id, _)| id).collect();
            ids.sort_unstable();
            assert_eq!(ids, (0..200).collect::<Vec<_>>());
        },
    );
}

#[test]
fn twenty_panics_among_twenty_calls_are_forty_answers() {
    with_peer(
        |limits| limits,
        |mut peer| {
            for id in 0..40 {
                peer.request(id, if id % 2 == 0 { "panics" } else { "echo" });
            }
            peer.end_input();
            let answers = peer.rest();
            assert_eq!(answers.len(), 40);
            for (id, answer) in answers {
                let expected = if id % 2 == 0 { json!(-32603) } else { Value::Null };
                assert_eq!(answer["error"]["code"], expected);
            }
        },
    );
}

/// The number of threads must not grow with the number of connections.
#[cfg(target_os = "linux")]
#[test]
fn all_connections_share_one_watchdog_thread() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(async {
        let mut runs = tokio::task::JoinSet::new();
        let mut peers = Vec::new();
        for _ in 0..50 {
            for end in <[_; 2]>::from(memory::pair()) {
                let ((begun, _), (_, released)) = (sync_channel(64), sync_channel(64));
                let (started, gate) = (AtomicUsize::new(0), Semaphore::new(0));
                let server = Server { started, gate, begun, release: Mutex::new(released) };
                let (dispatcher, peer) = JsonRpcDispatcher::new(end);
                runs.spawn(dispatcher.run(Arc::new(server)));
                peers.push(peer);
            }
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
        for peer in &peers {
            peer.request(OutboundRequest::new("echo")).await.unwrap();
        }
        let watchdogs = std::fs::read_dir("/proc/self/task").unwrap().filter(|task| {
            let name = std::fs::read_to_string(task.as_ref().unwrap().path().join("comm"));
            // The kernel keeps fifteen bytes of a name.
            name.is_ok_and(|name| name.trim_end() == "duplexer-watchd")
        });
        assert_eq!(watchdogs.count(), 1);
        peers.iter().for_each(duplexer_core::dispatch::Peer::stop);
        while let Some(run) = runs.join_next().await {
            run.unwrap().unwrap();
        }
    });
}

/// The thread that computes may be the one that would have waited for input, with all others asleep.
#[test]
fn a_handler_that_computes_alone_does_not_keep_the_others_from_being_read() {
    with_peer(
        |limits| limits,
        |mut peer| {
            for round in 0..6 {
                // Long enough for every thread of the runtime, and for the watchdog, to go to sleep.
                thread::sleep(Duration::from_millis(20 + 150 * (round % 2)));
                peer.request(0, "computes");
                peer.begun.recv().unwrap();
                let start = Instant::now();
                peer.request(1, "echo");
                assert_eq!(peer.answer().0, 1);
                assert!(start.elapsed() < Duration::from_millis(150), "{:?}", start.elapsed());
                assert_eq!(peer.answer().0, 0);
            }
        },
    );
}

/// Requests that arrive together with a computation are answered during it.
#[test]
fn a_handler_that_computes_without_awaiting_does_not_delay_the_others() {
    with_peer(
        |limits| limits,
        |mut peer| {
            for round in 0..4 {
                let first = round * 10;
                // In one burst with it, before and behind it.
                peer.request(first + 2, "echo");
                peer.request(first, "computes");
                peer.request(first + 3, "echo");
                peer.begun.recv().unwrap();
                let start = Instant::now();
                peer.request(first + 1, "echo");
                let mut heard = HashSet::new();
                for _ in 0..3 {
                    heard.insert(peer.answer().0);
                }
                assert_eq!(heard, HashSet::from([first + 1, first + 2, first + 3]));
                assert!(start.elapsed() < Duration::from_millis(150), "{:?}", start.elapsed());
                assert_eq!(peer.receive()["id"], json!(first));
            }
        },
    );
}

/// Every handler sends the peer a request while the queue is full; the peer answers as it reads.
#[test]
fn handlers_that_call_the_peer_while_the_queue_is_full_do_not_deadlock() {
    with_peer(
        |limits| limits.running(2).queued(2),
        |mut peer| {
            for id in 0..100 {
                peer.request(id, "asks");
            }
            let (mut answered, mut refused) = (0, 0);
            while answered + refused < 100 {
                let frame = peer.receive();
                if frame["method"] == json!("name") {
                    peer.send(&json!({"jsonrpc": "2.0", "id": frame["id"], "result": "peer"}));
                } else if frame["result"] == json!("peer") {
                    answered += 1;
                } else {
                    assert_eq!(frame["error"]["message"], json!("Too many requests in flight"));
                    refused += 1;
                }
            }
            assert!(answered >= 2, "{answered}");
        },
    );
}

/// Without a call of its own the server stops reading instead, and no request is refused.
#[test]
fn a_full_queue_is_back_pressure_for_the_peer() {
    with_peer(
        |limits| limits.running(1).queued(2),
        |mut peer| {
            let (written, is_written) = sync_channel(1);
            let writing = in_background(&mut peer, move |writer| {
                flood(writer, "gated", 10_000);
                written.send(()).unwrap();
            });
            assert!(
                is_written.recv_timeout(Duration::from_millis(300)).is_err(),
                "the peer was not held back"
            );
            peer.server.gate.add_permits(10_000);
            let answers = peer.rest();
            writing.join().unwrap();
            assert_eq!(answers.len(), 10_000);
            assert!(answers.iter().all(|(_, answer)| answer["result"] == json!({})));
        },
    );
}

#[test]
fn a_handler_that_blocks_its_thread_does_not_keep_the_run_alive() {
    with_peer(
        |limits| limits.drain(Duration::from_millis(200)),
        |mut peer| {
            peer.request(1, "blocks");
            peer.begun.recv().unwrap();
            peer.request(2, "echo");
            peer.end_input();
            let start = Instant::now();
            peer.ended.recv().unwrap();
            assert!(start.elapsed() < Duration::from_millis(200 + 2000), "{:?}", start.elapsed());
            let mut answers = peer.rest();
            answers.sort_by_key(|(id, _)| *id);
            assert_eq!(answers[0].1["error"], json!({"code": -32000, "message": "Connection closed"}));
            assert_eq!(answers[1].1["result"], json!({}));
            peer.release.send(()).unwrap();
        },
    );
}
