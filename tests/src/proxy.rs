//! A proxy between node and store that cuts connections, holds back what passes, and loses answers after execution.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

/// One of so many answers is lost. A node needs about fifteen in a row to connect.
const LOST: u64 = 29;
/// Interval at which connections look for a fault.
const TICK: std::time::Duration = std::time::Duration::from_millis(20);

/// What the proxy does with its connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Fault {
    /// Everything passes.
    None,
    /// Connections are closed, and no new ones are accepted.
    Cut,
    /// Connections stay open, and nothing passes until the fault ends.
    Hold,
    /// Requests pass. Some answers are lost, each together with its connection.
    LoseAnswers,
}

/// A proxy that ends with this value.
pub struct Proxy {
    /// Where it listens.
    pub port: u16,
    state: Arc<State>,
    _tasks: JoinSet<()>,
}

struct State {
    fault: AtomicU8,
    answers: AtomicU64,
}

impl Proxy {
    /// Starts a proxy of the store at this port.
    pub async fn start(store: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let state = Arc::new(State { fault: AtomicU8::new(Fault::None as u8), answers: AtomicU64::new(0) });
        let mut tasks = JoinSet::new();
        tasks.spawn(accept(listener, store, Arc::clone(&state)));
        Self { port, state, _tasks: tasks }
    }

    /// Begins a fault, or ends it.
    pub fn set(&self, fault: Fault) {
        self.state.fault.store(fault as u8, Ordering::SeqCst);
    }

    /// Returns the address for nodes.
    pub fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }
}

impl State {
    fn is(&self, fault: Fault) -> bool {
        self.fault.load(Ordering::SeqCst) == fault as u8
    }
}

async fn accept(listener: TcpListener, store: u16, state: Arc<State>) {
    let mut connections = JoinSet::new();
    loop {
        let (node, _) = listener.accept().await.unwrap();
        if state.is(Fault::Cut) {
            continue;
        }
        let Ok(store) = TcpStream::connect(("127.0.0.1", store)).await else { continue };
        connections.spawn(connect(node, store, Arc::clone(&state)));
        while connections.try_join_next().is_some() {}
    }
}

/// Copies in both directions. The end of one is the end of the connection.
async fn connect(node: TcpStream, store: TcpStream, state: Arc<State>) {
    let (from_node, to_node) = node.into_split();
    let (from_store, to_store) = store.into_split();
    tokio::select! {
        () = copy(from_node, to_store, &state, Direction::Requests) => {}
        () = copy(from_store, to_node, &state, Direction::Answers) => {}
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Direction {
    Requests,
    Answers,
}

async fn copy(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, state: &State, direction: Direction) {
    let mut buffer = vec![0; 64 * 1024];
    loop {
        let tick = tokio::time::sleep(TICK);
        let count = tokio::select! {
            read = from.read(&mut buffer) => match read {
                Ok(count) if count > 0 => count,
                _ => return,
            },
            () = tick => if state.is(Fault::Cut) { return } else { continue },
        };
        if state.is(Fault::Cut) {
            return;
        }
        while state.is(Fault::Hold) {
            tokio::time::sleep(TICK).await;
        }
        let lost = direction == Direction::Answers
            && state.is(Fault::LoseAnswers)
            && state.answers.fetch_add(1, Ordering::SeqCst) % LOST == LOST - 1;
        if lost || to.write_all(&buffer[..count]).await.is_err() {
            return;
        }
    }
}
