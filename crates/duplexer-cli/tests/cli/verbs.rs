//! Every verb, with every kind of server, in every era.

use serde_json::json;

use crate::support::{Demo, PROGRAM, Place, run};

/// CLI-01: `version` prints version and revisions.
#[test]
fn version_names_the_program_and_what_it_speaks() {
    let text = run(&["version"]).ok();
    assert!(text.starts_with(concat!("duplexer ", env!("CARGO_PKG_VERSION"))), "{text}");
    assert!(text.contains("2024-11-05") && text.contains("2026-07-28"), "{text}");
}

/// CLI-01: the command of a server is enough to start and inspect it.
#[test]
fn a_server_program_is_started_and_listed() {
    let listed = run(&["list", "--", PROGRAM, "--stdio"]).ok();
    for text in
        ["Tools", "  add(a: number, b: number)", "Resources", "  demo://clock", "Templates", "Prompts"]
    {
        assert!(listed.contains(text), "{text:?} is not in {listed}");
    }
}

#[test]
fn one_kind_can_be_listed_everywhere() {
    let demo = Demo::start();
    for place in Place::all(&demo) {
        let check = |kind: &str, text: &str| {
            let listed = place.run(&["list", kind]).ok();
            assert!(listed.contains(text), "{text:?} is not in {listed}");
            assert_eq!(listed.lines().filter(|line| !line.starts_with(' ')).count(), 1, "{listed}");
        };
        check("tools", "  count(to: integer, pause?: integer = 100)\n      Counts up");
        check("resources", "  demo://dot.png (image/png)\n      A picture.");
        check("templates", "  world://{country}/capital");
        check("prompts", "  review(text, remarks?, tone?)");
    }
}

#[test]
fn a_list_is_json_for_programs() {
    let all = Place::stdio("envelope").run(&["list", "--json"]).json();
    let lists: Vec<_> = all.as_object().unwrap().keys().map(String::as_str).collect();
    assert_eq!(lists, ["prompts", "resourceTemplates", "resources", "tools"]);
    let tools = Place::stdio("envelope").run(&["list", "tools", "--json"]).json();
    assert_eq!((&tools["tools"], &tools["resultType"]), (&all["tools"], &json!("complete")));
}

#[test]
fn tools_are_called_with_texts_and_json_everywhere() {
    let demo = Demo::start();
    for place in Place::all(&demo) {
        assert_eq!(place.run(&["call", "echo", "text=a b=c"]).ok(), "a b=c\n");
        assert_eq!(place.run(&["call", "echo", r#"text:="quoted""#]).ok(), "quoted\n");
        let sum = place.run(&["call", "add", "a:=2", "b:=-0.5", "--json"]).json();
        assert_eq!(sum["structuredContent"], json!({"sum": 1.5}));
        assert_eq!(sum["content"], json!([{"type": "text", "text": r#"{"sum":1.5}"#}]));
        assert_eq!(
            place.run(&["call", "picture"]).ok(),
            "One red pixel:\n[picture, image/png, 70 bytes; --output FILE keeps it]\n"
        );
    }
}

#[test]
fn progress_is_shown_with_the_result() {
    let demo = Demo::start();
    for place in Place::all(&demo) {
        let counted = place.run(&["call", "count", "to:=3", "pause:=1"]);
        let progress: Vec<_> = counted.stderr.lines().filter(|line| line.starts_with("progress")).collect();
        assert_eq!(progress, ["progress 1/3 counting", "progress 2/3 counting", "progress 3/3 counting"]);
        assert_eq!(counted.ok(), "Counted to 3.\n");
    }
}

#[test]
fn log_messages_are_shown_with_the_result() {
    let demo = Demo::start();
    for place in Place::all(&demo) {
        let noted = place.run(&["call", "remember", "text=x"]);
        assert!(noted.stderr.contains("[info] notebook: note://"), "{noted:?}");
        assert!(noted.ok().starts_with("Noted as note://"));
    }
    // Over stdio the level stays set after the request.
    for era in ["handshake", "envelope"] {
        let noted = Place::stdio(era).run(&["call", "remember", "text=x", "--log", "error"]);
        assert_eq!(noted.stderr, "", "{era}");
    }
}

#[test]
fn resources_are_read_everywhere() {
    let demo = Demo::start();
    for place in Place::all(&demo) {
        assert_eq!(place.run(&["read", "demo://readme"]).ok(), "One server, every revision.\n");
        assert_eq!(place.run(&["read", "math://square/12"]).ok(), "144\n");
        let dot = place.run(&["read", "demo://dot.png", "--json"]).json();
        assert_eq!(dot["contents"][0]["mimeType"], "image/png");
    }
}

#[test]
fn bytes_are_printed_as_they_are() {
    let line = Place::stdio("envelope").line(&["read", "demo://dot.png"]);
    let output = std::process::Command::new(PROGRAM).args(line).output().unwrap();
    assert!(output.stdout.starts_with(b"\x89PNG\r\n") && output.stdout.ends_with(b"IEND\xaeB`\x82"));
}

#[test]
fn prompts_are_filled_and_completed_everywhere() {
    let demo = Demo::start();
    for place in Place::all(&demo) {
        let filled = place.run(&["prompt", "review", "text=Well", "remarks:=5", "tone=strict"]).ok();
        assert_eq!(filled, "user: Review this text, with 5 remarks at most. Be strict.\nuser: Well\n");
        let filled = place.run(&["prompt", "greet", "name=Ada", "--json"]).json();
        assert_eq!(filled["messages"][0]["role"], "user");
        assert_eq!(
            place.run(&["complete", "greet", "greeting=good", "name=Ada"]).ok(),
            "good morning\ngood evening\n"
        );
        assert_eq!(place.run(&["complete", "review", "tone="]).ok(), "kind\nstrict\n");
        let countries = place.run(&["complete", "world://{country}/capital", "country=F", "--json"]).json();
        assert_eq!(countries["completion"]["values"], json!(["France", "Finland"]));
    }
}

#[test]
fn a_ping_says_who_is_there_and_what_it_speaks() {
    let demo = Demo::start();
    for (place, spoken) in
        Place::all(&demo).into_iter().zip(["handshake", "handshake", "envelope", "envelope"])
    {
        let text = place.run(&["ping"]).ok();
        assert!(text.starts_with("Duplexer demo ") && text.ends_with(&format!("({spoken})\n")), "{text}");
    }
    assert_eq!(Place::stdio("handshake").run(&["ping", "--json"]).json(), json!({}));
    let found = Place::stdio("auto").run(&["ping", "--json"]).json();
    assert_eq!(found["supportedVersions"], json!(["2026-07-28"]));
}

#[test]
fn a_trace_shows_both_directions_on_standard_error() {
    let demo = Demo::start();
    for place in Place::all(&demo) {
        let traced = place.run(&["call", "echo", "text=x", "--trace"]);
        let out = traced.stderr.lines().find(|line| line.starts_with("--> ") && line.contains("tools/call"));
        let back = traced.stderr.lines().rfind(|line| line.starts_with("<-- "));
        for frame in [out, back] {
            let frame = frame.unwrap_or_else(|| panic!("{traced:?}")).split_at(4).1;
            assert_eq!(serde_json::from_str::<serde_json::Value>(frame).unwrap()["jsonrpc"], "2.0");
        }
        assert_eq!(traced.ok(), "x\n");
    }
}

#[test]
fn a_program_gets_the_variables_it_is_given_and_not_ours() {
    let script = r#"echo "${GIVEN:-none} ${CARGO_MANIFEST_DIR:-none}" >&2"#;
    let ran = run(&["ping", "--env", "GIVEN=this", "--", "sh", "-c", script]);
    assert_eq!(ran.stderr.lines().next(), Some("this none"), "{ran:?}");
}
