//! Who a client says it is, and what it can do.

use duplexer_types::capabilities::{
    ClientCapabilities, ElicitationCapability, RootsCapability, SamplingCapability,
};
use duplexer_types::error::ErrorObject;
use duplexer_types::json::{Json, JsonObject};
use duplexer_types::lifecycle::{Implementation, MissingCapabilityData};
use duplexer_types::meta::RequestMeta;

/// What a client has said about itself.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct ClientProfile {
    /// Its identity: for display, never for decisions.
    pub info: Option<Implementation>,
    /// What it can do; `None` if it has not said.
    pub capabilities: Option<ClientCapabilities>,
}

impl ClientProfile {
    /// A client that has said nothing.
    pub const UNKNOWN: Self = Self { info: None, capabilities: None };

    /// A client with this identity and these capabilities.
    pub fn new(info: Option<Implementation>, capabilities: Option<ClientCapabilities>) -> Self {
        Self { info, capabilities }
    }

    /// What the envelope of a request says; what is malformed counts as not said.
    pub(crate) fn from_envelope(meta: Option<&str>) -> Self {
        let Some(meta) = meta.and_then(|meta| RequestMeta::read(meta).ok()) else { return Self::UNKNOWN };
        Self {
            info: meta.client_info.and_then(|info| serde_json::from_str(info).ok()),
            capabilities: meta.client_capabilities.and_then(|text| serde_json::from_str(text).ok()),
        }
    }

    /// Whether the client has declared what is required. Nothing declared, nothing supported.
    pub fn supports(&self, requirement: &ClientCapability) -> bool {
        self.capabilities.as_ref().is_some_and(|capabilities| requirement.is_met_by(capabilities))
    }
}

/// Something a client must be able to do.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum ClientCapability {
    /// Lists its roots.
    Roots,
    /// Says when its roots change.
    RootsListChanged,
    /// Lets the server use its model.
    Sampling,
    /// Adds context of servers to that.
    SamplingContext,
    /// Lets the model use tools meanwhile.
    SamplingTools,
    /// Asks its user in any way.
    Elicitation,
    /// Asks its user with a form.
    ElicitationForm,
    /// Sends its user to a URL.
    ElicitationUrl,
    /// Has an experimental capability with exactly this value.
    Experimental(String, Json),
    /// Speaks an extension.
    Extension(String),
}

impl ClientCapability {
    fn is_met_by(&self, has: &ClientCapabilities) -> bool {
        let sampling = has.sampling.as_ref();
        let elicitation = has.elicitation.as_ref();
        match self {
            Self::Roots => has.roots.is_some(),
            Self::RootsListChanged => {
                has.roots.as_ref().is_some_and(|roots| roots.list_changed == Some(true))
            }
            Self::Sampling => sampling.is_some(),
            Self::SamplingContext => sampling.is_some_and(|sampling| sampling.context.is_some()),
            Self::SamplingTools => sampling.is_some_and(|sampling| sampling.tools.is_some()),
            Self::Elicitation => elicitation.is_some(),
            Self::ElicitationForm => elicitation.is_some_and(ElicitationCapability::asks_by_form),
            Self::ElicitationUrl => elicitation.is_some_and(ElicitationCapability::asks_by_url),
            Self::Experimental(name, value) => has
                .experimental
                .as_ref()
                .and_then(|all| all.get(name))
                .is_some_and(|has| same_json(has, value)),
            Self::Extension(id) => has.extensions.as_ref().is_some_and(|all| all.get(id).is_some()),
        }
    }

    /// The capabilities a client must declare to meet this.
    pub fn as_capabilities(&self) -> ClientCapabilities {
        let none = ClientCapabilities::new;
        match self {
            Self::Roots => none().roots(RootsCapability::new()),
            Self::RootsListChanged => none().roots(RootsCapability::new().list_changed(true)),
            Self::Sampling => none().sampling(SamplingCapability::new()),
            Self::SamplingContext => none().sampling(SamplingCapability::new().context(JsonObject::new())),
            Self::SamplingTools => none().sampling(SamplingCapability::new().tools(JsonObject::new())),
            Self::Elicitation => none().elicitation(ElicitationCapability::new()),
            Self::ElicitationForm => none().elicitation(ElicitationCapability::new().form(JsonObject::new())),
            Self::ElicitationUrl => none().elicitation(ElicitationCapability::new().url(JsonObject::new())),
            Self::Experimental(name, value) => {
                none().experimental(JsonObject::new().with(name.as_str(), value.clone()))
            }
            Self::Extension(id) => none().extensions(JsonObject::new().with(id.as_str(), Json::object())),
        }
    }

    /// -32021: the client has not declared this; the data says what it should have.
    pub fn missing(&self, message: impl Into<std::borrow::Cow<'static, str>>) -> ErrorObject {
        MissingCapabilityData::new(self.as_capabilities()).error(message)
    }
}

/// Equal as JSON, however it is written.
fn same_json(one: &Json, two: &Json) -> bool {
    one == two
        || matches!(
            (one.decode::<serde_json::Value>(), two.decode::<serde_json::Value>()),
            (Ok(one), Ok(two)) if one == two
        )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn client(capabilities: &str) -> ClientProfile {
        ClientProfile::new(None, Some(serde_json::from_str(capabilities).unwrap()))
    }

    /// CONN-08: capabilities count by presence, experimental ones by value, and silence means no.
    #[test]
    fn a_capability_is_supported_when_it_was_declared() {
        let check = |has: &str, requirement: ClientCapability, expected: bool| {
            assert_eq!(client(has).supports(&requirement), expected, "{has} {requirement:?}");
        };
        check(r#"{"roots":{}}"#, ClientCapability::Roots, true);
        check(r#"{"roots":{}}"#, ClientCapability::RootsListChanged, false);
        check(r#"{"roots":{"listChanged":true}}"#, ClientCapability::RootsListChanged, true);
        check(r#"{"sampling":{"tools":{}}}"#, ClientCapability::SamplingTools, true);
        check(r#"{"sampling":{"tools":{}}}"#, ClientCapability::SamplingContext, false);
        check(r#"{"sampling":{"context":{}}}"#, ClientCapability::Sampling, true);
        check(r#"{"elicitation":{}}"#, ClientCapability::ElicitationForm, true);
        check(r#"{"elicitation":{}}"#, ClientCapability::ElicitationUrl, false);
        check(r#"{"elicitation":{"url":{}}}"#, ClientCapability::ElicitationForm, false);
        check(r#"{"elicitation":{"url":{}}}"#, ClientCapability::ElicitationUrl, true);
        let experimental =
            |value: &str| ClientCapability::Experimental("x".into(), Json::parse(value).unwrap());
        check(r#"{"experimental":{"x":{"a":1, "b":2}}}"#, experimental(r#"{"b":2,"a":1}"#), true);
        check(r#"{"experimental":{"x":{"a":1}}}"#, experimental(r#"{"a":2}"#), false);
        check(r#"{"extensions":{"a/b":{}}}"#, ClientCapability::Extension("a/b".into()), true);
        check("{}", ClientCapability::Extension("a/b".into()), false);
        assert!(!ClientProfile::UNKNOWN.supports(&ClientCapability::Roots));
    }

    /// CONN-03: what is malformed counts as not said; capabilities are kept without an identity.
    #[test]
    fn a_malformed_envelope_says_nothing() {
        let meta = r#"{"io.modelcontextprotocol/clientInfo":5,"io.modelcontextprotocol/clientCapabilities":{"roots":{}}}"#;
        let facts = ClientProfile::from_envelope(Some(meta));
        assert!(facts.info.is_none() && facts.supports(&ClientCapability::Roots));
        let facts =
            ClientProfile::from_envelope(Some(r#"{"io.modelcontextprotocol/clientCapabilities":[]}"#));
        assert!(facts.capabilities.is_none());
        assert!(ClientProfile::from_envelope(None).info.is_none());
    }

    /// EXT-05, P-MRTR-6: the data is an object that names what is missing.
    #[test]
    fn a_missing_capability_is_named_in_the_error() {
        let error = ClientCapability::Extension("a/b".into())
            .missing("Client did not declare required extension 'a/b'");
        assert_eq!(error.code.0, -32021);
        assert_eq!(error.data.unwrap().as_str(), r#"{"requiredCapabilities":{"extensions":{"a/b":{}}}}"#);
    }
}
