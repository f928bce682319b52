//! Results of custom methods: free-form objects that get the same envelope members as all other results.

use serde::Serialize as _;

use super::{CacheScope, ResultMeta, result_type};
use crate::json::writer::Writer;
use crate::json::{Json, JsonObject};
use crate::meta::key;
use crate::version::{Era, ProtocolVersion};

/// Writes the result of a custom method; in the envelope era with `resultType` and the server's identity.
///
/// Members that the handler has set take precedence. A `_meta` that is not an object stays unchanged.
///
/// # Errors
/// Fails if `result` is not an object.
pub fn write_custom_result(
    out: &mut Vec<u8>,
    result: &Json,
    version: ProtocolVersion,
    added: ResultMeta<'_>,
) -> Result<(), serde_json::Error> {
    if version.era() == Era::Handshake {
        out.extend_from_slice(result.as_str().as_bytes());
        return Ok(());
    }
    let mut members: JsonObject = result.decode()?;
    if members.get("resultType").is_none() {
        members.insert("resultType", Json::from(result_type::COMPLETE));
    }
    if let Some(hint) = added.hint
        && members.get("resultType").is_some_and(|kind| kind.decode().is_ok_and(is_complete))
    {
        set_default(&mut members, "ttlMs", Json::encode(&hint.ttl_ms.unwrap_or(0))?);
        set_default(&mut members, "cacheScope", Json::encode(&hint.scope.unwrap_or(CacheScope::Private))?);
    }
    if let Some(info) = added.server_info {
        let own = members.get("_meta").map_or_else(|| Ok(JsonObject::new()), Json::decode::<JsonObject>);
        if let Ok(mut own) = own {
            if own.get(key::SERVER_INFO).is_none_or(Json::is_null) {
                own.remove(key::SERVER_INFO);
                own.insert(key::SERVER_INFO, info.clone());
            }
            members.remove("_meta");
            members.insert("_meta", Json::encode(&own)?);
        }
    }
    members.serialize(Writer::new(out))
}

#[expect(clippy::needless_pass_by_value, reason = "the signature that `is_ok_and` requires")]
fn is_complete(kind: String) -> bool {
    kind == result_type::COMPLETE
}

fn set_default(members: &mut JsonObject, name: &str, value: Json) {
    if members.get(name).is_none() {
        members.insert(name, value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::Freshness;

    fn written(result: &str, version: ProtocolVersion) -> String {
        hinted(result, version, None)
    }

    fn hinted(result: &str, version: ProtocolVersion, hint: Option<Freshness>) -> String {
        let info = Json::parse(r#"{"name":"s","version":"1"}"#).unwrap();
        let added = ResultMeta { server_info: Some(&info), hint };
        let mut out = Vec::new();
        write_custom_result(&mut out, &Json::parse(result).unwrap(), version, added).unwrap();
        String::from_utf8(out).unwrap()
    }

    /// RUN-15, RUN-16: `resultType` and identity are added at the end; an identity that the handler set takes
    /// precedence, `null` does not.
    #[test]
    fn an_envelope_result_gets_its_type_and_the_identity() {
        let check = |result, expected| assert_eq!(written(result, ProtocolVersion::V2026_07_28), expected);
        let identity = r#""io.modelcontextprotocol/serverInfo":{"name":"s","version":"1"}"#;
        check(r#"{"a":1}"#, format!(r#"{{"a":1,"resultType":"complete","_meta":{{{identity}}}}}"#));
        check(
            r#"{"_meta":{"io.modelcontextprotocol/serverInfo":null,"x":1},"resultType":"odd"}"#,
            format!(r#"{{"resultType":"odd","_meta":{{"x":1,{identity}}}}}"#),
        );
        check(
            r#"{"_meta":{"io.modelcontextprotocol/serverInfo":{"name":"own"}}}"#,
            r#"{"resultType":"complete","_meta":{"io.modelcontextprotocol/serverInfo":{"name":"own"}}}"#
                .to_owned(),
        );
        check(r#"{"_meta":7}"#, r#"{"_meta":7,"resultType":"complete"}"#.to_owned());
    }

    /// CACHE-02, CACHE-03, TYP-19: in a free-form object each key that is present takes precedence.
    #[test]
    fn freshness_fills_the_keys_that_are_absent() {
        let check = |result, expected| {
            let hint = Freshness { ttl_ms: Some(5), scope: None };
            let text = hinted(result, ProtocolVersion::V2026_07_28, Some(hint));
            assert_eq!(text.split(",\"_meta\"").next(), Some(expected));
        };
        check(r#"{"a":1}"#, r#"{"a":1,"resultType":"complete","ttlMs":5,"cacheScope":"private""#);
        check(r#"{"ttlMs":0}"#, r#"{"ttlMs":0,"resultType":"complete","cacheScope":"private""#);
        check(r#"{"resultType":"odd"}"#, r#"{"resultType":"odd""#);
        check(r#"{"resultType":7}"#, r#"{"resultType":7"#);
    }

    #[test]
    fn a_handshake_result_stays_unchanged() {
        assert_eq!(written(r#"{"a":null}"#, ProtocolVersion::V2025_11_25), r#"{"a":null}"#);
    }
}
