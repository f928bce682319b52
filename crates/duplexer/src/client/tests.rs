//! A whole client with the names of the client prelude only.

use crate::client::prelude::*;

use serde_json::json;

/// A server that asks its client for everything that a client can answer.
mod server {
    use duplexer_types::sampling::{CreateMessageParams, SamplingMessage};
    use serde::Deserialize;

    use crate::{Context, Server, Tool, ToolError};

    #[derive(Deserialize, schemars::JsonSchema)]
    struct Booking {
        #[schemars(extend("default" = 4))]
        guests: u8,
    }

    async fn ask(cx: Context) -> Result<String, ToolError> {
        let Booking { guests } = cx.elicit("booking", "For how many?").await?.accepted()?;
        let question = CreateMessageParams::new(vec![SamplingMessage::user("Hi")], 10);
        let greeting = cx.sample("greeting", question).await?;
        let folders = cx.roots("folders").await?;
        Ok(format!("{guests} {:?} {} {}", greeting.role, greeting.content.text(), folders[0].uri))
    }

    pub(super) fn server() -> Server {
        let fails = Tool::new("fails", || async { Err::<(), _>(ToolError::new("no room")) });
        Server::builder("s", "1").tool(Tool::new("ask", ask)).tool(fails).build().unwrap()
    }
}

/// F-1, F-3, F-9: one import and one line of settings; the role of a sampled answer is that of the assistant.
#[tokio::test]
async fn the_prelude_is_enough_for_a_client() {
    let builder = Client::builder("me", "1")
        .on_elicitation(async |question| match question {
            ElicitParams::Form(form) => Ok(ElicitResult::accept_defaults(&form).unwrap()),
            _ => Ok(ElicitResult::decline()),
        })
        .on_sampling(async |_: CreateMessageParams| Ok(CreateMessageResult::text("my-model", "Hello!")))
        .on_roots(async || Ok(ListRootsResult::new([Root::new("file:///work")])));
    for negotiation in [Negotiation::Auto, Negotiation::Handshake] {
        let builder = builder.clone().negotiation(negotiation);
        let client: Client = builder.connect(server::server().in_process()).await.unwrap();
        let answer = client.call_tool("ask", json!({})).text().await.unwrap();
        assert_eq!(answer, "4 Assistant Hello! file:///work");
        let failed: ClientError = client.call_tool("fails", ()).text().await.unwrap_err();
        assert!(matches!(&failed, ClientError::ToolFailed(reason) if reason.to_string() == "no room"));
        assert_eq!(failed.kind(), ErrorKind::Refused);
        client.close().await.unwrap();
    }
}
