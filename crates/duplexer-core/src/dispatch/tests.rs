//! Behaviour of the dispatchers: what every kind does, and what shows only in frames.

mod call_table;
mod contract;
mod desk;
mod in_flight;
mod link;
mod wire;

pub(super) use desk::{Desk, Reply};
