//! The messages that `doctor` sends, and what it reads of the answers.

use duplexer::types::json::JsonObject;
use duplexer::types::meta::key;
use duplexer::types::methods::Method;
use duplexer::types::text::shown;
use duplexer::types::version::{Era, ProtocolVersion};
use serde_json::{Value, json};

/// A revision that does not exist.
pub(super) const NO_VERSION: &str = "1900-01-01";
/// A method that does not exist.
pub(super) const NO_METHOD: &str = "duplexer-doctor/nothing";

/// How a request was answered.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Answer {
    Result(Value),
    Error {
        code: i64,
        message: String,
    },
    /// There was no answer of the protocol; the text says what there was.
    Nothing(String),
}

impl Answer {
    /// Reads a response.
    pub(super) fn of(response: &Value) -> Self {
        if let Some(result) = response.get("result") {
            return Self::Result(result.clone());
        }
        match response.get("error") {
            Some(error) => Self::Error {
                code: error.get("code").and_then(Value::as_i64).unwrap_or_default(),
                message: error.get("message").and_then(Value::as_str).unwrap_or_default().to_owned(),
            },
            None => Self::Nothing(format!("a message without result and error: {}", brief(response))),
        }
    }

    /// Describes the answer in a few words.
    pub(super) fn describe(&self) -> String {
        match self {
            Self::Result(result) => format!("a result: {}", brief(result)),
            Self::Error { code, message } => format!("the error {code}: {}", shown(message)),
            Self::Nothing(text) => text.clone(),
        }
    }
}

/// Returns the begin of a JSON text.
pub(super) fn brief(value: &Value) -> String {
    shown(&value.to_string())
}

/// Returns the name of a method, and of the one that does not exist.
pub(super) fn name(method: Option<Method>) -> &'static str {
    method.map_or(NO_METHOD, Method::name)
}

/// Builds a request of an era.
pub(super) fn request(era: Era, id: &Value, method: Option<Method>, mut params: Value) -> Value {
    if era == Era::Envelope {
        params["_meta"] = meta(ProtocolVersion::LATEST_ENVELOPE.as_str());
    }
    json!({"jsonrpc": "2.0", "id": id, "method": name(method), "params": params})
}

/// Builds the `_meta` of a request of the envelope era.
pub(super) fn meta(version: &str) -> Value {
    json!({
        key::PROTOCOL_VERSION: version,
        key::CLIENT_CAPABILITIES: {},
        key::CLIENT_INFO: {"name": "duplexer-doctor", "version": env!("CARGO_PKG_VERSION")},
    })
}

/// Builds the request that opens a session of the handshake era.
pub(super) fn initialize(id: &Value, version: &str) -> Value {
    let params = json!({
        "protocolVersion": version,
        "capabilities": {},
        "clientInfo": {"name": "duplexer-doctor", "version": env!("CARGO_PKG_VERSION")},
    });
    request(Era::Handshake, id, Some(Method::Initialize), params)
}

/// Builds the notification that a session of the handshake era is open.
pub(super) fn initialized() -> Value {
    json!({"jsonrpc": "2.0", "method": Method::Initialized.name()})
}

/// Returns whether a message is the response to a request, and not a request or notification of the server.
pub(super) fn is_response(message: &Value) -> bool {
    message.get("method").is_none() && (message.get("result").is_some() || message.get("error").is_some())
}

/// Returns what is wrong with a message, whatever it is.
pub(super) fn fault(message: &Value) -> Option<String> {
    let Some(members) = message.as_object() else { return Some(format!("{} is no message", brief(message))) };
    if members.get("jsonrpc").and_then(Value::as_str) != Some("2.0") {
        return Some(format!("a message without `\"jsonrpc\": \"2.0\"`: {}", brief(message)));
    }
    let is_one_of = |names: [&str; 3]| names.iter().filter(|name| members.contains_key(**name)).count() == 1;
    if !is_one_of(["method", "result", "error"]) {
        return Some(format!("a message that is not one of request, result and error: {}", brief(message)));
    }
    None
}

/// Returns the name and version of a server, if a result has them.
pub(super) fn identity(info: Option<&Value>) -> Option<String> {
    let info = info?;
    let text = |member: &str| info.get(member).and_then(Value::as_str);
    Some(shown(&format!("{} {}", text("name")?, text("version").unwrap_or_default())).trim_end().to_owned())
}

/// Returns what is missing in the result of a handshake.
pub(super) fn handshake_faults(result: &Value) -> Vec<&'static str> {
    let mut faults = Vec::new();
    let mut expect = |holds: bool, fault: &'static str| {
        if !holds {
            faults.push(fault);
        }
    };
    let version = result.get("protocolVersion").and_then(Value::as_str);
    let is_handshake = version
        .and_then(|version| version.parse::<ProtocolVersion>().ok())
        .is_some_and(|version| version.era() == Era::Handshake);
    expect(is_handshake, "protocolVersion is not a revision of the handshake era");
    expect(result.get("capabilities").is_some_and(Value::is_object), "capabilities is not an object");
    let info = result.get("serverInfo");
    let has = |member: &str| info.and_then(|info| info.get(member)).is_some_and(Value::is_string);
    expect(has("name") && has("version"), "serverInfo has not both name and version");
    faults
}

/// Returns what is missing in the result of a discovery.
pub(super) fn discovery_faults(result: &Value) -> Vec<&'static str> {
    let mut faults = Vec::new();
    let mut expect = |holds: bool, fault: &'static str| {
        if !holds {
            faults.push(fault);
        }
    };
    let versions = result.get("supportedVersions").and_then(Value::as_array);
    let newest = ProtocolVersion::LATEST_ENVELOPE.as_str();
    expect(
        versions.is_some_and(|versions| versions.iter().any(|version| version == newest)),
        "supportedVersions has not the revision of the request",
    );
    expect(result.get("capabilities").is_some_and(Value::is_object), "capabilities is not an object");
    expect(result.get("ttlMs").is_some_and(Value::is_number), "ttlMs is not a number");
    expect(result.get("cacheScope").is_some_and(Value::is_string), "cacheScope is not a text");
    faults
}

/// Parses one message. Members that occur twice are an error.
pub(super) fn parse(text: &str) -> Result<Value, String> {
    let value: Value = serde_json::from_str(text).map_err(|error| error.to_string())?;
    if value.is_object() && serde_json::from_str::<JsonObject>(text).is_err() {
        return Err("a member occurs twice".to_owned());
    }
    Ok(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_one_of_three() {
        let check = |text: &str, is_sound: bool| {
            assert_eq!(fault(&serde_json::from_str(text).unwrap()).is_none(), is_sound, "{text}");
        };
        check(r#"{"jsonrpc":"2.0","id":1,"result":{}}"#, true);
        check(r#"{"jsonrpc":"2.0","method":"x"}"#, true);
        check(r#"{"id":1,"result":{}}"#, false);
        check(r#"{"jsonrpc":"2.0","id":1,"result":{},"error":{}}"#, false);
        check("[]", false);
        assert!(parse(r#"{"a":1,"a":2}"#).is_err() && parse("{").is_err() && parse("[1]").is_ok());
    }

    #[test]
    fn results_of_both_eras_are_checked() {
        let good = json!({"protocolVersion": "2025-06-18", "capabilities": {}, "serverInfo": {"name": "a", "version": "1"}});
        assert!(handshake_faults(&good).is_empty());
        assert_eq!(handshake_faults(&json!({})).len(), 3);
        assert_eq!(identity(good.get("serverInfo")).as_deref(), Some("a 1"));
        let good = json!({"supportedVersions": ["2026-07-28"], "capabilities": {}, "ttlMs": 0, "cacheScope": "public"});
        assert!(discovery_faults(&good).is_empty());
        assert_eq!(discovery_faults(&json!({"supportedVersions": ["x"]})).len(), 4);
    }
}
