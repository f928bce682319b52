//! The interleavings of a handler that writes a stream and of the clients that read it.

use std::future::poll_fn;
use std::sync::Arc;
use std::time::Duration;

use duplexer_core::run::RunId;
use duplexer_types::jsonrpc::RequestId;
use shuttle::scheduler::{PctScheduler, RandomScheduler};
use shuttle::thread;

use super::follow::{FollowHandle, Follower};
use super::kept::Kept;
use crate::server::event_queue::WhenFull;
use crate::server::rpc_response::RpcResponse;
use crate::server::service_state::ServiceState;
use crate::server::session::stores::Stores;
use crate::server::session::surroundings::block_on;
use crate::session::{
    Appended, Attach, Attached, Batch, EventStore as _, MemoryEventStore, StreamId, StreamKey,
};

/// Schedules of an exploration, within [`TIME`]; `MODEL_SCHEDULES` sets another number, without a limit of time.
const SCHEDULES: usize = 150;
/// Time after which an exploration ends, however few schedules it has explored.
const TIME: Duration = Duration::from_secs(1);
/// Bytes of the stack of a thread: futures of a debug build are large.
const STACK: usize = 256 * 1024;
const HERE: RunId = RunId(1);
const ELSEWHERE: RunId = RunId(2);
/// The events of every stream, and the numbers they get.
const ALL: [&str; 4] = ["1 a", "2 b", "3 c", "4 end"];

/// Explores schedules: random ones, and ones with few changes of priority, which find what needs a rare order.
fn check(race: fn()) {
    // Only its clock is used. It is paused: nothing drives the runtime.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
    let runtime = runtime.unwrap();
    let _entered = runtime.enter();
    let more: Option<usize> = std::env::var("MODEL_SCHEDULES").ok().and_then(|number| number.parse().ok());
    let schedules = more.unwrap_or(SCHEDULES);
    let config = || {
        let mut config = shuttle::Config::new();
        config.stack_size = STACK;
        config.max_time = more.is_none().then_some(TIME);
        config
    };
    shuttle::Runner::new(RandomScheduler::new(schedules), config()).run(race);
    shuttle::Runner::new(PctScheduler::new(3, schedules), config()).run(race);
}

/// One stream of one session, whose request is served at the node `HERE`.
struct Setting {
    events: Arc<MemoryEventStore>,
    here: Arc<Stores>,
    key: StreamKey,
    writer: Arc<Kept>,
}

#[derive(Clone, Copy)]
enum Cluster {
    OneNode,
    TwoNodes,
}

impl Setting {
    fn new(cluster: Cluster) -> Self {
        let events = Arc::new(MemoryEventStore::new());
        let here = stores(&events, HERE, cluster);
        let key = StreamKey::new("session".into(), StreamId(1));
        let opened = block_on(events.append(&key, Batch::open(HERE, &RequestId::from(1_i64)))).unwrap();
        assert_eq!(opened, Appended::UpTo { last: 0, reader: Some(HERE) });
        let writer = Kept::new(Arc::clone(&here), key.clone());
        Self { events, here, key, writer }
    }

    /// Starts the handler, which sends all events and waits while too many are not stored.
    fn handle(&self) -> thread::JoinHandle<()> {
        let writer = Arc::clone(&self.writer);
        thread::spawn(move || {
            for text in ["a", "b", "c"] {
                send(&writer, text);
            }
            writer.finish(RpcResponse("end"));
        })
    }

    /// Attaches a client that has received the events up to a number, at the node of the writer or at the other.
    fn resume(&self, run: RunId, after: u64, service: &Arc<ServiceState>) -> Option<Follower> {
        let stores =
            if run == HERE { Arc::clone(&self.here) } else { stores(&self.events, run, Cluster::TwoNodes) };
        let attached = block_on(stores.attach(&self.key, Attach::after(run, after))).unwrap();
        let Attached::Reader { number, after, .. } = attached else { return None };
        let writer = (run == HERE).then(|| Arc::clone(&self.writer));
        let handle = FollowHandle::new(&stores, self.key.clone(), number, after, writer);
        Some(Follower::new(handle, Arc::clone(service)))
    }
}

fn stores(events: &Arc<MemoryEventStore>, run: RunId, cluster: Cluster) -> Arc<Stores> {
    let shared = matches!(cluster, Cluster::TwoNodes).then_some(());
    Arc::new(Stores { events: Arc::clone(events), run, shared })
}

fn send(writer: &Arc<Kept>, text: &str) {
    block_on(poll_fn(|cx| writer.offer(text.as_bytes(), None, WhenFull::Wait(cx.waker()))));
}

/// Reads until the stream ends, or `most` events have arrived. Events without a message are left out.
fn read(mut follower: Follower, most: usize) -> Vec<String> {
    let mut received = Vec::new();
    while received.len() < most {
        let (next, events) = block_on(follower.next());
        let Some(events) = events else { break };
        let lines = String::from_utf8(events).unwrap();
        received.extend(lines.lines().filter(|line| line.contains(' ')).map(ToOwned::to_owned));
        follower = next;
    }
    received
}

fn read_in_thread(follower: Follower, most: usize) -> thread::JoinHandle<Vec<String>> {
    thread::spawn(move || read(follower, most))
}

/// SCL-04: the reader at the node of the writer. A handler that waits for capacity goes on.
#[test]
fn a_reader_at_the_node_of_the_writer_receives_every_event() {
    fn race(cluster: Cluster) {
        let setting = Setting::new(cluster);
        let follower = Follower::new(FollowHandle::first(&setting.writer), ServiceState::new());
        let reader = read_in_thread(follower, usize::MAX);
        setting.handle().join().unwrap();
        assert_eq!(reader.join().unwrap(), ALL);
    }
    check(|| race(Cluster::OneNode));
    check(|| race(Cluster::TwoNodes));
}

/// SCL-38: the reader at another node, by the wake-ups of the store alone.
#[test]
fn a_reader_at_another_node_receives_every_event() {
    check(|| {
        let setting = Setting::new(Cluster::TwoNodes);
        let handler = setting.handle();
        let follower = setting.resume(ELSEWHERE, 0, &ServiceState::new()).unwrap();
        let reader = read_in_thread(follower, usize::MAX);
        handler.join().unwrap();
        assert_eq!(reader.join().unwrap(), ALL);
    });
}

/// SCL-04, SCL-39: a client that resumes, here or elsewhere, while its first connection may still be read.
#[test]
fn a_client_that_resumes_receives_what_is_left_and_the_first_reader_ends() {
    fn race(run: RunId) {
        let setting = Setting::new(Cluster::TwoNodes);
        let service = ServiceState::new();
        let first = Follower::new(FollowHandle::first(&setting.writer), Arc::clone(&service));
        let handler = setting.handle();
        let received = read(first, 1);
        let follower = setting.resume(run, received.len() as u64, &service).unwrap();
        let rest = read(follower, usize::MAX);
        handler.join().unwrap();
        assert_eq!([received, rest].concat(), ALL);
    }
    check(|| race(HERE));
    check(|| race(ELSEWHERE));
}

/// SCL-39: a client that names the event it has received takes over; the earlier reader, which waits, ends.
#[test]
fn a_reader_that_is_replaced_ends() {
    check(|| {
        let setting = Setting::new(Cluster::OneNode);
        let service = ServiceState::new();
        let first = Follower::new(FollowHandle::first(&setting.writer), Arc::clone(&service));
        let first = read_in_thread(first, usize::MAX);
        let second = read_in_thread(setting.resume(HERE, 0, &service).unwrap(), usize::MAX);
        let before = first.join().unwrap();
        assert!(before.is_empty(), "nothing was sent: {before:?}");
        setting.handle().join().unwrap();
        assert_eq!(second.join().unwrap(), ALL);
    });
}

/// A handler closes the connection of its client; what was sent before arrives first, the rest later.
#[test]
fn a_reader_that_is_released_receives_what_was_sent_before() {
    check(|| {
        let setting = Setting::new(Cluster::OneNode);
        let service = ServiceState::new();
        let follower = Follower::new(FollowHandle::first(&setting.writer), Arc::clone(&service));
        let reader = read_in_thread(follower, usize::MAX);
        send(&setting.writer, "a");
        setting.writer.release();
        let first = reader.join().unwrap();
        assert_eq!(first, ["1 a"]);
        for text in ["b", "c"] {
            send(&setting.writer, text);
        }
        setting.writer.finish(RpcResponse("end"));
        let rest = read(setting.resume(HERE, 1, &service).unwrap(), usize::MAX);
        assert_eq!([first, rest].concat(), ALL);
    });
}

/// SCL-09: the end of a session ends its readers, at every node, and the handler.
#[test]
fn the_end_of_the_session_ends_every_wait() {
    check(|| {
        let setting = Setting::new(Cluster::TwoNodes);
        let service = ServiceState::new();
        let here = Follower::new(FollowHandle::first(&setting.writer), Arc::clone(&service));
        let here = read_in_thread(here, usize::MAX);
        let handler = setting.handle();
        block_on(setting.events.forget("session")).unwrap();
        handler.join().unwrap();
        here.join().unwrap();
    });
    check(|| {
        let setting = Setting::new(Cluster::TwoNodes);
        let follower = setting.resume(ELSEWHERE, 0, &ServiceState::new()).unwrap();
        let elsewhere = read_in_thread(follower, usize::MAX);
        block_on(setting.events.forget("session")).unwrap();
        assert!(elsewhere.join().unwrap().is_empty());
    });
}

/// SCL-44: a node that shuts down lets its reader go, which follows elsewhere while the handler finishes here.
#[test]
fn a_reader_that_is_let_go_at_the_shutdown_follows_elsewhere() {
    check(|| {
        let setting = Setting::new(Cluster::TwoNodes);
        let service = ServiceState::new();
        let follower = Follower::new(FollowHandle::first(&setting.writer), Arc::clone(&service));
        let reader = read_in_thread(follower, usize::MAX);
        let handler = setting.handle();
        service.closing.cancel();
        let received = reader.join().unwrap();
        let rest = match setting.resume(ELSEWHERE, received.len() as u64, &ServiceState::new()) {
            Some(follower) => read(follower, usize::MAX),
            None => Vec::new(),
        };
        handler.join().unwrap();
        assert_eq!([received, rest].concat(), ALL);
    });
}
