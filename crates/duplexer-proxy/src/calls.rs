//! The requests of clients that a session works on.

use std::sync::Arc;

use duplexer_core::dispatch::Channel;
use duplexer_types::logging::LoggingLevel;

use crate::bridge::questions::Questions;

/// A request of the client that the server works on.
#[derive(Clone)]
pub(crate) struct Call {
    pub(crate) channel: Arc<dyn Channel>,
    /// Whether requests of the server can be sent on the channel.
    pub(crate) back_channel: bool,
    /// Minimum level of log messages that the client has requested with it.
    pub(crate) level: Option<LoggingLevel>,
    /// Where questions of the server go, if the client cannot be sent requests. Boxed: it is rare, and entries are moved.
    pub(crate) questions: Option<Box<Questions>>,
}

/// Requests by their slot. Slots are used again, so that adding and removing a request costs the same however many there are.
#[derive(Default)]
pub(crate) struct Calls {
    slots: Vec<Option<Numbered>>,
    free: Vec<usize>,
    added: u64,
}

struct Numbered {
    /// How many requests were added before it.
    number: u64,
    call: Call,
}

impl Calls {
    /// Adds a request and returns its slot.
    pub(crate) fn add(&mut self, call: Call) -> usize {
        let entry = Some(Numbered { number: self.added, call });
        self.added += 1;
        if let Some(slot) = self.free.pop() {
            self.slots[slot] = entry;
            return slot;
        }
        self.slots.push(entry);
        self.slots.len() - 1
    }

    /// Replaces the request in a slot. It keeps its place in the order.
    pub(crate) fn replace(&mut self, slot: usize, call: Call) {
        if let Some(Some(entry)) = self.slots.get_mut(slot) {
            entry.call = call;
        }
    }

    /// Removes a request. Its slot must not be used again.
    pub(crate) fn remove(&mut self, slot: usize) -> Option<Call> {
        let removed = self.slots.get_mut(slot)?.take()?;
        self.free.push(slot);
        Some(removed.call)
    }

    pub(crate) fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// Returns the latest request that `accepts`.
    pub(crate) fn latest(&self, accepts: impl Fn(&Call) -> bool) -> Option<&Call> {
        let accepted = self.slots.iter().flatten().filter(|entry| accepts(&entry.call));
        accepted.max_by_key(|entry| entry.number).map(|entry| &entry.call)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use bytestring::ByteString;
    use duplexer_core::dispatch::{
        BoxFuture, Cancellation, Channel, NoChannel, NotifyFuture, Outbound, OutboundRequest,
    };
    use duplexer_core::error::CallError;
    use duplexer_types::jsonrpc::Body;
    use duplexer_types::logging::LoggingLevel;

    use super::{Call, Calls};

    struct Silent(Cancellation);

    impl Outbound for Silent {
        fn request(&self, request: OutboundRequest) -> BoxFuture<'_, Result<ByteString, CallError>> {
            NoChannel.request(request)
        }

        fn notify(&self, method: &str, params: Option<&dyn Body>) -> NotifyFuture {
            NoChannel.notify(method, params)
        }
    }

    impl Channel for Silent {
        fn cancellation(&self) -> &Cancellation {
            &self.0
        }

        fn closing(&self) -> &Cancellation {
            &self.0
        }
    }

    fn call(level: LoggingLevel) -> Call {
        let channel = Arc::new(Silent(Cancellation::new()));
        Call { channel, back_channel: false, level: Some(level), questions: None }
    }

    fn latest(calls: &Calls) -> Option<LoggingLevel> {
        calls.latest(|_| true).and_then(|call| call.level)
    }

    #[test]
    fn the_latest_request_is_the_one_that_was_added_last() {
        let mut calls = Calls::default();
        let first = calls.add(call(LoggingLevel::Debug));
        let second = calls.add(call(LoggingLevel::Info));
        assert_eq!(latest(&calls), Some(LoggingLevel::Info));
        calls.remove(first);
        // It takes the slot of the first one, and is later than the second.
        let third = calls.add(call(LoggingLevel::Error));
        assert_eq!((third, calls.len()), (first, 2));
        assert_eq!(latest(&calls), Some(LoggingLevel::Error));
        calls.replace(second, call(LoggingLevel::Notice));
        assert_eq!(latest(&calls), Some(LoggingLevel::Error), "a replaced request keeps its place");
        calls.remove(third);
        assert_eq!(latest(&calls), Some(LoggingLevel::Notice));
        calls.remove(second);
        assert_eq!((latest(&calls), calls.len()), (None, 0));
    }
}
