//! The request as it comes in: what it says about its own form, and its body, within bounds.

use std::pin::pin;

use bytes::{Buf, Bytes, BytesMut};
use bytestring::ByteString;
use duplexer_core::error::BoxError;
use http::header::{ACCEPT, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, TRANSFER_ENCODING};
use http::{HeaderMap, StatusCode, Version, request::Parts};
use http_body::Body;
use tokio::time::timeout;

use super::config::Config;
use super::reply::{self, Refusal};

/// What the client can read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Accepts {
    pub(super) json: bool,
    pub(super) events: bool,
}

impl Accepts {
    pub(super) fn of(headers: &HeaderMap) -> Self {
        let mut accepts = Self::default();
        for value in headers.get_all(ACCEPT) {
            // What nearly every client sends.
            if value.as_bytes() == b"application/json, text/event-stream" {
                return Self { json: true, events: true };
            }
            for range in value.as_bytes().split(|byte| *byte == b',') {
                accepts.add(range);
            }
        }
        accepts
    }

    fn add(&mut self, range: &[u8]) {
        let mut parts = range.split(|byte| *byte == b';').map(<[u8]>::trim_ascii);
        let kind = parts.next().unwrap_or_default();
        let is = |known: &[u8]| kind.eq_ignore_ascii_case(known);
        let (json, events) = match () {
            () if is(b"application/json") || is(b"application/*") => (true, false),
            () if is(b"text/event-stream") || is(b"text/*") => (false, true),
            () if is(b"*/*") => (true, true),
            () => return,
        };
        if !parts.any(is_zero_weight) {
            self.json |= json;
            self.events |= events;
        }
    }
}

/// `q=0`, in any spelling: this is what the client does not want.
fn is_zero_weight(parameter: &[u8]) -> bool {
    let Some((name, value)) = parameter.split_at_checked(2) else { return false };
    name.eq_ignore_ascii_case(b"q=")
        && !value.is_empty()
        && value.iter().all(|byte| matches!(byte, b'0' | b'.'))
}

/// Whether the body is what is read here: JSON, once, and not compressed.
pub(super) fn check_media_type(headers: &HeaderMap) -> Result<(), Refusal> {
    let unsupported =
        |text: &'static str| Err(Refusal::new(reply::refused(StatusCode::UNSUPPORTED_MEDIA_TYPE, text)));
    let mut values = headers.get_all(CONTENT_TYPE).iter();
    let kind =
        values.next().map(|value| value.as_bytes().split(|byte| *byte == b';').next().unwrap_or_default());
    if values.next().is_some()
        || !kind.is_some_and(|kind| kind.trim_ascii().eq_ignore_ascii_case(b"application/json"))
    {
        return unsupported("Unsupported Media Type: Content-Type must be application/json");
    }
    match headers.get(CONTENT_ENCODING) {
        Some(coding) if !coding.as_bytes().eq_ignore_ascii_case(b"identity") => {
            unsupported("Unsupported Media Type: Content-Encoding must be identity")
        }
        _ => Ok(()),
    }
}

/// Where the body ends must not be a matter of opinion.
pub(super) fn check_framing(parts: &Parts) -> Result<(), Refusal> {
    if parts.headers.contains_key(TRANSFER_ENCODING) && parts.headers.contains_key(CONTENT_LENGTH) {
        let text = "Content-Length and Transfer-Encoding exclude each other";
        return Err(reply::closing(reply::refused(StatusCode::BAD_REQUEST, text)).into());
    }
    Ok(())
}

/// Whether what follows on the connection may belong to this request after all: the library drops a length that
/// stands behind a transfer coding before anybody can object to it.
pub(super) fn is_last_on_connection(parts: &Parts) -> bool {
    parts.version < Version::HTTP_2 && parts.headers.contains_key(TRANSFER_ENCODING)
}

/// Reads the whole body as text.
pub(super) async fn read<B>(body: B, config: &Config) -> Result<ByteString, Refusal>
where
    B: Body,
    B::Error: Into<BoxError>,
{
    let bytes = read_bytes(body, config).await?;
    ByteString::try_from(bytes).map_err(|_| super::door::parse_error().into())
}

/// Reads the whole body.
pub(super) async fn read_bytes<B>(body: B, config: &Config) -> Result<Bytes, Refusal>
where
    B: Body,
    B::Error: Into<BoxError>,
{
    let limit = config.limits.body;
    // From the announced length alone, before anything is read.
    if body.size_hint().lower() > limit as u64 {
        return Err(too_large());
    }
    let Ok(bytes) = timeout(config.timing.body, collect(body, limit)).await else {
        let text = "the body of the request took too long";
        return Err(reply::closing(reply::refused(StatusCode::REQUEST_TIMEOUT, text)).into());
    };
    bytes
}

fn too_large() -> Refusal {
    reply::closing(reply::refused(StatusCode::PAYLOAD_TOO_LARGE, "Request body too large")).into()
}

/// A body that comes in one piece is not copied.
async fn collect<B>(body: B, limit: usize) -> Result<Bytes, Refusal>
where
    B: Body,
    B::Error: Into<BoxError>,
{
    let mut body = pin!(body);
    let mut first: Option<Bytes> = None;
    let mut all = BytesMut::new();
    while let Some(frame) = std::future::poll_fn(|cx| body.as_mut().poll_frame(cx)).await {
        let frame = frame.map_err(|error| {
            let error: BoxError = error.into();
            tracing::debug!(%error, "the body of a request broke off");
            Refusal::new(reply::closing(reply::refused(
                StatusCode::BAD_REQUEST,
                "the body of the request is broken",
            )))
        })?;
        let Ok(mut data) = frame.into_data() else { continue };
        let before = all.len() + first.as_ref().map_or(0, Bytes::len);
        if data.remaining() > limit - before.min(limit) {
            return Err(too_large());
        }
        match first.take() {
            None if all.is_empty() => first = Some(data.copy_to_bytes(data.remaining())),
            earlier => {
                if let Some(earlier) = earlier {
                    all.reserve(
                        usize::try_from(body.size_hint().lower()).unwrap_or(0).min(limit) + earlier.len(),
                    );
                    all.extend_from_slice(&earlier);
                }
                all.extend_from_slice(&data.copy_to_bytes(data.remaining()));
            }
        }
    }
    Ok(first.unwrap_or_else(|| all.freeze()))
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    fn headers(name: &http::HeaderName, values: &[&'static str]) -> HeaderMap {
        values.iter().map(|value| (name.clone(), HeaderValue::from_static(value))).collect()
    }

    /// HTTPL-03, P-HTTP-23: lists, parameters, wildcards and case.
    #[test]
    fn accept_is_read_as_a_list_of_ranges() {
        let check = |values: &[&'static str], json, events| {
            assert_eq!(Accepts::of(&headers(&ACCEPT, values)), Accepts { json, events }, "{values:?}");
        };
        check(&["application/json, text/event-stream"], true, true);
        check(&["Application/JSON;q=0.5 , TEXT/event-stream; charset=utf-8"], true, true);
        check(&["application/json", "text/event-stream"], true, true);
        check(&["*/*"], true, true);
        check(&["application/*"], true, false);
        check(&["text/*"], false, true);
        check(&["text/html, application/jsonp"], false, false);
        check(&["application/json;q=0, text/event-stream;q=0.000"], false, false);
        check(&["application/json; Q=0.0, */*;q=0.1"], true, true);
        check(&[], false, false);
        check(&["", ","], false, false);
    }

    /// SEC-01, P-HTTP-22: parsed, without case, parameters allowed.
    #[test]
    fn the_media_type_is_compared_by_its_parts() {
        let check = |values: &[&'static str]| check_media_type(&headers(&CONTENT_TYPE, values)).is_ok();
        assert!(check(&["application/json"]));
        assert!(check(&["Application/JSON"]) && check(&["application/json; charset=utf-8"]));
        assert!(check(&["application/json ;charset=utf-8"]));
        for wrong in
            ["application/jsonp", "application/json-foo", "text/plain", "", "application/json, text/plain"]
        {
            assert!(!check(&[wrong]), "{wrong}");
        }
        assert!(!check(&[]) && !check(&["application/json", "application/json"]));
        let mut coded = headers(&CONTENT_TYPE, &["application/json"]);
        coded.insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
        assert!(check_media_type(&coded).is_err());
    }
}
