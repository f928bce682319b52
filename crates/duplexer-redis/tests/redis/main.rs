//! The stores on a real Redis or Valkey, which each test starts by itself.

mod connect;
mod events;
mod nodes;
mod sessions;
mod store;
