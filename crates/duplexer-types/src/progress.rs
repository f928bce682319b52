//! Progress of a request, and its cancellation.

use crate::jsonrpc::RequestId;
use crate::model::model;
use crate::version::feature;
use crate::wire::Shape;

model! {
    /// Parameters of a [`notifications/progress`](https://modelcontextprotocol.io/specification/2026-07-28/basic/patterns/progress) notification.
    ///
    /// ```
    /// use duplexer_types::jsonrpc::RequestId;
    /// use duplexer_types::progress::ProgressParams;
    ///
    /// let token = RequestId::number(1).unwrap();
    /// let half = ProgressParams::new(token, 1.0).total(2.0).message("copying");
    /// assert_eq!(half.progress / half.total.unwrap(), 0.5);
    /// ```
    #[doc(alias = "notifications/progress")]
    pub struct ProgressParams {
        /// The `progressToken` from the `_meta` of the request.
        progress_token: RequestId = "progressToken",
        /// Progress so far. It increases with every notification.
        #[cfg_attr(test, arbitrary(with = crate::arbitrary::number))]
        progress: f64 = "progress",
    } optional {
        /// Value of `progress` at completion, if known.
        #[cfg_attr(test, arbitrary(with = crate::arbitrary::maybe_number))]
        total: f64 = "total",
        /// Description of the current progress, for the user.
        message: String = "message" since V2025_03_26,
    }
}

model! {
    /// Parameters of a [`notifications/cancelled`](https://modelcontextprotocol.io/specification/2026-07-28/basic/patterns/cancellation) notification.
    #[doc(alias = "notifications/cancelled")]
    pub struct CancelledParams {} optional {
        /// Id of the request to cancel. Optional in the handshake era.
        request_id: RequestId = "requestId",
        /// Reason of the cancellation, for logs.
        reason: String = "reason",
    } unless has_no_request
}

impl CancelledParams {
    /// Creates the parameters that cancel `request`.
    pub fn for_request(request: RequestId) -> Self {
        Self::new().request_id(request)
    }
}

fn has_no_request(params: &CancelledParams, shape: Shape) -> Option<&'static str> {
    (params.request_id.is_none() && !shape.has(feature::HANDSHAKE))
        .then_some("a cancellation names its request in this revision")
}
