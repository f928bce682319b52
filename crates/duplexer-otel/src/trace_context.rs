//! Trace context and baggage in `_meta`, in the W3C formats.
//!
//! The usual propagators come with the OpenTelemetry SDK and are configured globally. MCP prescribes one format, so this
//! one needs neither.

use std::fmt::Write as _;
use std::str::FromStr;

use duplexer_types::json::{Json, JsonObject};
use duplexer_types::meta::{RequestMeta, TraceContext, key};
use opentelemetry::Context;
use opentelemetry::baggage::{Baggage, BaggageExt as _};
use opentelemetry::trace::{SpanContext, SpanId, TraceContextExt as _, TraceFlags, TraceId, TraceState};

/// Maximum size and number of entries of the baggage that is read or written; the limits of the W3C.
const MAX_BAGGAGE_BYTES: usize = 8192;
const MAX_BAGGAGE_ENTRIES: usize = 64;

/// Adds the context in `meta` to `ambient`. Ignores a malformed trace context and malformed entries of the baggage.
pub(crate) fn extract(ambient: Context, meta: Option<&str>) -> Context {
    let Some(meta) = meta.and_then(|meta| RequestMeta::read(meta).ok()) else { return ambient };
    let TraceContext { traceparent, tracestate, baggage } = meta.trace;
    let remote = traceparent.and_then(|text| span_context(&text, tracestate.as_deref()));
    let context = match remote {
        Some(remote) => ambient.with_remote_span_context(remote),
        None => ambient,
    };
    match baggage.map(|text| read_baggage(&text)).filter(|baggage| !baggage.is_empty()) {
        Some(baggage) => context.with_baggage(baggage),
        None => context,
    }
}

/// Writes the context, if there is one, into `meta`.
pub(crate) fn inject(context: &Context, meta: &mut JsonObject) {
    let span = context.span();
    let span = span.span_context();
    if span.is_valid() {
        let flags = span.trace_flags() & TraceFlags::SAMPLED;
        let parent = format!("00-{}-{}-{flags:02x}", span.trace_id(), span.span_id());
        meta.insert(key::TRACEPARENT, Json::from(parent.as_str()));
        let state = span.trace_state().header();
        if state.is_empty() {
            // A `tracestate` of the caller belongs to another parent.
            meta.remove(key::TRACESTATE);
        } else {
            meta.insert(key::TRACESTATE, Json::from(state.as_str()));
        }
    }
    let baggage = write_baggage(context.baggage());
    if !baggage.is_empty() {
        meta.insert(key::BAGGAGE, Json::from(baggage.as_str()));
    }
}

/// Parses `00-<trace id>-<span id>-<flags>`, in lower case. Later versions can append further fields.
fn span_context(traceparent: &str, tracestate: Option<&str>) -> Option<SpanContext> {
    let mut parts = traceparent.splitn(5, '-');
    let mut hex = |digits: usize| {
        parts.next().filter(|part| {
            part.len() == digits && part.bytes().all(|digit| matches!(digit, b'0'..=b'9' | b'a'..=b'f'))
        })
    };
    let (version, trace, span, flags) = (hex(2)?, hex(32)?, hex(16)?, hex(2)?);
    if version == "ff" || version == "00" && parts.next().is_some() {
        return None;
    }
    let flags = TraceFlags::new(u8::from_str_radix(flags, 16).ok()?) & TraceFlags::SAMPLED;
    let state = tracestate.and_then(|state| TraceState::from_str(state).ok()).unwrap_or_default();
    let (trace, span) = (TraceId::from_hex(trace).ok()?, SpanId::from_hex(span).ok()?);
    Some(SpanContext::new(trace, span, flags, true, state)).filter(SpanContext::is_valid)
}

fn read_baggage(text: &str) -> Baggage {
    let mut baggage = Baggage::new();
    if text.len() > MAX_BAGGAGE_BYTES {
        return baggage;
    }
    for entry in text.split(',').take(MAX_BAGGAGE_ENTRIES) {
        let (pair, properties) = entry.split_once(';').unwrap_or((entry, ""));
        let Some((name, value)) = pair.split_once('=') else { continue };
        if let Some(value) = percent_decoded(value.trim()) {
            baggage.insert_with_metadata(name.trim().to_owned(), value, properties.trim().to_owned());
        }
    }
    baggage
}

fn write_baggage(baggage: &Baggage) -> String {
    let mut entries: Vec<String> = baggage
        .iter()
        .map(|(name, (value, properties))| {
            let pair = format!("{name}={}", percent_encoded(value.as_str()));
            let properties = properties.as_str();
            let is_valid = properties.bytes().all(|byte| matches!(byte, b' '..=b'~') && byte != b',');
            if properties.is_empty() || !is_valid { pair } else { format!("{pair};{properties}") }
        })
        .collect();
    entries.sort_unstable();
    let mut text = String::new();
    for entry in entries {
        if text.len() + 1 + entry.len() > MAX_BAGGAGE_BYTES {
            continue;
        }
        if !text.is_empty() {
            text.push(',');
        }
        text.push_str(&entry);
    }
    text
}

fn percent_decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        rest = after;
        let code =
            after.first_chunk::<2>().filter(|code| *first == b'%' && code.iter().all(u8::is_ascii_hexdigit));
        let code = code.and_then(|code| str::from_utf8(code).ok());
        match code.and_then(|code| u8::from_str_radix(code, 16).ok()) {
            Some(byte) => {
                bytes.push(byte);
                rest = after.get(2..).unwrap_or_default();
            }
            None => bytes.push(*first),
        }
    }
    String::from_utf8(bytes).ok()
}

/// Percent-encodes every byte that is not a baggage octet of the W3C, and the percent sign.
fn percent_encoded(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_graphic() && !matches!(byte, b'"' | b',' | b';' | b'\\' | b'%') {
            out.push(char::from(byte));
        } else {
            // Writing to a string cannot fail.
            let _ = write!(out, "%{byte:02X}");
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
    const SPAN: &str = "00f067aa0ba902b7";

    fn passed_on(meta: &str) -> JsonObject {
        let mut out = JsonObject::new();
        inject(&extract(Context::new(), Some(meta)), &mut out);
        out
    }

    /// OTEL-04, P-META-12: well-formed context is propagated in the canonical form; other context is dropped.
    #[test]
    fn only_well_formed_parents_are_taken() {
        let check = |text: &str, expected: Option<&str>| {
            let meta = format!(r#"{{"traceparent":{}}}"#, Json::from(text));
            let out = passed_on(&meta).get(key::TRACEPARENT).map(|text| text.decode::<String>().unwrap());
            assert_eq!(out.as_deref(), expected, "{text}");
        };
        let parent = |flags: &str| format!("00-{TRACE}-{SPAN}-{flags}");
        check(&parent("01"), Some(&parent("01")));
        check(&parent("00"), Some(&parent("00")));
        check(&parent("ff"), Some(&parent("01")));
        check(&format!("cc-{TRACE}-{SPAN}-01-more-of-it"), Some(&parent("01")));
        for malformed in [
            String::new(),
            "00".to_owned(),
            format!("00-{TRACE}-{SPAN}"),
            format!("00-{TRACE}-{SPAN}-01-"),
            format!("00-{TRACE}-{SPAN}-1"),
            format!("00-{TRACE}-{SPAN}-0g"),
            format!("ff-{TRACE}-{SPAN}-01"),
            format!("00-{}-{SPAN}-01", TRACE.to_uppercase()),
            format!("00-{}-{SPAN}-01", "0".repeat(32)),
            format!("00-{TRACE}-{}-01", "0".repeat(16)),
            format!("00-+{}-{SPAN}-01", &TRACE[1..]),
            format!("00-{TRACE}é-{SPAN}-01"),
            format!(" 00-{TRACE}-{SPAN}-01"),
        ] {
            check(&malformed, None);
        }
    }

    /// P-META-12: `tracestate` is propagated with its parent, and dropped when malformed.
    #[test]
    fn trace_state_travels_with_its_parent() {
        let check = |state: &str, expected: Option<&str>| {
            let meta = format!(r#"{{"traceparent":"00-{TRACE}-{SPAN}-01","tracestate":"{state}"}}"#);
            let out = passed_on(&meta);
            assert_eq!(out.get(key::TRACESTATE), expected.map(Json::from).as_ref(), "{state}");
            assert!(out.get(key::TRACEPARENT).is_some());
        };
        check("a=1,b@v=2", Some("a=1,b@v=2"));
        check("", None);
        check("A B", None);
        assert!(passed_on(r#"{"tracestate":"a=1"}"#).is_empty());
    }

    /// P-META-12: baggage is decoded for the handler and encoded in the canonical form.
    #[test]
    fn baggage_survives() {
        let check = |text: &str, expected: Option<&str>| {
            let out = passed_on(&format!(r#"{{"baggage":{}}}"#, Json::from(text)));
            assert_eq!(out.get(key::BAGGAGE), expected.map(Json::from).as_ref(), "{text}");
        };
        check(
            "user=%C3%A9%20x;p=1;q, tenant = a%2Cb ,bad,=x,y=%FF",
            Some("tenant=a%2Cb,user=%C3%A9%20x;p=1;q"),
        );
        check("a=100%", Some("a=100%25"));
        check("", None);
        check(&format!("a={}", "x".repeat(MAX_BAGGAGE_BYTES)), None);
        let context = extract(Context::new(), Some(r#"{"baggage":"user=%C3%A9"}"#));
        assert_eq!(context.baggage().get("user").map(ToString::to_string).as_deref(), Some("é"));
    }

    /// OTEL-05: without a context nothing is added, and the caller's members stay.
    #[test]
    fn without_a_context_nothing_is_added() {
        let mut meta = JsonObject::new().with("traceparent", "theirs").with("x", "y");
        inject(&Context::new(), &mut meta);
        assert_eq!(meta, JsonObject::new().with("traceparent", "theirs").with("x", "y"));
        for silent in ["{}", "5", r#"{"traceparent":5,"baggage":null}"#] {
            assert!(passed_on(silent).is_empty());
        }
    }
}
