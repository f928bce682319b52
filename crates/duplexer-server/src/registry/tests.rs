//! What a server must not be built with, and how it starts and ends.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use duplexer_types::json::Json;
use duplexer_types::lifecycle::{EmptyResult, InitializeParams, InitializeResult};
use duplexer_types::methods;
use duplexer_types::page::PaginatedParams;
use duplexer_types::tool::ListToolsResult;
use duplexer_types::version::{ProtocolVersion, Window};
use duplexer_types::wire::Freshness;
use serde_json::Value;
use tokio::time::Instant;

use super::*;
use crate::builder::ServerBuilder;
use duplexer_core::dispatch::lock;
use duplexer_core::error::McpError;

fn fault(builder: ServerBuilder<()>) -> String {
    builder.build().unwrap_err().to_string()
}

/// SRV-03: the opening belongs to the kernel, however it is registered.
#[test]
fn the_handshake_cannot_be_handled() {
    let text = "'initialize' is handled by the server runner and cannot be overridden; use middleware to observe or \
                wrap initialization";
    let typed = |_: InitializeParams| async { Err::<InitializeResult, _>(McpError::internal("never")) };
    assert_eq!(fault(Server::builder("s", "0").on(methods::Initialize, typed)), text);
    let custom = |_: Value| async { Ok::<_, McpError>(()) };
    assert_eq!(fault(Server::builder("s", "0").on_custom("initialize", custom)), text);
}

/// EXT-03, SRV-03: a custom method is none of the protocol, is served somewhere, and a later one replaces it.
#[test]
fn a_custom_method_is_not_one_of_the_protocol() {
    let handler = |_: Value| async { Ok::<_, McpError>(()) };
    assert!(
        fault(Server::builder("s", "0").on_custom("tools/list", handler))
            .contains("'tools/list' is a method of")
    );
    let none = Window::between(ProtocolVersion::V2026_07_28, ProtocolVersion::V2024_11_05);
    assert!(
        fault(Server::builder("s", "0").on_custom_in("x", none, handler))
            .contains("'x' is served in no revision")
    );
    let twice = Server::builder("s", "0").on_custom("x/y", handler).on_custom("x/y", handler);
    assert!(twice.build().unwrap().handles("x/y"));
}

/// EXT-01, P-EXT-1: prefix of dotted labels, slash, name; and each once.
#[test]
fn an_extension_has_a_well_formed_id_and_is_given_once() {
    for valid in ["a/b", "io.modelcontextprotocol/ui", "com.ex-ample/x_y.z-1"] {
        assert!(Server::builder("s", "0").extension(valid, Json::object()).build().is_ok(), "{valid}");
    }
    for invalid in ["", "a", "a/", "/a", "1a/b", "a-/b", "a/b/c", "a b/c", "a/-b", "a..b/c"] {
        assert!(
            fault(Server::builder("s", "0").extension(invalid, Json::object())).contains("extension id"),
            "{invalid}"
        );
    }
    let twice = Server::builder("s", "0").extension("a/b", Json::object()).extension("a/b", Json::object());
    assert_eq!(fault(twice), "extension 'a/b' is registered twice");
}

/// CACHE-01: only for methods whose results can be cached; a negative time or an unknown scope has no type.
#[test]
fn a_cache_hint_is_for_a_cacheable_method() {
    for method in
        ["tools/list", "prompts/list", "resources/list", "resources/templates/list", "resources/read"]
    {
        assert!(
            Server::builder("s", "0").cache_hint(method, Freshness::default()).build().is_ok(),
            "{method}"
        );
    }
    assert!(Server::builder("s", "0").cache_hint("server/discover", Freshness::default()).build().is_ok());
    for method in ["tools/call", "no/such", "ping"] {
        let text = fault(Server::builder("s", "0").cache_hint(method, Freshness::default()));
        assert!(
            text.starts_with("cache hints are for cacheable methods (") && text.ends_with(method),
            "{text}"
        );
    }
}

/// SRV-02, SRV-04: two methods are always there, others when they are given; a later handler replaces an earlier one.
#[test]
fn a_server_handles_what_it_was_given() {
    let bare = Server::builder("s", "0").build().unwrap();
    assert!(bare.handles("ping") && bare.handles("server/discover") && !bare.handles("tools/list"));
    let list = |_: PaginatedParams| async { Ok::<_, McpError>(ListToolsResult::new(vec![])) };
    let given = Server::builder("s", "0").on(methods::ToolsList, list).on(methods::ToolsList, list);
    let mark = |_: Value| async { Ok::<_, McpError>(()) };
    let given = given.on_custom_notification("notifications/x", mark).build().unwrap();
    assert!(given.handles("tools/list") && given.handles("notifications/x") && !given.handles("tools/call"));
    let replaced = Server::builder("s", "0")
        .on(methods::Ping, |_: duplexer_types::lifecycle::EmptyParams| async {
            Ok::<_, McpError>(EmptyResult::new())
        });
    assert!(replaced.build().unwrap().handles("ping"));
}

/// SRV-01: the name and the version are verbatim what the builder was given, an empty version too.
#[test]
fn a_server_identifies_itself_with_the_given_name_and_version() {
    for version in ["1.2.3", ""] {
        let server = Server::builder("s", version).build().unwrap();
        assert_eq!((&*server.server_info().name, &*server.server_info().version), ("s", version));
    }
}

type Diary = Arc<Mutex<Vec<String>>>;

fn write(diary: &Diary, entry: impl Into<String>) {
    lock(diary).push(entry.into());
}

fn with_lifespans(diary: &Diary, last: Result<(), &'static str>) -> Server {
    let (one, two, end_one, end_two) = (diary.clone(), diary.clone(), diary.clone(), diary.clone());
    Server::builder("s", "0")
        .lifespan(move || {
            write(&one, "start 1");
            async { Ok::<_, McpError>(1_u8) }
        })
        .on_shutdown(move |state| {
            write(&end_one, format!("stop {state}"));
            async {}
        })
        .lifespan(move || {
            write(&two, "start 2");
            async move { last.map(|()| 2_u16) }
        })
        .on_shutdown(move |state| {
            write(&end_two, format!("stop {state}"));
            async {}
        })
        .build()
        .unwrap()
}

/// SRV-09: started in order, once; stopped in reverse order.
#[tokio::test]
async fn lifespans_start_in_order_and_end_backwards() {
    let diary = Diary::default();
    let running = with_lifespans(&diary, Ok(())).start().await.unwrap();
    assert_eq!((running.states().get::<u8>(), running.states().get::<u16>()), (Some(&1), Some(&2)));
    assert!(running.states().get::<u32>().is_none());
    running.shutdown().await;
    assert_eq!(*lock(&diary), ["start 1", "start 2", "stop 2", "stop 1"]);
}

/// SRV-09: what has started ends again when something after it cannot start.
#[tokio::test]
async fn a_lifespan_that_fails_ends_those_before_it() {
    let diary = Diary::default();
    let error = with_lifespans(&diary, Err("no database")).start().await.unwrap_err();
    assert_eq!(std::error::Error::source(&error).unwrap().to_string(), "no database");
    assert_eq!(*lock(&diary), ["start 1", "start 2", "stop 1"]);
}

/// SRV-09: neither a panic nor slowness holds up the end.
#[tokio::test(start_paused = true)]
async fn the_end_is_bounded_and_a_panic_is_one_lifespan_s_own() {
    let diary = Diary::default();
    let noted = diary.clone();
    let server = Server::builder("s", "0")
        .state(0_u8)
        .on_shutdown(|_| std::future::pending())
        .state(1_u16)
        .on_shutdown(move |_| {
            write(&noted, "stop");
            async {}
        })
        .state(2_u32)
        .on_shutdown(|_| async { panic!("a teardown that fails") });
    let running = server.build().unwrap().start().await.unwrap();
    let start = Instant::now();
    running.shutdown().await;
    assert_eq!((start.elapsed(), lock(&diary).len()), (Duration::from_secs(5), 1));
}

/// SRV-03: one build reports every fault, one per line.
#[test]
fn a_build_reports_all_faults() {
    let handler = |_: Value| async { Ok::<_, McpError>(()) };
    let builder = Server::builder("s", "0")
        .on_custom("initialize", handler)
        .extension("invalid", Json::object())
        .cache_hint("tools/call", Freshness::default());
    let text = fault(builder);
    let lines: Vec<_> = text.lines().collect();
    assert_eq!(lines.len(), 3, "{text}");
    assert!(lines[0].starts_with("'initialize' is handled by"), "{text}");
    assert!(lines[1].starts_with("'invalid' is not an extension id"), "{text}");
    assert!(lines[2].starts_with("cache hints are for cacheable methods"), "{text}");
}
