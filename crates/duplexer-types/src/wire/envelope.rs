//! Members that the envelope era adds to a result: `resultType`, freshness, and the identity of the server.

use std::borrow::Cow;

use serde::de::Error as _;
use serde::ser::{SerializeMap, Serializer as _};
use serde::{Deserialize, Deserializer};

use super::{CacheScope, Freshness, ResultBody, Shape, result_type};
use crate::json::scan;
use crate::json::writer::Writer;
use crate::json::{Json, JsonObject, Occurrence, find_members};
use crate::meta::key;
use crate::version::{Era, ProtocolVersion, feature};

/// Members that a server adds to each of its results in the envelope era.
#[derive(Clone, Copy, Debug, Default)]
pub struct ResultMeta<'a> {
    /// Identity of the server, encoded once.
    pub server_info: Option<&'a Json>,
    /// For cacheable methods: values of unset freshness members.
    pub hint: Option<Freshness>,
}

/// Writes a result in the shape of `version`: its members, then those of `added`.
///
/// The handshake era adds nothing.
///
/// # Errors
/// Fails if the result cannot be written in this revision. `out` may then hold a part of it, which the caller
/// truncates.
pub fn write_result<R: ResultBody + ?Sized>(
    out: &mut Vec<u8>,
    result: &R,
    version: ProtocolVersion,
    added: ResultMeta<'_>,
) -> Result<(), serde_json::Error> {
    let mut map = Writer::new(out).serialize_map(None)?;
    result.members(Shape::new(version), &mut map)?;
    match version.era() {
        Era::Handshake => plain_meta(&mut map, result.meta())?,
        Era::Envelope => envelope_members(&mut map, result, added)?,
    }
    map.end()
}

fn envelope_members<M: SerializeMap, R: ResultBody + ?Sized>(
    map: &mut M,
    result: &R,
    added: ResultMeta<'_>,
) -> Result<(), M::Error> {
    let kind = result.result_type();
    map.serialize_entry("resultType", kind)?;
    if let Some(hint) = added.hint
        && kind == result_type::COMPLETE
    {
        freshness(map, result.freshness(), hint)?;
    }
    match added.server_info {
        Some(info) => {
            map.serialize_entry("_meta", &MetaWithIdentity { own: result.meta(), server_info: info })
        }
        None => plain_meta(map, result.meta()),
    }
}

/// For each member, the value of the handler takes precedence over the hint, and the hint over the safe default.
fn freshness<M: SerializeMap>(map: &mut M, set: Freshness, hint: Freshness) -> Result<(), M::Error> {
    map.serialize_entry("ttlMs", &set.ttl_ms.or(hint.ttl_ms).unwrap_or(0))?;
    map.serialize_entry("cacheScope", &set.scope.or(hint.scope).unwrap_or(CacheScope::Private))
}

pub(crate) fn plain_meta<M: SerializeMap>(map: &mut M, meta: Option<&JsonObject>) -> Result<(), M::Error> {
    meta.map_or(Ok(()), |meta| map.serialize_entry("_meta", meta))
}

/// Writes a result inside another message: its members, its own freshness, its own `_meta`.
pub(crate) fn plain_result<R: ResultBody, S: serde::Serializer>(
    result: &R,
    meta: Option<&JsonObject>,
    shape: Shape,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    let mut map = serializer.serialize_map(None)?;
    result.members(shape, &mut map)?;
    if shape.has(feature::ENVELOPE) {
        let Freshness { ttl_ms, scope } = result.freshness();
        ttl_ms.map_or(Ok(()), |ttl| map.serialize_entry("ttlMs", &ttl))?;
        scope.map_or(Ok(()), |scope| map.serialize_entry("cacheScope", &scope))?;
    }
    plain_meta(&mut map, meta)?;
    map.end()
}

/// Returns the `resultType` of a received result. Without one the result is complete, as in the handshake era.
///
/// # Errors
/// Fails if `result` is not an object, or if its `resultType` is repeated or not a string.
pub fn result_type_of(result: &str) -> Result<Cow<'_, str>, serde_json::Error> {
    let [found] = find_members(result, ["resultType"])?;
    match found {
        Occurrence::One(text) => match scan::string(text) {
            Some(kind) => Ok(kind),
            None => Err(serde_json::Error::custom("`resultType` is not a string")),
        },
        Occurrence::Absent => Ok(result_type::COMPLETE.into()),
        Occurrence::Several => Err(serde_json::Error::custom("duplicate member `resultType`")),
    }
}

/// An invalid `ttlMs` means "stale"; it does not invalidate the result.
pub(crate) fn ttl<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u64>, D::Error> {
    Ok(Option::<Json>::deserialize(deserializer)?.map(|json| json.decode().unwrap_or(0)))
}

/// An unknown `cacheScope` means "private".
pub(crate) fn scope<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<CacheScope>, D::Error> {
    Ok(Option::<Json>::deserialize(deserializer)?.map(|json| json.decode().unwrap_or(CacheScope::Private)))
}

/// The handler's `_meta`, followed by the identity of the server unless the handler has set one.
struct MetaWithIdentity<'a> {
    own: Option<&'a JsonObject>,
    server_info: &'a Json,
}

impl serde::Serialize for MetaWithIdentity<'_> {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        let mut has_identity = false;
        for (name, value) in self.own.into_iter().flat_map(JsonObject::iter) {
            if name == key::SERVER_INFO {
                if value.is_null() {
                    continue;
                }
                has_identity = true;
            }
            map.serialize_entry(name, value)?;
        }
        if !has_identity {
            map.serialize_entry(key::SERVER_INFO, self.server_info)?;
        }
        map.end()
    }
}
