//! Two connected ends that serve each other: over frames in memory, over real pipes, or in process.

use std::sync::Arc;

use bytestring::ByteString;
use serde_json::Value;
use tokio::net::unix::pipe;
use tokio::task::JoinSet;

use super::{EndsIdleTest, TestInbound};
use crate::dispatch::{
    CallOptions, DirectDispatcher, DirectOptions, Dispatch, JsonRpcDispatcher, Outbound, OutboundRequest,
    RunError,
};
use crate::error::CallError;
use crate::transport::{Transport, TransportContext, lines};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Memory,
    Pipes,
    Direct,
}

/// Two ends and their runs.
pub(super) struct Link {
    pub(super) left: End,
    pub(super) right: End,
    pub(super) runs: JoinSet<Result<(), RunError>>,
    _idle: EndsIdleTest,
}

pub(super) struct End {
    pub(super) peer: Arc<dyn Outbound>,
    stop: Box<dyn Fn() + Send + Sync>,
}

impl End {
    pub(super) fn stop(&self) {
        (self.stop)();
    }

    pub(super) async fn call(&self, method: &'static str, params: Value) -> Result<Value, CallError> {
        self.call_with(method, params, CallOptions::new()).await
    }

    pub(super) async fn call_with(
        &self,
        method: &'static str,
        params: Value,
        options: CallOptions,
    ) -> Result<Value, CallError> {
        let request = OutboundRequest::new(method).params(params).options(options);
        value(self.peer.request(request).await)
    }
}

pub(super) fn value(answer: Result<ByteString, CallError>) -> Result<Value, CallError> {
    answer.map(|text| serde_json::from_str(&text).unwrap())
}

impl Kind {
    pub(super) fn context(self) -> TransportContext {
        TransportContext::stream(match self {
            Self::Direct => "direct",
            Self::Memory => "memory",
            Self::Pipes => "pipe",
        })
    }

    pub(super) async fn link(self, left: TestInbound, right: TestInbound) -> Link {
        self.link_with(left, right, self.context()).await
    }

    /// Connects two ends. `context` is the transport context of messages that the right end receives.
    pub(super) async fn link_with(
        self,
        left: TestInbound,
        right: TestInbound,
        context: TransportContext,
    ) -> Link {
        let mut runs = JoinSet::new();
        let (left, right) = match self {
            Self::Direct => {
                let options = DirectOptions { context, ..DirectOptions::default() };
                let (one, two) = DirectDispatcher::pair_with(DirectOptions::default(), options);
                let (stop_one, stop_two) = (one.1.clone(), two.1.clone());
                runs.spawn(one.0.run(Arc::new(left)));
                runs.spawn(two.0.run(Arc::new(right)));
                (
                    End { peer: Arc::new(one.1), stop: Box::new(move || stop_one.stop()) },
                    End { peer: Arc::new(two.1), stop: Box::new(move || stop_two.stop()) },
                )
            }
            Self::Memory => {
                let ((a, b), (c, d)) = (tokio::io::duplex(65_536), tokio::io::duplex(65_536));
                let limit = lines::DEFAULT_LIMIT;
                (
                    serve(&mut runs, lines::over(a, d, self.context(), limit), left),
                    serve(&mut runs, lines::over(c, b, context, limit), right),
                )
            }
            Self::Pipes => {
                let (b, a) = pipe::pipe().unwrap();
                let (d, c) = pipe::pipe().unwrap();
                let limit = lines::DEFAULT_LIMIT;
                (
                    serve(&mut runs, lines::over(a, d, self.context(), limit), left),
                    serve(&mut runs, lines::over(c, b, context, limit), right),
                )
            }
        };
        // Both runs are polled once before the first request.
        tokio::task::yield_now().await;
        Link { left, right, runs, _idle: EndsIdleTest::new() }
    }
}

fn serve(runs: &mut JoinSet<Result<(), RunError>>, transport: impl Transport, inbound: TestInbound) -> End {
    let (dispatcher, peer) = JsonRpcDispatcher::new(transport);
    runs.spawn(dispatcher.run(Arc::new(inbound)));
    let stop = peer.clone();
    End { peer: Arc::new(peer), stop: Box::new(move || stop.stop()) }
}
