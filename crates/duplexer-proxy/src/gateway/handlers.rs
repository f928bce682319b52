//! The methods of a gateway: lists of all servers, and requests to one of them.

use std::sync::Arc;

use duplexer_core::dispatch::{BoxFuture, Message};
use duplexer_core::error::McpError;
use duplexer_server::middleware::Next;
use duplexer_server::{Context, Outcome, Reply, ServerBuilder};
use duplexer_types::completion::CompleteParams;
use duplexer_types::error::ErrorCode;
use duplexer_types::json::{Json, JsonObject};
use duplexer_types::methods::{self, Method};
use duplexer_types::page::PaginatedParams;
use duplexer_types::prompt::GetPromptParams;
use duplexer_types::resource::{ReadResourceParams, SubscribeParams};
use duplexer_types::subscription::SubscriptionsListenParams;
use duplexer_types::tool::CallToolParams;
use duplexer_types::version::ProtocolVersion;
use duplexer_types::wire::ResultBody;

use super::Shared;
use super::lists::List;
use super::route::Routed;
use crate::forward;

/// Number of items of a page.
const PAGE: usize = 1000;

type Answer<R> = BoxFuture<'static, Result<Reply<R>, McpError>>;

/// Registers the methods.
pub(crate) fn register(builder: ServerBuilder<()>, shared: &Arc<Shared>) -> ServerBuilder<()> {
    let (watching, headers) = (Arc::clone(shared), Arc::clone(shared));
    builder
        .tool_headers(move |name| {
            let mut backends = headers.backends().into_iter();
            backends
                .find_map(|backend| backend.pool().tool_headers().of(backend.settings().own_name(name)?))
        })
        .middleware(move |cx: Context, message: Message, next: Next| {
            watch(&watching, &message);
            next.run(cx, message)
        })
        .on(methods::ToolsList, lists(shared, List::Tools))
        .on(methods::PromptsList, lists(shared, List::Prompts))
        .on(methods::ResourcesList, lists(shared, List::Resources))
        .on(methods::ResourcesTemplatesList, lists(shared, List::Templates))
        .on(
            methods::ToolsCall,
            routes::<CallToolParams, _>(shared, |shared, message| {
                shared.by_name(List::Tools, "tool", message)
            }),
        )
        .on(
            methods::PromptsGet,
            routes::<GetPromptParams, _>(shared, |shared, message| {
                shared.by_name(List::Prompts, "prompt", message)
            }),
        )
        .on(methods::ResourcesRead, routes::<ReadResourceParams, _>(shared, Shared::by_uri))
        .on(methods::CompletionComplete, routes::<CompleteParams, _>(shared, Shared::by_reference))
}

/// Has changes of resources passed on that a client subscribes to.
fn watch(shared: &Shared, message: &Message) {
    let uris = match message.known() {
        Some(Method::ResourcesSubscribe) => {
            message.decode::<SubscribeParams>().map(|params| vec![params.uri]).unwrap_or_default()
        }
        Some(Method::SubscriptionsListen) => message
            .decode::<SubscriptionsListenParams>()
            .ok()
            .and_then(|params| params.notifications.resource_subscriptions)
            .unwrap_or_default(),
        _ => return,
    };
    for uri in uris {
        if let Some(backend) = shared.owner(&uri) {
            backend.watch(&uri);
        }
    }
}

/// Returns the handler of a list.
fn lists<R: ResultBody>(
    shared: &Arc<Shared>,
    list: List,
) -> impl Fn(Context<()>, PaginatedParams) -> Answer<R> + Send + Sync + 'static {
    let shared = Arc::clone(shared);
    move |cx, params| {
        let shared = Arc::clone(&shared);
        Box::pin(async move {
            page(&shared, list, params.cursor.as_deref(), cx.protocol_version()).await.map(Reply::Other)
        })
    }
}

/// Returns a page of what all servers list. Servers that have not answered yet are left out.
async fn page(
    shared: &Shared,
    list: List,
    cursor: Option<&str>,
    version: ProtocolVersion,
) -> Result<Outcome, McpError> {
    let start: usize = match cursor.map(str::parse) {
        None => 0,
        Some(Ok(start)) => start,
        Some(Err(_)) => return Err(McpError::new(ErrorCode::INVALID_PARAMS, "The cursor is not valid")),
    };
    first_listing(shared).await;
    let backends = shared.backends();
    let listed: Vec<_> = backends.iter().map(|backend| (backend, backend.list(list))).collect();
    let mut names = std::collections::HashSet::new();
    let items = listed.iter().flat_map(|(backend, items)| {
        items.iter().map(|item| (list.seen_name(backend.settings(), &item.name), item))
    });
    // The first server that has a name or a URI keeps it: requests go there.
    let items = items.filter(|(name, _)| names.insert(name.clone())).map(|(_, item)| item);
    let mut items = items.skip(start);
    let page: Vec<_> = items.by_ref().take(PAGE).map(|item| item.seen_in(list, version)).collect();
    let mut members = JsonObject::new();
    members.insert(list.member(), Json::encode(&page).map_err(McpError::internal)?);
    if items.next().is_some() {
        members.insert("nextCursor", Json::from((start + PAGE).to_string()));
    }
    Outcome::custom(&members)
}

/// Waits until every server was asked for its lists, or has had the time for it.
async fn first_listing(shared: &Shared) {
    for backend in shared.backends() {
        backend.first().await;
    }
}

/// Returns the handler of a request that one of the servers answers.
fn routes<P: Send + 'static, R: ResultBody>(
    shared: &Arc<Shared>,
    route: impl Fn(&Shared, &Message) -> Result<Routed, McpError> + Send + Sync + 'static,
) -> impl Fn(Context<()>, P) -> Answer<R> + Send + Sync + 'static {
    let (shared, route) = (Arc::clone(shared), Arc::new(route));
    move |cx, _| {
        let (cx, shared, route) = (cx.untyped(), Arc::clone(&shared), Arc::clone(&route));
        Box::pin(async move {
            let mut routed = route(&shared, cx.message());
            if routed.is_err() {
                // A server that has just been started can have it.
                first_listing(&shared).await;
                routed = route(&shared, cx.message());
            }
            let Routed { backend, message } = routed?;
            let link = backend.pool().find(&cx)?;
            forward::dispatch(backend.pool(), &link, &cx, &message).await.map(Reply::Other)
        })
    }
}
