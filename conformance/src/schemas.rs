//! Tools with special input schemas.

use duplexer::Json;
use duplexer::ServerBuilder;
use duplexer::prelude::*;

pub(crate) fn offer(server: ServerBuilder<()>) -> Result<ServerBuilder<()>, BoxError> {
    let whole_dialect = Tool::with_schema(
        "json_schema_2020_12_tool",
        Json::parse(include_str!("schemas/contact.json"))?,
        |contact: Json| async move { format!("Got {}.", contact.as_str()) },
    )
    .description("Has a schema with much of JSON Schema 2020-12 in it.");
    Ok(server.tool(whole_dialect).tool(test_header_parameter))
}

/// Takes an argument that HTTP clients also send as a header for proxies.
#[tool(read_only)]
async fn test_header_parameter(
    /// Where the call belongs.
    #[header("Region")]
    region: String,
) -> String {
    format!("Region: {region}")
}
