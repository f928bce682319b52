//! State that negotiation fixes for a session: the server's description, the metadata of every request, and the
//! decoding of results.

use std::borrow::Cow;

use bytestring::ByteString;
use duplexer_types::capabilities::ServerCapabilities;
use duplexer_types::headers;
use duplexer_types::json::{Json, JsonObject, find_member};
use duplexer_types::lifecycle::Implementation;
use duplexer_types::logging::LoggingLevel;
use duplexer_types::meta::{self, key};
use duplexer_types::methods::Method;
use duplexer_types::version::{Era, ProtocolVersion, feature};
use duplexer_types::wire::{self, ForRevision, ResultBody, Shape};
use serde::ser::Error as _;

use super::handler::Callbacks;
use super::params::Params;
use duplexer_core::dispatch::OutboundRequest;
use duplexer_core::error::CallError;

/// Negotiated facts of a session.
pub(super) struct Session {
    pub(super) version: ProtocolVersion,
    pub(super) server_info: Option<Implementation>,
    pub(super) capabilities: ServerCapabilities,
    pub(super) instructions: Option<String>,
    pub(super) envelope: RequestEnvelope,
    /// Params of the handshake that opens the same session again (handshake era).
    pub(super) opening: Option<Json>,
    /// The result that opened the session, verbatim; empty if none was requested.
    pub(super) opened: ByteString,
    /// Newest revision of the session's era, if results of that era have no `resultType`.
    pub(super) result_revision: Option<ProtocolVersion>,
}

/// Decodes a final result. With a `result_revision`, members that only later eras define are dropped.
pub(super) fn decode_result<R>(text: &str, result_revision: Option<ProtocolVersion>) -> Result<R, CallError>
where
    R: ResultBody + serde::de::DeserializeOwned,
{
    let result: R = serde_json::from_str(text).map_err(CallError::Unexpected)?;
    let Some(revision) = result_revision else { return Ok(result) };
    let mut known = Vec::with_capacity(text.len());
    // Decoded as text, like the result itself: a second way to decode it would double its code.
    wire::write_result(&mut known, &result, revision, wire::ResultMeta::default())
        .and_then(|()| serde_json::from_str(str::from_utf8(&known).map_err(serde_json::Error::custom)?))
        .map_err(CallError::Unexpected)
}

/// Identity of the client, and the callbacks from which its capabilities follow.
#[derive(Clone, Copy)]
pub(super) struct Identity<'a> {
    pub(super) info: &'a Implementation,
    pub(super) callbacks: &'a Callbacks,
    pub(super) log_level: Option<LoggingLevel>,
    pub(super) headers: HeaderUse,
}

/// Whether the transport has headers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum HeaderUse {
    Sent,
    Unsupported,
}

/// Metadata and headers that every request of a session carries.
pub(super) struct RequestEnvelope {
    version: ProtocolVersion,
    /// Members of `_meta` (envelope era).
    meta: Option<JsonObject>,
    log_level: Option<Json>,
    headers: HeaderUse,
}

impl RequestEnvelope {
    /// Creates the envelope of sessions in `version`.
    pub(super) fn new(version: ProtocolVersion, identity: Identity<'_>) -> Result<Self, CallError> {
        let (shape, headers) = (Shape::new(version), identity.headers);
        match version.era() {
            Era::Handshake => Ok(Self { version, meta: None, log_level: None, headers }),
            Era::Envelope => {
                let info = Json::encode(&ForRevision(identity.info, shape)).map_err(CallError::Encode)?;
                let capabilities = identity.callbacks.capabilities(version);
                let capabilities =
                    Json::encode(&ForRevision(&capabilities, shape)).map_err(CallError::Encode)?;
                Ok(Self {
                    version,
                    meta: Some(meta::envelope(version.as_str(), &info, &capabilities)),
                    log_level: identity.log_level.map(|level| level.as_str().into()),
                    headers,
                })
            }
        }
    }

    /// Builds a request of the protocol with its metadata and headers.
    pub(super) fn attach(
        &self,
        method: Method,
        params: &dyn Params,
        meta: JsonObject,
    ) -> Result<OutboundRequest, CallError> {
        let params = params.encode(self.version, &self.meta(meta)).map_err(CallError::Encode)?;
        let mut request = OutboundRequest::new(method.name());
        request.options.headers = self.headers(method.name(), Some(params.as_str()));
        Ok(request.params(params))
    }

    /// Adds metadata and headers to a custom request.
    pub(super) fn attach_to_custom(&self, mut request: OutboundRequest) -> OutboundRequest {
        let params = request.params.take();
        self.attach_headers(&mut request, params.as_ref().map(Json::as_str));
        request.params = params;
        request.meta = self.meta(request.meta);
        request
    }

    /// Adds the headers of the session to a request that has its own metadata.
    pub(super) fn attach_headers(&self, request: &mut OutboundRequest, params: Option<&str>) {
        if self.headers == HeaderUse::Unsupported {
            request.options.headers.clear();
            return;
        }
        let headers = self.headers(&request.method, params);
        request.options.headers = merge_headers(headers, std::mem::take(&mut request.options.headers));
    }

    /// Adds the session's members to the caller's `_meta`. They take precedence, except for the log level.
    fn meta(&self, mut own: JsonObject) -> JsonObject {
        let Some(envelope) = &self.meta else { return own };
        for (name, value) in envelope.iter() {
            own.insert(name, value.clone());
        }
        if let Some(level) = &self.log_level
            && own.get(key::LOG_LEVEL).is_none()
        {
            own.insert(key::LOG_LEVEL, level.clone());
        }
        own
    }

    /// Returns the headers that mirror the request, for transports with headers.
    fn headers(&self, method: &str, params: Option<&str>) -> Vec<(String, String)> {
        let mut all = Vec::new();
        if self.headers == HeaderUse::Unsupported {
            return all;
        }
        let mut add = |name: headers::Name, value: Cow<'_, str>| {
            all.push((name.canonical.to_owned(), value.into_owned()));
        };
        if self.version.has(feature::VERSION_HEADER) {
            add(headers::PROTOCOL_VERSION, self.version.as_str().into());
        }
        if self.meta.is_some() {
            add(headers::METHOD, headers::encode(method));
            let field = Method::parse(method).and_then(Method::mirrored_field);
            let name = field.and_then(|field| find_member(params?, field));
            if let Some(name) = name.and_then(|text| serde_json::from_str::<String>(text).ok()) {
                add(headers::NAME, headers::encode(&name));
            }
        }
        all
    }
}

/// Appends the caller's headers to the session's. The session's headers take precedence.
pub(super) fn merge_headers(
    session: Vec<(String, String)>,
    caller: Vec<(String, String)>,
) -> Vec<(String, String)> {
    let others: Vec<_> = caller
        .into_iter()
        .filter(|(name, _)| !session.iter().any(|(taken, _)| taken.eq_ignore_ascii_case(name)))
        .collect();
    [session, others].concat()
}
