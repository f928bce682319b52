//! What a server offers beside its handlers, and how clients learn of it.

use std::any::Any;
use std::sync::Arc;

use duplexer_types::json::Json;
use duplexer_types::lifecycle::EmptyResult;
use duplexer_types::logging::SetLevelParams;
use duplexer_types::meta::valid_key;
use duplexer_types::methods::Method;

use super::{BuildError, Handlers, NotificationOptions, ServerBuilder};
use crate::features::subscriptions::{Plan, SubscriptionBus, SubscriptionLimits};
use crate::kernel::context::Context;
use crate::kernel::handler::RawEntry;
use crate::kernel::outcome::Outcome;
use duplexer_core::dispatch::BoxFuture;

impl<S: Any + Send + Sync> ServerBuilder<S> {
    /// Which list changes are promised to clients of the handshake era.
    pub fn notification_options(mut self, changes: NotificationOptions) -> Self {
        self.rest.advertised.changes = changes;
        self
    }

    /// Serves subscriptions: what is published on `bus` is told to clients who want to hear of it, in both eras.
    ///
    /// The capabilities follow, also those of the handshake era; [`Self::notification_options`] after this narrows them.
    /// Handlers of one's own for single methods stay.
    pub fn subscriptions(self, bus: impl SubscriptionBus) -> Self {
        self.subscriptions_within(bus, SubscriptionLimits::default())
    }

    /// The same with other limits.
    pub fn subscriptions_within(mut self, bus: impl SubscriptionBus, limits: SubscriptionLimits) -> Self {
        self.rest.advertised.subscriptions = Some(Plan { bus: Arc::new(bus), limits });
        self.rest.advertised.changes = NotificationOptions::all();
        self
    }

    /// Lets clients say which log messages they want. Who logs to clients promises this.
    pub fn logging(mut self) -> Self {
        self.rest.logging = true;
        self
    }

    /// Advertises an experimental capability.
    pub fn experimental(mut self, name: impl Into<String>, settings: impl Into<Json>) -> Self {
        self.rest.advertised.experimental.insert(name, settings.into());
        self
    }

    /// Advertises an extension with its settings.
    pub fn extension(mut self, id: impl Into<String>, settings: impl Into<Json>) -> Self {
        let id = id.into();
        if !id.contains('/') || !valid_key(&id) || id.ends_with('/') {
            self.rest.faults.push(BuildError::ExtensionId(id));
        } else if self.rest.advertised.extensions.insert(id.clone(), settings.into()).is_some() {
            self.rest.faults.push(BuildError::DuplicateExtension(id));
        }
        self
    }
}

/// Puts the level there where the connection finds it, unless somebody else handles that.
pub(super) fn register_logging(handlers: &mut Handlers) {
    let set = |cx: Context| -> BoxFuture<'static, _> {
        let set = cx.params().map(|SetLevelParams { level, .. }| {
            cx.connection().set_log_level(level);
            Outcome::of(EmptyResult::new())
        });
        Box::pin(std::future::ready(set))
    };
    handlers.set_default(Method::LoggingSetLevel, Arc::new(RawEntry(set)));
}
