//! Laws that the stores of several nodes obey, for the stores of this project and for others.
//!
//! The laws are about [`SessionStore`](crate::http::SessionStore), [`EventStore`](crate::http::EventStore),
//! [`Nodes`](crate::http::Nodes), [`SubscriptionBus`] and [`TaskStore`]: every operation can be repeated, strangers change nothing,
//! concurrent changes are all kept, streams have one writer, one reader and one end, everything has a bound and expires.
//! Each law uses sessions, runs and resources of its own, so all of them can use the same stores, one after the other.

mod changes;
mod ends;
mod fresh;
mod lifetimes;
mod nodes;
mod readers;
mod sessions;
mod streams;
mod tasks;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::dispatch::BoxFuture;
use crate::error::{Chain, StoreError};
use crate::http::SharedStores;
use crate::server::subscriptions::SubscriptionBus;
use crate::tasks::TaskStore;

/// Stores under test.
///
/// ```
/// use std::sync::Arc;
/// use std::time::Duration;
///
/// use duplexer::dispatch::BoxFuture;
/// use duplexer::error::StoreError;
/// use duplexer::http::MemoryCluster;
/// use duplexer::server::subscriptions::MemoryBus;
/// use duplexer::tasks::MemoryTasks;
/// use duplexer::testing::store_laws::{self, NodeStores, StoreLimits, StoresUnderTest};
///
/// struct InMemory {
///     cluster: MemoryCluster,
///     bus: MemoryBus,
///     tasks: MemoryTasks,
/// }
///
/// impl StoresUnderTest for InMemory {
///     fn node(&self) -> BoxFuture<'_, Result<NodeStores, StoreError>> {
///         let (bus, tasks) = (Arc::new(self.bus.clone()), Arc::new(self.tasks.clone()));
///         let node = NodeStores { shared: self.cluster.node(), bus, tasks };
///         Box::pin(std::future::ready(Ok(node)))
///     }
///
///     fn limits(&self) -> StoreLimits {
///         StoreLimits { change_log: 8, ..StoreLimits::default() }
///     }
/// }
///
/// // With the paused clock of tokio, the laws about expiry take no time.
/// # tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build()?.block_on(async {
/// let cluster = MemoryCluster::new(StoreLimits::default().idle);
/// let stores = InMemory { cluster, bus: MemoryBus::with_log(8), tasks: MemoryTasks::new() };
/// store_laws::check(&stores).await?;
/// # Ok::<_, store_laws::BrokenLaw>(())
/// # })?;
/// # Ok::<_, Box<dyn std::error::Error>>(())
/// ```
pub trait StoresUnderTest: Send + Sync {
    /// Starts a node. All nodes share their data. The run of a node ends when its stores are dropped.
    fn node(&self) -> BoxFuture<'_, Result<NodeStores, StoreError>>;

    /// Returns the limits that the stores are configured with.
    fn limits(&self) -> StoreLimits {
        StoreLimits::default()
    }

    /// Returns whether the answer to an operation can be lost after it was executed. Operations are repeated then, and only
    /// the answers to the repetitions are seen.
    fn loses_answers(&self) -> bool {
        false
    }
}

/// The stores of one node.
#[derive(Clone)]
pub struct NodeStores {
    /// Sessions, events and the other nodes.
    pub shared: SharedStores,
    /// The bus.
    pub bus: Arc<dyn SubscriptionBus>,
    /// The tasks. A store that keeps none can use [`MemoryTasks`](crate::tasks::MemoryTasks) here.
    pub tasks: Arc<dyn TaskStore>,
}

impl fmt::Debug for NodeStores {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NodeStores").field("shared", &self.shared).finish_non_exhaustive()
    }
}

/// Limits of stores. Laws about time wait for as long as these say, and laws about bounds fill them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoreLimits {
    /// Time after which an unused session expires. Default: 30 minutes.
    pub idle: Duration,
    /// Time after which a run that has ended counts as dead, and its tasks are taken over. Default: 10 s.
    pub lease: Duration,
    /// Time after which a node has heard of a change or of a message. Default: 1 s.
    pub delay: Duration,
    /// Events of one stream. Default: 1000.
    pub stream_events: usize,
    /// Requests in flight of one session. Default: 256.
    pub in_flight: usize,
    /// Events in the log of the bus. Default: 100 000.
    pub change_log: usize,
}

impl Default for StoreLimits {
    fn default() -> Self {
        Self {
            idle: Duration::from_secs(30 * 60),
            lease: Duration::from_secs(10),
            delay: Duration::from_secs(1),
            stream_events: 1000,
            in_flight: crate::http::MAX_REQUESTS_IN_FLIGHT,
            change_log: 100_000,
        }
    }
}

/// Checks all laws, one after the other.
///
/// # Errors
///
/// Fails with the first law that the stores do not obey.
pub async fn check(stores: &dyn StoresUnderTest) -> Result<(), BrokenLaw> {
    for law in LAWS {
        law.check(stores).await?;
    }
    Ok(())
}

/// One law.
#[derive(Clone, Copy)]
pub struct Law {
    name: &'static str,
    check: for<'a> fn(&'a dyn StoresUnderTest) -> BoxFuture<'a, Result<(), Reason>>,
}

impl Law {
    /// Returns the name: a sentence.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Checks the law.
    ///
    /// # Errors
    ///
    /// Fails if the stores do not obey it.
    pub async fn check(&self, stores: &dyn StoresUnderTest) -> Result<(), BrokenLaw> {
        (self.check)(stores).await.map_err(|Reason(reason)| BrokenLaw { law: self.name, reason })
    }
}

impl fmt::Debug for Law {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Law").field(&self.name).finish()
    }
}

/// Error of stores that do not obey a law.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the law `{law}` is broken: {reason}")]
pub struct BrokenLaw {
    law: &'static str,
    reason: String,
}

impl BrokenLaw {
    /// Returns the name of the law.
    pub fn law(&self) -> &'static str {
        self.law
    }
}

/// What a store did against a law.
#[derive(Debug)]
struct Reason(String);

impl From<StoreError> for Reason {
    fn from(error: StoreError) -> Self {
        Self(format!("an operation failed: {}", Chain(&error)))
    }
}

type Outcome = Result<(), Reason>;

/// Returns the reason unless a condition holds.
macro_rules! ensure {
    ($condition:expr, $($what:tt)+) => {
        if !$condition {
            return Err($crate::testing::store_laws::Reason(format!($($what)+)));
        }
    };
}

/// Returns the reason unless two values are equal.
macro_rules! ensure_eq {
    ($actual:expr, $expected:expr, $($what:tt)+) => {
        match ($actual, $expected) {
            (actual, expected) => if actual != expected {
                let what = format!($($what)+);
                return Err($crate::testing::store_laws::Reason(
                    format!("{what}: expected {expected:?}, found {actual:?}"),
                ));
            },
        }
    };
}

use {ensure, ensure_eq};

macro_rules! laws {
    ($($module:ident: $($law:ident)+;)+) => {
        /// All laws.
        pub const LAWS: &[Law] = &[$($(
            Law { name: stringify!($law), check: |stores| Box::pin($module::$law(stores)) },
        )+)+];
    };
}

laws! {
    sessions:
        a_session_is_created_once
        an_unknown_session_admits_nothing
        a_message_of_another_principal_changes_nothing
        a_request_is_in_flight_once_in_all_nodes
        the_requests_in_flight_of_a_session_are_bounded
        a_node_gets_the_record_when_another_has_changed_it
        concurrent_changes_are_all_kept
        a_repeated_change_makes_no_difference
        a_deleted_session_stays_deleted;
    lifetimes:
        an_unused_session_expires
        use_renews_a_session_and_a_stranger_does_not
        an_expired_session_takes_its_streams_with_it;
    streams:
        events_are_read_in_order_and_in_pages
        a_repeated_batch_is_stored_once
        a_stream_has_one_writer
        a_stream_belongs_to_its_session
        several_writers_share_one_numbering
        changes_are_written_once_by_their_position
        a_stream_is_bounded_and_shows_its_hole
        an_unanswered_event_is_never_evicted
        a_lost_end_leaves_a_hole_and_no_number_is_used_twice
        a_watcher_is_woken_by_another_node;
    ends:
        a_stream_ends_once
        the_last_event_releases_its_request
        a_dead_writers_stream_is_concluded_once
        the_last_event_is_never_evicted;
    readers:
        a_stream_has_one_reader
        a_reader_continues_where_the_last_one_left
        a_replaced_reader_does_not_detach_its_successor;
    nodes:
        runs_are_different
        a_message_reaches_the_inbox_of_its_run_in_order
        a_run_that_has_left_is_dead;
    changes:
        a_change_is_heard_at_every_node_once_and_in_order
        the_log_returns_what_happened_since_a_position
        the_log_is_bounded_and_admits_what_it_dropped
        the_log_has_a_change_before_a_listener_hears_of_it
        a_listener_that_has_unsubscribed_hears_nothing;
    tasks:
        a_task_is_stored_once
        a_task_is_replaced_by_its_next_revision_only
        of_two_concurrent_replacements_one_is_stored
        tasks_are_bounded_per_owner_and_in_all
        a_list_has_the_tasks_of_one_owner
        a_task_is_taken_over_once_its_lease_has_ended
        a_renewed_lease_is_not_taken_over
        work_that_was_handed_over_ends_at_its_deadline
        an_ended_task_is_deleted_after_its_retention;
}

#[cfg(test)]
mod tests;
