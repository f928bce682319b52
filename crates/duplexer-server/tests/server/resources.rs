//! Resources: single ones, templates, files, directories.

use std::io;

use duplexer::client::{CallResponse, ClientError};
use duplexer::completion::CompletionRequest;
use duplexer::resource::AsJson;
use duplexer::testing::TestClient;
use duplexer::{Context, Resource, ResourceError, Server};
use duplexer_macros::resource;
use duplexer_types::completion::{
    CompleteParams, CompletionArgument, CompletionReference, ResourceTemplateReference,
};
use duplexer_types::error::ErrorCode;
use duplexer_types::input::InputRequiredResult;
use duplexer_types::resource::{ReadResourceResult, ResourceContents};
use duplexer_types::version::Era;
use serde::Deserialize;
use serde_json::json;

use crate::common::{both, refusal};

async fn read(client: &TestClient, uri: &str) -> Result<ReadResourceResult, ClientError> {
    client.read_resource(uri).await
}

/// Returns `mime|contents` of the only contents that were read.
async fn contents(client: &TestClient, uri: &str) -> String {
    let result = read(client, uri).await.unwrap_or_else(|error| panic!("{uri}: {error}"));
    match &*result.contents {
        [ResourceContents::Text(one)] => {
            assert_eq!(one.uri, uri);
            format!("{}|{}", one.mime_type.as_deref().unwrap_or_default(), one.text)
        }
        [ResourceContents::Blob(one)] => {
            assert_eq!(one.uri, uri);
            format!("{}|{}", one.mime_type.as_deref().unwrap_or_default(), one.blob)
        }
        other => panic!("{other:?}"),
    }
}

fn not_found(era: Era) -> ErrorCode {
    match era {
        Era::Handshake => ErrorCode::RESOURCE_NOT_FOUND,
        Era::Envelope => ErrorCode::INVALID_PARAMS,
    }
}

/// RES-02, P-RSC-1, P-RSC-2, P-RSC-4: text, bytes, JSON, and their metadata.
#[tokio::test]
async fn single_resources_are_read() {
    let server = Server::builder("test", "0")
        .resource(Resource::text("config://app", "on").name("app").title("App").description("Settings."))
        .resource(Resource::bytes("logo://png", [0_u8, 1, 2]).mime_type("image/png"))
        .resource(Resource::bytes("raw://bytes", [255_u8]))
        .resource(
            Resource::new("made://json", || async { AsJson(json!({"a": [1]})) })
                .meta("k", 1.to_string().as_str()),
        )
        .resource(Resource::new("made://cx", |cx: Context| async move { cx.method().to_owned() }))
        .build()
        .unwrap();
    both(&server, async |client, era| {
        assert_eq!(contents(client, "config://app").await, "text/plain|on");
        assert_eq!(contents(client, "logo://png").await, "image/png|AAEC");
        assert_eq!(contents(client, "raw://bytes").await, "application/octet-stream|/w==");
        assert_eq!(contents(client, "made://json").await, "application/json|{\n  \"a\": [\n    1\n  ]\n}");
        assert_eq!(contents(client, "made://cx").await, "text/plain|resources/read");
        let listed = client.all_resources().await.unwrap();
        assert_eq!(listed.len(), 5);
        assert_eq!((&*listed[0].name, listed[0].size, &*listed[1].name), ("app", Some(2), "logo://png"));
        let made = read(client, "made://json").await.unwrap();
        assert!(
            matches!(&made.contents[0], ResourceContents::Text(text) if text.meta.is_some()),
            "RES-02: _meta"
        );
        let error = refusal(read(client, "config://other").await);
        assert_eq!((error.code, &*error.message), (not_found(era), "Unknown resource: config://other"));
        assert_eq!(error.data.unwrap().as_str(), r#"{"uri":"config://other"}"#);
    })
    .await;
}

#[derive(Deserialize)]
struct Row {
    table: String,
    id: u64,
}

/// RES-01, RES-05, P-RSC-3, P-RSC-6, P-RSC-8: exact first, then templates in order; bad values are unknown resources.
#[tokio::test]
async fn templates_are_read_with_typed_variables() {
    let server = Server::builder("test", "0")
        .resource(Resource::template("db://{table}/{id}", |Row { table, id }| async move {
            match &*table {
                "gone" => Err(ResourceError::NotFound),
                "known" => Err(ResourceError::new("come back later")),
                "hidden" => Err(ResourceError::from(io::Error::other("the password is 1234"))),
                _ => Ok(format!("{table}#{id}")),
            }
        }))
        .resource(Resource::template("db://{+anything}", |any: Anything| async move { any.anything }))
        .resource(Resource::text("db://exact/1", "exact"))
        .build()
        .unwrap();
    both(&server, async |client, era| {
        assert_eq!(contents(client, "db://users/7").await, "text/plain|users#7");
        assert_eq!(contents(client, "db://exact/1").await, "text/plain|exact");
        assert_eq!(contents(client, "db://a/b/c").await, "text/plain|a/b/c");
        assert_eq!(contents(client, "db://a%20b/7").await, "text/plain|a b#7");
        for unknown in [
            "db://users/seven",
            "db://gone/1",
            "db://../1",
            "db://%2e%2e/1",
            "db://a%00/1",
            "db://%2Fetc/1",
            "x",
        ] {
            assert_eq!(refusal(read(client, unknown).await).code, not_found(era), "{unknown}");
        }
        let error = refusal(read(client, "db://known/1").await);
        assert_eq!((error.code, &*error.message), (ErrorCode::INTERNAL_ERROR, "come back later"));
        let error = refusal(read(client, "db://hidden/1").await);
        assert_eq!(error.message, "Error reading resource db://hidden/1");
        assert_eq!(client.all_resource_templates().await.unwrap().len(), 2);
        assert_eq!(client.all_resources().await.unwrap().len(), 1, "templates are not among the resources");
    })
    .await;
}

#[derive(Deserialize)]
struct Anything {
    anything: String,
}

/// RES-04: variables and members are the same names. RES-03: duplicates fail.
#[test]
fn mistakes_fail_the_build() {
    let check = |resource: Resource<()>, expected: &str| {
        let builder = Server::builder("test", "0").resource(Resource::text("a://b", ""));
        let error = builder.resource(resource).build().unwrap_err();
        assert!(error.to_string().contains(expected), "{error}");
    };
    check(Resource::text("a://b", ""), "there are two resources 'a://b'");
    check(Resource::text("no scheme", ""), "begins with a scheme");
    check(Resource::template("a:{b", |_: Anything| async { "" }), "never closed");
    check(Resource::template("a:{b}", |_: Anything| async { "" }), "wants 'anything'");
    check(
        Resource::template("a:{anything}/{b}", |_: Anything| async { "" }),
        "does not take the variable 'b'",
    );
}

/// RES-06, PATH-03, P-RSC-3: files and directories, and nothing outside of them.
#[tokio::test]
async fn a_directory_is_offered_and_nothing_else() {
    let outside = std::env::temp_dir().join(format!("duplexer-directory-{}", std::process::id()));
    let base = outside.join("docs");
    std::fs::create_dir_all(base.join("sub")).unwrap();
    std::fs::write(base.join("a.md"), "\u{feff}# A").unwrap();
    std::fs::write(base.join("sub/b.png"), [1, 2, 3]).unwrap();
    std::fs::write(base.join(".env"), "PASSWORD=1234").unwrap();
    std::fs::write(outside.join("secret.txt"), "secret").unwrap();
    let server = Server::builder("test", "0")
        .directory("docs://guide", &base)
        .resource(Resource::file("file:///a", base.join("a.md")))
        .resource(Resource::file("file:///missing", base.join("missing")))
        .build()
        .unwrap();
    both(&server, async |client, era| {
        let listing = contents(client, "docs://guide").await;
        assert!(listing.contains("\"a.md\"") && !listing.contains(".env"), "{listing}");
        assert_eq!(contents(client, "docs://guide/a.md").await, "text/markdown|# A");
        assert_eq!(contents(client, "docs://guide/sub/b.png").await, "image/png|AQID");
        assert!(contents(client, "docs://guide/sub").await.contains("b.png"));
        assert_eq!(contents(client, "file:///a").await, "text/markdown|# A");
        for unknown in [
            "docs://guide/../secret.txt",
            "docs://guide/%2e%2e/secret.txt",
            "docs://guide/x",
            "docs://guide/.env",
            "docs://guide/sub/../.env",
            "file:///missing",
        ] {
            assert_eq!(refusal(read(client, unknown).await).code, not_found(era), "{unknown}");
        }
    })
    .await;
    std::fs::remove_dir_all(&outside).unwrap();
}

/// RES-06, P-RSC-3: only regular files are read, up to a limit, and a link leads to no hidden file.
#[cfg(unix)]
#[tokio::test]
async fn only_regular_files_within_the_limit_are_read() {
    use std::os::unix::fs::symlink;

    let base = std::env::temp_dir().join(format!("duplexer-regular-{}", std::process::id()));
    std::fs::create_dir_all(base.join(".git")).unwrap();
    std::fs::write(base.join("fits"), "12345678").unwrap();
    std::fs::write(base.join("large"), "123456789").unwrap();
    std::fs::write(base.join(".git/config"), "secret").unwrap();
    symlink(".git/config", base.join("link")).unwrap();
    symlink(".git", base.join("dir")).unwrap();
    symlink("/dev/zero", base.join("zero")).unwrap();
    symlink("fits", base.join("near")).unwrap();
    let pipe = base.join("pipe");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let server = Server::builder("test", "0")
        .max_file_size(8)
        .directory("docs://a", &base)
        .resource(Resource::file("file:///pipe", &pipe))
        .resource(Resource::file("file:///zero", "/dev/zero"))
        .resource(Resource::file("file:///large", base.join("large")))
        .build()
        .unwrap();
    both(&server, async |client, era| {
        assert_eq!(contents(client, "docs://a/fits").await, "text/plain|12345678");
        assert_eq!(contents(client, "docs://a/near").await, "text/plain|12345678");
        for large in ["docs://a/large", "file:///large"] {
            let error = refusal(read(client, large).await);
            assert_eq!(error.message, "the file is larger than the limit of 8 bytes");
        }
        for unknown in [
            "docs://a/pipe",
            "docs://a/zero",
            "docs://a/link",
            "docs://a/dir",
            "docs://a/dir/config",
            "file:///pipe",
            "file:///zero",
        ] {
            assert_eq!(refusal(read(client, unknown).await).code, not_found(era), "{unknown}");
        }
        let listing = contents(client, "docs://a").await;
        let entries: Vec<serde_json::Value> =
            serde_json::from_str(listing.split_once('|').unwrap().1).unwrap();
        let names: Vec<_> = entries.iter().map(|entry| entry["name"].as_str().unwrap()).collect();
        assert_eq!(names, ["fits", "large", "near"]);
    })
    .await;
    std::fs::remove_dir_all(&base).unwrap();
}

/// MRTR-15: a resource with one URI cannot ask for input; a template can.
#[tokio::test]
async fn only_templates_may_ask_for_input() {
    let asking = || async { InputRequiredResult::resuming("state") };
    let server = Server::builder("test", "0")
        .resource(Resource::new("a://single", asking))
        .resource(Resource::template("a://many/{anything}", |_: Anything| async {
            InputRequiredResult::resuming("state")
        }))
        .build()
        .unwrap();
    both(&server, async |client, era| {
        assert_eq!(refusal(read(client, "a://single").await).code, ErrorCode::INTERNAL_ERROR);
        let many = client.read_resource("a://many/1").once().await;
        match era {
            Era::Envelope => assert!(matches!(many, Ok(CallResponse::InputRequired(_)))),
            Era::Handshake => assert_eq!(refusal(many).code, ErrorCode::INTERNAL_ERROR),
        }
    })
    .await;
}

async fn tables(request: CompletionRequest) -> Vec<String> {
    request.filter(["users", "uploads", "orders"])
}

/// A row of a table.
#[resource("db://{table}/{id}", title = "Row", mime_type = "text/csv")]
async fn row(
    cx: Context<String>,
    #[complete(tables)] table: String,
    id: u64,
) -> Result<String, ResourceError> {
    Ok(format!("{},{table},{id}", cx.state()))
}

#[resource("config://app")]
async fn config() -> &'static str {
    "on"
}

#[tokio::test]
async fn marked_functions_are_resources() {
    let server =
        Server::builder("test", "0").resource(config).state("db".to_owned()).resource(row).build().unwrap();
    both(&server, async |client, _| {
        assert_eq!(contents(client, "config://app").await, "text/plain|on");
        assert_eq!(contents(client, "db://users/7").await, "text/csv|db,users,7");
        let template = client.all_resource_templates().await.unwrap().remove(0);
        assert_eq!((&*template.name, template.description.as_deref()), ("row", Some("A row of a table.")));
        let reference = CompletionReference::Resource(ResourceTemplateReference::new("db://{table}/{id}"));
        let suggest = async |name: &str, value: &str| {
            let params = CompleteParams::new(reference.clone(), CompletionArgument::new(name, value));
            client.complete_with(params).await.unwrap().completion.values
        };
        assert_eq!(suggest("table", "U").await, ["users", "uploads"]);
        assert!(suggest("id", "").await.is_empty(), "MCPS-07");
    })
    .await;
    assert_eq!(config::call().await, "on");
}
