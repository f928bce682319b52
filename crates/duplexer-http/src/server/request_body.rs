//! Reads the body of a request, within its limits of size and time.

use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::task::Poll;

use bytes::{Buf, Bytes, BytesMut};
use bytestring::ByteString;
use duplexer_core::error::BoxError;
use http::StatusCode;
use http_body::{Body, Frame};
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
    let mut body = pin!(body);
    // A small body arrives with its head, in one frame: it needs no timer and is not copied.
    let first = match poll_fn(|cx| Poll::Ready(body.as_mut().poll_frame(cx))).await {
        Poll::Ready(None) => return Ok(Bytes::new()),
        Poll::Ready(Some(frame)) => read_frame(frame, limit)?,
        Poll::Pending => Bytes::new(),
    };
    // Most bodies know their length, which saves the last poll.
    if body.is_end_stream() {
        return Ok(first);
    }
    let Ok(bytes) = Box::pin(timeout(config.timing.body, collect(first, body, limit))).await else {
        let text = "the body of the request took too long";
        return Err(reply::close_connection(reply::invalid_request(StatusCode::REQUEST_TIMEOUT, text)).into());
    };
    bytes
}

fn too_large() -> Rejection {
    reply::close_connection(reply::invalid_request(StatusCode::PAYLOAD_TOO_LARGE, "Request body too large"))
        .into()
}

/// Returns the data of a frame, if it has at most `limit` bytes. Trailers have no data.
fn read_frame<D: Buf, E: Into<BoxError>>(
    frame: Result<Frame<D>, E>,
    limit: usize,
) -> Result<Bytes, Rejection> {
    let frame = frame.map_err(|error| {
        let error: BoxError = error.into();
        tracing::debug!(%error, "the body of a request broke off");
        Rejection::new(reply::close_connection(reply::invalid_request(
            StatusCode::BAD_REQUEST,
            "the body of the request is broken",
        )))
    })?;
    let Ok(mut data) = frame.into_data() else { return Ok(Bytes::new()) };
    if data.remaining() > limit {
        return Err(too_large());
    }
    Ok(data.copy_to_bytes(data.remaining()))
}

/// Collects the frames of a body after the first one. If one of them is the whole body, it is not copied.
async fn collect<B>(first: Bytes, mut body: Pin<&mut B>, limit: usize) -> Result<Bytes, Rejection>
where
    B: Body,
    B::Error: Into<BoxError>,
{
    let (mut first, mut all) = (first, BytesMut::new());
    while let Some(frame) = poll_fn(|cx| body.as_mut().poll_frame(cx)).await {
        let data = read_frame(frame, limit - (all.len() + first.len()))?;
        if all.is_empty() && first.is_empty() {
            first = data;
        } else {
            if all.is_empty() {
                let rest = usize::try_from(body.size_hint().lower()).unwrap_or(0).min(limit);
                all.reserve(first.len() + data.len() + rest);
                all.extend_from_slice(&std::mem::take(&mut first));
            }
            all.extend_from_slice(&data);
        }
        if body.is_end_stream() {
            break;
        }
    }
    Ok(if all.is_empty() { first } else { all.freeze() })
}
