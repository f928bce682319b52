//! The identity and the capabilities that a client declares.

use std::cell::RefCell;
use std::sync::Arc;

use duplexer_types::capabilities::{
    ClientCapabilities, ElicitationCapability, RootsCapability, SamplingCapability,
};
use duplexer_types::elicitation::ElicitParams;
use duplexer_types::error::ErrorObject;
use duplexer_types::input::InputRequest;
use duplexer_types::json::{Json, JsonObject};
use duplexer_types::lifecycle::{Implementation, MissingCapabilityData};
use duplexer_types::meta::{MetaCache, RequestMeta};

thread_local! {
    /// The last `_meta` whose client this thread has decoded.
    static DECODED: RefCell<MetaCache<Arc<ClientProfile>>> = const { RefCell::new(MetaCache::new()) };
}

/// The identity and the capabilities that a client has declared.
///
/// ```
/// use duplexer::server::{ClientCapability, ClientProfile};
/// use duplexer::types::capabilities::ClientCapabilities;
///
/// let declared = ClientProfile::new(None, Some(ClientCapability::Sampling.as_capabilities()));
/// assert!(declared.supports(&ClientCapability::Sampling));
/// assert!(!declared.supports(&ClientCapability::Roots));
/// ```
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct ClientProfile {
    /// The identity: for display, never for decisions.
    pub info: Option<Implementation>,
    /// The capabilities; `None` if the client has not declared any.
    pub capabilities: Option<ClientCapabilities>,
}

impl ClientProfile {
    /// A client that has declared nothing.
    pub const UNKNOWN: Self = Self { info: None, capabilities: None };

    /// Returns a profile with this identity and these capabilities.
    pub fn new(info: Option<Implementation>, capabilities: Option<ClientCapabilities>) -> Self {
        Self { info, capabilities }
    }

    /// Decodes the profile from the envelope of a request. A malformed part counts as absent.
    pub(crate) fn from_envelope(meta: Option<&str>) -> Arc<Self> {
        let Some(meta) = meta else { return Arc::new(Self::UNKNOWN) };
        if let Some(client) = DECODED.with_borrow(|cache| cache.get(meta).map(Arc::clone)) {
            return client;
        }
        let client = Arc::new(Self::decode(meta));
        DECODED.with_borrow_mut(|cache| cache.store(meta, Arc::clone(&client)));
        client
    }

    fn decode(meta: &str) -> Self {
        let Ok(meta) = RequestMeta::read(meta) else { return Self::UNKNOWN };
        Self {
            info: meta.client_info.and_then(|info| serde_json::from_str(info).ok()),
            capabilities: meta.client_capabilities.and_then(|text| serde_json::from_str(text).ok()),
        }
    }

    /// Returns whether the client has declared a capability. Without a declaration nothing is supported.
    pub fn supports(&self, requirement: &ClientCapability) -> bool {
        self.capabilities.as_ref().is_some_and(|capabilities| requirement.is_met_by(capabilities))
    }

    /// Returns whether the client has declared an extension.
    pub(crate) fn supports_extension(&self, id: &str) -> bool {
        self.capabilities.as_ref().is_some_and(|capabilities| has_extension(capabilities, id))
    }
}

/// A capability that a server can require from a client.
///
/// ```
/// use duplexer::server::ClientCapability;
/// use duplexer::{Context, ToolError};
///
/// async fn ask_if_possible(cx: Context) -> Result<&'static str, ToolError> {
///     let client = cx.connection().client();
///     Ok(if client.supports(&ClientCapability::Elicitation) { "ask" } else { "guess" })
/// }
/// # let _server = duplexer::Server::builder("g", "1").tool(duplexer::Tool::new("ask", ask_if_possible)).build()?;
/// # Ok::<_, duplexer::BuildError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum ClientCapability {
    /// Lists its roots (`roots`).
    Roots,
    /// Reports changes of its roots (`roots.listChanged`).
    RootsListChanged,
    /// Lets the server sample its model (`sampling`).
    Sampling,
    /// Includes context of servers in sampling (`sampling.context`).
    SamplingContext,
    /// Lets the model use tools during sampling (`sampling.tools`).
    SamplingTools,
    /// Elicits input from its user in any mode (`elicitation`).
    Elicitation,
    /// Elicits input with a form (`elicitation.form`).
    ElicitationForm,
    /// Elicits input by a URL (`elicitation.url`).
    ElicitationUrl,
    /// Has an experimental capability with exactly this value.
    Experimental(String, Json),
    /// Supports an extension.
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
            Self::Extension(id) => has_extension(has, id),
        }
    }

    /// Returns the capability that a request for input requires. `None` for a request that this library does not know.
    pub fn required_by(request: &InputRequest) -> Option<Self> {
        match request {
            InputRequest::Elicit(params) => match **params {
                ElicitParams::Form(_) => Some(Self::ElicitationForm),
                ElicitParams::Url(_) => Some(Self::ElicitationUrl),
                _ => None,
            },
            InputRequest::CreateMessage(params) if params.tools.is_some() || params.tool_choice.is_some() => {
                Some(Self::SamplingTools)
            }
            InputRequest::CreateMessage(_) => Some(Self::Sampling),
            InputRequest::ListRoots => Some(Self::Roots),
            _ => None,
        }
    }

    /// Returns the declaration that meets this requirement.
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

    /// Returns error -32021 for a client that has not declared this capability. Its data names the capability.
    pub fn missing(&self, message: impl Into<std::borrow::Cow<'static, str>>) -> ErrorObject {
        MissingCapabilityData::new(self.as_capabilities()).error(message)
    }
}

fn has_extension(capabilities: &ClientCapabilities, id: &str) -> bool {
    capabilities.extensions.as_ref().is_some_and(|all| all.get(id).is_some())
}

/// Returns whether two JSON texts are equal as values.
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

    /// CONN-08: capabilities count by presence, experimental ones by value, and an absent declaration means no.
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

    /// CONN-03: a malformed part counts as absent; capabilities are kept without an identity.
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

    /// A thread decodes the same `_meta` once, and never takes one for another.
    #[test]
    fn a_client_is_decoded_once_per_envelope() {
        let declared =
            |name: &str| format!(r#"{{"io.modelcontextprotocol/clientCapabilities":{{"{name}":{{}}}}}}"#);
        let (roots, sampling) = (declared("roots"), declared("sampling"));
        let first = ClientProfile::from_envelope(Some(&roots));
        assert!(Arc::ptr_eq(&first, &ClientProfile::from_envelope(Some(&roots))));
        let other = ClientProfile::from_envelope(Some(&sampling));
        assert!(!other.supports(&ClientCapability::Roots) && other.supports(&ClientCapability::Sampling));
        assert!(ClientProfile::from_envelope(Some(&roots)).supports(&ClientCapability::Roots));
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
