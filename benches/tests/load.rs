//! The load generator, the floor and the server as programs: a short `cargo xtask compare`.

use std::process::Command;

const FLOOR: &str = env!("CARGO_BIN_EXE_floor");
const SERVER: &str = env!("CARGO_BIN_EXE_bench-server");

/// Returns whether it succeeds, and its output.
fn load(arguments: &[&str]) -> (bool, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_load")).args(arguments).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap() + &String::from_utf8_lossy(&output.stderr);
    (output.status.success(), text)
}

#[test]
fn both_servers_answer_on_every_way_of_theirs() {
    let scenarios = [
        "stdio-start",
        "stdio-echo-256",
        "stdio-progress",
        "http-envelope-progress",
        "http-sessions-16",
        "http-stateless",
    ];
    let servers = [
        format!("floor='{FLOOR}' stdio"),
        format!("floor='{FLOOR}' http {{port}}"),
        format!("ours='{SERVER}' stdio"),
        format!("ours='{SERVER}' http {{port}}"),
        format!("ours:stateless='{SERVER}' http {{port}} --stateless"),
    ];
    let mut arguments = vec!["--seconds", "0"];
    arguments.extend(scenarios);
    arguments.extend(servers.iter().flat_map(|server| ["--beside", server.as_str()]));
    let (succeeds, text) = load(&arguments);
    assert!(succeeds, "{text}");
    for scenario in scenarios {
        let rows: Vec<&str> = text.lines().filter(|line| line.contains(scenario)).collect();
        assert!(rows.len() == 2 && rows[0].contains("| floor") && rows[1].contains("| ours"), "{text}");
        assert!(rows[0].contains("|     1.00 |"), "the floor beside itself: {text}");
    }
}

#[test]
fn several_runs_end_with_a_table_of_their_medians() {
    let file = std::env::temp_dir().join(format!("compare-{}.md", std::process::id()));
    let path = file.to_str().unwrap();
    let (floor, ours) = (format!("floor='{FLOOR}' stdio"), format!("ours='{SERVER}' stdio"));
    let servers = ["--beside", &floor, "--beside", &ours];
    let (succeeds, text) =
        load(&[&servers[..], &["--seconds", "0", "--runs", "3", "--write", path, "stdio-add"]].concat());
    let table = std::fs::read_to_string(&file);
    let _ = std::fs::remove_file(&file);
    assert!(succeeds && text.contains("run 3 of 3"), "{text}");
    let table = table.unwrap();
    assert!(text.ends_with(&format!("medians of 3 runs\n{table}\n")), "{text}");
    let cells: Vec<&str> = table.lines().last().unwrap().split('|').map(str::trim).collect();
    assert_eq!((cells[1], cells[7].split(", ").count()), ("stdio-add", 3), "{table}");
}

#[test]
fn a_server_that_answers_wrongly_is_reported_and_fails_the_run() {
    let wrong = "wrong=sh -c 'while read -r line; do echo nonsense; done'";
    let floor = format!("floor='{FLOOR}' stdio");
    let (succeeds, text) = load(&["--seconds", "0", "--beside", &floor, "--beside", wrong, "stdio-echo-64k"]);
    assert!(!succeeds, "{text}");
    assert!(text.contains("| wrong        | FAILED: not a message: nonsense"), "{text}");
    assert!(text.contains("| floor        |"), "the other one is measured: {text}");
}

#[test]
fn a_server_that_ends_at_once_is_reported() {
    for (server, scenario) in [("gone=true", "stdio-add"), ("gone:http=true", "http-envelope-1")] {
        let (succeeds, text) = load(&["--seconds", "0", "--beside", server, scenario]);
        assert!(!succeeds && text.contains("FAILED: it "), "{text}");
    }
}
