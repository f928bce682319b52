//! Runs a tool: decode the arguments, call the function, shape the result.

use std::sync::Arc;

use duplexer_core::error::McpError;
use duplexer_types::content::Content;
use duplexer_types::json::Json;
use duplexer_types::tool::CallToolResult;
use duplexer_types::version::{ProtocolVersion, feature};
use serde::de::DeserializeOwned;

use super::ToolContract;
use super::error::{Failure, ToolError};
use super::output::{Output, Returning, ToolOutput};
use super::spec::OutputContract;
use crate::catalog::erased::{ErasedHandler, HandlerFuture, Operation, Typed, failed};
use crate::catalog::function::{Function, Seal};
use crate::catalog::threads;
use crate::kernel::context::Context;
use crate::kernel::outcome::Outcome;
use crate::schema::validate::{self, Violation};

/// `tools/call`.
pub(crate) struct CallTool;

impl Operation for CallTool {
    type Input<'a> = ToolInput<'a>;
    type Output = Outcome;
}

/// The input of one call.
#[derive(Clone, Copy)]
pub(crate) struct ToolInput<'a> {
    /// JSON text of an object.
    pub(crate) arguments: &'a str,
    pub(crate) contract: &'a Arc<ToolContract>,
}

impl<S, A, H, Shape, Via> ErasedHandler<S, CallTool> for Typed<H, A, Shape, Via>
where
    A: DeserializeOwned + Send + 'static,
    H: Function<S, A, Shape>,
    H::Output: ToolOutput<Via>,
    S: Send + Sync + 'static,
    Shape: 'static,
    Via: 'static,
{
    fn run(&self, cx: Context<S>, input: ToolInput<'_>) -> HandlerFuture {
        let contract = Arc::clone(input.contract);
        let schema = contract.input.schema();
        if let Some(reason) = &schema.fault {
            return failed(McpError::internal(format!("the tool cannot be called: {reason}")));
        }
        let Some(decoded) = schema.arguments.decode_inline(input.arguments) else {
            let run = run_checked::<S, A, H, Shape, Via>;
            return Box::pin(run(Arc::clone(&self.handler), cx, input.arguments.to_owned(), contract));
        };
        let arguments = match decoded {
            Ok(arguments) => arguments,
            Err(violations) => return Box::pin(std::future::ready(Ok(refused(&violations)))),
        };
        let version = cx.protocol_version();
        let call = self.handler.call(cx, arguments, Seal(()));
        Box::pin(async move { contract.output.outcome(call.await, version) })
    }
}

/// Checks large arguments on a thread of their own, because the check may take long, and then calls the function.
async fn run_checked<S, A, H, Shape, Via>(
    handler: Arc<H>,
    cx: Context<S>,
    text: String,
    contract: Arc<ToolContract>,
) -> Result<Outcome, McpError>
where
    A: DeserializeOwned + Send + 'static,
    H: Function<S, A, Shape>,
    H::Output: ToolOutput<Via>,
{
    let checking = Arc::clone(&contract);
    match threads::check(move || checking.input.schema().arguments.decode::<A>(&text)).await? {
        Ok(arguments) => {
            let version = cx.protocol_version();
            let output = handler.call(cx, arguments, Seal(())).await;
            contract.output.outcome(output, version)
        }
        Err(violations) => Ok(refused(&violations)),
    }
}

fn refused(violations: &[Violation]) -> Outcome {
    Outcome::of(CallToolResult::error(validate::report("The arguments do not fit this tool:", violations)))
}

impl OutputContract {
    /// Converts a function's output into the result for `version`.
    fn outcome<O: ToolOutput<Via>, Via>(
        &self,
        output: O,
        version: ProtocolVersion,
    ) -> Result<Outcome, McpError> {
        let result = match output.into_output(&self.schema, Seal(())) {
            Ok(Output(Returning::Outcome(outcome))) => return Ok(outcome),
            Ok(Output(Returning::Result(result))) => {
                self.check_result(&result)?;
                result
            }
            Ok(Output(Returning::Structured(value, text))) => {
                self.check(&value)?;
                self.structured(value, text, version)
            }
            Err(error) => return into_outcome(error),
        };
        Ok(Outcome::of(result))
    }

    fn structured(&self, value: Json, text: Option<String>, version: ProtocolVersion) -> CallToolResult {
        let text = text.map_or_else(|| Content::text(value.as_str()), Content::text);
        let wrap = !version.has(feature::STRUCTURED_ANY) && self.schema.is_wrapped();
        let content = if wrap { wrapped(&value) } else { value };
        CallToolResult::new([text]).structured_content(content)
    }

    fn check_result(&self, result: &CallToolResult) -> Result<(), McpError> {
        match &result.structured_content {
            _ if result.is_error == Some(true) => Ok(()),
            Some(content) => self.check(content),
            None if self.validator.is_some() => {
                Err(McpError::internal("a tool with an output schema gives nothing structured"))
            }
            None => Ok(()),
        }
    }

    fn check(&self, value: &Json) -> Result<(), McpError> {
        let Some(validator) = &self.validator else { return Ok(()) };
        let violations = validator.violations(&value.decode().map_err(McpError::internal)?);
        if violations.is_empty() {
            return Ok(());
        }
        let headline = "a tool's result does not follow its output schema";
        Err(McpError::internal(validate::report(headline, &violations)))
    }
}

fn wrapped(value: &Json) -> Json {
    Json::parse(&format!(r#"{{"result":{value}}}"#)).unwrap_or_else(|_| Json::object())
}

/// Converts a failure into the outcome of a call.
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
    use crate::catalog::threads::BLOCKING;
    use crate::kernel::testing;
    use crate::registry::Server;

    /// Peers B32: when all permits of blocking tools are taken, the next call waits and delays no other call.
    ///
    /// The paused clock advances only when nothing runs, on any thread: an hour passes because the tool waits.
    #[tokio::test(start_paused = true)]
    async fn blocking_tools_wait_for_a_thread() {
        let ran = Arc::new(AtomicBool::new(false));
        let begun = Arc::clone(&ran);
        let server = Server::builder("test", "0")
            .tool(Tool::blocking("block", move || begun.store(true, Ordering::SeqCst)))
            .tool(Tool::new("quick", || async {}))
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

    /// Arguments that record the thread that decodes them.
    struct DecodedOn(Option<String>);

    impl<'de> serde::Deserialize<'de> for DecodedOn {
        fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
            serde::de::IgnoredAny::deserialize(deserializer)?;
            Ok(Self(std::thread::current().name().map(str::to_owned)))
        }
    }

    /// Hardening, finding 1: large arguments are checked on a thread of our own, small ones where they arrive.
    #[tokio::test]
    async fn large_arguments_are_not_checked_on_a_worker() {
        let schema = serde_json::json!({ "type": "object", "maxProperties": 1 });
        let tool = Tool::with_schema("where", Json::from(schema), |DecodedOn(thread): DecodedOn| async {
            thread.unwrap_or_default()
        });
        let server = Server::builder("test", "0").tool(tool).build().unwrap();
        let running = server.start().await.unwrap();
        let call = async |arguments: &str| {
            let params = format!(r#"{{"name":"where","arguments":{arguments}}}"#);
            let outcome = testing::call(&running, &testing::anonymous(), Method::ToolsCall, &params).await;
            let result = outcome.unwrap().into_typed::<CallToolResult>().unwrap();
            result.content[0].as_text().unwrap_or_default().to_owned()
        };
        let own = std::thread::current().name().map(str::to_owned).unwrap_or_default();
        assert_eq!(call(r#"{"a":1}"#).await, own);
        let large = "x".repeat(crate::schema::arguments::MAX_INLINE);
        assert_eq!(call(&format!(r#"{{"a":"{large}"}}"#)).await, "duplexer-blocking");
        let refused = call(&format!(r#"{{"a":"{large}","b":1}}"#)).await;
        assert!(refused.starts_with("The arguments do not fit this tool:"), "{refused}");
    }
}
