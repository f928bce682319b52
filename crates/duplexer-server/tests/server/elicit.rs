//! Elicitation, sampling and roots in both eras.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use duplexer::client::ClientBuilder;
use duplexer::elicit::Elicited;
use duplexer::testing::TestClient;
use duplexer::{Context, Server, Tool, ToolError};
use duplexer_types::annotations::Role;
use duplexer_types::capabilities::ElicitationCapability;
use duplexer_types::elicitation::{
    ElicitParams, ElicitResult, FormSchema, NumberKind, NumberSchema, PrimitiveSchema,
};
use duplexer_types::error::ErrorCode;
use duplexer_types::json::{Json, JsonObject};
use duplexer_types::roots::{ListRootsResult, Root};
use duplexer_types::sampling::{CreateMessageParams, CreateMessageResult, SamplingMessage};
use duplexer_types::version::Era;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use crate::common::{both, call, options, refusal, text, try_call};

#[derive(Deserialize, JsonSchema)]
struct Name {
    /// Your name.
    name: String,
}

#[derive(Deserialize, JsonSchema)]
struct Age {
    #[schemars(range(min = 1))]
    age: u8,
}

/// A client whose user answers by the message.
fn asked(era: Era, log: &Arc<Mutex<Vec<String>>>) -> ClientBuilder {
    let log = Arc::clone(log);
    let capability = ElicitationCapability::new().form(JsonObject::new()).url(JsonObject::new());
    options(era)
        .on_elicitation(move |params| {
            let message = match params {
                ElicitParams::Form(form) => form.message,
                ElicitParams::Url(url) => url.url,
                _ => String::new(),
            };
            log.lock().unwrap().push(message.clone());
            async move {
                let filled = |json: serde_json::Value| {
                    let content: JsonObject = Json::from(json).decode().unwrap();
                    Ok(ElicitResult::accept(content))
                };
                match &*message {
                    "name?" => filled(json!({"name": "Ada"})),
                    "age?" => filled(json!({"age": 36})),
                    "nonsense?" => filled(json!({"age": 0})),
                    "decline?" => Ok(ElicitResult::decline()),
                    "https://example.com/pay" => Ok(ElicitResult::agree()),
                    _ => Ok(ElicitResult::cancel()),
                }
            }
        })
        .elicitation_capability(capability)
        .on_sampling(|params| {
            let asked = format!("{:?}", params.messages);
            async move {
                let said = if asked.contains("capital") { "Oslo" } else { "?" };
                Ok(CreateMessageResult::new(Role::Assistant, said, "small"))
            }
        })
        .on_roots(|| async { Ok(ListRootsResult::new([Root::new("file:///work")])) })
}

async fn in_both(server: &Server, test: impl AsyncFn(&TestClient, Era, Vec<String>)) {
    for era in [Era::Handshake, Era::Envelope] {
        let log = Arc::default();
        let client = TestClient::connect(server, asked(era, &log)).await.unwrap();
        test(&client, era, Vec::new()).await;
        client.close().await;
    }
}

/// MRTR-01, MRTR-08, P-MRTR-21: earlier answers are kept; each question is asked once; the function runs from the start.
#[tokio::test]
async fn questions_are_asked_one_after_the_other() {
    let runs = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&runs);
    let greet = Tool::new("greet", move |cx: Context| {
        counted.fetch_add(1, Ordering::SeqCst);
        async move {
            let name: Name = cx.elicit("name", "name?").await?.accepted()?;
            let age: Age = cx.elicit("age", "age?").await?.accepted()?;
            Ok::<_, ToolError>(format!("{} is {}", name.name, age.age))
        }
    });
    let server = Server::builder("test", "0").tool(greet).build().unwrap();
    for (era, expected) in [(Era::Handshake, 1), (Era::Envelope, 3)] {
        let log = Arc::default();
        let client = TestClient::connect(&server, asked(era, &log)).await.unwrap();
        runs.store(0, Ordering::SeqCst);
        assert_eq!(text(&call(&client, "greet", json!({})).await), "Ada is 36");
        assert_eq!(runs.load(Ordering::SeqCst), expected, "{era:?}");
        assert_eq!(*log.lock().unwrap(), ["name?", "age?"]);
        let plain = client.transcript().to_string();
        assert!(!plain.contains("outcomes"), "the state is sealed by default");
        client.close().await;
    }
}

/// MRTR-06: questions that are awaited together are sent together.
#[tokio::test]
async fn questions_can_be_asked_together() {
    let runs = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&runs);
    let greet = Tool::new("greet", move |cx: Context| {
        counted.fetch_add(1, Ordering::SeqCst);
        async move {
            let (name, age) =
                tokio::join!(cx.elicit::<Name>("name", "name?"), cx.elicit::<Age>("age", "age?"));
            Ok::<_, ToolError>(format!("{} is {}", name?.accepted()?.name, age?.accepted()?.age))
        }
    });
    let server = Server::builder("test", "0").tool(greet).build().unwrap();
    in_both(&server, async |client, era, _| {
        runs.store(0, Ordering::SeqCst);
        assert_eq!(text(&call(client, "greet", json!({})).await), "Ada is 36");
        assert_eq!(runs.load(Ordering::SeqCst), if era == Era::Envelope { 2 } else { 1 });
    })
    .await;
}

/// P-ELI-5: accepted, declined and cancelled responses are distinguished.
#[tokio::test]
async fn users_can_decline_or_dismiss_a_question() {
    let ask = |message: &'static str| {
        move |cx: Context| async move {
            let answer: Elicited<Name> = cx.elicit("q", message).await?;
            Ok::<_, ToolError>(match answer {
                Elicited::Accepted(name) => name.name,
                Elicited::Declined => "declined".to_owned(),
                Elicited::Cancelled => "cancelled".to_owned(),
            })
        }
    };
    let server = Server::builder("test", "0")
        .tool(Tool::new("decline", ask("decline?")))
        .tool(Tool::new("leave", ask("other?")))
        .tool(Tool::new("needs", |cx: Context| async move {
            cx.elicit::<Name>("q", "decline?").await?.accepted().map(|name| name.name)
        }))
        .tool(Tool::new("pay", |cx: Context| async move {
            let id = cx.elicit_url("pay", "Pay first.", "https://example.com/pay").await?.accepted()?;
            cx.elicitation_complete(&id).await;
            Ok::<_, ToolError>(id.as_str().unwrap_or("no id").to_owned())
        }))
        .tool(Tool::new("sample", |cx: Context| async move {
            let question = SamplingMessage::user("What is the capital of Norway?");
            let said = cx.sample("capital", CreateMessageParams::new([question], 10)).await?;
            Ok::<_, ToolError>(format!("{} {:?}", said.model, said.content))
        }))
        .tool(Tool::new("roots", |cx: Context| async move {
            Ok::<_, ToolError>(cx.roots("roots").await?.remove(0).uri)
        }))
        .build()
        .unwrap();
    in_both(&server, async |client, era, _| {
        assert_eq!(text(&call(client, "decline", json!({})).await), "declined");
        assert_eq!(text(&call(client, "leave", json!({})).await), "cancelled");
        let needs = call(client, "needs", json!({})).await;
        assert_eq!((needs.is_error, text(&needs)), (Some(true), "The user declined to answer."));
        let paid = call(client, "pay", json!({})).await;
        let frames = client.transcript().to_string();
        if era == Era::Handshake {
            // The id of the question is the id of its completion, on the stream of the request.
            let id = format!(r#""elicitationId":"{}""#, text(&paid));
            assert_eq!(frames.matches(&id).count(), 2, "{frames}");
            assert!(frames.contains("notifications/elicitation/complete"));
        } else {
            assert_eq!(text(&paid), "no id");
            assert!(!frames.contains("elicitationId") && !frames.contains("elicitation/complete"));
        }
        assert_eq!(text(&call(client, "roots", json!({})).await), "file:///work");
        let sampled = call(client, "sample", json!({})).await;
        assert!(text(&sampled).starts_with("small") && text(&sampled).contains("Oslo"), "{sampled:?}");
    })
    .await;
}

/// MRTR-11, ELI-02, P-ELI-6: answers are decoded into the type, and an answer that does not fit is rejected.
#[tokio::test]
async fn an_answer_that_does_not_follow_its_form_is_refused() {
    let server = Server::builder("test", "0")
        .tool(Tool::new("age", |cx: Context| async move {
            Ok::<_, ToolError>(cx.elicit::<Age>("age", "nonsense?").await?.accepted()?.age)
        }))
        .build()
        .unwrap();
    in_both(&server, async |client, _, _| {
        let error = refusal(try_call(client, "age", json!({})).await);
        assert_eq!(error.code, ErrorCode::INVALID_PARAMS);
        assert!(error.message.contains("/age: expected at least 1, got 0"), "{}", error.message);
    })
    .await;
}

/// P-ELI-4: a form can be hand-written, and its answer is returned unchanged.
#[tokio::test]
async fn a_form_can_be_hand_written() {
    let server = Server::builder("test", "0")
        .tool(Tool::new("age", |cx: Context| async move {
            let age = PrimitiveSchema::Number(NumberSchema::new(NumberKind::Integer));
            let form = FormSchema::new(JsonObject::new().with("age", age));
            let content = cx.elicit_form("age", "nonsense?", form).await?.accepted()?;
            Ok::<_, ToolError>(content.get("age").map_or("none", Json::as_str).to_owned())
        }))
        .build()
        .unwrap();
    in_both(&server, async |client, _, _| {
        assert_eq!(text(&call(client, "age", json!({})).await), "0");
    })
    .await;
}

/// MRTR-12, P-ELI-2: a client that cannot be asked receives the name of the missing capability.
#[tokio::test]
async fn a_client_that_cannot_be_asked_receives_an_error() {
    let server = Server::builder("test", "0")
        .tool(Tool::new("ask", |cx: Context| async move {
            Ok::<_, ToolError>(cx.elicit::<Name>("name", "name?").await?.accepted()?.name)
        }))
        .build()
        .unwrap();
    both(&server, async |client, _| {
        let error = refusal(try_call(client, "ask", json!({})).await);
        assert_eq!(error.code, ErrorCode::MISSING_CLIENT_CAPABILITY);
        assert_eq!(
            error.message,
            "Client did not declare the form elicitation capability required by 'name'"
        );
    })
    .await;
}

/// MRTR-08: an answer counts only for the question it was given to.
#[tokio::test]
async fn a_changed_question_is_asked_again() {
    let round = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&round);
    let fickle = Tool::new("fickle", move |cx: Context| {
        let first = counted.fetch_add(1, Ordering::SeqCst) == 0;
        async move {
            let message = if first { "other?" } else { "name?" };
            let name: Name = cx.elicit("name", message).await?.accepted()?;
            Ok::<_, ToolError>(name.name)
        }
    });
    let server = Server::builder("test", "0").tool(fickle).build().unwrap();
    let log = Arc::default();
    let client = TestClient::connect(&server, asked(Era::Envelope, &log)).await.unwrap();
    assert_eq!(text(&call(&client, "fickle", json!({})).await), "Ada");
    assert_eq!(*log.lock().unwrap(), ["other?", "name?"]);
    client.close().await;
}
