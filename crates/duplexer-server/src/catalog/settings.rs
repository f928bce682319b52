//! Settings that tools, resources and prompts share.

/// Implements the shared settings for a type whose listed fields are in `self.$definition`.
macro_rules! shared_settings {
    ($kind:literal, $($definition:ident).+) => {
        #[doc = concat!("Sets the display name of the ", $kind, ".")]
        pub fn title(mut self, title: impl Into<String>) -> Self {
            self.$($definition).+.title = Some(title.into());
            self
        }

        #[doc = concat!("Sets the description of the ", $kind, ", which clients pass to the model.")]
        pub fn description(mut self, description: impl Into<String>) -> Self {
            self.$($definition).+.description = Some(description.into());
            self
        }

        #[doc = concat!("Sets the icons of the ", $kind, ".")]
        pub fn icons(mut self, icons: impl Into<Vec<duplexer_types::icon::Icon>>) -> Self {
            self.$($definition).+.icons = Some(icons.into());
            self
        }

        #[doc = concat!("Adds a member to the `_meta` of the ", $kind, ".")]
        pub fn meta(
            mut self,
            key: impl Into<String>,
            value: impl Into<duplexer_types::json::Json>,
        ) -> Self {
            let meta = self.$($definition).+.meta.get_or_insert_with(duplexer_types::json::JsonObject::new);
            meta.insert(key, value.into());
            self
        }
    };
}

pub(crate) use shared_settings;
