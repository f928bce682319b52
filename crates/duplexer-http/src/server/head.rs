//! What the head of a request declares, found in one walk over its headers.

use duplexer_types::headers::Values;
use duplexer_types::version::{Era, ProtocolVersion};
use http::header::TRANSFER_ENCODING;
use http::{HeaderMap, StatusCode, Version};

use super::reply::{self, Rejection};
use super::request_headers::KnownHeaders;

/// Everything that is checked before the body of a request is read.
pub(super) struct Head<'h> {
    pub(super) host: Values<'h>,
    pub(super) origin: Values<'h>,
    pub(super) accepts: Accepts,
    pub(super) known: KnownHeaders,
    body: BodyHead<'h>,
}

/// Encoding and length of the body.
#[derive(Clone, Copy, Debug)]
struct BodyHead<'h> {
    kind: Values<'h>,
    coding: Values<'h>,
    length: Values<'h>,
    transfer_coding: Values<'h>,
}

impl<'h> Head<'h> {
    pub(super) fn read(headers: &'h HeaderMap) -> Self {
        const NOTHING: Values<'static> = Values::Absent;
        let body = BodyHead { kind: NOTHING, coding: NOTHING, length: NOTHING, transfer_coding: NOTHING };
        let (accepts, known) = (Accepts::default(), KnownHeaders::default());
        let mut head = Self { host: NOTHING, origin: NOTHING, accepts, known, body };
        for (name, value) in headers {
            let found = match name.as_str() {
                "accept" => {
                    head.accepts.add(value.as_bytes());
                    continue;
                }
                "host" => &mut head.host,
                "origin" => &mut head.origin,
                "content-type" => &mut head.body.kind,
                "content-encoding" => &mut head.body.coding,
                "content-length" => &mut head.body.length,
                "transfer-encoding" => &mut head.body.transfer_coding,
                name => {
                    head.known.add(name, value);
                    continue;
                }
            };
            *found = if *found == NOTHING { Values::One(value.as_bytes()) } else { Values::Several };
        }
        head
    }

    /// Returns the era that the version header claims.
    pub(super) fn claimed_era(&self) -> ClaimedEra {
        let version = match self.known.version() {
            Values::Absent => return ClaimedEra::Handshake,
            Values::Several => return ClaimedEra::Other,
            Values::One(version) => {
                std::str::from_utf8(version).ok().and_then(|text| text.trim().parse().ok())
            }
        };
        match version.map(ProtocolVersion::era) {
            Some(Era::Handshake) => ClaimedEra::Handshake,
            Some(Era::Envelope) | None => ClaimedEra::Other,
        }
    }

    /// Rejects a body that is not uncompressed JSON, or whose length is ambiguous.
    pub(super) fn check_body(&self) -> Result<(), Rejection> {
        let BodyHead { kind, coding, length, transfer_coding } = self.body;
        if transfer_coding != Values::Absent && length != Values::Absent {
            let text = "Content-Length and Transfer-Encoding exclude each other";
            let reply = reply::invalid_request(StatusCode::BAD_REQUEST, text);
            return Err(reply::close_connection(reply).into());
        }
        let unsupported =
            |text: &'static str| Err(reply::invalid_request(StatusCode::UNSUPPORTED_MEDIA_TYPE, text).into());
        if !is_json(kind) {
            return unsupported("Unsupported Media Type: Content-Type must be application/json");
        }
        match coding {
            Values::Absent => Ok(()),
            Values::One(coding) if coding.eq_ignore_ascii_case(b"identity") => Ok(()),
            Values::One(_) | Values::Several => {
                unsupported("Unsupported Media Type: Content-Encoding must be identity")
            }
        }
    }

    /// Returns whether the connection must close after the response, as [`is_last_on_connection`] does.
    pub(super) fn is_last_on_connection(&self, version: Version) -> bool {
        version < Version::HTTP_2 && self.body.transfer_coding != Values::Absent
    }
}

/// Returns whether the connection must close after the response. The HTTP library drops a `Content-Length` beside a
/// `Transfer-Encoding` before this service sees it, so bytes that follow could belong to this request.
pub(super) fn is_last_on_connection(headers: &HeaderMap, version: Version) -> bool {
    version < Version::HTTP_2 && headers.contains_key(TRANSFER_ENCODING)
}

fn is_json(kind: Values<'_>) -> bool {
    const JSON: &[u8] = b"application/json";
    let Values::One(kind) = kind else { return false };
    // The exact text of nearly every client, compared before it is parsed.
    if kind == JSON {
        return true;
    }
    let kind = kind.split(|byte| *byte == b';').next().unwrap_or_default();
    kind.trim_ascii().eq_ignore_ascii_case(JSON)
}

/// The era that a version header claims.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ClaimedEra {
    /// No header, or a revision of the handshake era.
    Handshake,
    /// Anything else.
    Other,
}

/// Response formats that the client accepts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Accepts {
    pub(super) json: bool,
    pub(super) events: bool,
}

impl Accepts {
    /// Adds one `Accept` header. A request can have several.
    fn add(&mut self, ranges: &[u8]) {
        // The exact text of nearly every client.
        if ranges == b"application/json, text/event-stream" {
            *self = Self { json: true, events: true };
            return;
        }
        for range in ranges.split(|byte| *byte == b',') {
            self.add_range(range);
        }
    }

    fn add_range(&mut self, range: &[u8]) {
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

/// Returns whether a parameter is `q=0`, in any spelling: the client does not accept the range.
fn is_zero_weight(parameter: &[u8]) -> bool {
    let Some((name, value)) = parameter.split_at_checked(2) else { return false };
    name.eq_ignore_ascii_case(b"q=")
        && !value.is_empty()
        && value.iter().all(|byte| matches!(byte, b'0' | b'.'))
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;
    use http::header::{ACCEPT, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE};

    use super::*;

    fn headers(name: &http::HeaderName, values: &[&'static str]) -> HeaderMap {
        values.iter().map(|value| (name.clone(), HeaderValue::from_static(value))).collect()
    }

    /// HTTPL-03, P-HTTP-23: lists, parameters, wildcards and case.
    #[test]
    fn accept_is_read_as_a_list_of_ranges() {
        let check = |values: &[&'static str], json, events| {
            let headers = headers(&ACCEPT, values);
            assert_eq!(Head::read(&headers).accepts, Accepts { json, events }, "{values:?}");
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
        let check =
            |values: &[&'static str]| Head::read(&headers(&CONTENT_TYPE, values)).check_body().is_ok();
        assert!(check(&["application/json"]));
        assert!(check(&["Application/JSON"]) && check(&["application/json; charset=utf-8"]));
        assert!(check(&["application/json ;charset=utf-8"]));
        for wrong in
            ["application/jsonp", "application/json-foo", "text/plain", "", "application/json, text/plain"]
        {
            assert!(!check(&[wrong]), "{wrong}");
        }
        assert!(!check(&[]) && !check(&["application/json", "application/json"]));
    }

    #[test]
    fn a_body_is_not_compressed_and_has_one_end() {
        let check = |others: &[(http::HeaderName, &'static str)]| {
            let mut headers = headers(&CONTENT_TYPE, &["application/json"]);
            for (name, value) in others {
                headers.append(name, HeaderValue::from_static(value));
            }
            Head::read(&headers).check_body().is_ok()
        };
        assert!(check(&[(CONTENT_ENCODING, "Identity")]));
        assert!(!check(&[(CONTENT_ENCODING, "gzip")]));
        assert!(!check(&[(CONTENT_ENCODING, "identity"), (CONTENT_ENCODING, "gzip")]));
        assert!(check(&[(CONTENT_LENGTH, "1")]) && check(&[(TRANSFER_ENCODING, "chunked")]));
        assert!(!check(&[(CONTENT_LENGTH, "1"), (TRANSFER_ENCODING, "chunked")]));
    }
}
