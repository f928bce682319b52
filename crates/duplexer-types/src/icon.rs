//! Pictures for user interfaces.

use crate::model::{model, open_enum};

model! {
    /// A picture that stands for an item.
    pub struct Icon {
        /// An `https:` or `data:` URI.
        src: String = "src",
    } optional {
        /// The media type, where the source does not say it.
        mime_type: String = "mimeType",
        /// `WxH`, or `any`.
        sizes: Vec<String> = "sizes",
        /// The background it was made for.
        theme: Theme = "theme",
    }
}

open_enum! {
    /// A background.
    pub enum Theme {
        /// Light.
        Light = "light",
        /// Dark.
        Dark = "dark",
    }
}
