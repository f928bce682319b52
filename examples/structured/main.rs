//! Structured output: programs get the return value with a schema, models get it as text.

use duplexer::Json;
use duplexer::prelude::*;
use duplexer_examples::{call, clients, same, text};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::json;

#[derive(Serialize, JsonSchema)]
struct Forecast {
    /// In degrees Celsius.
    high: f64,
    low: f64,
}

/// Returns the weather of tomorrow.
#[tool(read_only)]
async fn forecast(
    /// The name of a city.
    city: String,
) -> Result<Forecast, ToolError> {
    match city.as_str() {
        "Oslo" => Ok(Forecast { high: 4.5, low: -2.0 }),
        other => Err(ToolError::new(format!("There is no forecast for {other:?}; try Oslo."))),
    }
}

#[tokio::main]
async fn main() -> Result<(), BoxError> {
    let server = Server::builder("weather", "1.0.0").tool(forecast).build()?;
    for client in clients(&server).await? {
        let result = call(&client, "forecast", json!({"city": "Oslo"})).await?;
        same(text(&result), r#"{"high":4.5,"low":-2.0}"#)?;
        same(result.structured_content.as_ref().map(Json::as_str), Some(text(&result)))?;
        let schema = client.all_tools().await?.remove(0).output_schema.ok_or("no output schema")?;
        same(schema.decode::<serde_json::Value>()?["required"].clone(), json!(["high", "low"]))?;
        let failed = call(&client, "forecast", json!({"city": "Atlantis"})).await?;
        same(failed.is_error, Some(true))?;
        let wrong = call(&client, "forecast", json!({"town": "Oslo"})).await?;
        same(text(&wrong), "The arguments do not fit this tool:\n- /city: required, but missing")?;
        client.close().await;
    }
    Ok(())
}
