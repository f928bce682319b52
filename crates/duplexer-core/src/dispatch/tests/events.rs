//! A subscriber of `tracing` for tests of what is logged.

use std::fmt::Debug;

use tracing::field::Field;
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

/// Passes name and value of each field of each event to a function.
pub(crate) struct EventFields<F>(pub(crate) F);

impl<F: Fn(&str, &dyn Debug) + 'static + Send + Sync> Subscriber for EventFields<F> {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        event.record(&mut |field: &Field, value: &dyn Debug| (self.0)(field.name(), value));
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}
