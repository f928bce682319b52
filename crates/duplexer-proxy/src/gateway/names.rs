//! Settings of one server of a gateway: its name, its prefix, and what clients see of it.

/// Settings of one server of a [`Gateway`](crate::Gateway).
///
/// ```
/// use duplexer_proxy::BackendSettings;
///
/// let files = BackendSettings::new("files").prefix("fs_").allow(["read_*", "list"]).deny(["read_secret"]);
/// assert_eq!(files.name(), "files");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BackendSettings {
    name: String,
    prefix: String,
    allow: Option<Vec<String>>,
    deny: Vec<String>,
    fingerprint: String,
}

impl BackendSettings {
    /// Creates the settings of a server with this name. Its tools and prompts get the prefix `name__`.
    pub fn new(name: impl Into<String>) -> Self {
        let name = name.into();
        let prefix = format!("{name}__");
        Self { name, prefix, allow: None, deny: Vec::new(), fingerprint: String::new() }
    }

    /// Sets the prefix of the names of tools and prompts. It can be empty.
    #[must_use]
    pub fn prefix(mut self, prefix: impl Into<String>) -> Self {
        self.prefix = prefix.into();
        self
    }

    /// Offers only tools and prompts whose name, and resources whose URI, is one of these. A pattern that ends in `*`
    /// means every name that begins so.
    #[must_use]
    pub fn allow(mut self, patterns: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.allow = Some(patterns.into_iter().map(Into::into).collect());
        self
    }

    /// Offers no tools and prompts whose name, and no resources whose URI, is one of these patterns.
    #[must_use]
    pub fn deny(mut self, patterns: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.deny = patterns.into_iter().map(Into::into).collect();
        self
    }

    /// Sets a text that changes when the server is reached in another way, so that a reload starts it again.
    #[must_use]
    pub fn fingerprint(mut self, text: impl Into<String>) -> Self {
        self.fingerprint = text.into();
        self
    }

    /// Returns the name of the server.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the name that clients use for a tool or prompt of the server.
    pub(crate) fn named(&self, name: &str) -> String {
        format!("{}{name}", self.prefix)
    }

    /// Returns the server's own name of what clients call `name`, if that is offered.
    pub(crate) fn own_name<'a>(&self, name: &'a str) -> Option<&'a str> {
        name.strip_prefix(self.prefix.as_str()).filter(|own| self.offers(own))
    }

    /// Returns whether clients get to see this name or URI.
    pub(crate) fn offers(&self, name: &str) -> bool {
        let matches = |patterns: &[String]| patterns.iter().any(|pattern| is_match(pattern, name));
        self.allow.as_deref().is_none_or(matches) && !matches(&self.deny)
    }
}

fn is_match(pattern: &str, name: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(beginning) => name.starts_with(beginning),
        None => pattern == name,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_offered_if_it_is_allowed_and_not_denied() {
        let all = BackendSettings::new("a");
        assert!(all.offers("x") && all.named("x") == "a__x" && all.own_name("a__x") == Some("x"));
        assert_eq!((all.own_name("x"), all.own_name("b__x")), (None, None));
        let some = BackendSettings::new("a").prefix("").allow(["read*", "list"]).deny(["read_secret*"]);
        for (name, offered) in
            [("read", true), ("read_file", true), ("list", true), ("lists", false), ("read_secrets", false)]
        {
            assert_eq!(some.offers(name), offered, "{name}");
            assert_eq!(some.own_name(name).is_some(), offered, "{name}");
        }
    }
}
