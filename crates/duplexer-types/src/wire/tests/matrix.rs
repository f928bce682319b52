//! Members that each revision added, for the revisions without a schema.
//!
//! The schema of an older revision is that of 2025-11-25 without the later rows.

use crate::version::ProtocolVersion::{self, V2025_03_26, V2025_06_18, V2025_11_25};

pub(super) struct Row {
    /// The first revision with the member or kind.
    pub(super) since: ProtocolVersion,
    /// JSON pointer into the definitions.
    pub(super) place: &'static str,
    pub(super) gone: Gone,
}

#[derive(Clone, Copy)]
pub(super) enum Gone {
    Member(&'static str),
    Kind(&'static str),
}

const fn member(since: ProtocolVersion, place: &'static str, name: &'static str) -> Row {
    Row { since, place, gone: Gone::Member(name) }
}

const fn kind(since: ProtocolVersion, place: &'static str, name: &'static str) -> Row {
    Row { since, place, gone: Gone::Kind(name) }
}

pub(super) const ROWS: &[Row] = &[
    // Audio, tool annotations, the completions capability, progress messages.
    kind(V2025_03_26, "/ContentBlock", "AudioContent"),
    kind(V2025_03_26, "/SamplingMessage/properties/content", "AudioContent"),
    kind(V2025_03_26, "/CreateMessageResult/properties/content", "AudioContent"),
    member(V2025_03_26, "/Tool", "annotations"),
    member(V2025_03_26, "/ServerCapabilities", "completions"),
    member(V2025_03_26, "/ProgressNotificationParams", "message"),
    // Titles.
    member(V2025_06_18, "/Implementation", "title"),
    member(V2025_06_18, "/Tool", "title"),
    member(V2025_06_18, "/Resource", "title"),
    member(V2025_06_18, "/ResourceTemplate", "title"),
    member(V2025_06_18, "/Prompt", "title"),
    member(V2025_06_18, "/PromptArgument", "title"),
    member(V2025_06_18, "/PromptReference", "title"),
    // `_meta` of items.
    member(V2025_06_18, "/Tool", "_meta"),
    member(V2025_06_18, "/Resource", "_meta"),
    member(V2025_06_18, "/ResourceTemplate", "_meta"),
    member(V2025_06_18, "/Prompt", "_meta"),
    member(V2025_06_18, "/Root", "_meta"),
    member(V2025_06_18, "/TextContent", "_meta"),
    member(V2025_06_18, "/ImageContent", "_meta"),
    member(V2025_06_18, "/AudioContent", "_meta"),
    member(V2025_06_18, "/EmbeddedResource", "_meta"),
    member(V2025_06_18, "/TextResourceContents", "_meta"),
    member(V2025_06_18, "/BlobResourceContents", "_meta"),
    // Resource links, structured output, `lastModified`, completion context, elicitation.
    kind(V2025_06_18, "/ContentBlock", "ResourceLink"),
    member(V2025_06_18, "/Tool", "outputSchema"),
    member(V2025_06_18, "/CallToolResult", "structuredContent"),
    member(V2025_06_18, "/Annotations", "lastModified"),
    member(V2025_06_18, "/CompleteRequestParams", "context"),
    // Icons, and further members of an implementation.
    member(V2025_11_25, "/Implementation", "icons"),
    member(V2025_11_25, "/Implementation", "description"),
    member(V2025_11_25, "/Implementation", "websiteUrl"),
    member(V2025_11_25, "/Tool", "icons"),
    member(V2025_11_25, "/Resource", "icons"),
    member(V2025_11_25, "/ResourceLink", "icons"),
    member(V2025_11_25, "/ResourceTemplate", "icons"),
    member(V2025_11_25, "/Prompt", "icons"),
    // Sampling with tools, several blocks.
    member(V2025_11_25, "/ClientCapabilities/properties/sampling", "tools"),
    member(V2025_11_25, "/ClientCapabilities/properties/sampling", "context"),
    member(V2025_11_25, "/CreateMessageRequestParams", "tools"),
    member(V2025_11_25, "/CreateMessageRequestParams", "toolChoice"),
    member(V2025_11_25, "/SamplingMessage", "_meta"),
    kind(V2025_11_25, "/SamplingMessage/properties/content", "ToolUseContent"),
    kind(V2025_11_25, "/SamplingMessage/properties/content", "ToolResultContent"),
    kind(V2025_11_25, "/SamplingMessage/properties/content", "array"),
    kind(V2025_11_25, "/CreateMessageResult/properties/content", "ToolUseContent"),
    kind(V2025_11_25, "/CreateMessageResult/properties/content", "ToolResultContent"),
    kind(V2025_11_25, "/CreateMessageResult/properties/content", "array"),
    // Elicitation by URL, titled and multiple choices, defaults of every kind.
    member(V2025_11_25, "/ClientCapabilities/properties/elicitation", "form"),
    member(V2025_11_25, "/ClientCapabilities/properties/elicitation", "url"),
    kind(V2025_11_25, "/ElicitRequestParams", "ElicitRequestURLParams"),
    member(V2025_11_25, "/ElicitRequestFormParams", "mode"),
    member(V2025_11_25, "/ElicitRequestFormParams/properties/requestedSchema", "$schema"),
    kind(V2025_11_25, "/PrimitiveSchemaDefinition", "TitledSingleSelectEnumSchema"),
    kind(V2025_11_25, "/PrimitiveSchemaDefinition", "UntitledMultiSelectEnumSchema"),
    kind(V2025_11_25, "/PrimitiveSchemaDefinition", "TitledMultiSelectEnumSchema"),
    member(V2025_11_25, "/UntitledSingleSelectEnumSchema", "default"),
    member(V2025_11_25, "/LegacyTitledEnumSchema", "default"),
    member(V2025_11_25, "/StringSchema", "default"),
    member(V2025_11_25, "/NumberSchema", "default"),
    // The experimental tasks.
    member(V2025_11_25, "/ClientCapabilities", "tasks"),
    member(V2025_11_25, "/ServerCapabilities", "tasks"),
    member(V2025_11_25, "/Tool", "execution"),
    member(V2025_11_25, "/CallToolRequestParams", "task"),
    member(V2025_11_25, "/CreateMessageRequestParams", "task"),
    member(V2025_11_25, "/ElicitRequestFormParams", "task"),
    // Last, because the rows above use it.
    member(V2025_06_18, "/ClientCapabilities", "elicitation"),
];
