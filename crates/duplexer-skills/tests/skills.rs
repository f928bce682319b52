//! The skills extension, from both ends, in both eras.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "helpers of tests fail like tests"
)]

mod skills {
    mod changes;
    mod client;
    mod common;
    mod server;
}
