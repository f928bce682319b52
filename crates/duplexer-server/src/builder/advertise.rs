//! Identity, instructions and capabilities: what clients learn about a server besides its handlers.

use std::any::Any;
use std::sync::Arc;

use duplexer_types::icon::Icon;
use duplexer_types::json::Json;
use duplexer_types::lifecycle::EmptyResult;
use duplexer_types::logging::SetLevelParams;
use duplexer_types::meta::valid_key;
use duplexer_types::methods::Method;
use duplexer_types::version::Window;

use super::compose::clash;
use super::{BuildError, Handlers, NotificationOptions, ServerBuilder};
use crate::features::subscriptions::{MemoryBus, Plan, SubscriptionBus, SubscriptionLimits};
use crate::features::tasks;
use crate::kernel::context::Context;
use crate::kernel::handler::RawEntry;
use crate::kernel::outcome::Outcome;
use crate::registry::DeclaredExtension;
use duplexer_core::dispatch::BoxFuture;

impl<S: Any + Send + Sync> ServerBuilder<S> {
    /// Sets a display name.
    pub fn title(mut self, title: impl Into<String>) -> Self {
        self.info.title = Some(title.into());
        self
    }

    /// Sets a description of the server's purpose.
    pub fn description(mut self, description: impl Into<String>) -> Self {
        self.info.description = Some(description.into());
        self
    }

    /// Sets the URL of a page about the server.
    pub fn website_url(mut self, url: impl Into<String>) -> Self {
        self.info.website_url = Some(url.into());
        self
    }

    /// Sets icons of the server.
    pub fn icons(mut self, icons: impl Into<Vec<Icon>>) -> Self {
        self.info.icons = Some(icons.into());
        self
    }

    /// Sets the instructions for models.
    pub fn instructions(mut self, instructions: impl Into<String>) -> Self {
        self.instructions = Some(instructions.into());
        self
    }

    /// Sets the lists whose changes are reported to clients of the handshake era.
    pub fn notification_options(mut self, changes: NotificationOptions) -> Self {
        self.deferred.advertised.changes = changes;
        self
    }

    /// Serves subscriptions in both eras: events published on `bus` are sent to the clients that subscribed to them.
    ///
    /// The capabilities follow, those of the handshake era included; a later [`Self::notification_options`] narrows
    /// them. Handlers that the author registered for single methods stay.
    #[doc(alias("subscribe", "notification", "listChanged"))]
    pub fn subscriptions(self, bus: impl SubscriptionBus) -> Self {
        self.subscriptions_within(bus, SubscriptionLimits::default())
    }

    /// Serves subscriptions with other limits than the defaults.
    pub fn subscriptions_within(mut self, bus: impl SubscriptionBus, limits: SubscriptionLimits) -> Self {
        self.deferred.advertised.subscriptions = Some(Plan { bus: Arc::new(bus), limits });
        self.deferred.advertised.changes = NotificationOptions::all();
        self
    }

    /// Serves tasks. The build fails if a handler of their methods is registered already.
    pub(crate) fn tasks(mut self, plan: tasks::Plan) -> Self {
        if let Some(taken) = tasks::register(&mut self.handlers) {
            self.deferred.faults.push(clash("handler of", taken.name()));
        }
        self.deferred.tasks = Some(plan);
        self
    }

    /// Gives the tasks the bus of the server, or a bus of this process for them alone.
    pub(super) fn link_tasks(&mut self) -> Option<tasks::Plan> {
        let mut plan = self.deferred.tasks.take()?;
        let advertised = &mut self.deferred.advertised;
        let subscriptions = advertised.subscriptions.get_or_insert_with(|| {
            advertised.tasks_only = true;
            Plan { bus: Arc::new(MemoryBus::new()), limits: SubscriptionLimits::default() }
        });
        plan.bus = Some(Arc::clone(&subscriptions.bus));
        Some(plan)
    }

    /// Declares that the server logs to clients, and lets them set the level. Without it log messages are dropped,
    /// because the protocol forbids them (a warning is logged once).
    #[doc(alias = "log")]
    pub fn logging(mut self) -> Self {
        self.deferred.logging = true;
        self
    }

    /// Advertises an experimental capability.
    pub fn experimental(mut self, name: impl Into<String>, settings: impl Into<Json>) -> Self {
        self.deferred.advertised.experimental.insert(name, settings.into());
        self
    }

    /// Advertises an extension with its settings, in the envelope era.
    pub fn extension(self, id: impl Into<String>, settings: impl Into<Json>) -> Self {
        self.extension_in(id, settings, Window::ENVELOPE)
    }

    /// Advertises an extension with its settings, in these revisions.
    pub fn extension_in(mut self, id: impl Into<String>, settings: impl Into<Json>, window: Window) -> Self {
        let id = id.into();
        let declared = DeclaredExtension { settings: settings.into(), window };
        if !id.contains('/') || !valid_key(&id) || id.ends_with('/') {
            self.deferred.faults.push(BuildError::ExtensionId(id));
        } else if self.deferred.advertised.extensions.insert(id.clone(), declared).is_some() {
            self.deferred.faults.push(BuildError::DuplicateExtension(id));
        }
        self
    }
}

/// Registers the handler that stores the level on the connection, unless the author has registered one.
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
