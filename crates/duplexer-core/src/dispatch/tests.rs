//! The behaviour of the dispatchers: what every kind does, and what only frames on a wire can show.

mod contract;
mod correlator;
mod desk;
mod link;
mod wire;

pub(super) use desk::{Desk, Reply};
