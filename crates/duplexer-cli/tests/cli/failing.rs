//! Every exit code with its message.

use std::sync::atomic::Ordering;

use crate::support::{
    Demo, NOWHERE, PROGRAM, Place, RunningServer, answering, endless, extended, guarded, run,
};

#[test]
fn a_tool_that_fails_is_1_and_its_words_are_the_result() {
    let demo = Demo::start();
    for place in Place::all(&demo) {
        let ran = place.run(&["call", "divide", "a:=1", "b:=0"]);
        assert_eq!(
            (ran.code, ran.stdout.as_str()),
            (Some(1), "Nothing can be divided by zero; choose another b.\n")
        );
        assert_eq!(ran.stderr, "duplexer: the tool `divide` failed\n");
        let ran = place.run(&["call", "add", "a=1", "b:=2"]);
        assert_eq!(ran.code, Some(1));
        assert!(ran.stderr.contains("a was sent as text, a:=1 sends it as JSON"), "{ran:?}");
        let ran = place.run(&["call", "divide", "a:=1", "b:=0", "--json"]);
        assert_eq!(serde_json::from_str::<serde_json::Value>(&ran.stdout).unwrap()["isError"], true);
    }
}

#[test]
fn wrong_usage_is_2() {
    let check = |words: &[&str], line: &str| run(words).failed(2, line);
    check(&["list"], "give its URL, its name in mcp.json, or `-- COMMAND`");
    check(&["list", "localhost:8000/mcp"], "write http://localhost:8000/mcp");
    check(&["list", "ftp://a/mcp"], "begins with http://");
    check(&["call", "http://a/mcp"], "which tool?");
    check(&["call", "http://a/mcp", "add", "5"], "`5` is no argument");
    check(&["call", "http://a/mcp", "add", "a:=five"], "for a text write a=five");
    check(&["read", "http://a/mcp"], "which resource?");
    check(&["prompt", "http://a/mcp"], "which prompt?");
    check(&["complete", "http://a/mcp", "greet"], "NAME=BEGINNING");
    check(&["ping", "http://a/mcp", "twice"], "what is `twice` for?");
    check(&["list", "--header", "A: b", "--", PROGRAM], "--header is for servers at a URL");
    check(&["list", "http://a/mcp", "--header", "a b: c"], "'a b' is not a header");
    check(&["list", "spoons", "--", PROGRAM, "--stdio"], "the server has nothing called `spoons`");
    check(&["list", "ad", "--", PROGRAM, "--stdio"], "did you mean `add`?");
    check(&["list", "http://a/mcp", "--root", "no/such/folder"], "--root no/such/folder: ");
    check(&["call", "http://a/mcp", "echo", "text=@no/such/file"], "no/such/file cannot be read");
    check(&["listen", "http://a/mcp", "--output", "x"], "`> FILE` keeps them");
    check(
        &["ping", "--output", "no/such/folder/x", "--", PROGRAM, "--stdio"],
        "no/such/folder/x cannot be written",
    );
    for (words, text) in [
        (&["frobnicate"][..], "unrecognized subcommand"),
        (&["list", "http://a/mcp", "--era", "stone"], "auto, handshake, envelope"),
        (&["list", "http://a/mcp", "--log", "loud"], "debug, info"),
        (&["demo", "--stdio", "--port", "1"], "cannot be used with"),
    ] {
        let ran = run(words);
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(2), ""), "{words:?}");
        assert!(ran.stderr.contains(text), "{text:?} is not in {}", ran.stderr);
    }
}

#[test]
fn no_connection_is_3() {
    run(&["list", NOWHERE]).failed(3, "is the server running there?");
    run(&["list", &NOWHERE.replace("http:", "https:")]).failed(3, "Connection refused");
    run(&["list", "--", "no-such-program"]).failed(3, "`no-such-program` cannot be started");
    run(&["list", "--", "false"]).failed(3, "`false` ended before the session was open (exit status: 1)");
    run(&["list", &answering("404 Not Found")]).failed(3, "is the path right? Most are at /mcp");
    run(&["list", &answering("308 Permanent Redirect\r\nLocation: http://b/mcp")])
        .failed(3, "moved to http://b/mcp");
    run(&["list", &answering("502 Bad Gateway")]).failed(3, "is in trouble (502 Bad Gateway)");
}

#[test]
fn a_port_that_is_taken_is_3() {
    let demo = Demo::start();
    let port = demo.url.rsplit_once(':').unwrap().1.split_once('/').unwrap().0;
    run(&["demo", "--port", port]).failed(3, "is taken by another program; try `duplexer demo --port ");
}

#[test]
fn a_closed_door_is_4() {
    let check = |head: &'static str, line: &str| {
        for era in ["auto", "handshake", "envelope"] {
            run(&["list", &answering(head), "--era", era]).failed(4, line);
        }
    };
    check("401 Unauthorized", "requires a login (401 Unauthorized); `duplexer login URL` stores a token");
    check("403 Forbidden", "does not let this request in (403 Forbidden)");
}

#[test]
fn a_refused_token_is_4_and_names_the_option_that_gave_it() {
    for [option, value] in [["--token", "x"], ["--header", "authorization: Bearer x"]] {
        let line = format!("did not accept the token given with {option} (401 Unauthorized)");
        run(&["list", &answering("401 Unauthorized"), option, value]).failed(4, &line);
    }
}

/// Also when the session opens and only this tool is guarded.
#[test]
fn a_guarded_tool_is_4() {
    run(&["call", &guarded(), "echo", "text=x"])
        .failed(4, "Required scope: write (403 Forbidden); the token does not reach so far");
}

/// A header can carry the credentials.
#[test]
fn a_host_that_is_not_served_is_4() {
    let demo = Demo::start();
    run(&["list", &demo.url, "--header", "Host: elsewhere.example"]).failed(4, "elsewhere.example");
}

#[test]
fn a_refusal_is_5() {
    let demo = Demo::start();
    for place in Place::all(&demo) {
        place
            .run(&["call", "nothing"])
            .failed(5, "Unknown tool: nothing (-32602); `duplexer list` shows which tools");
        place.run(&["read", "no://where"]).failed(5, "`duplexer list` shows which resources there are");
        place.run(&["prompt", "nothing"]).failed(5, "`duplexer list` shows which prompts there are");
        place.run(&["prompt", "review", "text=x", "remarks=many"]).failed(5, "the server refused: ");
        place.run(&["complete", "nothing", "a="]).failed(5, "`duplexer list` shows which prompts there are");
        place.run(&["call", "ad", "a:=1"]).failed(5, "did you mean `add`?");
        place.run(&["prompt", "gret"]).failed(5, "did you mean `greet`?");
        place.run(&["read", "demo://clok"]).failed(5, "did you mean `demo://clock`?");
    }
    // `cat` echoes the request, which is no response.
    run(&["list", "--era", "handshake", "--", "cat"]).failed(5, "try --era auto");
}

/// Hardening, C-pages: a list ends after 1000 pages, although every page names another.
#[test]
fn a_list_without_an_end_is_5() {
    let (url, pages) = endless();
    run(&["list", &url, "tools"]).failed(5, "`tools/list` has more than 1000 pages");
    assert_eq!(pages.load(Ordering::SeqCst), 1000);
}

/// P-RES-3: a result of an unknown type is not shown as if it were complete.
#[test]
fn a_result_of_an_unknown_type_is_5() {
    let url = extended();
    run(&["call", &url, "echo"])
        .failed(5, "`tools/call` was answered with a result of the unknown type `riddle`");
    run(&["list", &url, "tools"])
        .failed(5, "`tools/list` was answered with a result of the unknown type `riddle`");
}

#[test]
fn no_answer_in_time_is_6() {
    let demo = Demo::start();
    for place in Place::all(&demo) {
        let ran = place.run(&["call", "count", "to:=1000", "pause:=60000", "--timeout", "0.5"]);
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(6), ""), "{ran:?}");
        assert!(
            ran.stderr.ends_with("the server did not answer in time; --timeout gives it more\n"),
            "{ran:?}"
        );
    }
    run(&["list", "--timeout", "0.2", "--", "sleep", "1000"]).failed(6, "the session did not open in time");
}

/// The exit code is that of shells; the request is cancelled, and the server ends with the program.
#[test]
fn an_interrupted_call_is_130() {
    let demo = Demo::start();
    for place in Place::all(&demo) {
        let mut running = RunningServer::start(&place.line(&["call", "count", "to:=1000", "pause:=60000"]));
        assert_eq!(running.note(), "progress 1/1000 counting");
        assert_eq!(running.interrupt(), Some(130));
    }
}
