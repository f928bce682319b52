//! Tests of the public interface, in one binary.

mod ambiguity;
mod bounds;
mod compile;
mod faults;
mod properties;
mod suite;
