//! The stores of `duplexer-redis` on a real Redis or Valkey, which each test starts by itself.

mod connect;
mod events;
mod laws;
mod nodes;
mod proxy;
mod repeating;
mod sessions;
pub mod store;
