//! `listen`, until Ctrl-C.

use crate::support::{Demo, Place, RunningServer};

#[test]
fn a_resource_that_changes_is_shown_until_the_end() {
    let demo = Demo::start();
    for place in Place::all(&demo) {
        let mut listening = RunningServer::start(&place.line(&["listen", "demo://clock"]));
        assert_eq!(listening.note(), "listening to tools, prompts, resources, demo://clock; Ctrl-C ends it");
        for _ in 0..2 {
            assert_eq!(listening.result(), "demo://clock changed");
        }
        assert_eq!(listening.interrupt(), Some(0));
    }
}

#[test]
fn a_list_that_changes_is_shown_as_json() {
    let demo = Demo::start();
    let place = Place::http(&demo, "envelope");
    let mut listening = RunningServer::start(&place.line(&["listen", "--json"]));
    assert_eq!(listening.note(), "listening to tools, prompts, resources; Ctrl-C ends it");
    let noted = place.run(&["call", "remember", "text=Buy milk"]).ok();
    assert_eq!(noted, "Noted as note://1.\n");
    assert_eq!(listening.result(), r#"{"changed":"resources"}"#);
    assert_eq!(place.run(&["read", "note://1"]).ok(), "Buy milk\n");
    assert_eq!(listening.interrupt(), Some(0));
}

#[test]
fn a_server_that_ends_is_reported() {
    let demo = Demo::start();
    let mut listening = RunningServer::start(&Place::http(&demo, "envelope").line(&["listen"]));
    assert!(listening.note().starts_with("listening to "));
    assert_eq!(demo.running.interrupt(), Some(0));
    assert_eq!(listening.note(), "the server has ended the stream");
}

#[test]
fn a_server_that_is_gone_is_reported() {
    // A server that answers only the handshake.
    let script = r#"read line; echo '{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"x","version":"1"}}}'; read line"#;
    let mut listening = RunningServer::start(&["listen", "--era", "handshake", "--", "sh", "-c", script]);
    assert!(listening.note().starts_with("listening to "));
    assert_eq!(listening.note(), "duplexer: the server has gone away");
}
