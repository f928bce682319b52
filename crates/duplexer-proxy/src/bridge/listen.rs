//! `subscriptions/listen` of a client of the envelope era, at a server of either era.

use std::sync::Arc;

use duplexer_client::{Change, Changes};
use duplexer_core::dispatch::{CallOptions, Message, OutboundRequest};
use duplexer_core::error::McpError;
use duplexer_server::{Context, Outcome, TypedParams};
use duplexer_types::capabilities::ServerCapabilities;
use duplexer_types::error::ErrorCode;
use duplexer_types::json::{Json, JsonObject};
use duplexer_types::jsonrpc::{Body, RequestId};
use duplexer_types::meta::key;
use duplexer_types::methods::{self, Method, Notification};
use duplexer_types::resource::ResourceUpdatedParams;
use duplexer_types::subscription::{
    SubscriptionFilter, SubscriptionsAcknowledgedParams, SubscriptionsListenParams, SubscriptionsListenResult,
};
use duplexer_types::wire;

use crate::failure;
use crate::link::Link;
use crate::messages::{Listener, channel_of};
use crate::translate::{one_line, params_of};
use crate::upstream::Upstream;

/// Maximum number of resources of one stream.
const MAX_RESOURCES: usize = 1024;

/// Returns the id of the stream that a notification belongs to.
pub(crate) fn subscription_id(message: &Message) -> Option<RequestId> {
    let meta: JsonObject = serde_json::from_str(message.meta()?).ok()?;
    meta.get(key::SUBSCRIPTION_ID)?.decode().ok()
}

/// Replaces the id of the stream in params or in a result.
pub(crate) fn with_subscription_id(text: Option<&str>, id: &Json) -> Option<Json> {
    let mut members: JsonObject = serde_json::from_str(text.unwrap_or("{}")).ok()?;
    let mut meta: JsonObject = members.get("_meta").and_then(|meta| meta.decode().ok()).unwrap_or_default();
    meta.insert(key::SUBSCRIPTION_ID, id.clone());
    members.insert("_meta", Json::from(meta));
    Some(Json::from(members))
}

fn id_of(cx: &Context) -> Result<Json, McpError> {
    match cx.request_id() {
        Some(id) => Json::encode(id).map_err(McpError::internal),
        None => Err(McpError::new(ErrorCode::INVALID_REQUEST, "only a request can listen")),
    }
}

/// Passes the request to a server of the same era. The ids of the two streams differ.
pub(crate) async fn forwarded(
    cx: &Context,
    message: &Message,
    upstream: &Upstream,
) -> Result<Outcome, McpError> {
    let id = id_of(cx)?;
    let listener = Listener { channel: channel_of(cx), id: id.clone() };
    let (far_id, _entry) = upstream.messages.listen(listener);
    let mut request = OutboundRequest::new(Method::SubscriptionsListen.name());
    request.params = params_of(message)?;
    request.options = CallOptions::new().id(far_id);
    let ended = tokio::select! {
        biased;
        ended = upstream.client.forward(request) => ended,
        () = cx.closing().cancelled() => return Ok(concluded(&id)),
    };
    let result = with_subscription_id(Some(&*ended.map_err(failure::of_call)?), &id);
    Ok(Outcome::raw(one_line(result.map_or_else(|| "{}".into(), |result| result.as_str().into()))))
}

/// Returns the result of a stream that ends in order.
fn concluded(id: &Json) -> Outcome {
    Outcome::of(
        SubscriptionsListenResult::new().meta(JsonObject::new().with(key::SUBSCRIPTION_ID, id.clone())),
    )
}

/// Serves the request with the subscriptions and the list changes of a handshake server.
pub(crate) async fn translated(
    cx: &Context,
    message: &Message,
    link: &Arc<Link>,
) -> Result<Outcome, McpError> {
    let requested = message
        .decode::<SubscriptionsListenParams>()
        .map_err(|error| McpError::InvalidParams(error.into()))?
        .notifications;
    if requested.resource_subscriptions.as_ref().is_some_and(|uris| uris.len() > MAX_RESOURCES) {
        let text = format!("resourceSubscriptions may hold at most {MAX_RESOURCES} URIs");
        return Err(McpError::new(ErrorCode::INVALID_PARAMS, text));
    }
    let upstream = link.upstream().await?;
    let filter = accepted(requested, upstream.client.server_capabilities());
    let mut changes = upstream.client.changes(filter.clone()).await.map_err(failure::of_client)?;
    let id = id_of(cx)?;
    let sender = Sender { cx, meta: JsonObject::new().with(key::SUBSCRIPTION_ID, id.clone()) };
    sender
        .notify::<methods::SubscriptionsAcknowledged>(&SubscriptionsAcknowledgedParams::new(filter.clone()))
        .await;
    let _listening = upstream.listening();
    tokio::select! {
        biased;
        () = cx.cancellation().cancelled() => {}
        () = cx.closing().cancelled() => {}
        () = follow(&mut changes, &sender) => {
            return Err(failure::unavailable("the session with it has ended"));
        }
    }
    Ok(concluded(&id))
}

/// Sends changes until the session with the server ends.
async fn follow(changes: &mut Changes, sender: &Sender<'_>) {
    while let Some(Ok(change)) = changes.next().await {
        sender.send(&change).await;
    }
}

/// Returns the part of a filter that the server has the capabilities for.
pub(crate) fn accepted(filter: SubscriptionFilter, capabilities: &ServerCapabilities) -> SubscriptionFilter {
    let tools = capabilities.tools.as_ref().and_then(|tools| tools.list_changed);
    let prompts = capabilities.prompts.as_ref().and_then(|prompts| prompts.list_changed);
    let resources = capabilities.resources.as_ref();
    let both = |wanted: Option<bool>, offered: Option<bool>| {
        wanted.filter(|wanted| !*wanted || offered == Some(true))
    };
    let mut accepted = SubscriptionFilter::new();
    accepted.tools_list_changed = both(filter.tools_list_changed, tools);
    accepted.prompts_list_changed = both(filter.prompts_list_changed, prompts);
    accepted.resources_list_changed =
        both(filter.resources_list_changed, resources.and_then(|resources| resources.list_changed));
    accepted.resource_subscriptions = filter
        .resource_subscriptions
        .filter(|_| resources.and_then(|resources| resources.subscribe) == Some(true));
    accepted
}

/// Sends notifications with the id of the listening request.
struct Sender<'a> {
    cx: &'a Context,
    meta: JsonObject,
}

impl Sender<'_> {
    async fn notify<N: Notification>(&self, params: &N::Params) {
        let params = WithMeta(TypedParams(params, self.cx.protocol_version()), &self.meta);
        self.cx.notify_raw(N::METHOD.name(), Some(&params)).await;
    }

    async fn send(&self, change: &Change) {
        let nothing = duplexer_types::lifecycle::EmptyParams::new();
        match change {
            Change::Tools => self.notify::<methods::ToolsListChanged>(&nothing).await,
            Change::Prompts => self.notify::<methods::PromptsListChanged>(&nothing).await,
            Change::Resources => self.notify::<methods::ResourcesListChanged>(&nothing).await,
            Change::Resource(uri) => {
                self.notify::<methods::ResourcesUpdated>(&ResourceUpdatedParams::new(uri.as_str())).await;
            }
            _ => {}
        }
    }
}

/// Params with `_meta`.
struct WithMeta<'a, P>(TypedParams<'a, P>, &'a JsonObject);

impl<P: wire::WireObject> Body for WithMeta<'_, P> {
    fn write(&self, out: &mut Vec<u8>) -> Result<(), serde_json::Error> {
        wire::write_params(out, self.0.0, self.0.1, Some(self.1))
    }
}
