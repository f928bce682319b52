//! The synchronisation code under a scheduler that explores interleavings.
//!
//! The files under test are the library's own, compiled a second time against the model checker's versions of
//! the primitives they use. Operations of tokio's `Notify` count as one step.
#![allow(
    dead_code,
    unreachable_pub,
    unused_imports,
    clippy::unwrap_used,
    reason = "a test, and it uses parts of the included files only"
)]

pub(crate) use duplexer_core::transport;

mod dispatch;

use std::pin::pin;
use std::sync::{Arc, LazyLock};
use std::task::{Context, Poll, Wake, Waker};

use shuttle::sync::atomic::{AtomicUsize, Ordering};
use shuttle::sync::{Condvar, Mutex};
use shuttle::{check_random, thread};
use tokio::sync::Notify;

use dispatch::delivery::Delivery;
use dispatch::in_flight::InFlight;
use dispatch::outbox::{Admission, Enqueued, Outbox};
use dispatch::sync::lock;
use dispatch::watchdog::{Entry, PollCounter, Watchdog, Watched};
use transport::{FrameWriter, Frames, TransportError};

/// Interleavings that each test explores; `MODEL_SCHEDULES` sets another number.
static SCHEDULES: LazyLock<usize> = LazyLock::new(|| {
    std::env::var("MODEL_SCHEDULES").ok().and_then(|number| number.parse().ok()).unwrap_or(3000)
});

/// A transport that accepts a limited number of bytes, then is pending until its waker is called.
#[derive(Clone)]
struct Sink(Arc<Mutex<SinkState>>);

#[derive(Default)]
struct SinkState {
    taken: Vec<u8>,
    room: usize,
    waker: Option<Waker>,
    /// A thread is writing: two writers at once would mix their frames.
    busy: bool,
}

impl Sink {
    fn new(room: usize) -> Self {
        Self(Arc::new(Mutex::new(SinkState { room, ..SinkState::default() })))
    }

    fn make_room(&self, room: usize) {
        let mut state = lock(&self.0);
        state.room += room;
        let waker = state.waker.take();
        drop(state);
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    fn lines(&self) -> Vec<String> {
        let taken = lock(&self.0).taken.clone();
        String::from_utf8(taken).unwrap().lines().map(ToOwned::to_owned).collect()
    }
}

impl FrameWriter for Sink {
    fn poll_write(&mut self, cx: &mut Context<'_>, frames: &mut Frames) -> Poll<Result<(), TransportError>> {
        assert!(!std::mem::replace(&mut lock(&self.0).busy, true), "two writers at once");
        thread::yield_now();
        let mut state = lock(&self.0);
        state.busy = false;
        let fits = state.room.min(frames.len());
        state.room -= fits;
        state.taken.extend_from_slice(&frames.bytes()[..fits]);
        frames.advance(fits);
        if frames.is_empty() {
            return Poll::Ready(Ok(()));
        }
        state.waker = Some(cx.waker().clone());
        Poll::Pending
    }

    fn poll_close(&mut self, _: &mut Context<'_>) -> Poll<Result<(), TransportError>> {
        Poll::Ready(Ok(()))
    }
}

/// Polls only when it is woken: the checker's own executor polls more often, which hides a missed wake-up.
fn block_on<F: Future>(future: F) -> F::Output {
    let woken = Arc::new(Woken::default());
    let waker = Waker::from(Arc::clone(&woken));
    let mut future = pin!(future);
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut Context::from_waker(&waker)) {
            return output;
        }
        let mut flag = lock(&woken.flag);
        while !std::mem::take(&mut *flag) {
            flag = woken.raised.wait(flag).unwrap();
        }
    }
}

#[derive(Default)]
struct Woken {
    flag: Mutex<bool>,
    raised: Condvar,
}

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        *lock(&self.flag) = true;
        self.raised.notify_one();
    }
}

/// The writer task on a thread of its own.
struct WriterTask {
    stop: Arc<Notify>,
    thread: thread::JoinHandle<()>,
}

impl WriterTask {
    fn start(outbox: &Arc<Outbox>) -> Self {
        let (outbox, stop) = (Arc::clone(outbox), Arc::new(Notify::new()));
        let stopped = Arc::clone(&stop);
        let thread = thread::spawn(move || {
            block_on(async {
                let (mut drive, mut stopped) = (pin!(outbox.drive()), pin!(stopped.notified()));
                std::future::poll_fn(|cx| match stopped.as_mut().poll(cx) {
                    Poll::Ready(()) => Poll::Ready(()),
                    Poll::Pending => drive.as_mut().poll(cx),
                })
                .await;
            });
        });
        Self { stop, thread }
    }

    fn end(self) {
        self.stop.notify_one();
        self.thread.join().unwrap();
    }
}

/// Waits until everything up to `position` is written. Nothing wakes the waiting thread, so it does not help.
fn wait_until_written(outbox: &Outbox, position: u64) {
    while !outbox.is_written(position) {
        thread::yield_now();
    }
}

fn push(outbox: &Outbox, frame: &str) {
    assert!(matches!(outbox.try_enqueue(frame.as_bytes(), None, Admission::Ordinary), Enqueued::Queued(_)));
}

/// A frame pushed while another thread is writing is written by one of the two; no writer task is needed.
#[test]
fn the_last_thread_that_pushes_or_writes_empties_the_queue() {
    check_random(
        || {
            let sink = Sink::new(usize::MAX);
            let outbox = Arc::new(Outbox::new(Box::new(sink.clone())));
            let threads: Vec<_> = (0..3)
                .map(|n| {
                    let outbox = Arc::clone(&outbox);
                    thread::spawn(move || {
                        for part in 0..2 {
                            push(&outbox, &format!("{n}{part}"));
                            outbox.flush();
                        }
                    })
                })
                .collect();
            for thread in threads {
                thread.join().unwrap();
            }
            let mut lines = sink.lines();
            for n in 0..3 {
                let own: Vec<_> = lines.iter().filter(|line| line.starts_with(&n.to_string())).collect();
                assert_eq!(own, [&format!("{n}0"), &format!("{n}1")], "each thread's frames leave in order");
            }
            lines.sort();
            assert_eq!(lines, ["00", "01", "10", "11", "20", "21"]);
        },
        *SCHEDULES,
    );
}

/// The critical case: a frame that is pushed after the writer has seen the queue empty, and before it releases the lock.
#[test]
fn a_frame_is_not_left_behind_between_the_last_check_and_the_release() {
    let race = || {
        let sink = Sink::new(usize::MAX);
        let outbox = Arc::new(Outbox::new(Box::new(sink.clone())));
        let other = {
            let outbox = Arc::clone(&outbox);
            thread::spawn(move || {
                push(&outbox, "other");
                outbox.flush();
            })
        };
        push(&outbox, "one");
        outbox.flush();
        other.join().unwrap();
        assert_eq!(sink.lines().len(), 2);
    };
    check_random(race, 3 * *SCHEDULES);
    shuttle::check_pct(race, 3 * *SCHEDULES, 3);
}

/// When the transport is full the writer task takes over, whichever thread found it full, and misses no wake-up.
#[test]
fn a_blocked_transport_is_taken_over_by_the_writer_task() {
    check_random(
        || {
            let sink = Sink::new(2);
            let outbox = Arc::new(Outbox::new(Box::new(sink.clone())));
            let writer = WriterTask::start(&outbox);
            let threads: Vec<_> = (0..2)
                .map(|n| {
                    let outbox = Arc::clone(&outbox);
                    thread::spawn(move || {
                        push(&outbox, &format!("{n}{n}{n}"));
                        outbox.flush();
                        push(&outbox, &format!("{n}"));
                        outbox.request_flush();
                    })
                })
                .collect();
            let reading = {
                let sink = sink.clone();
                thread::spawn(move || {
                    for _ in 0..5 {
                        sink.make_room(2);
                        thread::yield_now();
                    }
                })
            };
            for thread in threads {
                thread.join().unwrap();
            }
            reading.join().unwrap();
            // Twelve bytes were pushed and there is capacity for twelve: all of them are written without further calls.
            wait_until_written(&outbox, 12);
            let mut lines = sink.lines();
            lines.sort();
            assert_eq!(lines, ["0", "000", "1", "111"]);
            writer.end();
        },
        *SCHEDULES,
    );
}

/// Once the writer task waits for the transport no other thread polls it, or the wake-up would go to the wrong one.
#[test]
fn the_writer_tasks_waker_is_not_taken_from_it() {
    check_random(
        || {
            let sink = Sink::new(0);
            let outbox = Arc::new(Outbox::new(Box::new(sink.clone())));
            let writer = WriterTask::start(&outbox);
            push(&outbox, "frame");
            outbox.flush();
            // Time for the writer task to poll the transport itself.
            for _ in 0..20 {
                thread::yield_now();
            }
            push(&outbox, "frame");
            outbox.flush();
            sink.make_room(12);
            wait_until_written(&outbox, 12);
            writer.end();
        },
        *SCHEDULES,
    );
}

/// A producer that found the queue full is woken when there is capacity, or when the peer is gone.
#[test]
fn a_producer_that_waits_for_capacity_is_woken() {
    check_random(
        || {
            let sink = Sink::new(0);
            let outbox = Arc::new(Outbox::new(Box::new(sink.clone())));
            let full = "x".repeat(dispatch::outbox::OUTBOX_BYTES);
            push(&outbox, &full);
            let writer = WriterTask::start(&outbox);
            let producer = {
                let outbox = Arc::clone(&outbox);
                thread::spawn(move || block_on(outbox.send(b"late", None)))
            };
            let reading = {
                let sink = sink.clone();
                thread::spawn(move || sink.make_room(1 << 30))
            };
            let position = producer.join().unwrap().unwrap();
            reading.join().unwrap();
            outbox.request_flush();
            wait_until_written(&outbox, position);
            writer.end();
        },
        *SCHEDULES / 10,
    );
}

/// Closing wakes every task that waits, and no lost frame is reported as written.
#[test]
fn closing_ends_every_wait() {
    check_random(
        || {
            let outbox = Arc::new(Outbox::new(Box::new(Sink::new(0))));
            push(&outbox, "never");
            let waiter = {
                let outbox = Arc::clone(&outbox);
                thread::spawn(move || block_on(outbox.late_delivery(6)))
            };
            let flusher = {
                let outbox = Arc::clone(&outbox);
                thread::spawn(move || outbox.flush())
            };
            outbox.close();
            assert_eq!(waiter.join().unwrap(), Delivery::Lost);
            flusher.join().unwrap();
            assert_eq!(outbox.try_enqueue(b"late", None, Admission::Reserved), Enqueued::Closed);
        },
        *SCHEDULES,
    );
}

/// A frame that had to wait for the transport is reported once it is written, whichever thread writes it.
#[test]
fn a_late_delivery_is_reported() {
    check_random(
        || {
            let sink = Sink::new(0);
            let outbox = Arc::new(Outbox::new(Box::new(sink.clone())));
            let writer = WriterTask::start(&outbox);
            push(&outbox, "frame");
            outbox.flush();
            let waiter = {
                let outbox = Arc::clone(&outbox);
                thread::spawn(move || block_on(outbox.late_delivery(6)))
            };
            sink.make_room(6);
            assert_eq!(waiter.join().unwrap(), Delivery::Written);
            writer.end();
        },
        *SCHEDULES,
    );
}

/// A connection that reports how many polls had started when the watchdog noticed one in progress.
struct Connection {
    polls: PollCounter,
    noticed: shuttle::sync::mpsc::Sender<u64>,
}

impl Watched for Connection {
    fn polls(&self) -> &PollCounter {
        &self.polls
    }

    fn idle_reader_turn(&self) -> Option<u64> {
        None
    }

    fn stalled(&self) {
        // Nothing is received after the last poll.
        let _ = self.noticed.send(self.polls.counts().0);
    }
}

/// The watchdog is about to park while a handler is about to be polled: it does not sleep through the poll.
#[test]
fn the_watchdog_does_not_sleep_through_a_poll() {
    check_random(
        || {
            let watchdog = Arc::new(Watchdog::default());
            let (noticed, is_noticed) = shuttle::sync::mpsc::channel();
            let connection = Arc::new(Connection { polls: PollCounter::default(), noticed });
            let watching = {
                let (watchdog, connection) = (Arc::clone(&watchdog), Arc::clone(&connection));
                thread::spawn(move || {
                    let mut entries = Vec::new();
                    while connection.polls.counts() != (2, 2) {
                        if watchdog.collect(&mut entries) {
                            thread::park();
                        } else {
                            thread::yield_now();
                            entries.retain_mut(Entry::check);
                        }
                    }
                })
            };
            for poll in 1..=2 {
                let watch =
                    || watchdog.watch(Arc::downgrade(&connection) as _, || Ok(watching.thread().clone()));
                // A poll that ends only when it was noticed: were it missed, both threads would wait forever.
                connection.polls.track(watch, || while is_noticed.recv().unwrap() < poll {});
            }
            watching.thread().unpark();
            watching.join().unwrap();
        },
        *SCHEDULES,
    );
}

/// A connection that registers before the announced thread runs is watched by that thread; without an announcement, or after
/// it was withdrawn, the connection starts the thread.
#[test]
fn an_announced_watchdog_is_not_started_by_a_connection() {
    check_random(
        || {
            let watchdog = Watchdog::default();
            let (noticed, _) = shuttle::sync::mpsc::channel();
            let connection: Arc<dyn Watched> =
                Arc::new(Connection { polls: PollCounter::default(), noticed });
            watchdog.announce();
            watchdog.watch(Arc::downgrade(&connection), || panic!("its thread was announced"));
            let mut entries = Vec::new();
            assert!(!watchdog.collect(&mut entries), "there is a connection to watch");
            assert_eq!(entries.len(), 1);
            watchdog.withdraw();
            let mut starts = 0;
            watchdog.watch(Arc::downgrade(&connection), || {
                starts += 1;
                Ok(thread::current())
            });
            assert_eq!(starts, 1);
        },
        10,
    );
}

/// A connection is dropped as idle while one of its handlers is about to be polled: exactly one side keeps it watched.
#[test]
fn a_poll_that_meets_the_end_of_the_watch_is_watched_once() {
    check_random(
        || {
            let polls = Arc::new(PollCounter::default());
            polls.track(|| {}, || {});
            let releasing = {
                let polls = Arc::clone(&polls);
                thread::spawn(move || polls.release())
            };
            let mut registered = false;
            let released = polls.track(|| registered = true, || releasing.join().unwrap());
            assert_eq!(released, registered);
        },
        *SCHEDULES,
    );
}

/// One table behind one lock decides: a request is answered, cancelled, or closed, and only one of these.
#[test]
fn cancel_completion_and_end_of_input_agree_on_one_outcome() {
    check_random(
        || {
            let id = duplexer_types::jsonrpc::RequestId::from(1_i64);
            let table = Arc::new(Mutex::new(InFlight::new()));
            let generation = *lock(&table).accept(id.clone(), |generation| generation).unwrap();
            let outcomes = Arc::new(AtomicUsize::new(0));
            let race = |act: fn(&mut InFlight<_>, &duplexer_types::jsonrpc::RequestId, _) -> bool| {
                let (table, outcomes, id) = (Arc::clone(&table), Arc::clone(&outcomes), id.clone());
                thread::spawn(move || {
                    let won = act(&mut lock(&table), &id, generation);
                    outcomes.fetch_add(usize::from(won), Ordering::SeqCst);
                })
            };
            let threads = [
                race(|table, id, generation| table.finish(id, generation).is_some()),
                race(|table, id, _| table.cancel(id).is_some()),
                race(|table, _, _| !table.drain().is_empty()),
                // The id is reused as soon as it is free: the end of the first request does not affect it.
                race(|table, id, _| {
                    if let Ok(second) = table.accept(id.clone(), |second| second).copied() {
                        table.finish(id, second).unwrap();
                    }
                    false
                }),
            ];
            for thread in threads {
                thread.join().unwrap();
            }
            assert_eq!(outcomes.load(Ordering::SeqCst), 1);
        },
        *SCHEDULES,
    );
}
