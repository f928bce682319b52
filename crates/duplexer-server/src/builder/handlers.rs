//! Registration of handlers for single methods.

use std::any::Any;
use std::sync::Arc;

use duplexer_types::methods::{Method, Notification, Request};
use duplexer_types::version::Window;
use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::compose::clash;
use super::{BuildError, ServerBuilder};
use crate::kernel::handler::{Bound, Custom, Entry, Handler, IntoReply, Nothing, Spec};
use crate::kernel::lifecycle;
use crate::registry::CustomEntry;
use crate::schema::arguments::ArgumentSchema;

impl<S: Any + Send + Sync> ServerBuilder<S> {
    /// Registers the handler of a request of the protocol. A later handler of the same method replaces it.
    pub fn on<M, H, Shape>(mut self, _method: M, handler: H) -> Self
    where
        M: Request,
        H: Handler<S, M::Params, Shape>,
        H::Output: IntoReply<M::Result> + Send,
        Shape: 'static,
    {
        if lifecycle::is_reserved(M::METHOD) {
            self.deferred.faults.push(BuildError::Reserved(M::METHOD.name()));
            return self;
        }
        if self.handlers.spec(M::METHOD).is_some() {
            self.taken("handler of", M::METHOD.name());
        }
        let entry = Bound::<H, S, M::Params, Shape, Spec<M::Result>>::new(handler, self.slot());
        self.handlers.set(M::METHOD, Arc::new(entry));
        self
    }

    /// Registers the handler of a notification of the protocol. A later handler of the same method replaces it.
    pub fn on_notification<N, H, Shape>(mut self, _method: N, handler: H) -> Self
    where
        N: Notification,
        H: Handler<S, N::Params, Shape, Output = ()>,
        Shape: 'static,
    {
        if self.handlers.spec(N::METHOD).is_some() {
            self.taken("handler of", N::METHOD.name());
        }
        let entry = Bound::<H, S, N::Params, Shape, Nothing>::new(handler, self.slot());
        self.handlers.set(N::METHOD, Arc::new(entry));
        self
    }

    /// Registers the handler of a custom request, in every revision.
    ///
    /// Params that do not fit are answered with -32602 and a list of every fault.
    #[doc(alias("custom method", "extension method"))]
    pub fn on_custom<P, H, Shape>(self, method: impl Into<String>, handler: H) -> Self
    where
        P: DeserializeOwned + JsonSchema + Send + 'static,
        H: Handler<S, P, Shape>,
        H::Output: Serialize + Send,
        Shape: 'static,
    {
        self.on_custom_in(method, Window::ALWAYS, handler)
    }

    /// Registers the handler of a custom request in some revisions; in others the method does not exist.
    pub fn on_custom_in<P, H, Shape>(mut self, method: impl Into<String>, window: Window, handler: H) -> Self
    where
        P: DeserializeOwned + JsonSchema + Send + 'static,
        H: Handler<S, P, Shape>,
        H::Output: Serialize + Send,
        Shape: 'static,
    {
        let method = method.into();
        if window.first() > window.last() {
            self.deferred.faults.push(BuildError::NoRevision(method.clone()));
        }
        if self.is_custom(&method) {
            if self.handlers.custom(&method).is_some() {
                self.taken("custom method", &method);
            }
            let entry = Bound::<H, S, P, Shape, Custom>::new(handler, self.slot());
            let entry: Arc<dyn Entry> = Arc::new(entry.with_schema(ArgumentSchema::of::<P>()));
            self.handlers.custom.insert(method, CustomEntry { entry, window });
        }
        self
    }

    /// Registers the handler of a custom notification.
    pub fn on_custom_notification<P, H, Shape>(mut self, method: impl Into<String>, handler: H) -> Self
    where
        P: DeserializeOwned + Send + 'static,
        H: Handler<S, P, Shape, Output = ()>,
        Shape: 'static,
    {
        let method = method.into();
        if self.is_custom(&method) {
            if self.handlers.custom_notification(&method).is_some() {
                self.taken("custom notification", &method);
            }
            let entry: Arc<dyn Entry> = Arc::new(Bound::<H, S, P, Shape, Nothing>::new(handler, self.slot()));
            self.handlers.custom_notifications.insert(method, entry);
        }
        self
    }

    /// Records a fault if handlers must not be replaced.
    fn taken(&mut self, what: &'static str, name: &str) {
        if self.deferred.forbid_replace {
            self.deferred.faults.push(clash(what, name));
        }
    }

    fn is_custom(&mut self, method: &str) -> bool {
        match Method::parse(method) {
            None => true,
            Some(spec) => {
                let reserved = lifecycle::is_reserved(spec);
                let fault = if reserved {
                    BuildError::Reserved(spec.name())
                } else {
                    BuildError::SpecMethod(method.to_owned())
                };
                self.deferred.faults.push(fault);
                false
            }
        }
    }
}
