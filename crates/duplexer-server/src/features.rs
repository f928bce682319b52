//! Features on top of the kernel that need no catalog: subscriptions, sealed request state, input rounds.

pub(crate) mod input;
pub(crate) mod input_rounds;
pub mod request_state;
pub mod subscriptions;
pub(crate) mod tasks;
