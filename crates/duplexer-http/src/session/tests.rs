//! Tests of stores whose own files `tests/model` compiles with another mutex.

mod memory_events;
