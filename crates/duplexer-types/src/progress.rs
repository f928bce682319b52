//! How far a request has come, and that it is no longer wanted.

use crate::jsonrpc::RequestId;
use crate::model::model;
use crate::version::feature;
use crate::wire::Shape;

model! {
    /// How far a request has come.
    pub struct ProgressParams {
        /// The token that the request carried in its `_meta`.
        progress_token: RequestId = "progressToken",
        /// Grows with every notification.
        #[cfg_attr(test, arbitrary(with = crate::arbitrary::number))]
        progress: f64 = "progress",
    } optional {
        /// What `progress` will be at the end, if that is known.
        #[cfg_attr(test, arbitrary(with = crate::arbitrary::maybe_number))]
        total: f64 = "total",
        /// For people.
        message: String = "message" since V2025_03_26,
    }
}

model! {
    /// The sender no longer waits for an answer.
    pub struct CancelledParams {} optional {
        /// The request; the handshake era allows to leave it out.
        request_id: RequestId = "requestId",
        /// For logs.
        reason: String = "reason",
    } unless names_no_request
}

impl CancelledParams {
    /// Cancels `request`.
    pub fn for_request(request: RequestId) -> Self {
        Self::new().request_id(request)
    }
}

fn names_no_request(params: &CancelledParams, shape: Shape) -> Option<&'static str> {
    (params.request_id.is_none() && !shape.has(feature::HANDSHAKE))
        .then_some("a cancellation names its request in this revision")
}
