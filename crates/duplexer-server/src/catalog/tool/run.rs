//! Running a tool: read the arguments, call the function, make the result.

use std::marker::PhantomData;
use std::sync::{Arc, LazyLock};

use crate::kernel::context::Context;
use crate::kernel::outcome::Outcome;
use duplexer_core::dispatch::BoxFuture;
use duplexer_core::error::McpError;
use duplexer_types::content::Content;
use duplexer_types::json::Json;
use duplexer_types::tool::CallToolResult;
use duplexer_types::version::{ProtocolVersion, feature};
use serde::de::DeserializeOwned;
use tokio::sync::Semaphore;

use super::error::{Failure, ToolError};
use super::output::{Output, OutputSchema, Returning, ToolOutput};
use super::{ArgumentSchema, Bound};
use crate::catalog::function::{BlockingFunction, Function};
use crate::schema::validate::{self, SchemaValidator, Violation};

/// How many blocking tools run at once in a process; others wait for their turn.
static BLOCKING: LazyLock<Semaphore> = LazyLock::new(|| {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    Semaphore::new((cores * 8).max(32))
});

/// A tool as the catalog runs it: JSON in, an outcome out.
pub(crate) trait RunTool<S>: Send + Sync {
    /// `arguments` is the JSON text of an object.
    fn run(&self, cx: Context<S>, arguments: &str) -> BoxFuture<'static, Result<Outcome, McpError>>;
}

impl<S: Send + Sync + 'static> RunTool<crate::kernel::context::States> for Bound<S> {
    fn run(&self, cx: Context, arguments: &str) -> BoxFuture<'static, Result<Outcome, McpError>> {
        match self.slot.context(cx) {
            Ok(cx) => self.run.run(cx, arguments),
            Err(error) => Box::pin(std::future::ready(Err(error))),
        }
    }
}

/// What is expected of a function's output.
pub(crate) struct OutputContract<O, Via> {
    declared: OutputSchema,
    validator: Option<Arc<SchemaValidator>>,
    types: PhantomData<fn() -> (O, Via)>,
}

impl<O, Via> Clone for OutputContract<O, Via> {
    fn clone(&self) -> Self {
        Self { declared: self.declared.clone(), validator: self.validator.clone(), types: PhantomData }
    }
}

impl<O: ToolOutput<Via>, Via> OutputContract<O, Via> {
    pub(crate) fn new(declared: OutputSchema, validator: Option<Arc<SchemaValidator>>) -> Self {
        Self { declared, validator, types: PhantomData }
    }

    /// The result as `version` has it.
    fn outcome(&self, output: O, version: ProtocolVersion) -> Result<Outcome, McpError> {
        let result = match output.into_output(&self.declared) {
            Ok(Output(Returning::Outcome(outcome))) => return Ok(outcome),
            Ok(Output(Returning::Result(result))) => {
                match &result.structured_content {
                    _ if result.is_error == Some(true) => {}
                    Some(content) => self.check(content)?,
                    None if self.validator.is_some() => {
                        return Err(McpError::internal(
                            "a tool with an output schema gives nothing structured",
                        ));
                    }
                    None => {}
                }
                result
            }
            Ok(Output(Returning::Structured(value))) => {
                self.check(&value)?;
                self.structured(value, version)
            }
            Err(error) => match error.into_failure() {
                Failure::ToolResult(result) => result,
                Failure::Protocol(error) => return Err(error),
            },
        };
        Ok(Outcome::of(result))
    }

    fn structured(&self, value: Json, version: ProtocolVersion) -> CallToolResult {
        let text = Content::text(value.as_str());
        let wrap = self.declared.is_wrapped() && !version.has(feature::STRUCTURED_ANY);
        let content = if wrap { wrapped(&value) } else { value };
        CallToolResult::new([text]).structured_content(content)
    }

    fn check(&self, value: &Json) -> Result<(), McpError> {
        let Some(validator) = &self.validator else { return Ok(()) };
        let faults = validator.faults(&value.decode().map_err(McpError::internal)?);
        if faults.is_empty() {
            return Ok(());
        }
        Err(McpError::internal(validate::report(
            "a tool's result does not follow its output schema",
            &faults,
        )))
    }
}

fn wrapped(value: &Json) -> Json {
    Json::parse(&format!(r#"{{"result":{value}}}"#)).unwrap_or_else(|_| Json::object())
}

/// Reads the arguments, or tells the model everything that is wrong with them.
fn decode<A: DeserializeOwned>(arguments: &str, checked: &ArgumentSchema) -> Result<A, CallToolResult> {
    let decoded = serde_json::from_str::<A>(arguments);
    if decoded.is_ok() && !checked.always {
        return decoded.map_err(|_| CallToolResult::error(""));
    }
    let value = serde_json::from_str(arguments).unwrap_or_default();
    let mut faults = checked.validator.faults(&value);
    match decoded {
        Ok(decoded) if faults.is_empty() => return Ok(decoded),
        // The type is stricter than its schema; then its own words must do.
        Err(error) if faults.is_empty() => {
            faults.push(Violation { at: String::new(), what: validate::reason(&error) });
        }
        _ => {}
    }
    Err(CallToolResult::error(validate::report("The arguments do not fit this tool:", &faults)))
}

fn refused(result: CallToolResult) -> BoxFuture<'static, Result<Outcome, McpError>> {
    Box::pin(std::future::ready(Ok(Outcome::of(result))))
}

/// An async function.
pub(crate) struct Asynchronous<H, A, Shape, O, Via> {
    handler: H,
    arguments: ArgumentSchema,
    expected: Arc<OutputContract<O, Via>>,
    types: PhantomData<fn() -> (A, Shape)>,
}

impl<H, A, Shape, O, Via> Asynchronous<H, A, Shape, O, Via> {
    pub(crate) fn arc(handler: H, arguments: ArgumentSchema, expected: OutputContract<O, Via>) -> Arc<Self> {
        Arc::new(Self { handler, arguments, expected: Arc::new(expected), types: PhantomData })
    }
}

impl<S, A, H, Shape, Via> RunTool<S> for Asynchronous<H, A, Shape, H::Output, Via>
where
    A: DeserializeOwned + Send + 'static,
    H: Function<S, A, Shape>,
    H::Output: ToolOutput<Via>,
    S: Send + Sync + 'static,
    Shape: 'static,
    Via: 'static,
{
    fn run(&self, cx: Context<S>, arguments: &str) -> BoxFuture<'static, Result<Outcome, McpError>> {
        let arguments = match decode(arguments, &self.arguments) {
            Ok(arguments) => arguments,
            Err(result) => return refused(result),
        };
        let version = cx.protocol_version();
        let expected = Arc::clone(&self.expected);
        let call = self.handler.call(cx, arguments);
        Box::pin(async move { expected.outcome(call.await, version) })
    }
}

/// A function that takes a thread.
pub(crate) struct Blocking<H, A, Shape, O, Via> {
    handler: Arc<H>,
    arguments: ArgumentSchema,
    expected: Arc<OutputContract<O, Via>>,
    types: PhantomData<fn() -> (A, Shape)>,
}

impl<H, A, Shape, O, Via> Blocking<H, A, Shape, O, Via> {
    pub(crate) fn arc(handler: H, arguments: ArgumentSchema, expected: OutputContract<O, Via>) -> Arc<Self> {
        Arc::new(Self {
            handler: Arc::new(handler),
            arguments,
            expected: Arc::new(expected),
            types: PhantomData,
        })
    }
}

impl<S, A, H, Shape, Via> RunTool<S> for Blocking<H, A, Shape, H::Output, Via>
where
    A: DeserializeOwned + Send + 'static,
    H: BlockingFunction<S, A, Shape>,
    H::Output: ToolOutput<Via>,
    S: Send + Sync + 'static,
    Shape: 'static,
    Via: 'static,
{
    fn run(&self, cx: Context<S>, arguments: &str) -> BoxFuture<'static, Result<Outcome, McpError>> {
        let arguments = match decode(arguments, &self.arguments) {
            Ok(arguments) => arguments,
            Err(result) => return refused(result),
        };
        let version = cx.protocol_version();
        let (handler, expected) = (Arc::clone(&self.handler), Arc::clone(&self.expected));
        Box::pin(async move {
            // The permit travels with the work: what was called off still counts until it has ended.
            let permit = BLOCKING.acquire().await.map_err(McpError::internal)?;
            let work = tokio::task::spawn_blocking(move || {
                let _permit = permit;
                handler.call(cx, arguments)
            });
            match work.await {
                Ok(output) => expected.outcome(output, version),
                Err(ended) if ended.is_panic() => std::panic::resume_unwind(ended.into_panic()),
                Err(ended) => Err(McpError::internal(ended)),
            }
        })
    }
}

impl From<CallToolResult> for Output {
    fn from(result: CallToolResult) -> Self {
        Self(Returning::Result(result))
    }
}

/// A failure as the outcome of a call.
pub(crate) fn into_outcome(error: ToolError) -> Result<Outcome, McpError> {
    match error.into_failure() {
        Failure::ToolResult(result) => Ok(Outcome::of(result)),
        Failure::Protocol(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::time::Duration;

    use duplexer_types::methods::Method;
    use tokio::time::timeout;

    use super::super::Tool;
    use super::*;
    use crate::kernel::testing;
    use crate::registry::Server;

    /// Peers B32: when all threads of blocking tools are taken, the next call waits, and delays nobody else.
    ///
    /// The paused clock moves on only when nothing runs, on no thread either: an hour passes because the tool waits.
    #[tokio::test(start_paused = true)]
    async fn blocking_tools_wait_for_a_thread() {
        let ran = Arc::new(AtomicBool::new(false));
        let begun = Arc::clone(&ran);
        let server = Server::builder("test")
            .tool(Tool::new("block").blocking(move || begun.store(true, Ordering::SeqCst)))
            .tool(Tool::new("quick").handler(|| async {}))
            .build()
            .unwrap();
        let running = server.start().await.unwrap();
        let call = async |name: &str| {
            let params = format!(r#"{{"name":"{name}"}}"#);
            testing::call(&running, &testing::anonymous(), Method::ToolsCall, &params).await
        };
        let all = u32::try_from(BLOCKING.available_permits()).unwrap();
        assert!(all >= 32);
        let taken = BLOCKING.acquire_many(all).await.unwrap();
        assert!(timeout(Duration::from_secs(3600), call("block")).await.is_err());
        assert!(!ran.load(Ordering::SeqCst));
        call("quick").await.unwrap();
        drop(taken);
        call("block").await.unwrap();
        assert!(ran.load(Ordering::SeqCst));
    }
}
