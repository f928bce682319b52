//! `duplexer bench`: rate and latency, without any judgement about them.

use std::fs;

use crate::support::{Demo, PROGRAM, data_folder, run};

#[test]
fn a_server_is_measured_and_drawn() {
    let demo = Demo::start();
    fs::create_dir_all(data_folder()).unwrap();
    let svg = data_folder().join("bench.svg");
    let words = ["bench", "-c", "2", "-d", "50ms", "--json", "--svg", svg.to_str().unwrap(), &demo.url];
    for (words, load) in [
        (words.to_vec(), "tools/list, 2 at once"),
        ([&words[..], &["add", "a:=2", "b:=3"]].concat(), "tools/call add, 2 at once"),
        (
            ["bench", "-c", "2", "-d", "50ms", "--json", "--", PROGRAM, "demo", "--stdio"].to_vec(),
            "tools/list, 2 at once",
        ),
    ] {
        let measured = run(&words).json();
        assert!(measured["load"].as_str().unwrap().starts_with(load), "{measured}");
        let server = &measured["servers"][0];
        assert!(server["answers"].as_u64().unwrap() > 0 && server["failed"] == 0, "{measured}");
        let sum: u64 =
            server["histogram"].as_array().unwrap().iter().map(|row| row["answers"].as_u64().unwrap()).sum();
        assert_eq!(server["answers"], sum, "{measured}");
        if cfg!(target_os = "linux") {
            assert!(server["cpu_cores"].is_number(), "{measured}");
        }
    }
    let drawing = fs::read_to_string(&svg).unwrap();
    assert!(drawing.starts_with("<svg ") && drawing.contains(&demo.url), "{drawing}");
}

#[test]
fn two_servers_are_compared_in_turns() {
    let demo = Demo::start();
    let other = format!("-- {PROGRAM} demo --stdio");
    let shown =
        run(&["bench", "-c", "2", "-d", "100ms", "--vs", &other, &demo.url, "add", "a:=2", "b:=3"]).ok();
    for part in [&demo.url, &other, "in turns", "p99.9", "≤ ", "times the rate", "cores"] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
}

#[test]
fn what_cannot_be_measured_is_said() {
    let demo = Demo::start();
    run(&["bench", &demo.url, "nothing"]).failed(5, "Unknown tool: nothing");
    run(&["bench", &demo.url, "divide", "a:=1", "b:=0"]).failed(1, "divided by zero");
    for wrong in [["-c", "0"], ["-d", "soon"], ["-d", "1ms"]] {
        assert_eq!(run(&[&["bench"], &wrong[..], &[&demo.url]].concat()).code, Some(2), "{wrong:?}");
    }
    run(&["bench", "--vs", "nothing", &demo.url]).failed(2, "a name is in mcp.json");
}
