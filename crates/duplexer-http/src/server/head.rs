//! What the head of a request says about the request itself, found in one walk over its headers.

use duplexer_types::headers::{self, Values};
use duplexer_types::version::{Era, ProtocolVersion};
use http::header::TRANSFER_ENCODING;
use http::{HeaderMap, StatusCode, Version};

use super::reply::{self, Rejection};

/// What is asked of every request before anything of it is read.
#[derive(Clone, Copy, Debug)]
pub(super) struct Head<'h> {
    pub(super) host: Values<'h>,
    pub(super) origin: Values<'h>,
    pub(super) accepts: Accepts,
    version: Values<'h>,
    body: BodyHead<'h>,
}

/// How the body is written and where it ends.
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
        let accepts = Accepts::default();
        let mut head = Self { host: NOTHING, origin: NOTHING, accepts, version: NOTHING, body };
        for (name, value) in headers {
            let value = value.as_bytes();
            let found = match name.as_str() {
                "accept" => {
                    head.accepts.add(value);
                    continue;
                }
                "host" => &mut head.host,
                "origin" => &mut head.origin,
                "content-type" => &mut head.body.kind,
                "content-encoding" => &mut head.body.coding,
                "content-length" => &mut head.body.length,
                "transfer-encoding" => &mut head.body.transfer_coding,
                name if name == headers::PROTOCOL_VERSION.lower => &mut head.version,
                _ => continue,
            };
            *found = if *found == NOTHING { Values::One(value) } else { Values::Several };
        }
        head
    }

    /// What the version header claims.
    pub(super) fn claimed(&self) -> ClaimedEra {
        let version = match self.version {
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

    /// Whether the body is what is read here, JSON, once, and not compressed, and where it ends no matter of opinion.
    pub(super) fn check_body(&self) -> Result<(), Rejection> {
        let BodyHead { kind, coding, length, transfer_coding } = self.body;
        if transfer_coding != Values::Absent && length != Values::Absent {
            let text = "Content-Length and Transfer-Encoding exclude each other";
            return Err(reply::close_connection(reply::invalid_request(StatusCode::BAD_REQUEST, text)).into());
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
}

/// Whether what follows on the connection may belong to this request after all: the library drops a length that
/// stands beside a transfer coding before anybody can object to it.
pub(super) fn is_last_on_connection(headers: &HeaderMap, version: Version) -> bool {
    version < Version::HTTP_2 && headers.contains_key(TRANSFER_ENCODING)
}

fn is_json(kind: Values<'_>) -> bool {
    const JSON: &[u8] = b"application/json";
    let Values::One(kind) = kind else { return false };
    // As nearly every client has it, before it is taken apart.
    if kind == JSON {
        return true;
    }
    let kind = kind.split(|byte| *byte == b';').next().unwrap_or_default();
    kind.trim_ascii().eq_ignore_ascii_case(JSON)
}

/// What a version header claims.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ClaimedEra {
    /// Nothing, or a revision of the handshake era.
    Handshake,
    /// Anything else.
    Other,
}

/// What the client can read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Accepts {
    pub(super) json: bool,
    pub(super) events: bool,
}

impl Accepts {
    /// One header, of which there may be several.
    fn add(&mut self, ranges: &[u8]) {
        // What nearly every client sends.
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

/// `q=0`, in any spelling: this is what the client does not want.
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
