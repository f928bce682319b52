//! Resources: one with a fixed URI, a template with typed variables, a directory, and completion of a variable.

use duplexer::completion::CompletionRequest;
use duplexer::prelude::*;
use duplexer::types::completion::ResourceTemplateReference;
use duplexer::types::resource::ResourceContents;
use duplexer_examples::{clients, same};

async fn tables(request: CompletionRequest) -> Vec<String> {
    request.filter(["users", "orders"])
}

/// A row of a table.
#[resource("db://{table}/{id}", mime_type = "application/json")]
async fn row(#[complete(tables)] table: String, id: u64) -> Result<String, ResourceError> {
    if id > 100 {
        return Err(ResourceError::NotFound);
    }
    Ok(format!(r#"{{"table":"{table}","id":{id}}}"#))
}

#[tokio::main]
async fn main() -> Result<(), BoxError> {
    let server = Server::builder("library", "1.0.0")
        .resource(Resource::text("config://app", "verbose = true").name("config"))
        .resource(row)
        .directory("stories://all", concat!(env!("CARGO_MANIFEST_DIR"), "/resources"))
        .build()?;
    for client in clients(&server).await? {
        let read = async |uri: &str| -> Result<String, BoxError> {
            match client.read_resource(uri).await?.contents.into_iter().next() {
                Some(ResourceContents::Text(text)) => Ok(text.text),
                other => Err(format!("{uri}: {other:?}").into()),
            }
        };
        same(read("config://app").await?, "verbose = true")?;
        same(read("db://users/7").await?, r#"{"table":"users","id":7}"#)?;
        same(read("stories://all/main.rs").await?, include_str!("main.rs"))?;
        for nothing in ["db://users/101", "db://users/seven", "stories://all/../check.rs"] {
            same(read(nothing).await.is_err(), true)?;
        }
        let template = ResourceTemplateReference::new("db://{table}/{id}");
        let found = client.complete(template, "table", "u").await?;
        same(found.completion.values, vec!["users".to_owned()])?;
        client.close().await;
    }
    Ok(())
}
