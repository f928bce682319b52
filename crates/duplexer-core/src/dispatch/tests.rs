//! Behaviour of the dispatchers: what every kind does, and what shows only in frames.

mod call_table;
mod contract;
mod events;
mod in_flight;
mod inbound;
mod link;
mod wire;

use std::time::Duration;

use tokio::task::JoinSet;

pub(super) use events::EventFields;
pub(super) use inbound::{Reply, TestInbound};

/// Ends the test binary if a test waits indefinitely, which would look like a slow test otherwise.
struct EndsIdleTest {
    _task: JoinSet<()>,
}

impl EndsIdleTest {
    /// A paused clock reaches the end of this day only when nothing else can happen.
    const DAY: Duration = Duration::from_secs(24 * 3600);

    fn new() -> Self {
        let mut task = JoinSet::new();
        task.spawn(async {
            tokio::time::sleep(Self::DAY).await;
            eprintln!("a test waits for what never happens");
            std::process::exit(101);
        });
        Self { _task: task }
    }
}
