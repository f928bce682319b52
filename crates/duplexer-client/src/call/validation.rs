//! Validation of results: by a validator of the caller, or against the output schemas of tools (feature `schema`).

#[cfg(feature = "schema")]
use std::any::Any;
use std::sync::Arc;

use duplexer_types::json::Json;
use duplexer_types::methods::Method;
#[cfg(feature = "schema")]
use duplexer_types::tool::CallToolParams;

use super::exchange::Exchange;
use crate::Client;
#[cfg(feature = "schema")]
use crate::output_schemas::OutputSchemas;
use crate::params::Params;
use duplexer_core::dispatch::BoxFuture;
use duplexer_core::error::{BoxError, CallError};

/// Validator of final results, for example of a tool's result against its output schema.
///
/// Set it with [`ClientBuilder::result_validator`](crate::ClientBuilder::result_validator).
///
/// ```
/// use duplexer::client::{Client, CompletedCall, ResultValidator};
/// use duplexer::dispatch::BoxFuture;
/// use duplexer::BoxError;
///
/// /// Refuses results that are too long for a model.
/// struct AtMost(usize);
///
/// impl ResultValidator for AtMost {
///     fn validate<'a>(&'a self, call: CompletedCall<'a>) -> BoxFuture<'a, Result<(), BoxError>> {
///         let fits = call.result.len() <= self.0;
///         Box::pin(async move { if fits { Ok(()) } else { Err("the result is too long".into()) } })
///     }
/// }
///
/// let client = Client::builder("my-agent", "1.0").result_validator(AtMost(100_000));
/// ```
pub trait ResultValidator: Send + Sync + 'static {
    /// Accepts a result or rejects it with a reason. The call then fails with [`ClientError::Validation`](crate::ClientError::Validation).
    fn validate<'a>(&'a self, call: CompletedCall<'a>) -> BoxFuture<'a, Result<(), BoxError>>;
}

/// What validates the results of a session.
pub(crate) enum Validator {
    Custom(Arc<dyn ResultValidator>),
    #[cfg(feature = "schema")]
    OutputSchemas(OutputSchemas),
}

/// Request and its final result, verbatim.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct CompletedCall<'a> {
    /// The session, for further requests such as `tools/list`.
    pub client: &'a Client,
    /// Method of the request.
    pub method: Method,
    /// Parameters of the request: the JSON text of an object.
    pub params: &'a str,
    /// JSON text of the result.
    pub result: &'a str,
}

/// The validation of one result.
type Validation<'a> = BoxFuture<'a, Result<(), BoxError>>;

impl Exchange {
    /// Returns the validation of a final result, if there is one. Validators get only results that can be decoded.
    pub(super) fn validation<'a>(
        &'a self,
        #[cfg_attr(
            not(feature = "schema"),
            expect(unused_variables, reason = "only schemas depend on the tool")
        )]
        params: &'a dyn Params,
        text_of_params: Option<&'a Json>,
        result: &'a str,
    ) -> Result<Option<Validation<'a>>, CallError> {
        let (client, method) = (&self.client, self.method);
        let check = || (self.check)(result, client.0.session.result_revision);
        Ok(match &client.0.validator {
            None => None,
            Some(Validator::Custom(validator)) => {
                check()?;
                let params = text_of_params.map_or("{}", Json::as_str);
                Some(validator.validate(CompletedCall { client, method, params, result }))
            }
            #[cfg(feature = "schema")]
            Some(Validator::OutputSchemas(schemas)) => {
                let call = (params as &dyn Any).downcast_ref::<CallToolParams>();
                let tool = call.map(|call| &*call.name);
                if !schemas.concern(method, tool) {
                    return Ok(None);
                }
                check()?;
                Some(Box::pin(schemas.validate(client, tool, result)))
            }
        })
    }
}
