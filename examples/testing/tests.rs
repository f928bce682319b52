//! Tests of the server, in the same process.

use duplexer::client::{Client, Negotiation};
use duplexer::testing::TestClient;
use duplexer::types::elicitation::ElicitResult;
use serde_json::json;

use super::*;

#[tokio::test]
async fn things_are_added() -> Result<(), BoxError> {
    let client = TestClient::new(&server()?).await?;
    client.call_tool("add", json!({"item": "bread"})).await?;
    let second = client.call_tool("add", json!({"item": "milk"})).await?;
    assert_eq!(second.content[0].as_text(), Some("2"));
    client.close().await;
    Ok(())
}

#[tokio::test]
async fn wrong_arguments_are_named() -> Result<(), BoxError> {
    let client = TestClient::new(&server()?).await?;
    let refused = client.call_tool("add", json!({"item": ""})).await?;
    assert_eq!(refused.is_error, Some(true));
    assert!(refused.content[0].as_text().is_some_and(|text| text.contains("/item")));
    client.close().await;
    Ok(())
}

/// The user answers in both protocol eras.
#[tokio::test]
async fn the_list_is_deleted_only_if_the_user_agrees() -> Result<(), BoxError> {
    for negotiation in [Negotiation::Handshake, Negotiation::Auto] {
        for (yes, expected) in [(false, "Nothing was deleted."), (true, "The list is empty.")] {
            let user = Client::builder("test", "1")
                .negotiation(negotiation.clone())
                .on_elicitation(move |_| async move { Ok(ElicitResult::accept(json!({"yes": yes}))) });
            let client = TestClient::connect(&server()?, user).await?;
            let result = client.call_tool("clear", ()).await?;
            assert_eq!(result.content[0].as_text(), Some(expected));
            client.close().await;
        }
    }
    Ok(())
}
