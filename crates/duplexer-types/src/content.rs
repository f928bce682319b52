//! Content blocks of tools and prompts: text, images, audio, resources.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;

use crate::annotations::Annotations;
use crate::icon::Icon;
use crate::json::JsonObject;
use crate::model::{kinds, model};
use crate::resource::ResourceContents;

kinds! {
    /// [Content block](https://modelcontextprotocol.io/specification/2026-07-28/server/tools#tool-result) of a tool result or of a prompt message.
    ///
    /// For revisions without a kind of content, a text describes it.
    ///
    /// ```
    /// use duplexer_types::content::Content;
    ///
    /// let blocks = [Content::text("A red dot:"), Content::image_bytes([0x89, b'P', b'N', b'G'], "image/png")];
    /// assert_eq!(blocks[0].as_text(), Some("A red dot:"));
    /// assert_eq!(serde_json::to_string(&blocks[1])?, r#"{"type":"image","data":"iVBORw==","mimeType":"image/png"}"#);
    /// # Ok::<_, serde_json::Error>(())
    /// ```
    pub enum Content by "type" {
        /// Text content.
        Text(TextContent) = "text",
        /// Image content.
        Image(ImageContent) = "image",
        /// Audio content.
        Audio(AudioContent) = "audio",
        /// Link to a resource.
        ResourceLink(ResourceLink) = "resource_link",
        /// Embedded contents of a resource.
        Resource(EmbeddedResource) = "resource",
    }
}

impl Content {
    /// Creates text content.
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text(TextContent::new(text))
    }

    /// Creates an image from base64.
    pub fn image(data: impl Into<String>, mime_type: impl Into<String>) -> Self {
        Self::Image(ImageContent::new(data, mime_type))
    }

    /// Creates an image from its bytes.
    pub fn image_bytes(bytes: impl AsRef<[u8]>, mime_type: impl Into<String>) -> Self {
        Self::image(BASE64_STANDARD.encode(bytes), mime_type)
    }

    /// Creates audio from base64.
    pub fn audio(data: impl Into<String>, mime_type: impl Into<String>) -> Self {
        Self::Audio(AudioContent::new(data, mime_type))
    }

    /// Creates audio from its bytes.
    pub fn audio_bytes(bytes: impl AsRef<[u8]>, mime_type: impl Into<String>) -> Self {
        Self::audio(BASE64_STANDARD.encode(bytes), mime_type)
    }

    /// Creates a link to a resource.
    pub fn resource_link(uri: impl Into<String>, name: impl Into<String>) -> Self {
        Self::ResourceLink(ResourceLink::new(uri, name))
    }

    /// Creates an embedded resource.
    pub fn resource(contents: ResourceContents) -> Self {
        Self::Resource(EmbeddedResource::new(contents))
    }

    /// Returns the text, if the block is text.
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
    /// [Text content](https://modelcontextprotocol.io/specification/2026-07-28/server/tools#text-content).
    pub struct TextContent const "type" = "text" {
        /// The text.
        text: String = "text",
    } optional {
        /// Hints for the client.
        annotations: Annotations = "annotations",
        /// Additional metadata.
        meta: JsonObject = "_meta" since V2025_06_18,
    }
}

model! {
    /// [Image content](https://modelcontextprotocol.io/specification/2026-07-28/server/tools#image-content).
    pub struct ImageContent const "type" = "image" {
        /// The bytes, base64-encoded.
        data: String = "data",
        /// Media type of the image.
        mime_type: String = "mimeType",
    } optional {
        /// Hints for the client.
        annotations: Annotations = "annotations",
        /// Additional metadata.
        meta: JsonObject = "_meta" since V2025_06_18,
    }
}

model! {
    /// [Audio content](https://modelcontextprotocol.io/specification/2026-07-28/server/tools#audio-content).
    pub struct AudioContent const "type" = "audio" {
        /// The bytes, base64-encoded.
        data: String = "data",
        /// Media type of the audio.
        mime_type: String = "mimeType",
    } optional {
        /// Hints for the client.
        annotations: Annotations = "annotations",
        /// Additional metadata.
        meta: JsonObject = "_meta" since V2025_06_18,
    }
}

model! {
    /// [Link to a resource](https://modelcontextprotocol.io/specification/2026-07-28/server/tools#resource-links), which need not be listed.
    pub struct ResourceLink const "type" = "resource_link" {
        /// URI of the resource.
        uri: String = "uri",
        /// Name of the resource.
        name: String = "name",
    } optional {
        /// Display name.
        title: String = "title",
        /// Description of the resource.
        description: String = "description",
        /// Media type of the contents.
        mime_type: String = "mimeType",
        /// Size of the contents in bytes.
        size: u64 = "size",
        /// Icons for user interfaces.
        icons: Vec<Icon> = "icons" since V2025_11_25,
        /// Hints for the client.
        annotations: Annotations = "annotations",
        /// Additional metadata.
        meta: JsonObject = "_meta",
    }
}

model! {
    /// [Embedded resource](https://modelcontextprotocol.io/specification/2026-07-28/server/tools#embedded-resources).
    pub struct EmbeddedResource const "type" = "resource" {
        /// Contents of the resource.
        resource: ResourceContents = "resource",
    } optional {
        /// Hints for the client.
        annotations: Annotations = "annotations",
        /// Additional metadata.
        meta: JsonObject = "_meta" since V2025_06_18,
    }
}
