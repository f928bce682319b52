//! Tools that only callers with certain scopes see and call.

use std::collections::HashMap;

use duplexer_core::transport::Trust;

use crate::catalog::CatalogItem;
use crate::kernel::context::Context;

/// The scopes that a caller needs to see a tool in `tools/list`, and to call it. For
/// [`ServerBuilder::visible`](crate::ServerBuilder::visible).
///
/// A tool that is not named needs none. A process that shares the rights of the server, such as the host of a server over
/// standard input and output, has no token and sees every tool. A tool that a caller does not see is unknown to it; to
/// answer with a challenge for a better token instead, use `ScopeGuard` of `duplexer-auth`.
///
/// ```
/// use duplexer::tool::ToolScopes;
/// use duplexer::{Server, Tool};
///
/// let scopes = ToolScopes::new().tool("delete", ["notes:write"]).prefix("admin_", ["admin"]);
/// let server = Server::builder("notes", "1.0.0")
///     .visible(scopes.filter())
///     .tool(Tool::new("delete", || async {}))
///     .build()?;
/// # Ok::<_, duplexer::BuildError>(())
/// ```
#[derive(Clone, Debug, Default)]
#[must_use = "nothing is hidden until the filter is given to the server"]
pub struct ToolScopes {
    tools: HashMap<String, Vec<String>>,
    prefixes: Vec<(String, Vec<String>)>,
}

impl ToolScopes {
    /// Creates a list without any tool.
    pub fn new() -> Self {
        Self::default()
    }

    /// Requires all of these scopes for a tool.
    pub fn tool(
        mut self,
        name: impl Into<String>,
        scopes: impl IntoIterator<Item = impl Into<String>>,
    ) -> Self {
        self.tools.insert(name.into(), scopes.into_iter().map(Into::into).collect());
        self
    }

    /// Requires all of these scopes for the tools whose names begin with `prefix`, in addition to those of the tool itself.
    pub fn prefix(
        mut self,
        prefix: impl Into<String>,
        scopes: impl IntoIterator<Item = impl Into<String>>,
    ) -> Self {
        self.prefixes.push((prefix.into(), scopes.into_iter().map(Into::into).collect()));
        self
    }

    /// Returns the filter.
    #[must_use = "nothing is hidden until the filter is given to the server"]
    pub fn filter(self) -> impl Fn(&Context, CatalogItem<'_>) -> bool + Send + Sync + 'static {
        move |cx, item| match item {
            CatalogItem::Tool(tool) => self.permits(cx, &tool.name),
            _ => true,
        }
    }

    fn permits(&self, cx: &Context, tool: &str) -> bool {
        let by_prefix = self.prefixes.iter().filter(|(prefix, _)| tool.starts_with(prefix.as_str()));
        let mut needed =
            self.tools.get(tool).into_iter().chain(by_prefix.map(|(_, scopes)| scopes)).flatten();
        match cx.principal() {
            Some(principal) => needed.all(|scope| principal.has_scope(scope)),
            None if cx.transport().trust() == Trust::LocalProcess => true,
            None => needed.next().is_none(),
        }
    }
}
