//! Tests of the public interface, in one binary.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::needless_pass_by_value,
    reason = "helpers of tests"
)]

mod ambiguity;
mod bounds;
mod compile;
mod derived;
mod faults;
mod properties;
mod suite;
