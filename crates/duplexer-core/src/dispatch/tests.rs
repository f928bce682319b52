//! The behaviour of the dispatchers: what every kind does, and what only frames on a wire can show.

mod contract;
mod desk;
mod in_flight;
mod link;
mod wire;

pub(super) use desk::{Desk, Reply};
