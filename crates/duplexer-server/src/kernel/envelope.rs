//! Validation of the envelope that every request of the envelope era carries in `_meta`. The checks are a pure function
//! of the message and, where the transport has headers, of a header look-up. The first failed check is the response.

use std::borrow::Cow;
use std::cell::RefCell;
use std::sync::Arc;

use duplexer_types::capabilities::ClientCapabilities;
use duplexer_types::error::{ErrorCode, ErrorObject};
use duplexer_types::headers::{self, Values};
use duplexer_types::json::JsonText;
use duplexer_types::logging::LoggingLevel;
use duplexer_types::meta::{self, InvalidMeta, MetaCache, RequestMeta, key};
use duplexer_types::methods::Method;
use duplexer_types::version::{Era, ProtocolVersion};
use serde::Deserialize;

use crate::kernel::connection::{Caller, Connection};
use crate::registry::RunningServer;
use duplexer_core::dispatch::{Message, Outbound};

/// Finds a header by its name, case-insensitively.
pub type HeaderLookup<'h> = &'h (dyn Fn(&str) -> Values<'h> + Sync);

thread_local! {
    /// The last `_meta` that this thread has validated, with its revision.
    static VALIDATED: RefCell<MetaCache<ProtocolVersion>> = const { RefCell::new(MetaCache::new()) };
}

fn cached_version(meta: &str) -> Option<ProtocolVersion> {
    VALIDATED.with_borrow(|cache| cache.get(meta).copied())
}

/// Returns whether a message carries an envelope: its `_meta` names a revision, valid or not.
pub fn is_enveloped(message: &Message) -> bool {
    message.meta().is_some_and(|meta| cached_version(meta).is_some() || meta::is_envelope(meta))
}

/// Validates the envelope and returns the revision to serve the request in.
///
/// # Errors
///
/// Returns the error response of the first failed check.
pub fn classify(
    message: &Message,
    headers: Option<HeaderLookup<'_>>,
) -> Result<ProtocolVersion, ErrorObject> {
    validate(message, headers).map(|valid| valid.version)
}

/// The result of the checks.
struct ValidEnvelope<'a> {
    version: ProtocolVersion,
    /// Why the facts about the client are malformed, if they are.
    malformed: Option<serde_json::Error>,
    /// The target of the request, if a header repeats it.
    named: Option<Cow<'a, str>>,
}

/// Validates the envelope and creates the connection of this one request. The envelope is decoded once for both.
///
/// Headers come with the server, because its tools can mirror arguments in headers.
pub(crate) fn open(
    message: &Arc<Message>,
    headers: Option<(HeaderLookup<'_>, &RunningServer)>,
    outbound: Arc<dyn Outbound>,
    caller: Caller,
) -> Result<Arc<Connection>, ErrorObject> {
    let ValidEnvelope { version, malformed, named } = validate(message, headers.map(|(lookup, _)| lookup))?;
    if let (Some((lookup, running)), Some(name)) = (headers, named) {
        check_mirrored(running, message, &name, lookup)?;
    }
    Ok(Arc::new(Connection::envelope(version, Arc::clone(message), malformed, outbound, caller)))
}

fn validate<'a>(
    message: &'a Message,
    headers: Option<HeaderLookup<'_>>,
) -> Result<ValidEnvelope<'a>, ErrorObject> {
    if let Some(version) = message.meta().and_then(cached_version) {
        let named = check_headers(message, Some(version.as_str()), headers)?;
        return Ok(ValidEnvelope { version, malformed: None, named });
    }
    let meta = read_meta(message)?;
    if meta.protocol_version.is_none() || meta.client_capabilities.is_none() {
        return Err(missing_keys(&meta));
    }
    let version = meta.version();
    let named = check_headers(message, version.as_deref(), headers)?;
    let Some(version) = version else {
        let text = "the protocol-version envelope value must be a string";
        return Err(ErrorObject::new(ErrorCode::INVALID_PARAMS, text));
    };
    match version.parse::<ProtocolVersion>() {
        Ok(version) if version.era() == Era::Envelope => {
            let malformed = check_identity(&meta).err();
            if let (None, Some(text)) = (&malformed, message.meta()) {
                VALIDATED.with_borrow_mut(|cache| cache.store(text, version));
            }
            Ok(ValidEnvelope { version, malformed, named })
        }
        _ => Err(ErrorObject::unsupported_version(&ProtocolVersion::envelope_names(), &version)),
    }
}

/// Checks the headers that mirror arguments of a tool. This is the last check, for transports with headers.
///
/// # Errors
///
/// Returns the error response if a header and its argument differ.
pub fn check_param_headers(
    running: &RunningServer,
    message: &Message,
    lookup: HeaderLookup<'_>,
) -> Result<(), ErrorObject> {
    let field = message.known().and_then(Method::mirrored_field);
    match field.and_then(|field| text_member(message, field)) {
        Some(name) => check_mirrored(running, message, &name, lookup),
        None => Ok(()),
    }
}

/// Checks the mirrored headers of a request with a known target.
fn check_mirrored(
    running: &RunningServer,
    message: &Message,
    name: &str,
    lookup: HeaderLookup<'_>,
) -> Result<(), ErrorObject> {
    let Some(tools) = &running.registry().tool_headers else { return Ok(()) };
    if message.known() != Some(Method::ToolsCall) {
        return Ok(());
    }
    let Some(annotations) = tools(name) else { return Ok(()) };
    match arguments(message) {
        Ok(arguments) => annotations.check(arguments, lookup),
        // Malformed params are reported by the handler's decoding, not here.
        Err(_) => Ok(()),
    }
}

/// Returns the arguments of a call. Few tools mirror arguments, and only for those the params are decoded here.
fn arguments(message: &Message) -> Result<Option<&str>, serde_json::Error> {
    #[derive(Deserialize)]
    struct Call<'a> {
        #[serde(borrow)]
        arguments: Option<JsonText<'a>>,
    }
    let call = message.decode::<Call<'_>>()?;
    Ok(call.arguments.map(JsonText::as_str))
}

fn read_meta(message: &Message) -> Result<RequestMeta<'_>, ErrorObject> {
    let invalid = |text: String| Err(ErrorObject::new(ErrorCode::INVALID_PARAMS, text));
    match message.meta().map(RequestMeta::read) {
        Some(Ok(meta)) => Ok(meta),
        Some(Err(repeated @ InvalidMeta::Repeated(_))) => invalid(format!("params.{repeated}")),
        None | Some(Err(InvalidMeta::NotAnObject)) => invalid(missing_meta()),
    }
}

/// Says what a request without an envelope lacks.
pub(crate) fn missing_meta() -> String {
    format!(
        "params._meta must be an object carrying the required '{}' and '{}' envelope keys",
        key::PROTOCOL_VERSION,
        key::CLIENT_CAPABILITIES
    )
}

fn missing_keys(meta: &RequestMeta<'_>) -> ErrorObject {
    let required = [
        (key::PROTOCOL_VERSION, meta.protocol_version),
        (key::CLIENT_CAPABILITIES, meta.client_capabilities),
    ];
    let missing: Vec<_> = required.iter().filter(|(_, value)| value.is_none()).map(|(key, _)| *key).collect();
    let text = format!("params._meta is missing the required envelope key(s): {}", missing.join(", "));
    ErrorObject::new(ErrorCode::INVALID_PARAMS, text)
}

/// Checks that the headers repeat the body, so that a proxy and the server cannot read two different requests. Returns
/// the target of the request, if the headers repeat it.
fn check_headers<'a>(
    message: &'a Message,
    version: Option<&str>,
    headers: Option<HeaderLookup<'_>>,
) -> Result<Option<Cow<'a, str>>, ErrorObject> {
    let Some(lookup) = headers else { return Ok(None) };
    let mismatch = |text: String| Err(ErrorObject::new(ErrorCode::HEADER_MISMATCH, text));
    let routing = [headers::PROTOCOL_VERSION, headers::METHOD, headers::NAME];
    let found = routing.map(|name| lookup(name.canonical));
    if let Some((name, _)) = routing.iter().zip(found).find(|(_, values)| *values == Values::Several) {
        return mismatch(format!("{} header appears more than once", name.lower));
    }
    let [version_header, method_header, name_header] = found;
    if !version.is_some_and(|version| says(version_header, version)) {
        let name = headers::PROTOCOL_VERSION.lower;
        return mismatch(format!("{name} header does not match the request envelope's protocol version"));
    }
    if !says(method_header, message.method()) {
        return mismatch(format!(
            "{} header does not match the request body's method",
            headers::METHOD.lower
        ));
    }
    let field = message.known().and_then(Method::mirrored_field);
    let Some((field, named)) = field.and_then(|field| Some((field, text_member(message, field)?))) else {
        return Ok(None);
    };
    match name_header {
        Values::One(value) if holds(value, &named) => Ok(Some(named)),
        _ => {
            let name = headers::NAME.lower;
            mismatch(format!("{name} header does not match the request body's '{field}' parameter"))
        }
    }
}

/// Returns whether a header that is never encoded holds this text. Surrounding white space does not count.
fn says(values: Values<'_>, text: &str) -> bool {
    let text = text.as_bytes();
    matches!(values, Values::One(value) if value == text || value.trim_ascii() == text)
}

/// Returns whether a header that can be encoded holds this text.
fn holds(value: &[u8], text: &str) -> bool {
    // Nearly every name is like this, and means itself.
    let is_plain = |value: &[u8]| value.first() != Some(&b'=') && value.iter().all(u8::is_ascii_graphic);
    (value == text.as_bytes() && is_plain(value)) || headers::decode(value).is_some_and(|value| value == text)
}

/// Returns a member of the params, if it is a string.
fn text_member<'a>(message: &'a Message, name: &str) -> Option<Cow<'a, str>> {
    duplexer_types::jsonrpc::first_text(message.params()?, message.meta(), name)
}

/// Checks the facts about the client, where the envelope has them.
///
/// The envelope checks test presence only. This belongs to the validation of the params: the kernel refuses the request
/// inside of the middleware.
fn check_identity(meta: &RequestMeta<'_>) -> Result<(), serde_json::Error> {
    #[derive(Deserialize)]
    struct Identity<'a> {
        #[serde(borrow, rename = "name")]
        _name: Cow<'a, str>,
        #[serde(borrow, rename = "version")]
        _version: Cow<'a, str>,
    }
    if let Some(info) = meta.client_info.filter(|info| *info != "null") {
        serde_json::from_str::<Identity<'_>>(info)?;
    }
    if let Some(capabilities) = meta.client_capabilities.filter(|text| *text != "{}") {
        serde_json::from_str::<ClientCapabilities>(capabilities)?;
    }
    if let Some(level) = meta.log_level {
        serde_json::from_str::<LoggingLevel>(level)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests;
