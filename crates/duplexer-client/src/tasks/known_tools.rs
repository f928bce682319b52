//! Which tools run as tasks, as the last listing says (2025-11-25), and the request for a task that a call contains.

use std::any::Any;
use std::collections::HashMap;
use std::sync::Mutex;

use duplexer_types::task::TaskMetadata;
use duplexer_types::tool::{CallToolParams, ListToolsResult, TaskSupport};
use duplexer_types::version::feature;

use crate::Client;
use crate::params::Params;
use duplexer_core::dispatch::lock;

/// Maximum number of tools that a session remembers.
const MAX_TOOLS: usize = 10_000;

/// What a caller wants of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wish {
    /// The result. Only tools that require tasks get one.
    Result,
    /// A handle, wherever a tool can run as a task.
    Handle,
}

/// Tools that can run as tasks, by name.
#[derive(Default)]
pub(crate) struct KnownTools(Mutex<HashMap<String, TaskSupport>>);

impl KnownTools {
    /// Remembers the tools of a page. The first page replaces the earlier listing.
    pub(crate) fn learn(&self, page: &ListToolsResult, is_first: bool) {
        let mut known = lock(&self.0);
        if is_first {
            known.clear();
        }
        for tool in &page.tools {
            let support = tool.execution.as_ref().and_then(|it| it.task_support.clone());
            if let Some(support @ (TaskSupport::Optional | TaskSupport::Required)) = support
                && known.len() < MAX_TOOLS
            {
                known.insert(tool.name.clone(), support);
            }
        }
    }

    fn permits(&self, tool: &str, wish: Wish) -> bool {
        match lock(&self.0).get(tool) {
            Some(TaskSupport::Required) => true,
            Some(_) => wish == Wish::Handle,
            None => false,
        }
    }
}

impl Client {
    fn wants_task(&self, tool: &str, wish: Wish) -> bool {
        self.0.callbacks.tasks.is_some()
            && self.0.session.version.has(feature::TASK_EXPERIMENT)
            && self.0.session.capabilities.tasks.is_some()
            && self.0.known_tools.permits(tool, wish)
    }

    /// Asks for a task where the revision lets the client ask, and returns whether the params do.
    pub(crate) fn ask_for_task(&self, params: &mut dyn Params, wish: Wish) -> bool {
        if let Some(call) = (params as &mut dyn Any).downcast_mut::<CallToolParams>()
            && self.wants_task(&call.name, wish)
        {
            call.task.get_or_insert_with(TaskMetadata::new);
        }
        self.asks_for_task(params)
    }

    /// Returns whether params ask for a task, so that the response creates one.
    pub(crate) fn asks_for_task(&self, params: &dyn Params) -> bool {
        let call = (params as &dyn Any).downcast_ref::<CallToolParams>();
        call.is_some_and(|call| call.task.is_some()) && self.0.session.version.has(feature::TASK_EXPERIMENT)
    }
}
