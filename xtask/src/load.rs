//! Load on a release build of `bench-server`: the process, the connections and their cost.
//!
//! Shared by the commands that measure a whole process; it knows neither figures nor limits.

mod client;
mod message;
mod server;

use std::fmt;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;

pub(crate) use self::client::{Connection, Reply};
pub(crate) use self::message::Message;
pub(crate) use self::server::{Process, Server, build};

/// Concurrent connections.
const CONNECTIONS: usize = 8;

/// Error message.
#[derive(Debug)]
pub(crate) struct Fault(pub(crate) String);

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl From<std::io::Error> for Fault {
    fn from(error: std::io::Error) -> Self {
        Self(error.to_string())
    }
}

/// Runs `work` for the numbers below `count` on concurrent connections.
pub(crate) fn spread<T: Send>(
    server: &Server,
    count: u32,
    work: impl Fn(&mut Connection, u32) -> Result<T, Fault> + Sync,
) -> Result<Vec<T>, Fault> {
    let next = AtomicU32::new(0);
    thread::scope(|scope| {
        let workers: Vec<_> = (0..CONNECTIONS)
            .map(|_| {
                scope.spawn(|| {
                    let mut connection = Connection::open(server.port)?;
                    let mut results = Vec::new();
                    loop {
                        let number = next.fetch_add(1, Ordering::Relaxed);
                        if number >= count {
                            return Ok::<_, Fault>(results);
                        }
                        results.push(work(&mut connection, number)?);
                    }
                })
            })
            .collect();
        let mut all = Vec::new();
        for worker in workers {
            all.extend(worker.join().map_err(|_| Fault("a connection panicked".into()))??);
        }
        Ok(all)
    })
}
