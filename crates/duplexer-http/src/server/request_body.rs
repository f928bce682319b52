//! Reads the body of a request, within its limits of size and time.

use std::future::poll_fn;
use std::pin::pin;
use std::task::Poll;

use bytes::{Buf, Bytes, BytesMut};
use bytestring::ByteString;
use duplexer_core::error::BoxError;
use http::StatusCode;
use http_body::Body;
use tokio::time::timeout;

use super::config::Config;
use super::reply::{self, Rejection};

/// Reads the whole body as text.
pub(super) async fn read<B>(body: B, config: &Config) -> Result<ByteString, Rejection>
where
    B: Body,
    B::Error: Into<BoxError>,
{
    let bytes = read_bytes(body, config).await?;
    ByteString::try_from(bytes).map_err(|_| super::route::parse_error().into())
}

/// Reads the whole body.
pub(super) async fn read_bytes<B>(body: B, config: &Config) -> Result<Bytes, Rejection>
where
    B: Body,
    B::Error: Into<BoxError>,
{
    let limit = config.limits.body;
    // By the declared length, before anything is read.
    if body.size_hint().lower() > limit as u64 {
        return Err(too_large());
    }
    let mut collecting = pin!(collect(body, limit));
    // A small body arrives with its head, so the first poll needs no timer.
    if let Poll::Ready(bytes) = poll_fn(|cx| Poll::Ready(collecting.as_mut().poll(cx))).await {
        return bytes;
    }
    let Ok(bytes) = Box::pin(timeout(config.timing.body, collecting)).await else {
        let text = "the body of the request took too long";
        return Err(reply::close_connection(reply::invalid_request(StatusCode::REQUEST_TIMEOUT, text)).into());
    };
    bytes
}

fn too_large() -> Rejection {
    reply::close_connection(reply::invalid_request(StatusCode::PAYLOAD_TOO_LARGE, "Request body too large"))
        .into()
}

/// Collects the frames of a body. A single frame is not copied.
async fn collect<B>(body: B, limit: usize) -> Result<Bytes, Rejection>
where
    B: Body,
    B::Error: Into<BoxError>,
{
    let mut body = pin!(body);
    let mut first: Option<Bytes> = None;
    let mut all = BytesMut::new();
    while let Some(frame) = poll_fn(|cx| body.as_mut().poll_frame(cx)).await {
        let frame = frame.map_err(|error| {
            let error: BoxError = error.into();
            tracing::debug!(%error, "the body of a request broke off");
            Rejection::new(reply::close_connection(reply::invalid_request(
                StatusCode::BAD_REQUEST,
                "the body of the request is broken",
            )))
        })?;
        let Ok(mut data) = frame.into_data() else { continue };
        let before = all.len() + first.as_ref().map_or(0, Bytes::len);
        if data.remaining() > limit - before.min(limit) {
            return Err(too_large());
        }
        let data = data.copy_to_bytes(data.remaining());
        match first.take() {
            None if all.is_empty() => first = Some(data),
            earlier => {
                if let Some(earlier) = earlier {
                    let rest = usize::try_from(body.size_hint().lower()).unwrap_or(0).min(limit);
                    all.reserve(earlier.len() + data.len() + rest);
                    all.extend_from_slice(&earlier);
                }
                all.extend_from_slice(&data);
            }
        }
        // Most bodies know their length, which saves the last poll.
        if body.is_end_stream() {
            break;
        }
    }
    Ok(first.unwrap_or_else(|| all.freeze()))
}
