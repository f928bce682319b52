//! The outbox.
