//! `tools/list` and `tools/call`.

use std::borrow::Cow;
use std::sync::{Arc, OnceLock};

use crate::kernel::context::Context;
use crate::kernel::observer::Target;
use duplexer_core::dispatch::Message;
use duplexer_core::error::McpError;
use duplexer_types::error::ErrorCode;
use duplexer_types::json::{Json, JsonText};
use duplexer_types::methods::Method;
use duplexer_types::tool::{ListToolsResult, ToolDefinition};
use duplexer_types::version::{ProtocolVersion, feature};
use duplexer_types::wire::CacheScope;
use serde::Deserialize;

use super::run::ToolInput;
use super::{CallTool, Execution, ToolCall, ToolContract, ToolError, into_outcome};
use crate::catalog::draft::check_name;
use crate::catalog::erased::{BoundHandler, HandlerFuture, failed};
use crate::catalog::{CatalogError, CatalogItem, Inner, Item, Listed};
use crate::features::tasks::{self, Limit, TaskStart};

/// A registered tool.
pub(crate) struct ToolEntry {
    /// The definition without its schemas.
    pub(crate) tool: ToolDefinition,
    pub(crate) scope: usize,
    pub(crate) contract: Arc<ToolContract>,
    /// The definition with its schemas, once a filter has needed it.
    pub(crate) listed: OnceLock<ToolDefinition>,
    pub(crate) execution: Execution,
    /// URI of the view that shows its results.
    pub(crate) view: Option<String>,
    pub(crate) run: BoundHandler<CallTool>,
}

impl Target for ToolEntry {
    fn name(&self) -> &str {
        &self.tool.name
    }
}

impl Item for ToolEntry {
    const KIND: &'static str = "tool";

    fn key(&self) -> &str {
        &self.tool.name
    }

    fn scope(&self) -> usize {
        self.scope
    }

    fn is_visible(&self, prefix: usize, visible: &dyn Fn(CatalogItem<'_>) -> bool) -> bool {
        if prefix == 0 {
            return visible(CatalogItem::Tool(self.listed.get_or_init(|| self.with_schemas())));
        }
        let mut tool = self.with_schemas();
        tool.name.replace_range(..prefix, "");
        visible(CatalogItem::Tool(&tool))
    }

    fn merge(&mut self, scope_offset: usize, prefix: &str) -> Result<(), CatalogError> {
        self.scope += scope_offset;
        self.tool.name.insert_str(0, prefix);
        self.listed = OnceLock::new();
        check_name(Self::KIND, &self.tool.name)
    }
}

impl ToolEntry {
    /// Derives the schemas. Fails if the tool cannot be offered.
    pub(crate) fn check(&self) -> Result<(), CatalogError> {
        self.contract.output.listed();
        match &self.contract.input.schema().fault {
            Some(reason) => {
                Err(CatalogError::Schema { tool: self.tool.name.clone(), reason: reason.clone() })
            }
            None => Ok(()),
        }
    }

    fn with_schemas(&self) -> ToolDefinition {
        let mut tool = self.tool.clone();
        tool.input_schema = self.contract.input.schema().listed.clone();
        tool.output_schema.clone_from(&self.contract.output.listed().schema);
        tool
    }

    /// Runs the tool itself, without its middleware: directly, or as a task.
    pub(crate) fn run(self: &Arc<Self>, cx: Context, arguments: &str) -> HandlerFuture {
        let Some(policy) = &self.execution.task else { return self.run_within(cx, arguments, Limit::Call) };
        let Execution { timeout, blocking, .. } = self.execution;
        let start = TaskStart { tool: &self.tool.name, arguments, policy, timeout, blocking };
        let (entry, text) = (Arc::clone(self), arguments.to_owned());
        tasks::start(cx, start, Box::new(move |cx, limit| entry.run_within(cx, &text, limit)))
    }

    fn run_within(&self, cx: Context, arguments: &str, limit: Limit) -> HandlerFuture {
        let running = self.run.run(cx, ToolInput { arguments, contract: &self.contract });
        let Some(limit) = self.execution.timeout.filter(|_| limit == Limit::Call) else { return running };
        Box::pin(async move {
            match tokio::time::timeout(limit, running).await {
                Ok(outcome) => outcome,
                Err(_) => into_outcome(ToolError::new(tasks::too_long(limit))),
            }
        })
    }
}

impl Listed for ToolEntry {
    type Definition = ToolDefinition;
    type Page = ListToolsResult;
    const METHOD: Method = Method::ToolsList;

    fn definition(&self, version: ProtocolVersion) -> ToolDefinition {
        if let Err(error) = self.check() {
            tracing::error!(%error, "a tool is listed that cannot be called");
        }
        let mut tool = self.with_schemas();
        if let Some(wrapped) = &self.contract.output.listed().wrapped
            && !version.has(feature::STRUCTURED_ANY)
        {
            tool.output_schema = Some(wrapped.clone());
        }
        tool
    }

    fn page(tools: Vec<ToolDefinition>, next: Option<String>) -> ListToolsResult {
        let mut page = ListToolsResult::new(tools);
        page.next_cursor = next;
        page
    }

    fn private(page: Self::Page) -> Self::Page {
        page.cache_scope(CacheScope::Private)
    }
}

/// The parameters of a call, borrowed from the message.
#[derive(Deserialize)]
struct Call<'a> {
    #[serde(borrow)]
    name: Cow<'a, str>,
    #[serde(borrow, default)]
    arguments: Option<JsonText<'a>>,
    /// A request for a task (2025-11-25). Ignored in other revisions.
    #[serde(borrow, default)]
    task: Option<JsonText<'a>>,
}

/// Returns whether the client can ask for tasks.
fn offers_tasks(cx: &Context) -> bool {
    cx.protocol_version().has(feature::TASK_EXPERIMENT) && cx.server().tasks().is_some()
}

/// Decodes the parameters without copying them.
fn read(message: &Message) -> Result<Call<'_>, McpError> {
    let call: Call<'_> = message.decode().map_err(|error| McpError::InvalidParams(error.into()))?;
    match call.arguments.map(JsonText::as_str) {
        Some(arguments) if !arguments.starts_with('{') => {
            Err(McpError::InvalidParams("arguments are an object".into()))
        }
        _ => Ok(call),
    }
}

/// Handles `tools/call`.
pub(crate) fn call(catalog: &Inner, cx: Context) -> HandlerFuture {
    start(catalog, cx).unwrap_or_else(failed)
}

fn start(catalog: &Inner, cx: Context) -> Result<HandlerFuture, McpError> {
    // The parameters borrow from the message, while the context moves into the handler.
    let message = Arc::clone(cx.shared_message());
    let call = read(&message)?;
    let snapshot = catalog.snapshot.load();
    let Some(tool) = snapshot.tools.get(&call.name).filter(|tool| catalog.is_visible(&cx, &***tool)) else {
        return Err(McpError::new(ErrorCode::INVALID_PARAMS, format!("Unknown tool: {}", call.name)));
    };
    if call.task.is_some() && tool.execution.task.is_none() && offers_tasks(&cx) {
        let text = format!("The tool '{}' does not run as a task: call it without `task`", call.name);
        return Err(McpError::new(ErrorCode::METHOD_NOT_FOUND, text));
    }
    if cx.server().is_observed() {
        let _ = cx.scope().target.set(Arc::clone(tool) as _);
    }
    let arguments = call.arguments.map_or("{}", JsonText::as_str);
    Ok(match catalog.scopes.chain(tool.scope) {
        None => tool.run(cx, arguments),
        Some(chain) => {
            let arguments = Json::parse(arguments).map_err(McpError::internal)?;
            ToolCall::new(Arc::clone(tool), arguments, Arc::clone(chain)).run(cx)
        }
    })
}
