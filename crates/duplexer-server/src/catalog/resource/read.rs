//! Reading a resource: decode the variables of its URI, call the function, shape the result.

use std::sync::Arc;

use serde::de::DeserializeOwned;

use super::ResourceSpec;
use super::contents::ResourceOutput;
use super::error::unknown;
use crate::catalog::erased::{ErasedHandler, HandlerFuture, Operation, Typed, failed};
use crate::catalog::function::{Function, Seal};
use crate::catalog::text_args;
use crate::catalog::uri_template::Values;
use crate::kernel::context::Context;
use crate::kernel::outcome::Outcome;

/// `resources/read`.
pub(crate) struct ReadResource;

impl Operation for ReadResource {
    type Input<'a> = ReadInput<'a>;
    type Output = Outcome;
}

/// The input of one read.
#[derive(Clone, Copy)]
pub(crate) struct ReadInput<'a> {
    pub(crate) spec: &'a Arc<ResourceSpec>,
    pub(crate) uri: &'a str,
    pub(crate) variables: &'a Values,
}

impl<S, V, H, Shape> ErasedHandler<S, ReadResource> for Typed<H, V, Shape>
where
    V: DeserializeOwned + Send + 'static,
    H: Function<S, V, Shape>,
    H::Output: ResourceOutput,
    S: Send + Sync + 'static,
    Shape: 'static,
{
    fn run(&self, cx: Context<S>, input: ReadInput<'_>) -> HandlerFuture {
        let (spec, uri, version) = (Arc::clone(input.spec), input.uri.to_owned(), cx.protocol_version());
        let variables = match text_args::decode(input.variables) {
            Ok(variables) => variables,
            Err(error) => {
                tracing::debug!(%uri, %error, "a variable of a URI does not fit");
                return failed(unknown(&uri, version));
            }
        };
        let reading = self.handler.call(cx, variables, Seal(()));
        Box::pin(async move {
            let read = reading.await.into_contents(&uri, spec.contents_meta(), Seal(()));
            read.map_err(|error| error.into_mcp(&uri, version))
        })
    }
}
