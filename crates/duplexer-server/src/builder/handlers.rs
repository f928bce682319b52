//! Which function answers what.

use std::any::Any;
use std::sync::Arc;

use duplexer_types::methods::{Method, Notification, Request};
use duplexer_types::version::Window;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::compose::clash;
use super::{BuildError, ServerBuilder};
use crate::kernel::handler::{Bound, Custom, Entry, Handler, IntoReply, Nothing, Spec};
use crate::kernel::lifecycle;
use crate::registry::CustomEntry;

impl<S: Any + Send + Sync> ServerBuilder<S> {
    /// Handles a request of the protocol. A later handler of the same method replaces this one.
    pub fn on<M, H, Shape>(mut self, _method: M, handler: H) -> Self
    where
        M: Request,
        H: Handler<S, M::Params, Shape>,
        H::Output: IntoReply<M::Result> + Send,
        Shape: 'static,
    {
        if lifecycle::is_reserved(M::METHOD) {
            self.rest.faults.push(BuildError::Reserved(M::METHOD.name()));
            return self;
        }
        if self.handlers.spec(M::METHOD).is_some() {
            self.taken("handler of", M::METHOD.name());
        }
        let entry = Bound::<H, S, M::Params, Shape, Spec<M::Result>>::new(handler, self.slot());
        self.handlers.set(M::METHOD, Arc::new(entry));
        self
    }

    /// Handles a notification of the protocol. A later handler of the same method replaces this one.
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

    /// Handles a request that is not part of the protocol, in every revision.
    pub fn on_custom<P, H, Shape>(self, method: impl Into<String>, handler: H) -> Self
    where
        P: DeserializeOwned + Send + 'static,
        H: Handler<S, P, Shape>,
        H::Output: Serialize + Send,
        Shape: 'static,
    {
        self.on_custom_in(method, Window::ALWAYS, handler)
    }

    /// Handles a request that is not part of the protocol, in some revisions; in others there is no such method.
    pub fn on_custom_in<P, H, Shape>(mut self, method: impl Into<String>, window: Window, handler: H) -> Self
    where
        P: DeserializeOwned + Send + 'static,
        H: Handler<S, P, Shape>,
        H::Output: Serialize + Send,
        Shape: 'static,
    {
        let method = method.into();
        if window.first() > window.last() {
            self.rest.faults.push(BuildError::NoRevision(method.clone()));
        }
        if self.is_custom(&method) {
            if self.handlers.custom(&method).is_some() {
                self.taken("custom method", &method);
            }
            let entry: Arc<dyn Entry> = Arc::new(Bound::<H, S, P, Shape, Custom>::new(handler, self.slot()));
            self.handlers.custom.insert(method, CustomEntry { entry, window });
        }
        self
    }

    /// Handles a notification that is not part of the protocol.
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

    /// Where nothing may be replaced, what is taken is a fault.
    fn taken(&mut self, what: &'static str, name: &str) {
        if self.rest.keeps {
            self.rest.faults.push(clash(what, name));
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
                self.rest.faults.push(fault);
                false
            }
        }
    }
}
