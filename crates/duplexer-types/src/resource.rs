//! Resources: data that a server offers for reading.

use crate::annotations::Annotations;
use crate::icon::Icon;
use crate::input::InputResponse;
use crate::json::{Json, JsonObject, Occurrence, find_members};
use crate::model::{model, read_from_json};
use crate::wire::{Shape, Wire};

model! {
    /// Definition of a [resource](https://modelcontextprotocol.io/specification/2026-07-28/server/resources#resource), an item of [`ListResourcesResult`].
    ///
    /// A server registers a `resource::Resource` of `duplexer-server`, which adds the function to the definition.
    ///
    /// ```
    /// use duplexer_types::resource::ResourceDefinition;
    ///
    /// let resource = ResourceDefinition::new("config://app", "settings").mime_type("text/plain");
    /// assert_eq!((resource.uri.as_str(), resource.name.as_str()), ("config://app", "settings"));
    /// ```
    pub struct ResourceDefinition {
        /// URI of the resource.
        uri: String = "uri",
        /// Name of the resource.
        name: String = "name",
    } optional {
        /// Display name.
        title: String = "title" since V2025_06_18,
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
        meta: JsonObject = "_meta" since V2025_06_18,
    }
}

model! {
    /// Definition of a parameterized resource
    /// ([resource template](https://modelcontextprotocol.io/specification/2026-07-28/server/resources#resource-templates)), an item of [`ListResourceTemplatesResult`].
    pub struct ResourceTemplate {
        /// URI template (RFC 6570).
        uri_template: String = "uriTemplate",
        /// Name of the template.
        name: String = "name",
    } optional {
        /// Display name.
        title: String = "title" since V2025_06_18,
        /// Description of the template.
        description: String = "description",
        /// Media type, if all matching resources have the same.
        mime_type: String = "mimeType",
        /// Icons for user interfaces.
        icons: Vec<Icon> = "icons" since V2025_11_25,
        /// Hints for the client.
        annotations: Annotations = "annotations",
        /// Additional metadata.
        meta: JsonObject = "_meta" since V2025_06_18,
    }
}

model! {
    /// Result of a [`resources/list`](https://modelcontextprotocol.io/specification/2026-07-28/server/resources#listing-resources) request: one page of resources.
    #[doc(alias = "resources/list")]
    pub cacheable result ListResourcesResult {
        /// The resources of this page.
        resources: Vec<ResourceDefinition> = "resources",
    } optional {
        /// Cursor of the next page. Absent on the last page.
        next_cursor: String = "nextCursor",
    }
}

model! {
    /// Result of a [`resources/templates/list`](https://modelcontextprotocol.io/specification/2026-07-28/server/resources#resource-templates) request: one page of
    /// resource templates.
    #[doc(alias = "resources/templates/list")]
    pub cacheable result ListResourceTemplatesResult {
        /// The templates of this page.
        resource_templates: Vec<ResourceTemplate> = "resourceTemplates",
    } optional {
        /// Cursor of the next page. Absent on the last page.
        next_cursor: String = "nextCursor",
    }
}

model! {
    /// Parameters of a [`resources/read`](https://modelcontextprotocol.io/specification/2026-07-28/server/resources#reading-resources) request.
    #[doc(alias = "resources/read")]
    pub struct ReadResourceParams {
        /// URI of the resource.
        uri: String = "uri",
    } optional {
        /// Responses to the server's input requests, by their keys (envelope era).
        input_responses: JsonObject<InputResponse> = "inputResponses" since V2026_07_28,
        /// State of the server from its [`InputRequiredResult`](crate::input::InputRequiredResult), verbatim
        /// (envelope era).
        request_state: String = "requestState" since V2026_07_28,
    }
}

model! {
    /// Result of a [`resources/read`](https://modelcontextprotocol.io/specification/2026-07-28/server/resources#reading-resources) request.
    #[doc(alias = "resources/read")]
    pub cacheable result ReadResourceResult {
        /// Contents of the resource, and of its sub-resources if it has any.
        contents: Vec<ResourceContents> = "contents",
    }
}

impl ReadResourceResult {
    /// Creates a result with one text.
    pub fn text(uri: impl Into<String>, text: impl Into<String>) -> Self {
        Self::new([ResourceContents::text(uri, text)])
    }

    /// Creates a result with binary contents from base64.
    pub fn blob(uri: impl Into<String>, blob: impl Into<String>) -> Self {
        Self::new([ResourceContents::blob(uri, blob)])
    }
}

model! {
    /// Parameters of a [`resources/subscribe`](https://modelcontextprotocol.io/specification/2025-11-25/server/resources#subscriptions) request (handshake era).
    #[doc(alias = "resources/subscribe")]
    pub struct SubscribeParams {
        /// URI of the resource.
        uri: String = "uri",
    }
}

model! {
    /// Parameters of a [`resources/unsubscribe`](https://modelcontextprotocol.io/specification/2025-11-25/server/resources#subscriptions) request (handshake era).
    #[doc(alias = "resources/unsubscribe")]
    pub struct UnsubscribeParams {
        /// URI of the resource.
        uri: String = "uri",
    }
}

model! {
    /// Parameters of a [`notifications/resources/updated`](https://modelcontextprotocol.io/specification/2026-07-28/server/resources#subscriptions) notification.
    #[doc(alias = "notifications/resources/updated")]
    pub struct ResourceUpdatedParams {
        /// URI of the resource that changed. It may be a sub-resource of the subscribed one.
        uri: String = "uri",
    }
}

/// [Contents](https://modelcontextprotocol.io/specification/2026-07-28/server/resources#resource-contents) of a resource.
///
/// ```
/// use duplexer_types::resource::ResourceContents;
///
/// let contents = ResourceContents::text("config://app", "verbose = true").mime_type("text/plain");
/// assert!(matches!(contents, ResourceContents::Text(text) if text.text == "verbose = true"));
/// ```
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(test, derive(arbitrary::Arbitrary))]
#[non_exhaustive]
pub enum ResourceContents {
    /// Text contents.
    Text(TextResourceContents),
    /// Binary contents.
    Blob(BlobResourceContents),
    /// Contents with neither `text` nor `blob`.
    #[cfg_attr(test, arbitrary(skip))]
    Other(Json),
}

model! {
    /// [Text contents](https://modelcontextprotocol.io/specification/2026-07-28/server/resources#text-content) of a resource.
    pub struct TextResourceContents {
        /// URI of the resource.
        uri: String = "uri",
        /// The text.
        text: String = "text",
    } optional {
        /// Media type.
        mime_type: String = "mimeType",
        /// Additional metadata.
        meta: JsonObject = "_meta" since V2025_06_18,
    }
}

model! {
    /// [Binary contents](https://modelcontextprotocol.io/specification/2026-07-28/server/resources#binary-content) of a resource.
    pub struct BlobResourceContents {
        /// URI of the resource.
        uri: String = "uri",
        /// The bytes, base64-encoded.
        blob: String = "blob",
    } optional {
        /// Media type.
        mime_type: String = "mimeType",
        /// Additional metadata.
        meta: JsonObject = "_meta" since V2025_06_18,
    }
}

impl ResourceContents {
    /// Creates text contents.
    pub fn text(uri: impl Into<String>, text: impl Into<String>) -> Self {
        Self::Text(TextResourceContents::new(uri, text))
    }

    /// Creates binary contents from base64.
    pub fn blob(uri: impl Into<String>, blob: impl Into<String>) -> Self {
        Self::Blob(BlobResourceContents::new(uri, blob))
    }

    /// Sets `mimeType`.
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

impl ResourceContents {
    fn read(json: &Json) -> Result<Self, serde_json::Error> {
        match find_members(json.as_str(), ["text", "blob"])? {
            [Occurrence::One(_), _] => json.decode().map(Self::Text),
            [_, Occurrence::One(_)] => json.decode().map(Self::Blob),
            _ => Ok(Self::Other(json.clone())),
        }
    }
}

read_from_json!(object ResourceContents);
