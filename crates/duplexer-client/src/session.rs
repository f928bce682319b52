//! What was settled when the session was opened: who the server is, what every request carries, and how
//! results are read.

use std::borrow::Cow;

use duplexer_types::capabilities::{ClientCapabilities, ServerCapabilities};
use duplexer_types::headers;
use duplexer_types::json::{Json, JsonObject};
use duplexer_types::lifecycle::Implementation;
use duplexer_types::logging::LoggingLevel;
use duplexer_types::meta::{self, key};
use duplexer_types::methods::{Method, Request};
use duplexer_types::version::{Era, ProtocolVersion, feature};
use duplexer_types::wire::{self, ForRevision, ResultBody, Shape, WireObject};
use serde::ser::SerializeMap;

use duplexer_core::dispatch::OutboundRequest;
use duplexer_core::error::CallError;

/// What is known of the server.
pub(super) struct Session {
    pub(super) version: ProtocolVersion,
    pub(super) server_info: Option<Implementation>,
    pub(super) capabilities: ServerCapabilities,
    pub(super) instructions: Option<String>,
    pub(super) envelope: RequestEnvelope,
    /// The newest revision of an era that does not say what type a result is, if that is the era spoken.
    pub(super) result_revision: Option<ProtocolVersion>,
}

/// Reads a final result. Of an era that `result_revision` stands for, what only a later one knows is dropped.
pub(super) fn read<R>(text: &str, result_revision: Option<ProtocolVersion>) -> Result<R, CallError>
where
    R: ResultBody + serde::de::DeserializeOwned,
{
    let result: R = serde_json::from_str(text).map_err(CallError::Unexpected)?;
    let Some(era) = result_revision else { return Ok(result) };
    let mut known = Vec::with_capacity(text.len());
    wire::write_result(&mut known, &result, era, wire::ResultMeta::default())
        .and_then(|()| serde_json::from_slice(&known))
        .map_err(CallError::Unexpected)
}

/// Who the client is and what it can do.
pub(super) struct Identity {
    pub(super) info: Implementation,
    pub(super) capabilities: ClientCapabilities,
    pub(super) log_level: Option<LoggingLevel>,
}

/// What every request of a session carries.
pub(super) struct RequestEnvelope {
    version: ProtocolVersion,
    /// The `_meta` of the envelope era.
    envelope: Option<JsonObject>,
    log_level: Option<Json>,
}

impl RequestEnvelope {
    /// The stamp of a session in `version`.
    pub(super) fn new(version: ProtocolVersion, identity: &Identity) -> Result<Self, CallError> {
        let shape = Shape::new(version);
        let stamp = match version.era() {
            Era::Handshake => Self { version, envelope: None, log_level: None },
            Era::Envelope => {
                let info = Json::encode(&ForRevision(&identity.info, shape)).map_err(CallError::Encode)?;
                let capabilities =
                    Json::encode(&ForRevision(&identity.capabilities, shape)).map_err(CallError::Encode)?;
                Self {
                    version,
                    envelope: Some(meta::envelope(version.as_str(), &info, &capabilities)),
                    log_level: identity.log_level.map(|level| level.as_str().into()),
                }
            }
        };
        Ok(stamp)
    }

    /// A request of the protocol, with all it carries.
    pub(super) fn attach<M: Request>(
        &self,
        params: &M::Params,
        meta: JsonObject,
    ) -> Result<OutboundRequest, CallError> {
        let meta = self.meta(meta);
        let shape = Shape::new(self.version);
        let params =
            Json::encode(&ParamsWithMeta { params, meta: &meta, shape }).map_err(CallError::Encode)?;
        let mut request = OutboundRequest::new(M::METHOD.name());
        request.options.headers = self.headers(M::METHOD.name(), Some(&params));
        Ok(request.params(params))
    }

    /// A request that was made elsewhere, with all it carries.
    pub(super) fn attach_to_custom(&self, mut request: OutboundRequest) -> OutboundRequest {
        let headers = self.headers(&request.method, request.params.as_ref());
        request.options.headers = merged(headers, request.options.headers);
        request.meta = self.meta(request.meta);
        request
    }

    /// The caller's `_meta` with ours, which wins; only the log level is the caller's to choose.
    fn meta(&self, mut own: JsonObject) -> JsonObject {
        let Some(envelope) = &self.envelope else { return own };
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

    /// What transports with headers repeat in them.
    fn headers(&self, method: &str, params: Option<&Json>) -> Vec<(String, String)> {
        let mut all = Vec::new();
        let mut add = |name: headers::Name, value: Cow<'_, str>| {
            all.push((name.canonical.to_owned(), value.into_owned()));
        };
        if self.version.has(feature::VERSION_HEADER) {
            add(headers::PROTOCOL_VERSION, self.version.as_str().into());
        }
        if self.envelope.is_some() {
            add(headers::METHOD, headers::encode(method));
            let field = Method::parse(method).and_then(Method::mirrored_field);
            let name = field.and_then(|field| params?.member(field));
            if let Some(name) = name.and_then(|text| serde_json::from_str::<String>(text).ok()) {
                add(headers::NAME, headers::encode(&name));
            }
        }
        all
    }
}

/// Ours, and what the caller adds under other names.
pub(super) fn merged(ours: Vec<(String, String)>, callers: Vec<(String, String)>) -> Vec<(String, String)> {
    let others: Vec<_> = callers
        .into_iter()
        .filter(|(name, _)| !ours.iter().any(|(taken, _)| taken.eq_ignore_ascii_case(name)))
        .collect();
    [ours, others].concat()
}

/// Params in the shape of a revision, with their `_meta`.
struct ParamsWithMeta<'a, P> {
    params: &'a P,
    meta: &'a JsonObject,
    shape: Shape,
}

impl<P: WireObject> serde::Serialize for ParamsWithMeta<'_, P> {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        self.params.members(self.shape, &mut map)?;
        if !self.meta.is_empty() {
            map.serialize_entry("_meta", self.meta)?;
        }
        map.end()
    }
}
