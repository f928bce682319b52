//! The shared channel of an envelope-era stream: what may travel on it beside any request.

use std::sync::Arc;

use bytestring::ByteString;
use duplexer_types::jsonrpc::Body;
use duplexer_types::methods::Method;

use crate::kernel::context::is_change;
use duplexer_core::dispatch::{BoxFuture, NotifyFuture, NotifyOnly, Outbound, OutboundRequest};
use duplexer_core::error::CallError;

/// Carries notifications, refuses requests, and drops changes: those exist only on the streams of subscribers.
pub(crate) struct EnvelopeStream(NotifyOnly);

impl EnvelopeStream {
    pub(crate) fn new(peer: Arc<dyn Outbound>) -> Self {
        Self(NotifyOnly::new(peer))
    }
}

impl Outbound for EnvelopeStream {
    fn request(&self, request: OutboundRequest) -> BoxFuture<'_, Result<ByteString, CallError>> {
        self.0.request(request)
    }

    fn notify(&self, method: &str, params: Option<&dyn Body>) -> NotifyFuture {
        if Method::parse(method).is_some_and(is_change) {
            return NotifyFuture::done();
        }
        self.0.notify(method, params)
    }
}
