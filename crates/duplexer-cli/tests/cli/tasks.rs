//! Tasks in the terminal: calls that are waited for, and those that are left alone.

use crate::support::{Demo, Place, run, run_with};

/// TSK-D27: a call that becomes a task is waited for, its question is asked, and `--detach` prints an id that other processes
/// can use.
#[test]
fn a_task_is_waited_for_or_left_alone() {
    let demo = Demo::start();
    let place = Place::http(&demo, "envelope");
    let words = place.line(&["call", "--interactive", "report", "about=bees", "seconds:=1"]);
    let waited = run_with(&words, "3\n").ok();
    assert_eq!(waited, "A report about bees in 3 chapters.\n");

    for era in ["envelope", "handshake"] {
        let place = Place::http(&demo, era);
        let id = place.run(&["call", "--detach", "report", "about=ants", "seconds:=1"]).ok();
        let id = id.trim();
        let state = place.run(&["task", "get", id]).ok();
        assert!(state.starts_with(&format!("{id} working")), "{state}");
        let words = place.line(&["task", "wait", "--interactive", id]);
        assert_eq!(run_with(&words, "5\n").ok(), "A report about ants in 5 chapters.\n", "{era}");

        let other = place.run(&["call", "--detach", "report", "about=wasps"]).ok();
        place.run(&["task", "cancel", other.trim()]).ok();
        place.run(&["task", "wait", other.trim()]).failed(5, "was cancelled");
        place.run(&["task", "get", "unknown"]).failed(5, "Unknown task");
    }
}

/// TSK-D27: only 2025-11-25 lists tasks; elsewhere the error says so.
#[test]
fn tasks_are_listed_in_one_revision_only() {
    Place::stdio("envelope")
        .run(&["task", "list"])
        .failed(5, "does not exist in protocol revision 2026-07-28");
    assert_eq!(Place::stdio("handshake").run(&["task", "list"]).ok(), "There are no tasks.\n");
    run(&["task", "get", "http://127.0.0.1:1/mcp"]).failed(2, "which task?");
}
