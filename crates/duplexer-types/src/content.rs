//! What tools and prompts say: text, pictures, sound, resources.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;

use crate::annotations::Annotations;
use crate::icon::Icon;
use crate::json::JsonObject;
use crate::model::{kinds, model};
use crate::resource::ResourceContents;

kinds! {
    /// A piece of what a tool or a prompt says.
    ///
    /// Revisions that do not know a kind are told in text what it was.
    pub enum Content by "type" {
        /// Text.
        Text(TextContent) = "text",
        /// A picture.
        Image(ImageContent) = "image",
        /// Sound.
        Audio(AudioContent) = "audio",
        /// A resource that can be read.
        ResourceLink(ResourceLink) = "resource_link",
        /// A resource, here and now.
        Resource(EmbeddedResource) = "resource",
    }
}

impl Content {
    /// Text.
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text(TextContent::new(text))
    }

    /// A picture, in base64.
    pub fn image(data: impl Into<String>, mime_type: impl Into<String>) -> Self {
        Self::Image(ImageContent::new(data, mime_type))
    }

    /// A picture, of its bytes.
    pub fn image_bytes(bytes: impl AsRef<[u8]>, mime_type: impl Into<String>) -> Self {
        Self::image(BASE64_STANDARD.encode(bytes), mime_type)
    }

    /// Sound, in base64.
    pub fn audio(data: impl Into<String>, mime_type: impl Into<String>) -> Self {
        Self::Audio(AudioContent::new(data, mime_type))
    }

    /// Sound, of its bytes.
    pub fn audio_bytes(bytes: impl AsRef<[u8]>, mime_type: impl Into<String>) -> Self {
        Self::audio(BASE64_STANDARD.encode(bytes), mime_type)
    }

    /// A resource that can be read.
    pub fn resource_link(uri: impl Into<String>, name: impl Into<String>) -> Self {
        Self::ResourceLink(ResourceLink::new(uri, name))
    }

    /// A resource, here and now.
    pub fn resource(contents: ResourceContents) -> Self {
        Self::Resource(EmbeddedResource::new(contents))
    }

    /// The text, if it is text.
    pub fn as_text(&self) -> Option<&str> {
        if let Self::Text(content) = self { Some(&content.text) } else { None }
    }
}

impl From<&str> for Content {
    fn from(text: &str) -> Self {
        Self::text(text)
    }
}

impl From<String> for Content {
    fn from(text: String) -> Self {
        Self::text(text)
    }
}

model! {
    /// Text.
    pub struct TextContent says "type" = "text" {
        /// The text.
        text: String = "text",
    } optional {
        /// Hints.
        annotations: Annotations = "annotations",
        /// What the protocol does not describe.
        meta: JsonObject = "_meta" since V2025_06_18,
    }
}

model! {
    /// A picture.
    pub struct ImageContent says "type" = "image" {
        /// In base64.
        data: String = "data",
        /// What kind of picture.
        mime_type: String = "mimeType",
    } optional {
        /// Hints.
        annotations: Annotations = "annotations",
        /// What the protocol does not describe.
        meta: JsonObject = "_meta" since V2025_06_18,
    }
}

model! {
    /// Sound.
    pub struct AudioContent says "type" = "audio" {
        /// In base64.
        data: String = "data",
        /// What kind of sound.
        mime_type: String = "mimeType",
    } optional {
        /// Hints.
        annotations: Annotations = "annotations",
        /// What the protocol does not describe.
        meta: JsonObject = "_meta" since V2025_06_18,
    }
}

model! {
    /// A resource that can be read, whether or not it is listed.
    pub struct ResourceLink says "type" = "resource_link" {
        /// Where it is.
        uri: String = "uri",
        /// Its name, for programs.
        name: String = "name",
    } optional {
        /// Its name, for people.
        title: String = "title",
        /// What it is.
        description: String = "description",
        /// What kind of contents it has.
        mime_type: String = "mimeType",
        /// Its size in bytes.
        size: u64 = "size",
        /// Pictures.
        icons: Vec<Icon> = "icons" since V2025_11_25,
        /// Hints.
        annotations: Annotations = "annotations",
        /// What the protocol does not describe.
        meta: JsonObject = "_meta",
    }
}

model! {
    /// A resource, here and now.
    pub struct EmbeddedResource says "type" = "resource" {
        /// Its contents.
        resource: ResourceContents = "resource",
    } optional {
        /// Hints.
        annotations: Annotations = "annotations",
        /// What the protocol does not describe.
        meta: JsonObject = "_meta" since V2025_06_18,
    }
}
