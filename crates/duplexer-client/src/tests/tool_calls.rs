//! Calls of tools: arguments of any serializable type, headers, failed tools, decoded results, limits of input rounds.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{builder, envelope_session};
use crate::{Call, ClientError};
use duplexer_core::error::CallError;
use duplexer_types::methods::ToolsCall;

/// Sends a call and answers it; returns the request and the outcome of `with`.
async fn answered<T>(
    call: impl FnOnce(&crate::Client) -> Call<ToolsCall>,
    with: impl AsyncFnOnce(Call<ToolsCall>) -> T,
    result: Value,
) -> (Value, T) {
    let (client, mut server) = envelope_session(builder()).await;
    let (outcome, request) = tokio::join!(with(call(&client)), async {
        let request = server.expect("tools/call").await;
        server.respond(&request, result).await;
        request
    });
    (request, outcome)
}

#[derive(Serialize)]
struct Add {
    a: i64,
    b: i64,
}

/// F-4
#[tokio::test(start_paused = true)]
async fn arguments_are_anything_that_serializes_as_an_object() {
    let done = || json!({"resultType": "complete", "content": []});
    let check = async |call: fn(&crate::Client) -> Call<ToolsCall>, arguments: Value| {
        let (request, outcome) = answered(call, async |call| call.await, done()).await;
        outcome.unwrap();
        assert_eq!(request["params"]["arguments"], arguments);
    };
    check(|client| client.call_tool("add", json!({"a": 1})), json!({"a": 1})).await;
    check(|client| client.call_tool("add", Add { a: 1, b: 2 }), json!({"a": 1, "b": 2})).await;
    check(|client| client.call_tool("add", &Add { a: 1, b: 2 }), json!({"a": 1, "b": 2})).await;
    check(|client| client.call_tool("now", ()), Value::Null).await;
}

#[tokio::test(start_paused = true)]
async fn arguments_that_are_not_an_object_are_not_sent() {
    let (client, mut server) = envelope_session(builder()).await;
    let error = client.call_tool("add", [1, 2]).await.unwrap_err();
    let ClientError::Call(CallError::Encode(cause)) = error else { panic!("{error}") };
    assert_eq!(cause.to_string(), "the arguments of a tool are not a JSON object");
    client.close().await.unwrap();
    assert_eq!(server.next_message().await, None);
}

/// F-7
#[tokio::test(start_paused = true)]
async fn a_result_is_a_text_or_a_value_or_the_failure_of_the_tool() {
    #[derive(Debug, Deserialize, PartialEq)]
    struct Sum {
        sum: i64,
    }
    let result = json!({"resultType": "complete", "content": [{"type": "text", "text": "3"}], "structuredContent": {"sum": 3}});
    let call = |client: &crate::Client| client.call_tool("add", ());
    let (_, text) = answered(call, async |call| call.text().await, result.clone()).await;
    assert_eq!(text.unwrap(), "3");
    let (_, sum) = answered(call, async |call| call.structured::<Sum>().await, result.clone()).await;
    assert_eq!(sum.unwrap(), Sum { sum: 3 });
    let (_, wrong) = answered(call, async |call| call.structured::<Vec<i64>>().await, result).await;
    assert!(matches!(wrong.unwrap_err(), ClientError::Structured(_)));
    let failed = json!({"resultType": "complete", "content": [{"type": "text", "text": "too large"}], "isError": true});
    let (_, failure) = answered(call, async |call| call.structured::<Sum>().await, failed).await;
    let failure = failure.unwrap_err();
    assert!(matches!(&failure, ClientError::ToolFailed(_)), "{failure}");
    assert_eq!(failure.to_string(), "too large");
}

#[tokio::test(start_paused = true)]
async fn the_number_of_input_rounds_can_be_limited() {
    let (client, mut server) = envelope_session(builder().max_input_rounds(1)).await;
    let (outcome, ()) = tokio::join!(client.call_tool("ask", ()), async {
        for _ in 0..2 {
            let request = server.expect("tools/call").await;
            server.respond(&request, json!({"resultType": "input_required", "requestState": "s"})).await;
        }
    });
    assert!(matches!(outcome.unwrap_err(), ClientError::TooManyRounds { rounds: 1, .. }));
}
