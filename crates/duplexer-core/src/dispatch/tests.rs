//! Behaviour of the dispatchers: what every kind does, and what shows only in frames.

mod call_table;
mod contract;
mod in_flight;
mod inbound;
mod link;
mod wire;

pub(super) use inbound::{Reply, TestInbound};
