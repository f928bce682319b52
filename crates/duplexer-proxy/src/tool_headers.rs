//! Arguments of tools that headers mirror (`Mcp-Param-*`): learned from the lists that pass through.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use duplexer_core::dispatch::{Message, lock};
use duplexer_types::headers::ParamHeaders;
use duplexer_types::json::JsonText;
use duplexer_types::tool::ListToolsResult;
use serde::Deserialize;

/// Maximum number of annotated tools.
const MAX_TOOLS: usize = 10_000;
/// The annotation in a schema. A list without it is not decoded.
const ANNOTATION: &str = "x-mcp-header";

/// Annotated tools by name.
#[derive(Default)]
pub(crate) struct ToolHeaders {
    known: Mutex<HashMap<String, Arc<ParamHeaders>>>,
    /// Whether there are any, so that calls of servers without annotations take no lock.
    any: AtomicBool,
}

impl ToolHeaders {
    /// Returns the annotations of a tool.
    pub(crate) fn of(&self, tool: &str) -> Option<Arc<ParamHeaders>> {
        if !self.any.load(Ordering::Acquire) {
            return None;
        }
        lock(&self.known).get(tool).cloned()
    }

    /// Learns from the result of `tools/list`.
    pub(crate) fn learn(&self, result: &str) {
        if !result.contains(ANNOTATION) {
            return;
        }
        let Ok(page) = serde_json::from_str::<ListToolsResult>(result) else { return };
        let mut known = lock(&self.known);
        for tool in page.tools {
            match ParamHeaders::from_schema(&tool.input_schema) {
                Ok(headers) if !headers.is_empty() && known.len() < MAX_TOOLS => {
                    known.insert(tool.name, Arc::new(headers));
                }
                _ => drop(known.remove(&tool.name)),
            }
        }
        self.any.store(!known.is_empty(), Ordering::Release);
    }

    /// Returns the headers of a call of a tool.
    pub(crate) fn emit(&self, call: &Message) -> Vec<(String, String)> {
        #[derive(Deserialize)]
        struct Call<'a> {
            name: String,
            #[serde(borrow)]
            arguments: Option<JsonText<'a>>,
        }
        if !self.any.load(Ordering::Acquire) {
            return Vec::new();
        }
        let Ok(call) = call.decode::<Call<'_>>() else { return Vec::new() };
        let known = lock(&self.known).get(&call.name).cloned();
        known.map(|headers| headers.emit(call.arguments.map(JsonText::as_str))).unwrap_or_default()
    }
}
