//! The middleware that passes every message of a client on. Where both sides use the same revision, it passes text.

use std::sync::{Arc, LazyLock};

use bytestring::ByteString;
use duplexer_core::dispatch::{BoxFuture, CallOptions, Message, OutboundRequest};
use duplexer_core::error::McpError;
use duplexer_core::transport::BackChannel;
use duplexer_server::driver::negotiate;
use duplexer_server::middleware::{Middleware, Next};
use duplexer_server::{ClientProfile, Context, Outcome};
use duplexer_types::error::{ErrorCode, ErrorObject};
use duplexer_types::json::{Json, JsonObject};
use duplexer_types::lifecycle::{InitializeParams, InitializeResult};
use duplexer_types::logging::LoggingLevel;
use duplexer_types::meta::key;
use duplexer_types::methods::{Direction, Kind, Method};
use duplexer_types::version::Era;
use memchr::memmem::Finder;

use crate::bridge::{envelope_server, handshake_server, listen, tasks};
use crate::failure;
use crate::link::Link;
use crate::messages::{Call, Text, channel_of};
use crate::pool::Pool;
use crate::progress::ProgressRoute;
use crate::translate::{method_of, one_line, result_for_handshake};
use crate::upstream::Upstream;

/// Passes the messages of clients to their sessions with the server.
pub(crate) struct Forward(Arc<Pool>);

impl Forward {
    pub(crate) fn new(pool: Arc<Pool>) -> Self {
        Self(pool)
    }
}

impl Middleware for Forward {
    fn handle(
        &self,
        cx: Context,
        message: Message,
        next: Next,
    ) -> BoxFuture<'static, Result<Outcome, McpError>> {
        let pool = Arc::clone(&self.0);
        if cx.request_id().is_none() {
            return Box::pin(async move {
                notify(&pool, &cx, &message).await;
                Ok(Outcome::empty())
            });
        }
        match message.known().filter(|_| cx.protocol_version().era() == Era::Handshake) {
            Some(Method::Initialize) if cx.connection().agreed().is_none() => {
                Box::pin(async move { initialize(&pool, &cx).await })
            }
            // The kernel answers: the connection to this process is what a client tests with it.
            Some(Method::Initialize | Method::Ping) => next.run(cx, message),
            _ => Box::pin(async move { request(&pool, &cx, &message).await }),
        }
    }
}

/// Opens the session of a client, and answers with the result that opened it.
async fn initialize(pool: &Arc<Pool>, cx: &Context) -> Result<Outcome, McpError> {
    let params: InitializeParams = cx.params()?;
    let version = negotiate(&params.protocol_version);
    let profile = ClientProfile::new(Some(params.client_info), Some(params.capabilities));
    let link = pool.for_handshake(profile, version);
    let upstream = link.upstream().await?;
    let client = &upstream.client;
    link.connections().add(cx.connection());
    pool.attach(cx.connection(), &link);
    match client.era() {
        Era::Handshake => Ok(Outcome::raw(one_line(reporting_changes(client.opening_result())))),
        Era::Envelope => {
            link.streams.follow_lists(&link);
            let capabilities =
                tasks::translated(client.server_capabilities(), client.protocol_version(), version);
            let info = client
                .server_info()
                .cloned()
                .unwrap_or_else(|| duplexer_types::lifecycle::Implementation::new("unknown", "unknown"));
            let mut result = InitializeResult::new(version.as_str(), capabilities, info);
            result.instructions = client.instructions().map(str::to_owned);
            Ok(Outcome::of(result))
        }
    }
}

/// Returns the result with the capability to report changed lists: the server may be restarted, and its lists be others then.
fn reporting_changes(result: &str) -> ByteString {
    let object = |json: &Json| json.decode::<JsonObject>().ok();
    let Ok(mut members) = serde_json::from_str::<JsonObject>(result) else { return result.into() };
    let Some(mut capabilities) = members.get("capabilities").and_then(object) else { return result.into() };
    for list in ["tools", "prompts", "resources"] {
        if let Some(mut capability) = capabilities.get(list).and_then(object) {
            capability.insert("listChanged", Json::from(serde_json::Value::Bool(true)));
            capabilities.insert(list, Json::from(capability));
        }
    }
    members.insert("capabilities", Json::from(capabilities));
    Json::from(members).as_str().into()
}

/// Passes a notification of a client on, if its session is open and knows it.
async fn notify(pool: &Pool, cx: &Context, message: &Message) {
    if matches!(message.known(), Some(Method::Initialized | Method::Cancelled)) {
        return;
    }
    let Some(upstream) = pool.attached(cx).and_then(|link| link.current()) else { return };
    let version = upstream.client.protocol_version();
    if message.known().is_some_and(|method| !method.exists(Direction::ClientToServer, version)) {
        return;
    }
    let params = message.params().map(Text);
    let params = params.as_ref().map(|params| params as _);
    upstream.client.forward_notification(message.method(), params).await;
}

async fn request(pool: &Arc<Pool>, cx: &Context, message: &Message) -> Result<Outcome, McpError> {
    if let Some(method) = message.known()
        && (method.kind() != Kind::Request
            || !method.exists(Direction::ClientToServer, cx.protocol_version()))
    {
        return Err(ErrorObject::method_not_found(message.method()).into());
    }
    let link = pool.find(cx)?;
    dispatch(pool, &link, cx, message).await
}

/// Passes a request to the session, in the form of its era.
pub(crate) async fn dispatch(
    pool: &Pool,
    link: &Arc<Link>,
    cx: &Context,
    message: &Message,
) -> Result<Outcome, McpError> {
    let upstream = link.upstream().await?;
    let outcome = match (cx.protocol_version().era(), upstream.client.era()) {
        (Era::Envelope, Era::Handshake) => {
            Box::pin(handshake_server::request(pool, link, &upstream, cx, message)).await
        }
        (Era::Handshake, Era::Envelope) => {
            Box::pin(envelope_server::request(pool, link, &upstream, cx, message)).await
        }
        (Era::Envelope, Era::Envelope) if message.known() == Some(Method::SubscriptionsListen) => {
            Box::pin(listen::forwarded(cx, message, &upstream)).await
        }
        _ => pass(pool, link, &upstream, cx, message).await,
    };
    // The server sent its notifications before its response.
    let backlogs = upstream.messages.backlogs();
    if backlogs.wait() {
        Box::pin(backlogs.sent(&channel_of(cx))).await;
    }
    outcome
}

/// Passes a request to a server of the same era as text, and the result back.
async fn pass(
    pool: &Pool,
    link: &Link,
    upstream: &Upstream,
    cx: &Context,
    message: &Message,
) -> Result<Outcome, McpError> {
    let mut request = OutboundRequest::new(method_of(message));
    request.options = options(link, upstream, ProgressRoute::of(cx).as_ref());
    if message.known() == Some(Method::ToolsCall) && cx.protocol_version().era() == Era::Envelope {
        request.options.headers = pool.tool_headers().emit(message);
    }
    let entry = upstream.messages.enter(call_of(cx));
    let outcome = match message.params_text() {
        Some(params) => upstream.client.forward_text(request, one_line(params)).await,
        // Boxed: few requests have no params, and the future of this call is much larger.
        None => Box::pin(upstream.client.forward(request)).await,
    };
    drop(entry);
    let text = one_line(outcome.map_err(failure::of_call)?);
    match message.known() {
        Some(Method::ToolsList) => pool.tool_headers().learn(&text),
        Some(Method::LoggingSetLevel | Method::ResourcesSubscribe | Method::ResourcesUnsubscribe) => {
            link.kept.remember(message);
        }
        _ => {}
    }
    if upstream.client.protocol_version() == cx.protocol_version() {
        Ok(Outcome::raw(text))
    } else {
        result_for_handshake(message.known(), &text)
    }
}

/// Returns the options of a forwarded request.
pub(crate) fn options(link: &Link, upstream: &Upstream, progress: Option<&ProgressRoute>) -> CallOptions {
    let options = CallOptions::new().timeout(link.call_timeout());
    match progress {
        Some(route) => route.attach(options, &upstream.messages),
        None => options,
    }
}

/// Returns the table entry of a request whose client can be sent requests, or has no questions to answer.
pub(crate) fn call_of(cx: &Context) -> Call {
    let is_handshake = cx.protocol_version().era() == Era::Handshake;
    Call {
        channel: channel_of(cx),
        back_channel: is_handshake && cx.transport().back_channel == BackChannel::Open,
        level: if is_handshake { Some(LoggingLevel::Debug) } else { level_of(cx) },
        questions: None,
    }
}

/// Returns the minimum level of log messages that a request of the envelope era asks for.
pub(crate) fn level_of(cx: &Context) -> Option<LoggingLevel> {
    static LOG_LEVEL: LazyLock<Finder<'_>> = LazyLock::new(|| Finder::new(key::LOG_LEVEL));
    // Few requests have one, so most `_meta` are not read.
    LOG_LEVEL.find(cx.raw_meta()?.as_bytes())?;
    serde_json::from_str(cx.meta().log_level?).ok()
}

/// Returns the error of a state that no call waits under.
pub(crate) fn unknown_state() -> McpError {
    McpError::new(
        ErrorCode::INVALID_PARAMS,
        "No call waits for these answers: it has ended, or was resumed before",
    )
}
