//! The context of a handler.

use std::sync::{Arc, Mutex};

use duplexer::client::{ClientBuilder, ServerNotification};
use duplexer::server::{CatalogItem, ReadError};
use duplexer::testing::TestClient;
use duplexer::types::resource::ResourceContents;
use duplexer::types::tool::CallToolResult;
use duplexer::{Context, McpError, Prompt, Resource, ResourceError, Server, Tool, ToolError};
use duplexer_core::dispatch::Message;
use duplexer_server::Reply;
use duplexer_server::middleware::{ConcurrencyLimit, Next};
use duplexer_types::elicitation::{ElicitParams, ElicitResult};
use duplexer_types::error::ErrorCode;
use duplexer_types::input::{InputRequest, InputRequiredResult};
use duplexer_types::json::{Json, JsonObject};
use duplexer_types::logging::{LoggingLevel, LoggingMessageParams};
use duplexer_types::methods;
use duplexer_types::prompt::GetPromptParams;
use duplexer_types::roots::ListRootsResult;
use duplexer_types::version::{Era, ProtocolVersion};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::common::{both, call, options, refusal, text, try_call};

#[derive(Deserialize, JsonSchema)]
struct At {
    uri: String,
}

#[derive(Deserialize)]
struct Level {
    level: u8,
}

async fn read_text(cx: &Context<()>, uri: &str) -> Result<String, ReadError> {
    let read = cx.read_resource(uri).await?;
    Ok(match read.contents.first() {
        Some(ResourceContents::Text(contents)) => contents.text.clone(),
        other => format!("{other:?}"),
    })
}

fn reading() -> Server {
    let asks = Resource::template("ask://{name}", |cx: Context<()>, _: Value| async move {
        let name = cx.elicit::<At>("name", "Who?").await?;
        Ok::<_, ResourceError>(format!("{:?}", name.ok().map(|at| at.uri)))
    });
    let deep = Resource::template("deep://{level}", |cx: Context<()>, Level { level }| async move {
        if level == 0 {
            return Ok("bottom".to_owned());
        }
        Ok::<_, ResourceError>(format!("{level} {}", read_text(&cx, &format!("deep://{}", level - 1)).await?))
    });
    let answers = Resource::template("answers://{x}", |cx: Context<()>, _: Value| async move {
        let (answers, state) = (cx.input_responses()?.len(), cx.request_state()?);
        Ok::<_, McpError>(format!("{answers} {state:?} {}", cx.raw_meta().is_some()))
    });
    Server::builder("test", "0")
        .tool(Tool::new("read", |cx: Context<()>, At { uri }| async move {
            read_text(&cx, &uri).await.map_err(ToolError::from)
        }))
        .tool(Tool::new("round", |cx: Context<()>| async move {
            let name = cx.elicit::<At>("name", "Which?").await?.accepted()?;
            Ok::<_, ToolError>(format!("{} {}", name.uri, read_text(&cx, "answers://x").await?))
        }))
        .prompt(Prompt::new("quote", |cx: Context<()>, At { uri }| async move { read_text(&cx, &uri).await }))
        .resource(Resource::text("note://one", "one"))
        .resource(Resource::text("note://secret", "secret"))
        .resource(asks)
        .resource(deep)
        .resource(answers)
        .visible(|_, offered| !matches!(offered, CatalogItem::Resource("note://secret")))
        .build()
        .unwrap()
}

fn with_user(era: Era) -> ClientBuilder {
    let me = JsonObject::new().with("uri", Json::from(json!("me")));
    options(era)
        .on_elicitation(move |_: ElicitParams| std::future::ready(Ok(ElicitResult::accept(me.clone()))))
}

/// MRTR-14: the handler reads what the caller could read; a failure in a tool is sent to the model, one in a prompt is internal.
#[tokio::test]
async fn a_handler_reads_a_resource_of_its_server() {
    both(&reading(), async |client, _| {
        let read = async |uri: &str| call(client, "read", json!({ "uri": uri })).await;
        assert_eq!(text(&read("note://one").await), "one");
        assert_eq!(text(&read("deep://7").await), "7 6 5 4 3 2 1 bottom");
        for unknown in ["note://none", "note://secret"] {
            let result = read(unknown).await;
            assert_eq!(result.is_error, Some(true));
            assert_eq!(text(&result), format!("Unknown resource: {unknown}"));
        }
        let quote = async |uri: &str| {
            let params = GetPromptParams::new("quote");
            let arguments = JsonObject::new().with("uri", uri.to_owned());
            client.get_prompt_with(params.arguments(arguments)).await
        };
        assert_eq!(quote("note://one").await.unwrap().messages[0].content.as_text(), Some("one"));
        assert_eq!(refusal(quote("note://none").await).code, ErrorCode::INTERNAL_ERROR);
    })
    .await;
}

/// MRTR-14: the depth of resources that read each other is bounded.
#[tokio::test]
async fn reading_within_reading_is_bounded() {
    both(&reading(), async |client, _| {
        let result = call(client, "read", json!({"uri": "deep://8"})).await;
        assert_eq!(result.is_error, Some(true), "{result:?}");
        assert_eq!(text(&result), "Error reading resource deep://8");
    })
    .await;
}

/// MRTR-14: the nested read does not see answers, state or `_meta` of the outer request. Where a question ends the request, it
/// cannot ask; where a question is a request to the client, it can.
#[tokio::test]
async fn a_nested_read_does_not_see_the_questions_of_the_outer_request() {
    for era in [Era::Handshake, Era::Envelope] {
        let client = &TestClient::connect(&reading(), with_user(era)).await.unwrap();
        assert_eq!(text(&call(client, "round", json!({})).await), "me 0 None false");
        let asked = try_call(client, "read", json!({"uri": "ask://x"})).await;
        match era {
            Era::Handshake => assert_eq!(text(&asked.unwrap()), r#"Some("me")"#),
            Era::Envelope => assert_eq!(refusal(asked).code, ErrorCode::INTERNAL_ERROR),
        }
    }
}

/// Middleware wraps messages, and a read within a handler is not a message: a limit of one is enough.
#[tokio::test]
async fn a_nested_read_is_no_message() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let log = Arc::clone(&seen);
    let server = Server::builder("test", "0")
        .middleware(move |cx: Context, message: Message, next: Next| {
            log.lock().unwrap().push(message.method().to_owned());
            next.run(cx, message)
        })
        .middleware(ConcurrencyLimit::new(1))
        .resource(Resource::text("note://one", "one"))
        .tool(Tool::new("read", |cx: Context<()>| async move { read_text(&cx, "note://one").await.unwrap() }))
        .build()
        .unwrap();
    let client = TestClient::new(&server).await.unwrap();
    assert_eq!(text(&call(&client, "read", json!({})).await), "one");
    assert!(!seen.lock().unwrap().iter().any(|method| method.contains("read")));
    client.close().await;
}

/// MCPS-06: id, headers, revision, client, connection, state, server; progress, log, changes; the end of a stream. (Asking,
/// reading and states are shown elsewhere.)
#[tokio::test]
async fn a_context_knows_its_request_and_its_client() {
    let facts = Tool::new("facts", |cx: Context<u8>| async move {
        cx.progress(1.0).total(1.0).message("done").await;
        cx.logger("test").warning(json!("logged")).await;
        cx.notify_tools_changed().await;
        cx.notify_prompts_changed().await;
        cx.notify_resources_changed().await;
        cx.notify_resource_updated("a://b").await;
        json!({
            "id": cx.request_id().is_some(),
            "headers": cx.transport().headers.values("Authorization").len(),
            "version": cx.protocol_version().as_str(),
            "roots": cx.connection().client().capabilities.as_ref().is_some_and(|all| all.roots.is_some()),
            "client": cx.connection().client().info.as_ref().map(|info| info.name.clone()),
            "session": cx.connection().session_id(),
            "state": cx.state(),
            "server": cx.server().server().server_info().name,
            "stream": format!("{:?}", cx.close_stream()),
        })
        .to_string()
    });
    let server = Server::builder("test", "0").dynamic().logging().state(7_u8).tool(facts).build().unwrap();
    both(&server, async |client, era| {
        let facts: Value = serde_json::from_str(text(&call(client, "facts", json!({})).await)).unwrap();
        let version = match era {
            Era::Handshake => ProtocolVersion::LATEST_HANDSHAKE,
            Era::Envelope => ProtocolVersion::LATEST_ENVELOPE,
        };
        let expected = json!({
            "id": true, "headers": 0, "version": version.as_str(), "roots": false, "client": "test",
            "session": null, "state": 7, "server": "test", "stream": "NotSupported",
        });
        assert_eq!(facts, expected);
    })
    .await;
    let (sender, mut notifications) = tokio::sync::mpsc::channel(8);
    let options = options(Era::Handshake).on_notification(move |notification: ServerNotification| {
        let _ = sender.try_send(notification);
    });
    let client = TestClient::connect(&server, options).await.unwrap();
    call(&client, "facts", json!({})).await;
    let mut kinds = Vec::new();
    for _ in 0..4 {
        let notification = format!("{:?}", notifications.recv().await.unwrap());
        kinds.push(notification.split(['(', ' ']).next().unwrap().to_owned());
    }
    kinds.sort_unstable();
    assert_eq!(kinds, ["Log", "PromptsListChanged", "ResourcesListChanged", "ToolsListChanged"]);
    client.close().await;
}

/// P-LOG-1: without the capability nothing is logged to clients. P-LOG-2, P-LOG-5: every path passes the level.
#[tokio::test]
async fn log_messages_pass_the_capability_and_the_level() {
    let log = || {
        Tool::new("log", |cx: Context<()>| async move {
            let debug = LoggingMessageParams::new(LoggingLevel::Debug, "low");
            let error = LoggingMessageParams::new(LoggingLevel::Error, "high");
            cx.log(LoggingLevel::Error, "high").await;
            cx.connection().log(LoggingLevel::Error, "high").await;
            for message in [&debug, &error] {
                cx.notify::<methods::LoggingMessage>(message).await;
                cx.connection().notify::<methods::LoggingMessage>(message).await;
            }
            cx.log(LoggingLevel::Debug, "low").await;
        })
    };
    let logs = Server::builder("test", "0").logging().tool(log()).build().unwrap();
    let silent = Server::builder("test", "0").tool(log()).build().unwrap();
    for (server, era, expected) in [
        (&logs, Era::Handshake, 4),
        (&logs, Era::Envelope, 2),
        (&silent, Era::Handshake, 0),
        (&silent, Era::Envelope, 0),
    ] {
        let logged = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&logged);
        let options = options(era).log_level(LoggingLevel::Error);
        let options =
            options.on_log(move |message| seen.lock().unwrap().push(message.data.as_str().to_owned()));
        let client = TestClient::connect(server, options).await.unwrap();
        if era == Era::Handshake {
            let set = client.set_log_level(LoggingLevel::Error).await;
            assert_eq!(set.is_ok(), expected > 0);
        }
        call(&client, "log", json!({})).await;
        client.close().await;
        assert_eq!(*logged.lock().unwrap(), vec!["\"high\""; expected], "{era:?}");
    }
}

/// MCPS-06, MRTR-01: a manual round receives its answers and its state.
#[tokio::test]
async fn a_round_can_be_made_manually() {
    let by_hand = Tool::new("by_hand", |cx: Context<()>| async move {
        let (answers, state) = (cx.input_responses()?, cx.request_state()?);
        Ok::<_, McpError>(match state {
            None => {
                let asking = InputRequiredResult::asking([("roots", InputRequest::ListRoots)]);
                Reply::InputRequired(asking.request_state("first"))
            }
            Some(state) => {
                Reply::Complete(CallToolResult::text(format!("{state} {}", answers.get("roots").is_some())))
            }
        })
    });
    let server = Server::builder("test", "0").tool(by_hand).build().unwrap();
    let options = options(Era::Envelope).on_roots(|| async { Ok(ListRootsResult::new([])) });
    let client = TestClient::connect(&server, options).await.unwrap();
    assert_eq!(text(&call(&client, "by_hand", json!({})).await), "first true");
    client.close().await;
}
