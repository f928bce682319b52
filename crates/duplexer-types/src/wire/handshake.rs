//! Forms of values for older revisions that lack them.
//!
//! The model still gets the information: an unsupported kind of content becomes text, several blocks become several
//! messages, titled options become `enumNames`.

use serde::ser::{Error as _, SerializeMap, SerializeSeq};
use serde::{Serialize, Serializer};

use super::{ForRevision, Shape, Wire};
use crate::annotations::{Annotations, Role};
use crate::content::{Content, TextContent};
use crate::elicitation::{EnumSchema, MultiSelectSchema, PrimitiveSchema};
use crate::json::Json;
use crate::sampling::{Blocks, SamplingContent, SamplingMessage};
use crate::version::feature;

/// Whether the revision allows this structured content: older ones require an object.
pub(crate) fn is_structured(content: &Json, shape: Shape) -> bool {
    shape.has(feature::STRUCTURED_ANY) || content.is_object()
}

/// Whether the revision allows this output schema: older ones require the type `object`.
pub(crate) fn describes_objects(schema: &Json, shape: Shape) -> bool {
    shape.has(feature::STRUCTURED_ANY) || schema.member("type") == Some("\"object\"")
}

impl Wire for Content {
    fn write<S: Serializer>(&self, shape: Shape, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Audio(audio) if !shape.has(feature::AUDIO) => {
                as_text_content(audio_text(&audio.mime_type), audio.annotations.as_ref())
                    .write(shape, serializer)
            }
            Self::ResourceLink(link) if !shape.has(feature::RESOURCE_LINK) => {
                let name = link.title.as_ref().unwrap_or(&link.name);
                as_text_content(format!("{name}: {}", link.uri), link.annotations.as_ref())
                    .write(shape, serializer)
            }
            _ => self.write_kind(shape, serializer),
        }
    }
}

/// For revisions without tools in sampling, a tool use or result becomes text with its JSON.
impl Wire for SamplingContent {
    fn write<S: Serializer>(&self, shape: Shape, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Audio(audio) if !shape.has(feature::AUDIO) => {
                as_text_content(audio_text(&audio.mime_type), audio.annotations.as_ref())
                    .write(shape, serializer)
            }
            Self::ToolUse(_) | Self::ToolResult(_) if !shape.has(feature::SAMPLING_TOOLS) => {
                let json = serde_json::to_string(self).map_err(S::Error::custom)?;
                as_text_content(json, None).write(shape, serializer)
            }
            _ => self.write_kind(shape, serializer),
        }
    }
}

fn audio_text(mime_type: &str) -> String {
    format!("[audio: {mime_type}]")
}

fn as_text_content(text: String, annotations: Option<&Annotations>) -> TextContent {
    let mut content = TextContent::new(text);
    content.annotations = annotations.cloned();
    content
}

impl Wire for Blocks {
    fn write<S: Serializer>(&self, shape: Shape, serializer: S) -> Result<S::Ok, S::Error> {
        match &*self.0 {
            [block] => block.write(shape, serializer),
            blocks if shape.has(feature::SAMPLING_TOOLS) => {
                serializer.collect_seq(blocks.iter().map(|block| ForRevision(block, shape)))
            }
            blocks => single_block(blocks).write(shape, serializer),
        }
    }
}

/// Reduces several blocks to the one that the revision allows: the joined text, or the first block if there is none.
fn single_block(blocks: &[SamplingContent]) -> SamplingContent {
    let texts: Vec<&str> = blocks.iter().filter_map(SamplingContent::as_text).collect();
    match blocks.first() {
        Some(first) if texts.is_empty() => first.clone(),
        _ => SamplingContent::text(texts.join("\n")),
    }
}

/// Messages of a conversation. For revisions that allow one block per message, each block becomes a message.
pub(crate) struct Messages<'a>(pub(crate) &'a [SamplingMessage], pub(crate) Shape);

impl Serialize for Messages<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self(messages, shape) = *self;
        if shape.has(feature::SAMPLING_TOOLS) {
            return serializer.collect_seq(messages.iter().map(|message| ForRevision(message, shape)));
        }
        let mut seq = serializer.serialize_seq(None)?;
        for SamplingMessage { role, content: Blocks(blocks), .. } in messages {
            if blocks.is_empty() {
                seq.serialize_element(&OneBlock(role, &SamplingContent::text(""), shape))?;
            }
            for block in blocks {
                seq.serialize_element(&OneBlock(role, block, shape))?;
            }
        }
        seq.end()
    }
}

struct OneBlock<'a>(&'a Role, &'a SamplingContent, Shape);

impl Serialize for OneBlock<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self(role, block, shape) = *self;
        let mut map = serializer.serialize_map(Some(2))?;
        map.serialize_entry("role", role)?;
        map.serialize_entry("content", &ForRevision(block, shape))?;
        map.end()
    }
}

impl Wire for PrimitiveSchema {
    fn write<S: Serializer>(&self, shape: Shape, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::String(schema) => schema.write(shape, serializer),
            Self::Number(schema) => schema.write(shape, serializer),
            Self::Boolean(schema) => schema.write(shape, serializer),
            Self::Enum(schema) => schema.write(shape, serializer),
            Self::MultiSelect(schema) if shape.has(feature::TITLED_ENUMS) => schema.write(shape, serializer),
            Self::MultiSelect(schema) => single_choice(schema).write(shape, serializer),
            Self::Other(json) => json.write(shape, serializer),
        }
    }
}

/// Converts to a single choice with the same options.
fn single_choice(schema: &MultiSelectSchema) -> EnumSchema {
    let mut single = EnumSchema::new(schema.choices.clone());
    single.title.clone_from(&schema.title);
    single.description.clone_from(&schema.description);
    single
}
