//! A remote server as a part of another one (`merge`, `nest`): its items are items of that server's catalog.

use std::collections::HashMap;
use std::sync::Arc;

use duplexer_core::dispatch::BoxFuture;
use duplexer_core::error::McpError;
use duplexer_server::completion::CompletionRequest;
use duplexer_server::prompt::Prompt;
use duplexer_server::resource::Resource;
use duplexer_server::tool::Tool;
use duplexer_server::{CatalogEdit, CatalogError, Context, Outcome, RunContext, Server, ServerBuilder};
use duplexer_types::completion::CompleteResult;
use duplexer_types::json::Json;
use duplexer_types::prompt::PromptDefinition;
use duplexer_types::resource::{ResourceDefinition, ResourceTemplate};
use duplexer_types::text::shown;
use duplexer_types::tool::ToolDefinition;

use crate::failure;
use crate::forward;
use crate::gateway::BackendSettings;
use crate::gateway::backend::Backend;
use crate::gateway::lists::{Item, List};
use crate::gateway::route::with_members;
use crate::remote::Remote;
use crate::translate::members;

/// The state of a part that is a remote server. See [`Remote::part`].
pub struct Part(Arc<Backend>);

impl std::fmt::Debug for Part {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Part").field(&self.0.health()).finish()
    }
}

impl Remote {
    /// Returns the remote server as a part of another one, for [`ServerBuilder::merge`] and [`ServerBuilder::nest`]: its
    /// tools, prompts, resources and templates follow those of the remote server. Names are those that a server of this
    /// library can have; others are left out. Custom methods and tasks are not part of it.
    ///
    /// ```
    /// use duplexer::client::prelude::*;
    /// use duplexer::{Server, Tool};
    /// use duplexer_proxy::Remote;
    ///
    /// # fn main() -> Result<(), duplexer::BoxError> {
    /// let far = Server::builder("far", "1").tool(Tool::new("away", || async { "far" })).build()?;
    /// let remote = Remote::new(move |builder: ClientBuilder| builder.connect(far.in_process()));
    /// let server = Server::builder("near", "1")
    ///     .tool(Tool::new("here", || async { "near" }))
    ///     .nest("far", remote.part())
    ///     .build()?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn part(self) -> ServerBuilder<Part> {
        let backend = Backend::new(BackendSettings::new("remote").prefix(""), self);
        Server::builder("remote", env!("CARGO_PKG_VERSION"))
            .state(Part(backend))
            .dynamic()
            .while_running(follow)
            .on_shutdown(|part: Arc<Part>| async move { part.0.close().await })
    }
}

/// Keeps the catalog like the lists of the remote server.
async fn follow(cx: RunContext<Part>) {
    let backend = Arc::clone(&cx.state().0);
    let supervising = Arc::clone(&backend).supervise(cx.server().clone());
    let copying = async {
        let mut known = HashMap::new();
        loop {
            backend.relisted().await;
            copy(&cx, &backend, &mut known).await;
        }
    };
    let reaping = crate::remote::reap(Arc::clone(backend.pool()));
    tokio::select! {
        () = supervising => {}
        () = copying => {}
        () = reaping => {}
    }
}

/// Items in the catalog: the list and the name of each, and how it was listed.
type Known = HashMap<(usize, String), Json>;

/// Adds, replaces and removes what has changed.
async fn copy(cx: &RunContext<Part>, backend: &Arc<Backend>, known: &mut Known) {
    let Ok(catalog) = cx.catalog() else { return };
    let mut now: Known = HashMap::new();
    let listed: Vec<(List, Item)> = List::ALL
        .into_iter()
        .flat_map(|list| backend.list(list).iter().cloned().map(move |item| (list, item)).collect::<Vec<_>>())
        .collect();
    let edited = catalog
        .edit(|edit| {
            for (list, item) in listed {
                let key = (list as usize, item.name.clone());
                if known.get(&key) != Some(&item.listed)
                    && let Err(error) = put(edit, backend, list, &item)
                {
                    let name = shown(&item.name);
                    tracing::warn!(name, ?list, %error, "an item of a remote server is left out");
                    continue;
                }
                now.insert(key, item.listed);
            }
            for ((list, name), _) in known.iter().filter(|(key, _)| !now.contains_key(key)) {
                remove(edit, *list, name);
            }
            Ok::<_, CatalogError>(())
        })
        .await;
    if edited.is_ok() {
        *known = now;
    }
}

fn remove(edit: &mut CatalogEdit<Part>, list: usize, name: &str) {
    let removed = match List::ALL.get(list) {
        Some(List::Tools) => edit.remove_tool(name),
        Some(List::Prompts) => edit.remove_prompt(name),
        Some(List::Resources) => edit.remove_resource(name),
        Some(List::Templates) => edit.remove_template(name),
        None => return,
    };
    if let Err(error) = removed {
        tracing::debug!(%error, "an item of a remote server was removed already");
    }
}

#[derive(Debug, thiserror::Error)]
enum InvalidItem {
    #[error(transparent)]
    Definition(#[from] serde_json::Error),
    #[error(transparent)]
    Catalog(#[from] CatalogError),
}

/// Adds or replaces an item.
fn put(
    edit: &mut CatalogEdit<Part>,
    backend: &Arc<Backend>,
    list: List,
    item: &Item,
) -> Result<(), InvalidItem> {
    match list {
        List::Tools => {
            let mut tool: ToolDefinition = item.listed.decode()?;
            // Tasks of the remote server cannot be followed here.
            tool.execution = None;
            edit.replace_tool(Tool::forwarded(tool, named(backend, &item.name)))?;
        }
        List::Prompts => {
            let prompt: PromptDefinition = item.listed.decode()?;
            let arguments: Vec<String> =
                prompt.arguments.iter().flatten().map(|argument| argument.name.clone()).collect();
            let forwarded = Prompt::forwarded(prompt, named(backend, &item.name));
            let prompt = arguments.into_iter().fold(forwarded, |prompt, argument| {
                let (backend, own) = (Arc::clone(backend), item.name.clone());
                prompt.complete(argument, move |cx: Context<Part>, _: CompletionRequest| {
                    suggest(Arc::clone(&backend), own.clone(), cx)
                })
            });
            edit.replace_prompt(prompt)?;
        }
        List::Resources => {
            let listed: ResourceDefinition = item.listed.decode()?;
            let mut resource = Resource::forwarded(item.name.as_str(), unchanged(backend)).name(listed.name);
            if let Some(size) = listed.size {
                resource = resource.size(size);
            }
            let described = (listed.title, listed.description, listed.mime_type);
            edit.replace_resource(describe(resource, described))?;
        }
        List::Templates => {
            let listed: ResourceTemplate = item.listed.decode()?;
            let resource =
                Resource::forwarded_template(item.name.as_str(), unchanged(backend)).name(listed.name);
            let described = (listed.title, listed.description, listed.mime_type);
            edit.replace_resource(describe(resource, described))?;
        }
    }
    Ok(())
}

type Description = (Option<String>, Option<String>, Option<String>);

fn describe(mut resource: Resource<Part>, (title, description, mime_type): Description) -> Resource<Part> {
    if let Some(title) = title {
        resource = resource.title(title);
    }
    if let Some(description) = description {
        resource = resource.description(description);
    }
    if let Some(mime_type) = mime_type {
        resource = resource.mime_type(mime_type);
    }
    resource
}

type Answer = BoxFuture<'static, Result<Outcome, McpError>>;

/// Returns a handler that passes a request on under the remote server's own name.
fn named(
    backend: &Arc<Backend>,
    own: &str,
) -> impl Fn(Context<Part>) -> Answer + Send + Sync + 'static + use<> {
    let (backend, own) = (Arc::clone(backend), own.to_owned());
    move |cx| {
        let (backend, own) = (Arc::clone(&backend), own.clone());
        Box::pin(async move {
            let mut params = members(cx.message())?;
            params.insert("name", Json::from(own));
            let message = with_members(cx.message(), params);
            pass(&backend, &cx.untyped(), &message).await
        })
    }
}

/// Returns a handler that passes a request on as it is.
fn unchanged(backend: &Arc<Backend>) -> impl Fn(Context<Part>) -> Answer + Send + Sync + 'static + use<> {
    let backend = Arc::clone(backend);
    move |cx| {
        let backend = Arc::clone(&backend);
        Box::pin(async move {
            let message = with_members(cx.message(), members(cx.message())?);
            pass(&backend, &cx.untyped(), &message).await
        })
    }
}

async fn pass(
    backend: &Backend,
    cx: &Context,
    message: &duplexer_core::dispatch::Message,
) -> Result<Outcome, McpError> {
    let link = backend.pool().find(cx)?;
    forward::dispatch(backend.pool(), &link, cx, message).await
}

/// Requests values for an argument of a prompt.
async fn suggest(backend: Arc<Backend>, own: String, cx: Context<Part>) -> Result<Vec<String>, McpError> {
    let mut params = members(cx.message())?;
    let reference = serde_json::json!({ "type": "ref/prompt", "name": own });
    params.insert("ref", Json::from(reference));
    let message = with_members(cx.message(), params);
    let outcome = pass(&backend, &cx.untyped(), &message).await?;
    match outcome.into_typed::<CompleteResult>() {
        Ok(result) => Ok(result.completion.values),
        Err(_) => Err(failure::unavailable("its completion is not valid")),
    }
}
