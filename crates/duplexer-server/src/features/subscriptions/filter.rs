//! Event filters: the events that a client requests, as far as the server advertises them.

use std::collections::HashSet;
use std::sync::Arc;

use duplexer_types::capabilities::ServerCapabilities;
use duplexer_types::error::ErrorCode;
use duplexer_types::subscription::SubscriptionFilter;

use super::SubscriptionLimits;
use super::bus::Event;
use duplexer_core::error::McpError;

/// The kinds of events that a server advertises in its capabilities.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct AdvertisedEvents {
    pub(super) tools: bool,
    pub(super) prompts: bool,
    pub(super) resources: Resources,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Resources {
    /// Changes of the list.
    pub(super) list: bool,
    /// Changes of single resources.
    pub(super) each: bool,
}

impl AdvertisedEvents {
    /// Returns the events of the lists.
    pub(super) fn list_events(self) -> impl Iterator<Item = Event> {
        let lists = [
            (self.tools, Event::ToolsChanged),
            (self.prompts, Event::PromptsChanged),
            (self.resources.list, Event::ResourcesChanged),
        ];
        lists.into_iter().filter_map(|(advertised, event)| advertised.then_some(event))
    }

    pub(super) fn from_capabilities(capabilities: &ServerCapabilities) -> Self {
        let yes = |said: Option<bool>| said == Some(true);
        let resources = capabilities.resources.as_ref();
        Self {
            tools: capabilities.tools.as_ref().is_some_and(|tools| yes(tools.list_changed)),
            prompts: capabilities.prompts.as_ref().is_some_and(|prompts| yes(prompts.list_changed)),
            resources: Resources {
                list: resources.is_some_and(|resources| yes(resources.list_changed)),
                each: resources.is_some_and(|resources| yes(resources.subscribe)),
            },
        }
    }
}

/// A bounded set of resource URIs.
#[derive(Debug, Default)]
pub(super) struct Uris {
    all: HashSet<Arc<str>>,
    bytes: usize,
}

/// Error: the set has no capacity for another URI.
#[derive(Debug)]
pub(super) struct TooMany;

impl Uris {
    /// Adds a URI. Returns it if it is new.
    pub(super) fn add(
        &mut self,
        uri: &str,
        limits: &SubscriptionLimits,
    ) -> Result<Option<Arc<str>>, TooMany> {
        if self.all.contains(uri) {
            return Ok(None);
        }
        if self.all.len() >= limits.uris || self.bytes.saturating_add(uri.len()) > limits.uri_bytes {
            return Err(TooMany);
        }
        self.bytes += uri.len();
        let uri: Arc<str> = uri.into();
        self.all.insert(Arc::clone(&uri));
        Ok(Some(uri))
    }

    pub(super) fn remove(&mut self, uri: &str) {
        if self.all.remove(uri) {
            self.bytes -= uri.len();
        }
    }

    pub(super) fn contains(&self, uri: &str) -> bool {
        self.all.contains(uri)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Arc<str>> {
        self.all.iter()
    }

    /// Returns the events of these resources.
    pub(super) fn events(&self) -> impl Iterator<Item = Event> {
        self.all.iter().map(|uri| Event::ResourceUpdated { uri: Arc::clone(uri) })
    }

    pub(super) fn sorted(&self) -> Vec<String> {
        let mut all: Vec<String> = self.all.iter().map(ToString::to_string).collect();
        all.sort();
        all
    }
}

/// The events that one stream receives.
#[derive(Debug)]
pub(super) struct EventFilter {
    lists: AdvertisedEvents,
    uris: Uris,
    tasks: HashSet<Arc<str>>,
}

impl EventFilter {
    /// Returns the part of the request that the server advertises.
    pub(super) fn new(
        requested: &SubscriptionFilter,
        advertised: AdvertisedEvents,
        limits: &SubscriptionLimits,
    ) -> Result<Self, McpError> {
        let yes = |requested: Option<bool>| requested == Some(true);
        let requested_uris = requested.resource_subscriptions.as_deref().unwrap_or_default();
        let mut uris = Uris::default();
        for uri in requested_uris {
            uris.add(uri, limits).map_err(|TooMany| {
                let text = format!(
                    "resourceSubscriptions may hold at most {} URIs of {} bytes together",
                    limits.uris, limits.uri_bytes
                );
                McpError::new(ErrorCode::INVALID_PARAMS, text)
            })?;
        }
        let resources = Resources {
            list: advertised.resources.list && yes(requested.resources_list_changed),
            each: advertised.resources.each && !requested_uris.is_empty(),
        };
        let lists = AdvertisedEvents {
            tools: advertised.tools && yes(requested.tools_list_changed),
            prompts: advertised.prompts && yes(requested.prompts_list_changed),
            resources,
        };
        let uris = if resources.each { uris } else { Uris::default() };
        Ok(Self { lists, uris, tasks: HashSet::new() })
    }

    /// Adds the tasks that the caller may see.
    pub(super) fn with_tasks(mut self, ids: impl IntoIterator<Item = Arc<str>>) -> Self {
        self.tasks.extend(ids);
        self
    }

    /// Returns the filter for the acknowledgement: only what is true and not empty, the URIs in the order of
    /// `requested`.
    pub(super) fn acknowledged(&self, requested: SubscriptionFilter) -> SubscriptionFilter {
        let mut acknowledged = SubscriptionFilter::new();
        acknowledged.tools_list_changed = self.lists.tools.then_some(true);
        acknowledged.prompts_list_changed = self.lists.prompts.then_some(true);
        acknowledged.resources_list_changed = self.lists.resources.list.then_some(true);
        acknowledged.resource_subscriptions =
            requested.resource_subscriptions.filter(|_| self.lists.resources.each);
        let seen = |ids: Vec<String>| ids.into_iter().filter(|id| self.tasks.contains(id.as_str())).collect();
        acknowledged.task_ids = requested.task_ids.map(seen).filter(|ids: &Vec<String>| !ids.is_empty());
        acknowledged
    }

    pub(super) fn includes(&self, event: &Event) -> bool {
        match event {
            Event::ToolsChanged => self.lists.tools,
            Event::PromptsChanged => self.lists.prompts,
            Event::ResourcesChanged => self.lists.resources.list,
            Event::ResourceUpdated { uri } => self.uris.contains(uri),
            Event::SessionChanged { .. } => false,
            Event::TaskChanged { id } => self.tasks.contains(id),
        }
    }

    /// Returns everything that is included.
    pub(super) fn events(&self) -> impl Iterator<Item = Event> {
        let tasks = self.tasks.iter().map(|id| Event::TaskChanged { id: Arc::clone(id) });
        self.lists.list_events().chain(self.uris.events()).chain(tasks)
    }

    /// Returns the URIs of the resources and the ids of the tasks.
    pub(super) fn keys(&self) -> impl Iterator<Item = &Arc<str>> {
        self.uris.iter().chain(&self.tasks)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filter(
        requested: &str,
        capabilities: &str,
        limits: &SubscriptionLimits,
    ) -> Result<EventFilter, McpError> {
        let capabilities: ServerCapabilities = serde_json::from_str(capabilities).unwrap();
        EventFilter::new(
            &serde_json::from_str(requested).unwrap(),
            AdvertisedEvents::from_capabilities(&capabilities),
            limits,
        )
    }

    const ALL: &str = r#"{"tools":{"listChanged":true},"prompts":{"listChanged":true},"resources":{"listChanged":true,"subscribe":true}}"#;

    /// SUB-01, SUB-02, P-SUB-2: what is requested and supported, without what is false or empty or unknown.
    #[test]
    fn the_acknowledged_part_is_requested_and_advertised() {
        let check = |requested: &str, capabilities: &str, expected: &str| {
            let filter = filter(requested, capabilities, &SubscriptionLimits::default()).unwrap();
            let acknowledged = filter.acknowledged(serde_json::from_str(requested).unwrap());
            assert_eq!(serde_json::to_string(&acknowledged).unwrap(), expected, "{requested} {capabilities}");
        };
        let everything = r#"{"toolsListChanged":true,"promptsListChanged":true,"resourcesListChanged":true,"resourceSubscriptions":["b","a"]}"#;
        check(everything, ALL, everything);
        check(everything, "{}", "{}");
        check(everything, r#"{"tools":{"listChanged":true},"resources":{}}"#, r#"{"toolsListChanged":true}"#);
        check(everything, r#"{"resources":{"subscribe":true}}"#, r#"{"resourceSubscriptions":["b","a"]}"#);
        check("{}", ALL, "{}");
        check(r#"{"toolsListChanged":false,"resourceSubscriptions":[],"other":1}"#, ALL, "{}");
        check(r#"{"taskIds":["t"],"promptsListChanged":true}"#, ALL, r#"{"promptsListChanged":true}"#);
    }

    /// SUB-04, P-SUB-4, P-SUB-7: kinds that were requested, and resources by their exact URI.
    #[test]
    fn only_requested_events_are_included() {
        let limits = SubscriptionLimits::default();
        let some =
            filter(r#"{"promptsListChanged":true,"resourceSubscriptions":["file:///a"]}"#, ALL, &limits);
        let some = some.unwrap();
        assert!(some.includes(&Event::PromptsChanged));
        assert!(some.includes(&Event::resource_updated("file:///a")));
        for other in ["file:///a/b", "file:///", "file:///A", "file:///a?"] {
            assert!(!some.includes(&Event::resource_updated(other)), "{other}");
        }
        assert!(!some.includes(&Event::ToolsChanged) && !some.includes(&Event::ResourcesChanged));
    }

    /// P-SUB-18: URIs are bounded in number and in size; a repeated URI counts once.
    #[test]
    fn the_uris_of_a_filter_are_bounded() {
        let limits = SubscriptionLimits { uris: 2, uri_bytes: 10, ..SubscriptionLimits::default() };
        let check = |uris: &str, ok: bool| {
            let requested = format!(r#"{{"resourceSubscriptions":{uris}}}"#);
            assert_eq!(filter(&requested, ALL, &limits).is_ok(), ok, "{uris}");
        };
        check(r#"["a","b","a"]"#, true);
        check(r#"["a","b","c"]"#, false);
        check(r#"["12345","67890"]"#, true);
        check(r#"["12345","678901"]"#, false);
        let mut uris = Uris::default();
        for uri in ["1234567890", "abcdefghij"] {
            uris.add(uri, &limits).unwrap();
            assert!(uris.add("more", &limits).is_err());
            uris.remove(uri);
            uris.remove(uri);
        }
    }
}
