//! Examples that serve standard input and output.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::extract::RawQuery;
use axum::http::StatusCode;
use axum::routing::get;
use duplexer::client::{Client, UseSkills};
use duplexer::dispatch::OutboundRequest;
use duplexer::transport::child::{ChildCommand, Stderr};
use duplexer::types::roots::{ListRootsResult, Root};
use duplexer::{Json, McpError};
use serde_json::{Value, json};

use crate::support::{Background, Folder, Started, text, tool_names};

/// Serves a stand-in for the weather API.
async fn weather_api() -> Background {
    let forecast = async |RawQuery(query): RawQuery| {
        let query = query.unwrap_or_default();
        if query.contains("latitude=1&") {
            return (StatusCode::SERVICE_UNAVAILABLE, String::new());
        }
        if query.contains("latitude=2&") {
            return (StatusCode::OK, "not JSON".to_owned());
        }
        assert!(query.contains("forecast_days=3"), "{query}");
        let daily =
            json!({"time": ["2026-11-16"], "temperature_2m_max": [4.5], "temperature_2m_min": [-2.0]});
        (StatusCode::OK, json!({ "daily": daily }).to_string())
    };
    Background::new(|_| Router::new().route("/v1/forecast", get(forecast))).await
}

#[tokio::test]
async fn weather_calls_its_api_and_says_what_went_wrong() {
    let api = weather_api().await;
    let command = ChildCommand::new(env!("CARGO_BIN_EXE_weather")).env("WEATHER_API", &api.url);
    let weather = Started::new(command.env("NO_PROXY", "127.0.0.1")).await;
    let call = async |latitude: i32| {
        weather.client.call_tool("forecast", json!({"latitude": latitude, "longitude": 10})).await
    };
    let found = call(59).await.unwrap();
    assert_eq!(text(&found), r#"[{"date":"2026-11-16","high":4.5,"low":-2.0}]"#);
    let unavailable = call(1).await.unwrap();
    assert_eq!(text(&unavailable), "The weather service does not answer; try again in a minute.");
    assert_eq!(call(2).await.unwrap_err().to_string(), "Internal server error");
    assert!(text(&call(100).await.unwrap()).contains("/latitude"));
    weather.end().await;
}

#[tokio::test]
async fn files_reads_what_the_client_shares_and_nothing_else() {
    let folder = Folder::new();
    let shared = folder.path().join("shared files");
    std::fs::create_dir_all(shared.join("notes")).unwrap();
    std::fs::write(shared.join("notes/today.txt"), "buy bread").unwrap();
    std::fs::write(folder.path().join("secret.txt"), "secret").unwrap();
    std::os::unix::fs::symlink(folder.path(), shared.join("out")).unwrap();

    let root = Root::new(format!("file://{}/shared%20files", folder.path().display()));
    let client = Client::builder("test", "1")
        .on_roots(move || std::future::ready(Ok::<_, McpError>(ListRootsResult::new(vec![root.clone()]))));
    let files = Started::with(ChildCommand::new(env!("CARGO_BIN_EXE_files")), client).await;
    let read = async |path: &str| files.client.call_tool("read", json!({ "path": path })).await.unwrap();
    assert_eq!(text(&read("notes/today.txt").await), "buy bread");
    let listed = files.client.call_tool("list", ()).await.unwrap();
    assert_eq!(text(&listed), r#"["notes/","out"]"#);
    let absolute = folder.path().join("secret.txt");
    for escaping in ["../secret.txt", "notes/../../secret.txt", "out/secret.txt", absolute.to_str().unwrap()]
    {
        let refused = read(escaping).await;
        assert_eq!(refused.is_error, Some(true), "{escaping}");
        assert_ne!(text(&refused), "secret", "{escaping}");
    }
    files.end().await;
}

#[tokio::test]
async fn files_serves_the_folder_of_its_argument_to_clients_without_roots() {
    let folder = Folder::new();
    std::fs::write(folder.path().join("a.txt"), "a").unwrap();
    let files = Started::new(ChildCommand::new(env!("CARGO_BIN_EXE_files")).args([folder.path()])).await;
    let read = files.client.call_tool("read", json!({"path": "a.txt"})).await.unwrap();
    assert_eq!(text(&read), "a");
    files.end().await;
}

#[tokio::test]
async fn a_long_job_reports_progress_and_leaves_nothing_when_it_is_cancelled() {
    let folder = Folder::new();
    let jobs = Started::new(ChildCommand::new(env!("CARGO_BIN_EXE_long-job")).args([folder.path()])).await;
    let seen = Arc::new(Mutex::new(Vec::new()));
    let reports = Arc::clone(&seen);
    let done = jobs
        .client
        .call_tool("report", json!({"pages": 3, "pace": 0}))
        .on_progress(move |report| reports.lock().unwrap().push(report.message.unwrap_or_default()))
        .await
        .unwrap();
    assert_eq!(*seen.lock().unwrap(), ["page 1 of 3", "page 2 of 3", "page 3 of 3"]);
    assert_eq!(std::fs::read_to_string(text(&done)).unwrap(), "Page 1\nPage 2\nPage 3\n");

    // The call is cancelled when its first report arrives.
    let part = folder.path().join("report.part");
    let (reported, mut first) = tokio::sync::mpsc::channel(1);
    let slow = jobs.client.call_tool("report", json!({"pages": 10_000, "pace": 1})).on_progress(move |_| {
        let _ = reported.try_send(());
    });
    tokio::select! {
        ended = slow.into_future() => panic!("{ended:?}"),
        _ = first.recv() => assert!(part.exists()),
    }
    while part.exists() {
        tokio::task::yield_now().await;
    }

    let sum = jobs.client.call_tool("checksum", json!({"file": "report.txt", "rounds": 2})).await.unwrap();
    let expected: u32 = "Page 1\nPage 2\nPage 3\n".bytes().map(u32::from).sum();
    assert_eq!(text(&sum), (2 * expected).to_string());
    jobs.end().await;
}

#[tokio::test]
async fn the_low_level_server_answers_its_methods() {
    let server = Started::new(ChildCommand::new(env!("CARGO_BIN_EXE_low-level"))).await;
    assert_eq!(tool_names(&server.client).await, ["shout"]);
    let loud = server.client.call_tool("shout", json!({"text": "hello"})).await.unwrap();
    assert_eq!(text(&loud), "HELLO");
    assert!(server.client.call_tool("whisper", ()).await.is_err());
    let request = OutboundRequest::new("com.example/words").params(Json::from(json!({"text": "a b"})));
    let words: Value = server.client.request_custom(request).await.unwrap().decode().unwrap();
    assert_eq!(words["count"], 2);
    server.end().await;
}

#[tokio::test]
async fn otel_writes_a_span_per_call() {
    let lines = Arc::new(Mutex::new(Vec::new()));
    let sink = Arc::clone(&lines);
    let command = ChildCommand::new(env!("CARGO_BIN_EXE_otel"))
        .stderr(Stderr::lines(move |line| sink.lock().unwrap().push(line.to_owned())));
    let server = Started::new(command).await;
    let sum = server.client.call_tool("add", json!({"a": 2, "b": 3})).timeout(Duration::from_secs(30)).await;
    assert_eq!(text(&sum.unwrap()), "5");
    server.end().await;
    let lines = lines.lock().unwrap();
    assert!(lines.iter().any(|line| line.contains("span `tools/call add` took")), "{lines:?}");
}

#[tokio::test]
async fn the_tested_server_serves() {
    let server = Started::new(ChildCommand::new(env!("CARGO_BIN_EXE_testing"))).await;
    assert_eq!(tool_names(&server.client).await, ["add", "clear"]);
    server.end().await;
}

#[tokio::test]
async fn skills_offers_its_directory() {
    let skills = Started::new(ChildCommand::new(env!("CARGO_BIN_EXE_skills"))).await;
    let listed = skills.client.all_skills().await.unwrap();
    let uris: Vec<_> = listed.iter().map(|skill| skill.uri.as_str()).collect();
    assert_eq!(uris, ["skill://code-review/SKILL.md", "skill://release-notes/SKILL.md"]);
    let notes = skills.client.load_skill(listed[1].clone()).await.unwrap();
    assert!(notes.instructions().contains("references/style.md"));
    assert!(!notes.read("references/style.md").await.unwrap().is_empty());
    skills.end().await;
}
