//! Icons for user interfaces.

use crate::model::{model, open_enum};

model! {
    /// [Icon](https://modelcontextprotocol.io/specification/2026-07-28/basic#icons) of an item.
    ///
    /// ```
    /// use duplexer_types::icon::Icon;
    ///
    /// let icon = Icon::new("https://example.com/icon.png").mime_type("image/png").sizes(["48x48".to_owned()]);
    /// assert_eq!(icon.mime_type.as_deref(), Some("image/png"));
    /// ```
    pub struct Icon {
        /// URI of the image: an `https:` or `data:` URI.
        src: String = "src",
    } optional {
        /// Media type, if the one of the source is missing or generic.
        mime_type: String = "mimeType",
        /// Sizes of the image: `WxH`, or `any` for scalable formats.
        sizes: Vec<String> = "sizes",
        /// Theme of the user interface that the icon is designed for.
        theme: Theme = "theme",
    }
}

open_enum! {
    /// Theme of a user interface.
    pub enum Theme {
        /// Light background.
        Light = "light",
        /// Dark background.
        Dark = "dark",
    }
}
