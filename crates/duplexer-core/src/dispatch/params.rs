//! Params of own requests, and what is added to them.

use bytestring::ByteString;
use duplexer_types::json::{Json, JsonObject};

use crate::error::CallError;

/// Params of an own request.
pub(crate) enum Params {
    Json(Json),
    /// Text that was read from a frame.
    Text(ByteString),
}

impl Params {
    pub(crate) fn as_str(&self) -> &str {
        match self {
            Self::Json(params) => params.as_str(),
            Self::Text(params) => params,
        }
    }
}

/// Adds `meta` to the `_meta` of the params. Other members of `_meta` are kept; `meta` takes precedence.
pub(crate) fn params_with_meta(
    params: Option<Params>,
    meta: JsonObject,
) -> Result<Option<Params>, CallError> {
    if meta.is_empty() {
        return Ok(params);
    }
    let merged = match params {
        Some(Params::Text(text)) => Json::parse(&text).and_then(|params| merge_meta(Some(params), meta)),
        Some(Params::Json(params)) => merge_meta(Some(params), meta),
        None => merge_meta(None, meta),
    };
    merged.map(|params| Some(Params::Json(params))).map_err(CallError::Encode)
}

fn merge_meta(params: Option<Json>, meta: JsonObject) -> Result<Json, serde_json::Error> {
    let mut members: JsonObject = params.map_or_else(|| Ok(JsonObject::new()), |params| params.decode())?;
    let mut own: JsonObject =
        members.remove("_meta").map_or_else(|| Ok(JsonObject::new()), |own| own.decode())?;
    for (name, value) in meta {
        own.insert(name, value);
    }
    members.insert("_meta", Json::encode(&own)?);
    Json::encode(&members)
}
