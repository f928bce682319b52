//! The two notifications that a dispatcher understands: a cancelled request, and progress of a request.

use duplexer_types::json::Json;
use duplexer_types::jsonrpc::{Body, RequestId};
use duplexer_types::methods::{Cancelled, Notification, Progress as Reported};
use serde::{Deserialize, Serialize};

use super::outbound::Progress;

pub(crate) const CANCELLED: &str = Cancelled::METHOD.name();
pub(crate) const PROGRESS: &str = Reported::METHOD.name();

/// Returns the request that the params of `notifications/cancelled` name. Malformed params name none.
pub fn cancelled(params: Option<&str>) -> Option<RequestId> {
    #[derive(Deserialize)]
    struct Params {
        #[serde(rename = "requestId")]
        request: RequestId,
    }
    serde_json::from_str::<Params>(params?).ok().map(|params| params.request)
}

/// Params of a cancellation that we send.
#[derive(Serialize)]
pub(crate) struct Cancel<'a> {
    #[serde(rename = "requestId")]
    pub(crate) request: &'a RequestId,
    pub(crate) reason: &'a str,
}

impl Body for Cancel<'_> {
    fn write(&self, out: &mut Vec<u8>) -> Result<(), serde_json::Error> {
        serde_json::to_writer(out, self)
    }
}

/// Returns the progress of a request, and its token. A total or message of the wrong type counts as absent.
pub(crate) fn progress(params: Option<&str>) -> Option<(RequestId, Progress)> {
    #[derive(Deserialize)]
    struct Params {
        #[serde(rename = "progressToken")]
        token: RequestId,
        progress: f64,
        total: Option<Json>,
        message: Option<Json>,
    }
    let params = serde_json::from_str::<Params>(params?).ok()?;
    let total = params.total.and_then(|total| total.decode().ok());
    let message = params.message.and_then(|message| message.decode().ok());
    Some((params.token, Progress::new(params.progress, total, message)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// DISP-24, P-CAN-2: the id follows the strict rule; what cannot be read is ignored.
    #[test]
    fn a_malformed_cancel_is_ignored() {
        assert_eq!(cancelled(Some(r#"{"requestId":7,"reason":"x"}"#)), Some(7_i64.into()));
        assert_eq!(cancelled(Some(r#"{"requestId":"7"}"#)), Some("7".into()));
        for params in
            [None, Some("{}"), Some(r#"{"requestId":true}"#), Some(r#"{"requestId":null}"#), Some("[]")]
        {
            assert_eq!(cancelled(params), None, "{params:?}");
        }
    }

    /// DISP-26: token and number are needed; the rest is taken if it fits.
    #[test]
    fn progress_needs_a_token_and_a_number() {
        let full = progress(Some(r#"{"progressToken":"t","progress":1,"total":2.5,"message":"m"}"#));
        assert_eq!(full, Some(("t".into(), Progress::new(1.0, Some(2.5), Some("m".into())))));
        let odd = progress(Some(r#"{"progressToken":1,"progress":0.5,"total":"x","message":3}"#));
        assert_eq!(odd, Some((1_i64.into(), Progress::new(0.5, None, None))));
        for params in [
            r#"{"progress":1}"#,
            r#"{"progressToken":1,"progress":true}"#,
            r#"{"progressToken":1.5,"progress":1}"#,
        ] {
            assert_eq!(progress(Some(params)), None, "{params}");
        }
    }
}
