//! A client that does what each client scenario of the official conformance suite asks for.
//!
//! `everything-client URL` talks to the mock server of the suite. `MCP_CONFORMANCE_SCENARIO` names the scenario, and
//! `MCP_CONFORMANCE_CONTEXT` holds its data as JSON. The exit code is 0 if everything went as the scenario expects.

#[path = "everything_client/authorization.rs"]
mod authorization;

use std::env;
use std::process::ExitCode;
use std::sync::Arc;

use duplexer::client::{Client, ClientBuilder, SkillError, UseSkills};
use duplexer::error::{BoxError, Chain};
use duplexer::http_client::HttpTransport;
use duplexer::types::elicitation::{ElicitParams, ElicitResult};
use duplexer::types::json::Json;
use duplexer::types::roots::ListRootsResult;
use duplexer::types::sampling::CreateMessageResult;
use duplexer::types::skill;
use duplexer::types::version::Window;
use serde_json::{Value, json};

#[tokio::main]
async fn main() -> ExitCode {
    match run().await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            #[expect(clippy::print_stderr, reason = "the suite shows why a client has failed")]
            {
                eprintln!("{}", Chain(&*error));
            }
            ExitCode::FAILURE
        }
    }
}

async fn run() -> Result<(), BoxError> {
    let url = env::args().nth(1).ok_or("usage: everything-client URL")?;
    let scenario = env::var("MCP_CONFORMANCE_SCENARIO").unwrap_or_default();
    let context: Value = match env::var("MCP_CONFORMANCE_CONTEXT") {
        Ok(text) => serde_json::from_str(&text)?,
        Err(_) => Value::Null,
    };
    let mut transport = HttpTransport::new(&url)?;
    if scenario.starts_with("auth/") {
        transport = transport.authorization(Arc::new(authorization::of(&scenario, &context)?));
    }
    let client = builder().connect(transport).await?;
    play(&client, &scenario, &context).await?;
    client.close().await?;
    Ok(())
}

/// A client with all callbacks, so that it declares all capabilities.
fn builder() -> ClientBuilder {
    Client::builder("everything-client", env!("CARGO_PKG_VERSION"))
        .on_elicitation(async |asked| Ok(answer(&asked)))
        .on_sampling(async |_| Ok(CreateMessageResult::text("everything", "Hello")))
        .on_roots(async || Ok(ListRootsResult::new([])))
        .extension_in(skill::EXTENSION, Json::object(), Window::ALWAYS)
}

/// Accepts a form with its defaults; a field without one is confirmed.
fn answer(asked: &ElicitParams) -> ElicitResult {
    let ElicitParams::Form(form) = asked else { return ElicitResult::decline() };
    let mut content = form.requested_schema.defaults();
    if content.is_empty() {
        content.insert("confirmed", json!(true).into());
    }
    ElicitResult::accept(content)
}

async fn play(client: &Client, scenario: &str, context: &Value) -> Result<(), BoxError> {
    if scenario.starts_with("sep-2640-client-") {
        return skills(client, scenario).await;
    }
    let tools = client.all_tools().await?;
    match scenario {
        "tools_call" => {
            client.call_tool("add_numbers", json!({"a": 5, "b": 3})).await?;
        }
        "elicitation-sep1034-client-defaults" => {
            client.call_tool("test_client_elicitation_defaults", ()).await?;
        }
        "sse-retry" => {
            client.call_tool("test_reconnection", ()).await?;
        }
        // Two requests with metadata.
        "request-metadata" => {
            client.list_tools().fresh().await?;
        }
        "sep-2322-client-request-state" => {
            let names = [
                "test_mrtr_echo_state",
                "test_mrtr_no_state",
                "test_mrtr_unrelated",
                "test_mrtr_no_result_type",
            ];
            for name in names {
                client.call_tool(name, ()).await?;
            }
        }
        "http-standard-headers" => standard_headers(client).await?,
        "http-custom-headers" => {
            for call in context["toolCalls"].as_array().ok_or("the context has no `toolCalls`")? {
                let name = call["name"].as_str().ok_or("a call has no name")?;
                client.call_tool(name, &call["arguments"]).await?;
            }
        }
        // What is left after the tools with invalid annotations.
        "http-invalid-tool-headers" => {
            for tool in &tools {
                client.call_tool(&tool.name, json!({})).await?;
            }
        }
        "json-schema-2020-12-preservation" => {
            let tool = tools.iter().find(|tool| tool.name == "json_schema_2020_12_tool");
            let schema = &tool.ok_or("the tool with the schema is not listed")?.input_schema;
            client.call_tool("json_schema_echo", json!({"schema": schema})).await?;
        }
        scenario if scenario.starts_with("auth/") => {
            client.call_tool("test-tool", ()).await?;
        }
        // The others are complete once the tools are listed.
        _ => {}
    }
    Ok(())
}

/// Lists skills. Unless that is all, loads each of them, which must be refused: all of them have been tampered with.
async fn skills(client: &Client, scenario: &str) -> Result<(), BoxError> {
    let skills = client.all_skills().await?;
    if scenario == "sep-2640-client-no-prefetch" {
        return Ok(());
    }
    for entry in skills {
        match client.load_skill(entry).await {
            Err(SkillError::Verify(_)) => {}
            Err(error) => return Err(error.into()),
            Ok(skill) => {
                // The suite finds out by the next read.
                skill.read("references/FORMS.md").await?;
            }
        }
    }
    Ok(())
}

async fn standard_headers(client: &Client) -> Result<(), BoxError> {
    client.call_tool("test_headers", ()).await?;
    for resource in client.all_resources().await? {
        client.read_resource(resource.uri).await?;
    }
    for prompt in client.all_prompts().await? {
        client.get_prompt(prompt.name, ()).await?;
    }
    Ok(())
}
