//! The stores of `duplexer-redis` on a real Redis or Valkey, which each test starts by itself.

mod cluster;
mod connect;
mod costs;
mod events;
mod faults;
mod laws;
mod limits;
mod nodes;
mod repeating;
mod seal;
mod sentinel;
pub mod served;
mod sessions;
pub mod store;
mod tasks;
mod tls;

use duplexer_tests::proxy;
