//! Two nodes on the same stores, in every order that is generated: sessions and requests against a plain model, and a
//! stream whose writer repeats batches while its reader changes nodes.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use duplexer_http::{
    Admission, Admitted, Appended, Attach, Attached, Batch, Change, Created, EventKind, MemoryCluster,
    NewRequest, Numbering, Placement, SessionRecord, SharedStores, StoredEvent, StreamId, StreamKey,
};
use duplexer_types::jsonrpc::RequestId;
use proptest::prelude::*;

/// One operation at one of two nodes.
#[derive(Clone, Debug)]
enum Step {
    Create,
    Admit { request: i64, stream: u128 },
    Release { request: i64 },
    Subscribe { uri: u8 },
    Unsubscribe { uri: u8 },
    End { request: i64 },
    Delete,
}

fn step() -> impl Strategy<Value = (usize, Step)> {
    let requests = || 0..3_i64;
    let step = prop_oneof![
        2 => Just(Step::Create),
        // No two requests have the same stream: real ones are random.
        6 => (0..3_u8, 1..4_u128).prop_map(|(request, stream)| {
            Step::Admit { request: i64::from(request), stream: 10 * u128::from(request) + stream }
        }),
        3 => requests().prop_map(|request| Step::Release { request }),
        3 => (0..4_u8).prop_map(|uri| Step::Subscribe { uri }),
        2 => (0..4_u8).prop_map(|uri| Step::Unsubscribe { uri }),
        3 => requests().prop_map(|request| Step::End { request }),
        1 => Just(Step::Delete),
    ];
    (0..2_usize, step)
}

/// What the stores must remember.
#[derive(Default)]
struct Model {
    exists: bool,
    deleted: bool,
    in_flight: BTreeMap<i64, Placement>,
    /// Streams that were opened: by whom, for which request, and whether they have ended.
    streams: BTreeMap<u128, (usize, i64, bool)>,
    uris: BTreeSet<String>,
}

const SESSION: &str = "session";

fn record() -> SessionRecord {
    let state = r#"{"version":"2025-11-25","initialize":null,"initialized":true,"log_level":"info","subscriptions":[]}"#;
    SessionRecord::new(serde_json::from_str(state).unwrap(), None)
}

fn key(stream: u128) -> StreamKey {
    StreamKey::new(Arc::from(SESSION), StreamId(stream))
}

fn nodes() -> [SharedStores; 2] {
    let cluster = MemoryCluster::new(Duration::from_secs(1800));
    [cluster.node(), cluster.node()]
}

impl Model {
    /// Runs a step at a node, and compares the outcome with the model.
    async fn apply(&mut self, nodes: &[SharedStores; 2], at: usize, step: &Step) {
        let node = &nodes[at];
        match step {
            Step::Create => {
                let created = node.sessions.create(SESSION, &record()).await.unwrap();
                let is_same = self.exists && self.uris.is_empty();
                let expected =
                    if self.deleted || (self.exists && !is_same) { Created::Exists } else { Created::New };
                assert_eq!(created, expected);
                self.exists |= !self.deleted;
            }
            Step::Admit { request, stream } => self.admit(node, at, *request, *stream).await,
            Step::Release { request } => {
                let stream = self.in_flight.get(request).and_then(|placement| placement.stream);
                let placement = Placement { run: node.nodes.run(), stream };
                node.sessions.release(SESSION, &RequestId::from(*request), placement).await.unwrap();
                if self.in_flight.get(request) == Some(&placement) {
                    self.in_flight.remove(request);
                    // A stream without events goes with its request.
                    self.streams.retain(|id, (_, _, ended)| *ended || stream != Some(StreamId(*id)));
                }
            }
            Step::Subscribe { uri } | Step::Unsubscribe { uri } => {
                let uri = format!("file:///{uri}");
                let change = match step {
                    Step::Subscribe { .. } => Change::Subscribed(uri.clone()),
                    _ => Change::Unsubscribed(uri.clone()),
                };
                let revision = node.sessions.update(SESSION, std::slice::from_ref(&change)).await.unwrap();
                assert_eq!(revision.is_some(), self.exists);
                match change {
                    Change::Subscribed(uri) if self.exists => drop(self.uris.insert(uri)),
                    _ => drop(self.uris.remove(&uri)),
                }
            }
            Step::End { request } => self.end(nodes, *request).await,
            Step::Delete => {
                let mut placements = node.sessions.delete(SESSION).await.unwrap();
                if self.exists {
                    let mut expected: Vec<_> = self.in_flight.values().copied().collect();
                    let order = |it: &Placement| (it.run, it.stream.map(|stream| stream.0));
                    placements.sort_by_key(order);
                    expected.sort_by_key(order);
                    assert_eq!(placements, expected);
                    *self = Self { deleted: true, ..Self::default() };
                }
            }
        }
    }

    async fn admit(&mut self, node: &SharedStores, at: usize, request: i64, stream: u128) {
        let (id, run) = (RequestId::from(request), node.nodes.run());
        let taken = NewRequest { id: &id, run, stream: Some(StreamId(stream)) };
        let admitted = node.sessions.admit(SESSION, Admission::new(None, None).request(taken)).await.unwrap();
        if !self.exists {
            assert_eq!(admitted, Admitted::Unknown);
            return;
        }
        let placement = Placement { run, stream: Some(StreamId(stream)) };
        let is_free = self.in_flight.get(&request).is_none_or(|known| *known == placement);
        // The stream of another request, or one that has ended, is not opened again.
        let is_open = self.streams.get(&stream).is_none_or(|(writer, _, ended)| *writer == at && !ended);
        if is_free && is_open {
            assert!(matches!(admitted, Admitted::Record(..)), "{admitted:?}");
            self.in_flight.insert(request, placement);
            self.streams.entry(stream).or_insert((at, request, false));
        } else {
            assert_eq!(admitted, Admitted::InFlight);
        }
    }

    /// Writes the last event of a request's stream.
    async fn end(&mut self, nodes: &[SharedStores; 2], request: i64) {
        let placement = self.in_flight.get(&request).copied();
        let Some(StreamId(stream)) = placement.and_then(|placement| placement.stream) else { return };
        let Some((writer, of, ended)) = self.streams.get_mut(&stream) else { return };
        let last = [StoredEvent::new(Bytes::from_static(b"end"), EventKind::Final)];
        let node = &nodes[*writer];
        let batch = Batch::new(node.nodes.run(), Numbering::From(1), &last);
        let appended = node.events.append(&key(stream), batch).await.unwrap();
        assert!(matches!(appended, Appended::UpTo { last: 1, .. }), "{appended:?}");
        *ended = true;
        let of = *of;
        self.in_flight.retain(|id, placement| *id != of || placement.run != node.nodes.run());
    }

    /// Compares everything that can be read at both nodes.
    async fn compare(&self, nodes: &[SharedStores; 2]) {
        for node in nodes {
            for request in 0..3 {
                let located = node.sessions.locate(SESSION, &RequestId::from(request)).await.unwrap();
                assert_eq!(located, self.in_flight.get(&request).copied(), "request {request}");
            }
            match node.sessions.admit(SESSION, Admission::new(None, None)).await.unwrap() {
                Admitted::Record(record, _) => {
                    assert!(self.exists);
                    let uris: Vec<_> = self.uris.iter().cloned().collect();
                    assert_eq!(record.connection.subscriptions, uris);
                }
                other => assert_eq!((other, self.exists), (Admitted::Unknown, false)),
            }
        }
    }
}

/// One move of the writer or of the reader of a stream.
#[derive(Clone, Debug)]
enum Move {
    /// The writer appends new events, and first repeats this many of the last ones.
    Write { new: u64, repeated: u64 },
    /// The client resumes at a node, after having lost this many events.
    Resume { node: usize, lost: u64 },
    /// The reader reads a page of this size.
    Read { at_most: usize },
}

fn moves() -> impl Strategy<Value = Move> {
    prop_oneof![
        (0..5_u64, 0..4_u64).prop_map(|(new, repeated)| Move::Write { new, repeated }),
        (0..2_usize, 0..3_u64).prop_map(|(node, lost)| Move::Resume { node, lost }),
        (1..4_usize).prop_map(|at_most| Move::Read { at_most }),
    ]
}

fn events(from: u64, to: u64) -> Vec<StoredEvent> {
    let event = |number: u64| StoredEvent::new(Bytes::from(number.to_string()), EventKind::Notification);
    (from..=to).map(event).collect()
}

/// The client of a stream: what it has received, and through which reader.
struct Reading {
    node: usize,
    number: u64,
    received: Vec<String>,
}

impl Reading {
    async fn read(&mut self, nodes: &[SharedStores; 2], at_most: usize) -> usize {
        let after = self.received.len() as u64;
        let page = nodes[self.node].events.read(&key(1), after, at_most).await.unwrap().unwrap();
        assert_eq!(page.first, after + 1, "no event was evicted");
        assert_eq!(page.reader.map(|reader| reader.number), Some(self.number), "it is the reader");
        assert!(page.events.len() <= at_most);
        let texts = page.events.iter().map(|event| String::from_utf8(event.data.to_vec()).unwrap());
        self.received.extend(texts);
        page.events.len()
    }
}

async fn follow(moves: &[Move]) {
    let nodes = nodes();
    let run = nodes[0].nodes.run();
    nodes[0].sessions.create(SESSION, &record()).await.unwrap();
    let taken = NewRequest { id: &RequestId::from(1_i64), run, stream: Some(StreamId(1)) };
    nodes[0].sessions.admit(SESSION, Admission::new(None, None).request(taken)).await.unwrap();
    let (mut written, mut reading) = (0, Reading { node: 0, number: 1, received: Vec::new() });
    for each in moves {
        match *each {
            Move::Write { new, repeated } => {
                let from = written + 1 - repeated.min(written);
                let batch = events(from, written + new);
                if batch.is_empty() {
                    continue;
                }
                // Any node can carry the batch of the run that writes.
                let batch = Batch::new(run, Numbering::From(from), &batch);
                let appended = nodes[usize::from(repeated > 1)].events.append(&key(1), batch).await.unwrap();
                written += new;
                assert!(matches!(appended, Appended::UpTo { last, .. } if last == written), "{appended:?}");
            }
            Move::Resume { node, lost } => {
                let kept = reading.received.len().saturating_sub(usize::try_from(lost).unwrap());
                reading.received.truncate(kept);
                let attach = Attach::after(nodes[node].nodes.run(), kept as u64);
                let attached = nodes[node].events.attach(&key(1), attach).await.unwrap();
                let Attached::Reader { number, .. } = attached else { panic!("{attached:?}") };
                assert!(number > reading.number);
                (reading.node, reading.number) = (node, number);
            }
            Move::Read { at_most } => drop(reading.read(&nodes, at_most).await),
        }
    }
    while reading.read(&nodes, 3).await > 0 {}
    let expected: Vec<String> = (1..=written).map(|number| number.to_string()).collect();
    assert_eq!(reading.received, expected, "every event once, in order, without a hole");
}

fn block_on<F: Future>(test: F) -> F::Output {
    tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .unwrap()
        .block_on(test)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    /// SCL-96: sessions and requests, as two nodes see them.
    #[test]
    fn two_nodes_agree_about_sessions_and_requests(steps in prop::collection::vec(step(), 1..40)) {
        block_on(async {
            let (nodes, mut model) = (nodes(), Model::default());
            for (at, step) in &steps {
                model.apply(&nodes, *at, step).await;
                model.compare(&nodes).await;
            }
        });
    }

    /// SCL-04, SCL-34, SCL-39: a writer that repeats batches, and a reader that moves between nodes.
    #[test]
    fn a_reader_that_moves_between_nodes_receives_every_event_once(moves in prop::collection::vec(moves(), 1..40)) {
        block_on(follow(&moves));
    }
}
