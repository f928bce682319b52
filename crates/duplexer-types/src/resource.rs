//! What can be read.

use serde::de::Error as _;

use crate::annotations::Annotations;
use crate::icon::Icon;
use crate::input::InputResponse;
use crate::json::{Json, JsonObject, Occurrence, find_members};
use crate::model::model;
use crate::wire::{Shape, Wire};

model! {
    /// Something that can be read.
    pub struct Resource {
        /// Where it is.
        uri: String = "uri",
        /// Its name, for programs.
        name: String = "name",
    } optional {
        /// Its name, for people.
        title: String = "title" since V2025_06_18,
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
        meta: JsonObject = "_meta" since V2025_06_18,
    }
}

model! {
    /// A pattern of URIs that can be read.
    pub struct ResourceTemplate {
        /// The pattern (RFC 6570).
        uri_template: String = "uriTemplate",
        /// Its name, for programs.
        name: String = "name",
    } optional {
        /// Its name, for people.
        title: String = "title" since V2025_06_18,
        /// What it is for.
        description: String = "description",
        /// What kind of contents all that match have.
        mime_type: String = "mimeType",
        /// Pictures.
        icons: Vec<Icon> = "icons" since V2025_11_25,
        /// Hints.
        annotations: Annotations = "annotations",
        /// What the protocol does not describe.
        meta: JsonObject = "_meta" since V2025_06_18,
    }
}

model! {
    /// A page of resources.
    pub cacheable result ListResourcesResult {
        /// The resources.
        resources: Vec<Resource> = "resources",
    } optional {
        /// Where the next page begins.
        next_cursor: String = "nextCursor",
    }
}

model! {
    /// A page of resource templates.
    pub cacheable result ListResourceTemplatesResult {
        /// The templates.
        resource_templates: Vec<ResourceTemplate> = "resourceTemplates",
    } optional {
        /// Where the next page begins.
        next_cursor: String = "nextCursor",
    }
}

model! {
    /// Reads a resource.
    pub struct ReadResourceParams {
        /// Which one.
        uri: String = "uri",
    } optional {
        /// Answers to what the server asked for.
        input_responses: JsonObject<InputResponse> = "inputResponses" since V2026_07_28,
        /// What the server wants to get back, as it came.
        request_state: String = "requestState" since V2026_07_28,
    }
}

model! {
    /// What was read.
    pub cacheable result ReadResourceResult {
        /// One or more contents.
        contents: Vec<ResourceContents> = "contents",
    }
}

impl ReadResourceResult {
    /// One text.
    pub fn text(uri: impl Into<String>, text: impl Into<String>) -> Self {
        Self::new([ResourceContents::text(uri, text)])
    }

    /// Bytes, in base64.
    pub fn blob(uri: impl Into<String>, blob: impl Into<String>) -> Self {
        Self::new([ResourceContents::blob(uri, blob)])
    }
}

model! {
    /// Asks to be told when a resource changes (handshake era).
    pub struct SubscribeParams {
        /// Which one.
        uri: String = "uri",
    }
}

model! {
    /// Asks to be told no longer (handshake era).
    pub struct UnsubscribeParams {
        /// Which one.
        uri: String = "uri",
    }
}

model! {
    /// A resource has changed.
    pub struct ResourceUpdatedParams {
        /// Which one, or a part of it.
        uri: String = "uri",
    }
}

/// What a resource holds.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(test, derive(arbitrary::Arbitrary))]
#[non_exhaustive]
pub enum ResourceContents {
    /// Text.
    Text(TextResourceContents),
    /// Bytes.
    Blob(BlobResourceContents),
    /// Neither.
    #[cfg_attr(test, arbitrary(skip))]
    Other(Json),
}

model! {
    /// Text.
    pub struct TextResourceContents {
        /// Where it is.
        uri: String = "uri",
        /// The text.
        text: String = "text",
    } optional {
        /// What kind of text.
        mime_type: String = "mimeType",
        /// What the protocol does not describe.
        meta: JsonObject = "_meta" since V2025_06_18,
    }
}

model! {
    /// Bytes.
    pub struct BlobResourceContents {
        /// Where they are.
        uri: String = "uri",
        /// In base64.
        blob: String = "blob",
    } optional {
        /// What kind of bytes.
        mime_type: String = "mimeType",
        /// What the protocol does not describe.
        meta: JsonObject = "_meta" since V2025_06_18,
    }
}

impl ResourceContents {
    /// Text.
    pub fn text(uri: impl Into<String>, text: impl Into<String>) -> Self {
        Self::Text(TextResourceContents::new(uri, text))
    }

    /// Bytes, in base64.
    pub fn blob(uri: impl Into<String>, blob: impl Into<String>) -> Self {
        Self::Blob(BlobResourceContents::new(uri, blob))
    }

    /// The same with its media type.
    #[must_use]
    pub fn mime_type(self, mime_type: impl Into<String>) -> Self {
        match self {
            Self::Text(contents) => Self::Text(contents.mime_type(mime_type)),
            Self::Blob(contents) => Self::Blob(contents.mime_type(mime_type)),
            Self::Other(json) => Self::Other(json),
        }
    }
}

impl Wire for ResourceContents {
    fn write<S: serde::Serializer>(&self, shape: Shape, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Text(contents) => contents.write(shape, serializer),
            Self::Blob(contents) => contents.write(shape, serializer),
            Self::Other(json) => json.write(shape, serializer),
        }
    }
}

impl serde::Serialize for ResourceContents {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.write(Shape::FULL, serializer)
    }
}

impl<'de> serde::Deserialize<'de> for ResourceContents {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let json = Json::object_of(deserializer)?;
        let known = match find_members(json.as_str(), ["text", "blob"]).map_err(D::Error::custom)? {
            [Occurrence::One(_), _] => json.decode().map(Self::Text),
            [_, Occurrence::One(_)] => json.decode().map(Self::Blob),
            _ => return Ok(Self::Other(json)),
        };
        known.map_err(D::Error::custom)
    }
}
