//! What the streams use of a service, reduced to what a model needs.

use std::sync::Arc;
use std::time::Duration;

use duplexer_core::dispatch::Cancellation;

pub struct ServiceState {
    pub closing: Cancellation,
    pub config: Config,
}

pub struct Config {
    pub sessions: Sessions,
}

pub struct Sessions {
    pub retry: Duration,
}

impl ServiceState {
    pub fn new() -> Arc<Self> {
        let sessions = Sessions { retry: Duration::ZERO };
        Arc::new(Self { closing: Cancellation::new(), config: Config { sessions } })
    }
}

pub mod event_queue {
    use std::task::Waker;

    /// Few, so that writers have to wait.
    pub const MAX_EVENTS: usize = 2;
    pub const MAX_BYTES: usize = 1024;

    pub fn is_full(events: usize, bytes: usize) -> bool {
        events >= MAX_EVENTS || bytes >= MAX_BYTES
    }

    #[derive(Clone, Copy, PartialEq, Eq)]
    pub enum QueueState {
        Open,
        Closed,
    }

    #[derive(Clone, Copy)]
    pub enum WhenFull<'a> {
        Reject,
        Wait(&'a Waker),
        Exceed,
    }
}

pub mod response {
    use super::rpc_response::RpcResponse;

    pub enum ResponseStart {
        Response(RpcResponse),
        Stream,
    }
}

pub mod rpc_response {
    use bytes::Bytes;

    pub struct RpcResponse(pub &'static str);

    impl RpcResponse {
        pub fn is_refusal(&self) -> bool {
            false
        }

        pub fn text(&self) -> &[u8] {
            self.0.as_bytes()
        }

        pub fn into_text(self) -> Bytes {
            Bytes::from_static(self.0.as_bytes())
        }
    }
}

/// Events as lines: the number and the message, or the number alone.
pub mod sse {
    use std::time::Duration;

    use crate::session::StreamId;

    #[derive(Clone, Copy)]
    pub struct EventId {
        pub stream: StreamId,
        pub sequence: u64,
    }

    pub fn write(out: &mut Vec<u8>, id: Option<EventId>, json: &[u8]) {
        let text = std::str::from_utf8(json).unwrap();
        out.extend(format!("{} {text}\n", id.unwrap().sequence).into_bytes());
    }

    pub fn write_priming(out: &mut Vec<u8>, id: EventId, _: Duration) {
        out.extend(format!("{}\n", id.sequence).into_bytes());
    }
}
