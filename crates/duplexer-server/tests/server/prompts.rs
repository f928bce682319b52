//! Prompts and the completion of their arguments.

use duplexer::client::ClientError;
use duplexer::completion::CompletionRequest;
use duplexer::testing::TestClient;
use duplexer::types::content::Content;
use duplexer::types::prompt::PromptMessage;
use duplexer::{Context, McpError, Prompt, Server};
use duplexer_macros::prompt;
use duplexer_types::completion::{
    CompleteParams, CompletionArgument, CompletionContext, CompletionReference, PromptReference,
};
use duplexer_types::error::ErrorCode;
use duplexer_types::json::JsonObject;
use duplexer_types::prompt::GetPromptResult;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::common::{both, refusal};

async fn get(
    client: &TestClient,
    name: &str,
    arguments: &[(&str, &str)],
) -> Result<GetPromptResult, ClientError> {
    let arguments: JsonObject<String> =
        arguments.iter().map(|(name, value)| (*name, (*value).to_owned())).collect();
    client.get_prompt(name, arguments).await
}

fn said(result: &GetPromptResult) -> Vec<String> {
    let message =
        |message: &PromptMessage| format!("{:?}: {}", message.role, message.content.as_text().unwrap());
    result.messages.iter().map(message).collect()
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Tone {
    Kind,
    Strict,
}

async fn languages(cx: Context, request: CompletionRequest) -> Result<Vec<String>, McpError> {
    let _ = cx;
    if request.value == "fail" {
        return Err(McpError::internal("the password is 1234"));
    }
    let more = request.resolved("code").map(|code| format!("rust-{code}"));
    Ok(request.filter(["rust".to_owned(), "ruby".to_owned()].into_iter().chain(more)))
}

/// Asks for a review.
#[prompt(title = "Review")]
async fn review(
    /// The code to look at.
    code: String,
    #[default(10)] lines: u32,
    tone: Option<Tone>,
    #[complete(languages)] language: Option<String>,
) -> String {
    let tone = if matches!(tone, Some(Tone::Strict)) { "strictly" } else { "kindly" };
    format!("Review {lines} lines of {code} {tone} in {language:?}")
}

fn server() -> Server {
    Server::builder("test", "0")
        .prompt(review)
        .prompt(Prompt::new("plain", || async { "hello" }))
        .prompt(Prompt::new("talk", || async {
            [PromptMessage::user("hi"), PromptMessage::assistant(Content::text("ho"))]
        }))
        .prompt(Prompt::new("fails", || async { Err::<String, _>(McpError::internal("secret")) }))
        .build()
        .unwrap()
}

/// PRM-01 (deviation), PRM-02, PRM-03, P-PRM-2.
#[tokio::test]
async fn prompts_are_filled_with_typed_arguments() {
    both(&server(), async |client, _| {
        let listed = client.all_prompts().await.unwrap();
        let arguments: Vec<_> =
            listed[0].arguments.iter().flatten().map(|one| (&*one.name, one.required)).collect();
        assert_eq!(
            arguments,
            [("code", Some(true)), ("lines", Some(false)), ("tone", Some(false)), ("language", Some(false))],
            "in the order of the signature, `required` always said"
        );
        let result =
            get(client, "review", &[("code", "x"), ("lines", "5"), ("tone", "strict")]).await.unwrap();
        assert_eq!(said(&result), ["User: Review 5 lines of x strictly in None"]);
        assert_eq!(result.description.as_deref(), Some("Asks for a review."));
        let result = get(client, "review", &[("code", "x")]).await.unwrap();
        assert_eq!(said(&result), ["User: Review 10 lines of x kindly in None"]);
        assert_eq!(said(&get(client, "plain", &[]).await.unwrap()), ["User: hello"]);
        assert_eq!(said(&get(client, "talk", &[]).await.unwrap()), ["User: hi", "Assistant: ho"]);
        let check = async |name: &str, arguments: &[(&str, &str)], code: ErrorCode, text: &str| {
            let error = refusal(get(client, name, arguments).await);
            assert_eq!((error.code, &*error.message), (code, text));
        };
        let invalid = ErrorCode::INVALID_PARAMS;
        check("nope", &[], invalid, "Unknown prompt: nope").await;
        check("review", &[], invalid, "Missing required arguments: code").await;
        let wrong = r#"Invalid argument: lines: expected a whole number that is not negative, got "many""#;
        check("review", &[("code", "x"), ("lines", "many")], invalid, wrong).await;
        let wrong = r#"Invalid argument: tone: expected one of kind, strict, got "odd""#;
        check("review", &[("code", "x"), ("tone", "odd")], invalid, wrong).await;
        check("fails", &[], ErrorCode::INTERNAL_ERROR, "Internal server error").await;
    })
    .await;
}

/// MCPS-07, P-CMP-3, P-CMP-4: suggestions, none, and failures.
#[tokio::test]
async fn arguments_are_completed() {
    both(&server(), async |client, _| {
        let complete = async |prompt: &str, name: &str, value: &str| {
            let reference = CompletionReference::Prompt(PromptReference::new(prompt));
            let context = CompletionContext::new()
                .arguments([("code", "x".to_owned())].into_iter().collect::<JsonObject<String>>());
            let params =
                CompleteParams::new(reference, CompletionArgument::new(name, value)).context(context);
            client.complete_with(params).await
        };
        let values =
            async |name: &str, value: &str| complete("review", name, value).await.unwrap().completion.values;
        assert_eq!(values("language", "ru").await, ["rust", "ruby", "rust-x"]);
        assert_eq!(values("tone", "").await, ["kind", "strict"], "choices complete themselves");
        assert!(values("code", "").await.is_empty());
        assert_eq!(refusal(complete("nope", "x", "").await).code, ErrorCode::INVALID_PARAMS);
        let error = refusal(complete("review", "language", "fail").await);
        assert_eq!(
            (error.code, &*error.message),
            (ErrorCode::INTERNAL_ERROR, "Error completing argument language")
        );
    })
    .await;
}

/// PRM-03.
#[test]
fn mistakes_fail_the_build() {
    let check = |prompt: Prompt<()>, expected: &str| {
        let error = Server::builder("test", "0").prompt(review).prompt(prompt).build().unwrap_err();
        assert!(error.to_string().contains(expected), "{error}");
    };
    check(Prompt::new("review", || async { "" }), "there are two prompts 'review'");
    check(Prompt::new("a b", || async { "" }), "cannot be called so");
    check(Prompt::new("x", || async { "" }).complete("y", languages), "no argument of it");
}
