//! Scale-out for Duplexer: several nodes behind any balancer serve one server, on a Redis (7.0 or later) or Valkey (7.2 or
//! later) that they share.
//!
//! A session belongs to no node. The store has its state, its events and its requests in flight; wake-ups through
//! publish/subscribe save time, and one that is lost costs no data. Requests of the envelope era do not use the store,
//! unless they publish changes or listen for them.

mod address;
mod bus;
mod check;
mod connect;
mod connection;
mod entry_id;
mod error;
mod events;
mod exchange;
mod keys;
mod lease;
mod link;
mod metrics;
mod nodes;
mod rate_limiter;
#[cfg(feature = "auth")]
mod records;
mod scripts;
mod seal;
mod sentinel;
mod sessions;
mod shared;
mod stats;
mod tasks;
#[cfg(feature = "rustls")]
mod tls;
mod value;
mod wakes;

pub use bus::RedisBus;
pub use connect::Connect;
pub use error::ConnectError;
pub use metrics::METRICS;
pub use rate_limiter::RedisRateLimiter;
#[cfg(feature = "auth")]
pub use records::RedisRecords;
pub use shared::Shared;
pub use stats::Stats;
pub use tasks::RedisTasks;
