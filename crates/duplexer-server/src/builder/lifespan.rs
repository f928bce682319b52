//! Lifespans: state that handlers share, created at start and released at shutdown.

use std::any::Any;
use std::marker::PhantomData;
use std::sync::Arc;

use super::ServerBuilder;
use crate::registry::{Lifespan, RunContext, SlotId, StartFn, State, StateSlot};
use duplexer_core::dispatch::BoxFuture;
use duplexer_core::error::BoxError;

impl<S: Any + Send + Sync> ServerBuilder<S> {
    /// Creates a state when the server starts, once for all connections. Handlers registered after this receive it.
    #[doc(alias = "startup")]
    pub fn lifespan<T, F, Fut, E>(mut self, start: F) -> ServerBuilder<T>
    where
        T: Any + Send + Sync,
        F: Fn() -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<T, E>> + Send + 'static,
        E: Into<BoxError>,
    {
        self.lifespans.push(Lifespan::starting(Box::new(move || {
            let made = start();
            Box::pin(async move { made.await.map(|state| Arc::new(state) as State).map_err(Into::into) })
        })));
        self.with_state_type()
    }

    /// Uses an existing state. Handlers registered after this receive it.
    pub fn state<T: Any + Send + Sync>(mut self, state: T) -> ServerBuilder<T> {
        let state: State = Arc::new(state);
        let start = move || -> BoxFuture<'static, _> { Box::pin(std::future::ready(Ok(Arc::clone(&state)))) };
        self.lifespans.push(Lifespan::starting(Box::new(start)));
        self.with_state_type()
    }

    /// Sets a hook that runs at shutdown, after all connections, with the state of the last lifespan. Bounded in time.
    #[doc(alias("teardown", "stop", "close"))]
    pub fn on_shutdown<F, Fut>(mut self, stop: F) -> Self
    where
        F: Fn(Arc<S>) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = ()> + Send + 'static,
    {
        if let Some(lifespan) = self.lifespans.last_mut() {
            lifespan.stop = Some(Box::new(move |state| match state.downcast::<S>() {
                Ok(state) => Box::pin(stop(state)),
                Err(_) => Box::pin(std::future::ready(())),
            }));
        }
        self
    }

    /// Runs `work` while the server runs, with the state of the last lifespan. It starts after all lifespans, and is
    /// dropped at its next `await` when the server shuts down, before they end. Its panic is logged and ends nothing else.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use duplexer_server::Server;
    /// # use duplexer_server::subscriptions::{Event, MemoryBus};
    /// let server = Server::builder("prices", "0").subscriptions(MemoryBus::new()).while_running(|cx| async move {
    ///     loop {
    ///         tokio::time::sleep(Duration::from_secs(60)).await;
    ///         cx.server().publish(Event::resource_updated("prices://today")).await;
    ///     }
    /// });
    /// # let _ = server.build();
    /// ```
    #[doc(alias("background", "spawn", "task"))]
    pub fn while_running<F, Fut>(mut self, work: F) -> Self
    where
        F: Fn(RunContext<S>) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = ()> + Send + 'static,
    {
        let slot = self.state_slot();
        if let Some(lifespan) = self.lifespans.last_mut() {
            lifespan.work.push(Box::new(move |running| {
                RunContext::new(running, slot).map(|cx| -> BoxFuture<'static, ()> { Box::pin(work(cx)) })
            }));
        }
        self
    }

    fn with_state_type<T>(self) -> ServerBuilder<T> {
        ServerBuilder {
            info: self.info,
            instructions: self.instructions,
            handlers: self.handlers,
            middleware: self.middleware,
            lifespans: self.lifespans,
            deferred: self.deferred,
            state: PhantomData,
        }
    }

    /// Returns the slot whose state handlers registered from here on receive.
    pub(crate) fn state_slot(&self) -> StateSlot<S> {
        StateSlot::new(self.slot())
    }

    /// Returns the slot of the last lifespan; those of merged servers come before it.
    pub(super) fn slot(&self) -> SlotId {
        self.lifespans.last().map_or(SlotId::NONE, |lifespan| lifespan.slot)
    }
}

impl Lifespan {
    /// Returns the first lifespan: handlers registered before any other have no state.
    pub(super) fn unit() -> Self {
        Self::starting(Box::new(|| Box::pin(async { Ok(Arc::new(()) as State) })))
    }

    fn starting(start: StartFn) -> Self {
        Self { slot: SlotId::fresh(), start, stop: None, work: Vec::new() }
    }
}
