//! `Mcp-Param-*` headers: the annotations of the last listing of tools (envelope era).

use std::any::Any;
use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use duplexer_types::headers::ParamHeaders;
use duplexer_types::json::Json;
use duplexer_types::methods::Method;
use duplexer_types::page::PaginatedParams;
use duplexer_types::tool::{CallToolParams, ListToolsResult};
use duplexer_types::version::Era;

use super::params::Params;
use super::{Client, ClientError};
use duplexer_core::dispatch::lock;

/// Maximum number of tools with annotations that a session remembers.
const MAX_TOOLS: usize = 10_000;
/// Maximum number of pages that are listed again after a mismatch of headers.
const MAX_PAGES: usize = 100;

/// Annotated tools by name. Tools without annotations, as most are, are not in it.
#[derive(Default)]
pub(super) struct ToolHeaders(Mutex<HashMap<String, Arc<ParamHeaders>>>);

impl ToolHeaders {
    /// Remembers the annotations of a page, and removes tools whose annotations are invalid: they cannot be called. The
    /// first page replaces the earlier listing.
    fn learn(&self, page: &mut ListToolsResult, is_first: bool) {
        let mut annotated = Vec::new();
        page.tools.retain(|tool| match ParamHeaders::from_schema(&tool.input_schema) {
            Ok(headers) => {
                if !headers.is_empty() {
                    annotated.push((tool.name.clone(), Arc::new(headers)));
                }
                true
            }
            Err(error) => {
                tracing::warn!(tool = %tool.name, %error, "a tool with an invalid header annotation is left out");
                false
            }
        });
        let mut known = lock(&self.0);
        if is_first {
            known.clear();
        }
        for (name, headers) in annotated {
            if known.len() < MAX_TOOLS {
                known.insert(name, headers);
            }
        }
    }

    /// Returns the headers of a call.
    fn of(&self, call: &CallToolParams) -> Vec<(String, String)> {
        let known = lock(&self.0).get(&call.name).cloned();
        let arguments = call.arguments.as_ref().map(Json::as_str);
        known.map(|headers| headers.emit(arguments)).unwrap_or_default()
    }
}

impl Client {
    /// Learns from a decoded page of tools, if `result` is one.
    pub(super) fn learn_tools(&self, params: &dyn Any, result: &mut dyn Any) {
        let Some(page) = result.downcast_mut::<ListToolsResult>() else { return };
        let is_first = params.downcast_ref::<PaginatedParams>().is_none_or(|params| params.cursor.is_none());
        match self.era() {
            Era::Envelope => self.0.tool_headers.learn(page, is_first),
            Era::Handshake => self.0.known_tools.learn(page, is_first),
        }
    }

    /// Returns the `Mcp-Param-*` headers of a request, if it is a call of a tool with annotations.
    pub(super) fn param_headers(&self, params: &dyn Params) -> Vec<(String, String)> {
        match (params as &dyn Any).downcast_ref::<CallToolParams>() {
            Some(call) if self.era() == Era::Envelope => self.0.tool_headers.of(call),
            _ => Vec::new(),
        }
    }

    /// Lists the tools again, to learn annotations that have changed.
    pub(super) async fn refresh_tool_headers(&self) -> Result<(), ClientError> {
        let mut cursor = None;
        for _ in 0..MAX_PAGES {
            let mut call = self.list_tools().fresh();
            if let Some(cursor) = cursor {
                call = call.cursor(cursor);
            }
            match call.await?.next_cursor {
                Some(next) => cursor = Some(next),
                None => return Ok(()),
            }
        }
        Err(ClientError::TooManyPages { method: Method::ToolsList, pages: MAX_PAGES })
    }
}
