//! What a server lists, within limits: a server that lies about its lists costs a bounded amount.

use std::borrow::Cow;
use std::collections::HashSet;
use std::time::Duration;

use duplexer_client::Client;
use duplexer_core::dispatch::{CallOptions, OutboundRequest};
use duplexer_types::json::{Json, JsonObject};
use duplexer_types::methods::Method;
use duplexer_types::text::{is_invisible, shown};
use duplexer_types::version::{ProtocolVersion, feature};

use super::names::BackendSettings;
use crate::failure::described;
use crate::tool_headers::ToolHeaders;

/// Maximum number of pages of a list.
const MAX_PAGES: usize = 100;
/// Maximum number of items of a list.
const MAX_ITEMS: usize = 10_000;
/// Maximum size of a list, in bytes.
const MAX_BYTES: usize = 16 * 1024 * 1024;
/// Maximum length of a name or URI, in bytes.
const MAX_NAME: usize = 2048;
/// Maximum time of a page.
const PAGE_TIMEOUT: Duration = Duration::from_secs(30);

/// An item as the server has listed it.
#[derive(Clone, Debug)]
pub(crate) struct Item {
    /// The server's own name of it, or its URI.
    pub(crate) name: String,
    /// The item as clients see it.
    pub(crate) listed: Json,
}

impl Item {
    /// Returns the item as a client of this revision sees it. The lists come from a session of the gateway, which can have a
    /// later revision: an output schema that is not one of an object is left out where a result can only be an object.
    pub(crate) fn seen_in(&self, list: List, version: ProtocolVersion) -> Cow<'_, Json> {
        if list != List::Tools || version.has(feature::STRUCTURED_ANY) {
            return Cow::Borrowed(&self.listed);
        }
        let without = || {
            let mut members: JsonObject = self.listed.decode().ok()?;
            let schema: JsonObject = members.get("outputSchema")?.decode().unwrap_or_default();
            let is_object = schema.get("type").is_some_and(|kind| kind.as_str() == "\"object\"");
            (!is_object).then(|| members.remove("outputSchema"))?;
            Some(Json::from(members))
        };
        without().map_or(Cow::Borrowed(&self.listed), Cow::Owned)
    }
}

/// One of the four lists of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum List {
    Tools,
    Prompts,
    Resources,
    Templates,
}

impl List {
    pub(crate) const ALL: [Self; 4] = [Self::Tools, Self::Prompts, Self::Resources, Self::Templates];

    pub(crate) fn method(self) -> Method {
        match self {
            Self::Tools => Method::ToolsList,
            Self::Prompts => Method::PromptsList,
            Self::Resources => Method::ResourcesList,
            Self::Templates => Method::ResourcesTemplatesList,
        }
    }

    /// Returns the member of the result that holds the items.
    pub(crate) fn member(self) -> &'static str {
        match self {
            Self::Tools => "tools",
            Self::Prompts => "prompts",
            Self::Resources => "resources",
            Self::Templates => "resourceTemplates",
        }
    }

    /// Returns the member that identifies an item.
    fn key(self) -> &'static str {
        match self {
            Self::Tools | Self::Prompts => "name",
            Self::Resources => "uri",
            Self::Templates => "uriTemplate",
        }
    }

    /// Returns the name under which clients see an item of a server, or its URI.
    pub(crate) fn seen_name(self, settings: &BackendSettings, name: &str) -> String {
        match self {
            Self::Tools | Self::Prompts => settings.named(name),
            Self::Resources | Self::Templates => name.to_owned(),
        }
    }

    /// Returns whether the server has declared that it has this list.
    pub(crate) fn is_offered(self, client: &Client) -> bool {
        let capabilities = client.server_capabilities();
        match self {
            Self::Tools => capabilities.tools.is_some(),
            Self::Prompts => capabilities.prompts.is_some(),
            Self::Resources | Self::Templates => capabilities.resources.is_some(),
        }
    }
}

/// What is left out of a list: one report for all of it.
#[derive(Default)]
struct LeftOut {
    count: usize,
    /// The first name.
    name: String,
}

/// Requests a whole list. Returns what is valid of it, within the limits.
pub(crate) async fn fetch(
    client: &Client,
    list: List,
    settings: &BackendSettings,
    tool_headers: &ToolHeaders,
) -> Result<Vec<Item>, String> {
    let mut left_out = LeftOut::default();
    let items = pages(client, list, settings, tool_headers, &mut left_out).await;
    if left_out.count > 0 {
        let LeftOut { count, name } = left_out;
        let server = settings.name();
        tracing::warn!(server, ?list, count, name, "items are left out: their names are invalid or repeated");
    }
    items
}

async fn pages(
    client: &Client,
    list: List,
    settings: &BackendSettings,
    tool_headers: &ToolHeaders,
    left_out: &mut LeftOut,
) -> Result<Vec<Item>, String> {
    let (mut items, mut names, mut bytes) = (Vec::new(), HashSet::new(), 0);
    let mut cursor: Option<Json> = None;
    for _ in 0..MAX_PAGES {
        let page = page(client, list, cursor.take()).await?;
        if list == List::Tools {
            tool_headers.learn(page.as_str());
        }
        let page: JsonObject = page.decode().map_err(|error| described(&error))?;
        let listed: Vec<Json> =
            page.get(list.member()).and_then(|items| items.decode().ok()).unwrap_or_default();
        for item in listed {
            bytes += item.as_str().len();
            if items.len() >= MAX_ITEMS || bytes > MAX_BYTES {
                tracing::warn!(
                    server = settings.name(),
                    ?list,
                    "a server lists more than the gateway takes; the rest is left out"
                );
                return Ok(items);
            }
            if let Some(item) = valid(item, list, settings, &mut names, left_out) {
                items.push(item);
            }
        }
        cursor = page.get("nextCursor").filter(|next| !next.is_null()).cloned();
        if cursor.is_none() {
            return Ok(items);
        }
    }
    tracing::warn!(server = settings.name(), ?list, "a server has too many pages; the rest is left out");
    Ok(items)
}

async fn page(client: &Client, list: List, cursor: Option<Json>) -> Result<Json, String> {
    let mut params = JsonObject::new();
    if let Some(cursor) = cursor {
        params.insert("cursor", cursor);
    }
    let mut request = OutboundRequest::new(list.method().name()).params(Json::from(params));
    request.options = CallOptions::new().timeout(PAGE_TIMEOUT);
    client.request_custom(request).await.map_err(|error| described(&error))
}

/// Returns the item as clients see it, unless its name is invalid, repeated or not offered.
fn valid(
    item: Json,
    list: List,
    settings: &BackendSettings,
    names: &mut HashSet<String>,
    left_out: &mut LeftOut,
) -> Option<Item> {
    let mut members: JsonObject = item.decode().ok()?;
    let name: String = members.get(list.key())?.decode().ok()?;
    let is_plain = !name.is_empty()
        && name.len() <= MAX_NAME
        && !name.chars().any(|character| character.is_control() || is_invisible(character));
    if !is_plain || !names.insert(name.clone()) {
        if left_out.count == 0 {
            left_out.name = shown(&name);
        }
        left_out.count += 1;
        return None;
    }
    if !settings.offers(&name) {
        return None;
    }
    let listed = match list {
        List::Tools | List::Prompts => {
            members.insert(list.key(), Json::from(settings.named(&name)));
            Json::from(members)
        }
        List::Resources | List::Templates => item,
    };
    Some(Item { name, listed })
}
