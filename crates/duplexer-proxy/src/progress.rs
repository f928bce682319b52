//! Progress of a forwarded request. Both sides have tokens of their own.

use std::sync::{Arc, LazyLock, Mutex};

use duplexer_core::dispatch::{CallOptions, Outbound, Progress, lock};
use duplexer_server::{Context, TypedParams};
use duplexer_types::jsonrpc::RequestId;
use duplexer_types::meta::key;
use duplexer_types::methods::Method;
use duplexer_types::progress::ProgressParams;
use duplexer_types::version::ProtocolVersion;
use memchr::memmem::Finder;

use crate::messages::{Messages, channel_of};

/// Where the progress of a request goes. A client that sends a request again has a new token.
#[derive(Clone)]
pub(crate) struct ProgressRoute(Arc<Mutex<Route>>);

#[derive(Clone)]
struct Route {
    token: RequestId,
    channel: Arc<dyn Outbound>,
    version: ProtocolVersion,
}

impl Route {
    fn of(cx: &Context) -> Option<Self> {
        static TOKEN: LazyLock<Finder<'_>> = LazyLock::new(|| Finder::new(key::PROGRESS_TOKEN));
        // Few requests have a token, so most `_meta` are not read.
        TOKEN.find(cx.raw_meta()?.as_bytes())?;
        let token = cx.meta().progress_token?;
        Some(Self { token, channel: channel_of(cx), version: cx.protocol_version() })
    }
}

impl ProgressRoute {
    /// Returns the route of a request whose client wants to hear of its progress.
    pub(crate) fn of(cx: &Context) -> Option<Self> {
        Route::of(cx).map(|route| Self(Arc::new(Mutex::new(route))))
    }

    /// Continues with a request that was sent again.
    pub(crate) fn replace(&self, cx: &Context) {
        if let Some(route) = Route::of(cx) {
            *lock(&self.0) = route;
        }
    }

    /// Requests progress of the server.
    pub(crate) fn attach(&self, options: CallOptions, messages: &Arc<Messages>) -> CallOptions {
        let (route, messages) = (self.clone(), Arc::clone(messages));
        options.on_progress(move |progress| route.report(progress, &messages))
    }

    fn report(&self, progress: Progress, messages: &Messages) {
        let Route { token, channel, version } = lock(&self.0).clone();
        let mut params = ProgressParams::new(token, progress.progress);
        params.total = progress.total;
        params.message = progress.message;
        messages.backlogs().send(&channel, Method::Progress.name(), Some(&TypedParams(&params, version)));
    }
}
