//! Reading a resource: take the variables out of its URI, call the function, make the result.

use std::marker::PhantomData;
use std::sync::Arc;

use crate::kernel::context::{Context, States};
use crate::kernel::outcome::Outcome;
use crate::registry::StateSlot;
use duplexer_core::dispatch::BoxFuture;
use duplexer_core::error::McpError;
use serde::de::DeserializeOwned;

use super::builder::ResourceSpec;
use super::contents::ResourceOutput;
use super::error::unknown;
use crate::catalog::function::Function;
use crate::catalog::text_args as words;
use crate::catalog::uri_template::Values;

/// A read as the catalog sees it.
pub(crate) trait ReadResource<S>: Send + Sync {
    fn read(
        &self,
        cx: Context<S>,
        about: &Arc<ResourceSpec>,
        uri: &str,
        values: &Values,
    ) -> BoxFuture<'static, Result<Outcome, McpError>>;
}

/// An async function of the variables.
pub(super) struct Read<H, V, Shape> {
    handler: H,
    types: PhantomData<fn() -> (V, Shape)>,
}

impl<H, V, Shape> Read<H, V, Shape> {
    pub(super) fn new(handler: H) -> Self {
        Self { handler, types: PhantomData }
    }
}

impl<S, V, H, Shape> ReadResource<S> for Read<H, V, Shape>
where
    V: DeserializeOwned + Send + 'static,
    H: Function<S, V, Shape>,
    H::Output: ResourceOutput,
    S: Send + Sync + 'static,
    Shape: 'static,
{
    fn read(
        &self,
        cx: Context<S>,
        about: &Arc<ResourceSpec>,
        uri: &str,
        values: &Values,
    ) -> BoxFuture<'static, Result<Outcome, McpError>> {
        let (about, uri, version) = (Arc::clone(about), uri.to_owned(), cx.protocol_version());
        let variables = match words::read(values) {
            Ok(variables) => variables,
            Err(fault) => {
                tracing::debug!(%uri, %fault, "a variable of a URI does not fit");
                return Box::pin(std::future::ready(Err(unknown(&uri, version))));
            }
        };
        let reading = self.handler.call(cx, variables);
        Box::pin(async move {
            let read = reading.await.into_contents(&uri, about.as_about());
            read.map_err(|error| error.into_mcp(&uri, version))
        })
    }
}

/// A resource and where its state is.
pub(super) struct Bound<S> {
    pub(super) read: Arc<dyn ReadResource<S>>,
    pub(super) slot: StateSlot<S>,
}

impl<S: Send + Sync + 'static> ReadResource<States> for Bound<S> {
    fn read(
        &self,
        cx: Context,
        about: &Arc<ResourceSpec>,
        uri: &str,
        values: &Values,
    ) -> BoxFuture<'static, Result<Outcome, McpError>> {
        match self.slot.context(cx) {
            Ok(cx) => self.read.read(cx, about, uri, values),
            Err(error) => Box::pin(std::future::ready(Err(error))),
        }
    }
}
