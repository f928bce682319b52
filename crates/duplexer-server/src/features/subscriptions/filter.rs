//! What a client wants to hear of, as far as the server can tell it.

use std::collections::HashSet;
use std::sync::Arc;

use duplexer_types::capabilities::ServerCapabilities;
use duplexer_types::error::ErrorCode;
use duplexer_types::subscription::SubscriptionFilter;

use super::SubscriptionLimits;
use super::bus::Event;
use duplexer_core::error::McpError;

/// The kinds of events a server promises to tell, as its capabilities say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Promised {
    pub(super) tools: bool,
    pub(super) prompts: bool,
    pub(super) resources: Resources,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Resources {
    /// Changes of the list.
    pub(super) list: bool,
    /// Changes of single ones.
    pub(super) each: bool,
}

impl Promised {
    pub(super) fn by(capabilities: &ServerCapabilities) -> Self {
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

/// URIs of single resources, within bounds.
#[derive(Debug, Default)]
pub(super) struct Uris {
    all: HashSet<Arc<str>>,
    bytes: usize,
}

/// There is no room for another URI.
#[derive(Debug)]
pub(super) struct TooMany;

impl Uris {
    pub(super) fn add(&mut self, uri: &str, limits: &SubscriptionLimits) -> Result<(), TooMany> {
        if self.all.contains(uri) {
            return Ok(());
        }
        if self.all.len() >= limits.uris || self.bytes.saturating_add(uri.len()) > limits.uri_bytes {
            return Err(TooMany);
        }
        self.bytes += uri.len();
        self.all.insert(uri.into());
        Ok(())
    }

    pub(super) fn remove(&mut self, uri: &str) {
        if self.all.remove(uri) {
            self.bytes -= uri.len();
        }
    }

    pub(super) fn contains(&self, uri: &str) -> bool {
        self.all.contains(uri)
    }

    pub(super) fn sorted(&self) -> Vec<String> {
        let mut all: Vec<String> = self.all.iter().map(ToString::to_string).collect();
        all.sort();
        all
    }
}

/// What one stream is told.
#[derive(Debug)]
pub(super) struct Wanted {
    lists: Promised,
    uris: Uris,
}

impl Wanted {
    /// The part of what is asked for that the server promises.
    pub(super) fn of(
        asked: &SubscriptionFilter,
        promised: Promised,
        limits: &SubscriptionLimits,
    ) -> Result<Self, McpError> {
        let yes = |asked: Option<bool>| asked == Some(true);
        let asked_uris = asked.resource_subscriptions.as_deref().unwrap_or_default();
        let mut uris = Uris::default();
        for uri in asked_uris {
            uris.add(uri, limits).map_err(|TooMany| {
                let text = format!(
                    "resourceSubscriptions may hold at most {} URIs of {} bytes together",
                    limits.uris, limits.uri_bytes
                );
                McpError::new(ErrorCode::INVALID_PARAMS, text)
            })?;
        }
        let resources = Resources {
            list: promised.resources.list && yes(asked.resources_list_changed),
            each: promised.resources.each && !asked_uris.is_empty(),
        };
        let lists = Promised {
            tools: promised.tools && yes(asked.tools_list_changed),
            prompts: promised.prompts && yes(asked.prompts_list_changed),
            resources,
        };
        Ok(Self { lists, uris: if resources.each { uris } else { Uris::default() } })
    }

    /// The same as a client reads it: only what is true and not empty, the URIs in the order of `asked`.
    pub(super) fn honoured(&self, asked: SubscriptionFilter) -> SubscriptionFilter {
        let mut honoured = SubscriptionFilter::new();
        honoured.tools_list_changed = self.lists.tools.then_some(true);
        honoured.prompts_list_changed = self.lists.prompts.then_some(true);
        honoured.resources_list_changed = self.lists.resources.list.then_some(true);
        honoured.resource_subscriptions = asked.resource_subscriptions.filter(|_| self.lists.resources.each);
        honoured
    }

    pub(super) fn includes(&self, event: &Event) -> bool {
        match event {
            Event::ToolsChanged => self.lists.tools,
            Event::PromptsChanged => self.lists.prompts,
            Event::ResourcesChanged => self.lists.resources.list,
            Event::ResourceUpdated { uri } => self.uris.contains(uri),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wanted(asked: &str, capabilities: &str, limits: &SubscriptionLimits) -> Result<Wanted, McpError> {
        let capabilities: ServerCapabilities = serde_json::from_str(capabilities).unwrap();
        Wanted::of(&serde_json::from_str(asked).unwrap(), Promised::by(&capabilities), limits)
    }

    const ALL: &str = r#"{"tools":{"listChanged":true},"prompts":{"listChanged":true},"resources":{"listChanged":true,"subscribe":true}}"#;

    /// SUB-01, SUB-02, P-SUB-2: what is asked for and supported, without what is false or empty or unknown.
    #[test]
    fn the_honoured_part_is_what_is_asked_for_and_promised() {
        let check = |asked: &str, capabilities: &str, expected: &str| {
            let wanted = wanted(asked, capabilities, &SubscriptionLimits::default()).unwrap();
            let honoured = wanted.honoured(serde_json::from_str(asked).unwrap());
            assert_eq!(serde_json::to_string(&honoured).unwrap(), expected, "{asked} {capabilities}");
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

    /// SUB-04, P-SUB-4, P-SUB-7: kinds that were asked for, and resources by their exact URI.
    #[test]
    fn only_what_was_asked_for_is_told() {
        let limits = SubscriptionLimits::default();
        let some =
            wanted(r#"{"promptsListChanged":true,"resourceSubscriptions":["file:///a"]}"#, ALL, &limits);
        let some = some.unwrap();
        assert!(some.includes(&Event::PromptsChanged));
        assert!(some.includes(&Event::resource_updated("file:///a")));
        for other in ["file:///a/b", "file:///", "file:///A", "file:///a?"] {
            assert!(!some.includes(&Event::resource_updated(other)), "{other}");
        }
        assert!(!some.includes(&Event::ToolsChanged) && !some.includes(&Event::ResourcesChanged));
    }

    /// P-SUB-18: URIs are bounded in number and in size; saying one twice costs nothing.
    #[test]
    fn the_uris_of_a_filter_are_bounded() {
        let limits = SubscriptionLimits { uris: 2, uri_bytes: 10, ..SubscriptionLimits::default() };
        let check = |uris: &str, ok: bool| {
            let asked = format!(r#"{{"resourceSubscriptions":{uris}}}"#);
            assert_eq!(wanted(&asked, ALL, &limits).is_ok(), ok, "{uris}");
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
