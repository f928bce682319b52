//! Who the server says it is.

use std::any::Any;

use duplexer_types::icon::Icon;

use super::ServerBuilder;

impl<S: Any + Send + Sync> ServerBuilder<S> {
    /// A name for people.
    pub fn title(mut self, title: impl Into<String>) -> Self {
        self.info.title = Some(title.into());
        self
    }

    /// What the server is for.
    pub fn description(mut self, description: impl Into<String>) -> Self {
        self.info.description = Some(description.into());
        self
    }

    /// Where people find more about it.
    pub fn website_url(mut self, url: impl Into<String>) -> Self {
        self.info.website_url = Some(url.into());
        self
    }

    /// Pictures of it.
    pub fn icons(mut self, icons: impl Into<Vec<Icon>>) -> Self {
        self.info.icons = Some(icons.into());
        self
    }

    /// What models should know about its use.
    pub fn instructions(mut self, instructions: impl Into<String>) -> Self {
        self.instructions = Some(instructions.into());
        self
    }
}
