//! The server card: a public description of the server, and its entry in the catalog of a domain.
//!
//! Identity, icons and revisions are those of the server, so that card and server cannot disagree. It has no tools: what a server
//! offers can depend on its caller.

use bytes::Bytes;
use duplexer_server::Server;
use duplexer_types::icon::Icon;
use duplexer_types::version::{Era, ProtocolVersion};
use http::header::{
    ACCESS_CONTROL_ALLOW_ORIGIN, ALLOW, CACHE_CONTROL, CONTENT_TYPE, ETAG, HeaderValue, IF_NONE_MATCH,
};
use http::request::Parts;
use http::{Method, StatusCode};
use serde::Serialize;
use sha2::{Digest, Sha256};

use super::body::ResponseBody;
use super::config::{Config, Handshake};
use super::reply::{self, Reply};
use super::serve::path_service::PATH;

const SCHEMA: &str = "https://static.modelcontextprotocol.io/schemas/v1/server-card.schema.json";
const CARD_TYPE: &str = "application/mcp-server-card+json";
const CATALOG_TYPE: &str = "application/ai-catalog+json";
const CATALOG_PATH: &str = "/.well-known/ai-catalog.json";
const CARD: &str = "server-card";
const CACHED: HeaderValue = HeaderValue::from_static("public, max-age=3600");
const ANY_ORIGIN: HeaderValue = HeaderValue::from_static("*");
const GET_AND_HEAD: HeaderValue = HeaderValue::from_static("GET, HEAD");
const MAX_DESCRIPTION: usize = 100;
const MAX_NAME: usize = 200;

/// A description of a server for clients that look for servers. For
/// [`StreamableHttpBuilder::server_card`](crate::StreamableHttpBuilder::server_card).
///
/// ```
/// use duplexer_http::{ServerCard, StreamableHttp};
/// use duplexer_server::Server;
///
/// let server = Server::builder("weather", "1.4.0").title("Weather").build()?;
/// let card = ServerCard::new("com.example/weather")
///     .description("Forecasts for every place")
///     .url("https://mcp.example.com/mcp")
///     .in_catalog();
/// let service = StreamableHttp::builder(server).public_url("https://mcp.example.com").server_card(card).build()?;
/// # Ok::<_, Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
#[must_use = "a card is served by the service that it is given to"]
pub struct ServerCard {
    name: String,
    description: Option<String>,
    repository: Option<String>,
    url: Option<String>,
    in_catalog: bool,
}

impl ServerCard {
    /// Creates a card under a name in reverse-DNS form, such as `com.example/weather`.
    pub fn new(name: impl Into<String>) -> Self {
        Self { name: name.into(), description: None, repository: None, url: None, in_catalog: false }
    }

    /// Sets the description, of at most 100 characters. Default: that of the server.
    pub fn description(mut self, description: impl Into<String>) -> Self {
        self.description = Some(description.into());
        self
    }

    /// Sets the URL of the source code.
    pub fn repository(mut self, url: impl Into<String>) -> Self {
        self.repository = Some(url.into());
        self
    }

    /// Sets the public URL of the endpoint.
    pub fn url(mut self, url: impl Into<String>) -> Self {
        self.url = Some(url.into());
        self
    }

    /// Also serves the catalog of the domain, `/.well-known/ai-catalog.json`, with this server as its only entry. Needs the URL.
    pub fn in_catalog(mut self) -> Self {
        self.in_catalog = true;
        self
    }

    /// Writes the documents. Fails with the reason why clients would reject them.
    pub(super) fn routes(&self, server: &Server, handshake: Handshake) -> Result<CardRoutes, String> {
        let info = server.server_info();
        let (domain, short_name) = split_name(&self.name)
            .ok_or_else(|| format!("'{}' is not a name such as com.example/weather", self.name))?;
        let description = self.description.as_deref().or(info.description.as_deref());
        let description = description.ok_or("it needs a description, of the card or of the server")?;
        if description.chars().count() > MAX_DESCRIPTION {
            return Err(format!("its description has more than {MAX_DESCRIPTION} characters"));
        }
        if let Some(url) = self.url.as_ref().filter(|url| !is_public_url(url)) {
            return Err(format!("'{url}' is not an https URL"));
        }
        let is_served =
            |version: &&ProtocolVersion| handshake != Handshake::Disabled || version.era() == Era::Envelope;
        let versions: Vec<_> =
            ProtocolVersion::ALL.iter().filter(is_served).map(|version| version.as_str()).collect();
        let remote = self.url.as_deref().map(|url| Remote {
            kind: "streamable-http",
            url,
            supported_protocol_versions: &versions,
        });
        let card = Document {
            schema: SCHEMA,
            name: &self.name,
            version: &info.version,
            description,
            title: info.title.as_deref(),
            website_url: info.website_url.as_deref(),
            icons: info.icons.as_deref(),
            repository: self.repository.as_deref().map(|url| Repository { url }),
            remotes: remote.into_iter().collect(),
        };
        let catalog = match (self.in_catalog, &self.url) {
            (false, _) => None,
            (true, None) => return Err("a catalog needs the URL of the endpoint".to_owned()),
            (true, Some(url)) => {
                let entry = Entry {
                    identifier: format!("urn:air:{domain}:mcp:{short_name}"),
                    kind: CARD_TYPE,
                    url: format!("{}/{CARD}", url.trim_end_matches('/')),
                };
                Some(Served::new(CATALOG_TYPE, &Catalog { spec_version: "1.0", entries: [entry] })?)
            }
        };
        Ok(CardRoutes { card: Served::new(CARD_TYPE, &card)?, catalog })
    }
}

/// Returns the domain, in its usual order, and the last part of a name.
fn split_name(name: &str) -> Option<(String, &str)> {
    let (space, short) = name.split_once('/').filter(|_| name.len() <= MAX_NAME)?;
    let is_part = |part: &str, more: &[u8]| {
        !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || more.contains(&byte))
    };
    let is_name = space.split('.').all(|label| is_part(label, b"-")) && is_part(short, b"._-");
    is_name.then(|| (space.rsplit('.').collect::<Vec<_>>().join("."), short))
}

/// Returns whether clients can use a URL. Without TLS only this machine can.
fn is_public_url(url: &str) -> bool {
    let uri: Result<http::Uri, _> = url.parse();
    uri.is_ok_and(|uri| match (uri.scheme_str(), uri.host()) {
        (Some("https"), Some(_)) => true,
        (Some("http"), Some(host)) => matches!(host, "localhost" | "127.0.0.1" | "[::1]"),
        _ => false,
    })
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Document<'a> {
    #[serde(rename = "$schema")]
    schema: &'a str,
    name: &'a str,
    version: &'a str,
    description: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    title: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    website_url: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    icons: Option<&'a [Icon]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    repository: Option<Repository<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    remotes: Vec<Remote<'a>>,
}

#[derive(Serialize)]
struct Repository<'a> {
    url: &'a str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Remote<'a> {
    #[serde(rename = "type")]
    kind: &'a str,
    url: &'a str,
    supported_protocol_versions: &'a [&'static str],
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Catalog<'a> {
    spec_version: &'a str,
    entries: [Entry<'a>; 1],
}

#[derive(Serialize)]
struct Entry<'a> {
    identifier: String,
    #[serde(rename = "type")]
    kind: &'a str,
    url: String,
}

/// The documents of a service.
#[derive(Debug)]
pub(super) struct CardRoutes {
    card: Served,
    catalog: Option<Served>,
}

/// One document, written once.
#[derive(Debug)]
struct Served {
    kind: HeaderValue,
    tag: HeaderValue,
    text: Bytes,
}

impl Served {
    fn new(kind: &'static str, document: &impl Serialize) -> Result<Self, String> {
        let text = serde_json::to_vec(document).map_err(|error| error.to_string())?;
        let digest = Sha256::digest(&text);
        let digest: u64 = digest.iter().take(8).fold(0, |bits, byte| bits << 8 | u64::from(*byte));
        let tag = HeaderValue::try_from(format!("\"{digest:016x}\"")).map_err(|error| error.to_string())?;
        Ok(Self { kind: HeaderValue::from_static(kind), tag, text: text.into() })
    }

    fn reply(&self, parts: &Parts) -> Reply {
        let is_known = parts.headers.get_all(IF_NONE_MATCH).iter().any(|tags| {
            let tags = tags.to_str().unwrap_or_default().split(',').map(str::trim);
            tags.map(|tag| tag.strip_prefix("W/").unwrap_or(tag)).any(|tag| tag == "*" || self.tag == tag)
        });
        let (status, body) = match &parts.method {
            &Method::GET | &Method::HEAD if is_known => (StatusCode::NOT_MODIFIED, Bytes::new()),
            &Method::GET => (StatusCode::OK, self.text.clone()),
            &Method::HEAD => (StatusCode::OK, Bytes::new()),
            _ => (StatusCode::METHOD_NOT_ALLOWED, Bytes::new()),
        };
        let mut reply = reply::with_status(status, ResponseBody::from(body));
        let headers = reply.headers_mut();
        headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, ANY_ORIGIN);
        if status == StatusCode::METHOD_NOT_ALLOWED {
            headers.insert(ALLOW, GET_AND_HEAD);
            return reply;
        }
        headers.insert(CACHE_CONTROL, CACHED);
        headers.insert(ETAG, self.tag.clone());
        if status == StatusCode::OK {
            headers.insert(CONTENT_TYPE, self.kind.clone());
        }
        reply
    }
}

impl CardRoutes {
    /// Returns whether a document is at `path`.
    pub(super) fn serves(&self, config: &Config, path: &str) -> bool {
        self.at(config, path).is_some()
    }

    /// Returns the response to a request for a document; `None` for any other request.
    pub(super) fn reply(&self, config: &Config, parts: &Parts) -> Option<Reply> {
        self.at(config, parts.uri.path()).map(|document| document.reply(parts))
    }

    fn at(&self, config: &Config, path: &str) -> Option<&Served> {
        if path == CATALOG_PATH {
            return self.catalog.as_ref();
        }
        let endpoint = path.strip_suffix(CARD)?.strip_suffix('/')?;
        (endpoint == config.path.as_deref().unwrap_or(PATH)).then_some(&self.card)
    }
}
