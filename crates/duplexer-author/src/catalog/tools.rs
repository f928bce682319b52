//! `tools/list` and `tools/call`.

use std::borrow::Cow;
use std::sync::Arc;

use duplexer_core::dispatch::BoxFuture;
use duplexer_core::error::McpError;
use duplexer_core::server::{Context, Outcome, States};
use duplexer_types::error::ErrorCode;
use duplexer_types::headers::ParamHeaders;
use duplexer_types::json::Json;
use duplexer_types::jsonrpc;
use duplexer_types::methods::Method;
use duplexer_types::tool::{ListToolsResult, Tool};
use duplexer_types::version::{ProtocolVersion, feature};
use duplexer_types::wire::CacheScope;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::{Inner, Item, Listed, Offered};
use crate::tool::{RunTool, ToolError};

/// A tool on its shelf.
pub(crate) struct ToolEntry {
    pub(crate) tool: Tool,
    pub(crate) wrapped_output: Option<Json>,
    pub(crate) headers: Option<Arc<ParamHeaders>>,
    pub(crate) timeout: Option<std::time::Duration>,
    pub(crate) view: Option<String>,
    pub(crate) run: Box<dyn RunTool<States>>,
}

impl Item for ToolEntry {
    const KIND: &'static str = "tool";

    fn key(&self) -> &str {
        &self.tool.name
    }

    fn offered(&self) -> Offered<'_> {
        Offered::Tool(&self.tool)
    }
}

impl Listed for ToolEntry {
    type Definition = Tool;
    type Page = ListToolsResult;
    const METHOD: Method = Method::ToolsList;

    fn definition(&self, version: ProtocolVersion) -> Tool {
        let mut tool = self.tool.clone();
        if let Some(wrapped) = &self.wrapped_output
            && !version.has(feature::STRUCTURED_ANY)
        {
            tool.output_schema = Some(wrapped.clone());
        }
        tool
    }

    fn page(tools: Vec<Tool>, next: Option<String>) -> ListToolsResult {
        let mut page = ListToolsResult::new(tools);
        page.next_cursor = next;
        page
    }

    fn private(page: Self::Page) -> Self::Page {
        page.cache_scope(CacheScope::Private)
    }
}

/// What a call says, as it stands in the message.
#[derive(Deserialize)]
struct Call<'a> {
    #[serde(borrow)]
    name: Cow<'a, str>,
    #[serde(borrow, default)]
    arguments: Option<&'a RawValue>,
}

/// Reads a call without copying it.
fn read(cx: &Context) -> Result<Call<'_>, McpError> {
    let call: Call<'_> = jsonrpc::decode(cx.raw_params(), cx.raw_meta())
        .map_err(|error| McpError::InvalidParams(error.into()))?;
    match call.arguments.map(RawValue::get) {
        Some(arguments) if !arguments.starts_with('{') => {
            Err(McpError::InvalidParams("arguments are an object".into()))
        }
        _ => Ok(call),
    }
}

/// Answers `tools/call`.
pub(crate) fn call(catalog: &Inner, cx: &Context) -> BoxFuture<'static, Result<Outcome, McpError>> {
    match start(catalog, cx) {
        Ok(call) => call,
        Err(error) => Box::pin(std::future::ready(Err(error))),
    }
}

fn start(catalog: &Inner, cx: &Context) -> Result<BoxFuture<'static, Result<Outcome, McpError>>, McpError> {
    let call = read(cx)?;
    let snapshot = catalog.snapshot.load();
    let Some(tool) = snapshot.tools.get(&call.name).filter(|tool| catalog.shows(cx, &***tool)) else {
        return Err(McpError::new(ErrorCode::INVALID_PARAMS, format!("Unknown tool: {}", call.name)));
    };
    let arguments = call.arguments.map_or("{}", RawValue::get);
    let running = tool.run.run(cx.clone(), arguments);
    Ok(match tool.timeout {
        None => running,
        Some(limit) => Box::pin(async move {
            match tokio::time::timeout(limit, running).await {
                Ok(outcome) => outcome,
                Err(_) => crate::tool::told(ToolError::new(format!(
                    "This took longer than the {limit:?} it is allowed to, and was stopped."
                ))),
            }
        }),
    })
}
