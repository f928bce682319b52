//! The stores on a real Redis or Valkey, which each test starts by itself.

mod connect;
mod events;
mod laws;
mod nodes;
mod proxy;
mod repeating;
mod sessions;
mod store;
