//! `duplexer record` and `duplexer replay`: what is recorded answers again.

use std::fs;
use std::path::PathBuf;

use duplexer::testing::{Sender, Transcript};

use crate::faulty::faulty;
use crate::support::{Demo, Listening, PROGRAM, data_folder, run};

/// Returns the path of a file that does not exist.
fn fresh(name: &str) -> PathBuf {
    let folder = data_folder();
    fs::create_dir_all(&folder).unwrap();
    let file = folder.join(name);
    let _ = fs::remove_file(&file);
    file
}

/// Checks that a transcript has a call of `add` with its answer, and that a replay of it gives that answer.
#[track_caller]
fn check(file: &PathBuf, era: &str) {
    let transcript = Transcript::read(file).unwrap();
    let messages = transcript.messages();
    let has =
        |from: Sender, part: &str| messages.iter().any(|one| one.from == from && one.text.contains(part));
    assert!(has(Sender::Client, "tools/call") && has(Sender::Server, "5.0"), "{transcript}");
    let path = file.to_str().unwrap();
    let replayed = run(&["call", "--era", era, "add", "a:=2", "b:=3", "--", PROGRAM, "replay", path]);
    assert!(replayed.ok().contains("5.0"));
    run(&["call", "--era", era, "add", "a:=2", "b:=4", "--", PROGRAM, "replay", path])
        .failed(5, "only with other params");
    let replay = Listening::start(&["replay", "--listen", "0", path]);
    assert!(run(&["call", "--era", era, &replay.url, "add", "a:=2", "b:=3"]).ok().contains("5.0"));
    assert_eq!(replay.running.interrupt(), Some(0));
}

#[test]
fn a_program_is_recorded_over_standard_input_and_output() {
    for era in ["handshake", "envelope"] {
        let file = fresh(&format!("stdio-{era}.jsonl"));
        let path = file.to_str().unwrap();
        let recorder = [PROGRAM, "record", "-o", path, "--", PROGRAM, "demo", "--stdio"];
        let called = run(&[&["call", "--era", era, "add", "a:=2", "b:=3", "--"], &recorder[..]].concat());
        assert!(called.ok().contains("5.0"));
        check(&file, era);
        let again = run(&[&["call", "add", "a:=2", "b:=3", "--"], &recorder[..]].concat());
        assert!(again.stderr.contains("exists; --force overwrites it"), "{again:?}");
    }
}

#[test]
fn a_url_is_recorded_over_http_and_over_standard_input_and_output() {
    let demo = Demo::start();
    for era in ["handshake", "envelope"] {
        let file = fresh(&format!("http-{era}.jsonl"));
        let recorder =
            Listening::start(&["record", "--listen", "0", "-o", file.to_str().unwrap(), &demo.url]);
        assert!(run(&["call", "--era", era, &recorder.url, "add", "a:=2", "b:=3"]).ok().contains("5.0"));
        // A stream of events.
        let counted = run(&["call", "--era", era, &recorder.url, "count", "to:=2", "pause:=1"]);
        assert!(counted.stderr.contains("progress 1/2"), "{counted:?}");
        assert_eq!(recorder.running.interrupt(), Some(0));
        assert!(Transcript::read(&file).unwrap().to_string().contains("notifications/progress"));
        check(&file, era);
        let file = fresh(&format!("translated-{era}.jsonl"));
        let recorder = [PROGRAM, "record", "-o", file.to_str().unwrap(), &demo.url];
        let called = run(&[&["call", "--era", era, "add", "a:=2", "b:=3", "--"], &recorder[..]].concat());
        assert!(called.ok().contains("5.0"));
        check(&file, era);
    }
}

#[test]
fn a_program_is_recorded_over_http() {
    let file = fresh("program-http.jsonl");
    let path = file.to_str().unwrap();
    let recorder =
        Listening::start(&["record", "--listen", "0", "-o", path, "--", PROGRAM, "demo", "--stdio"]);
    assert!(run(&["call", &recorder.url, "add", "a:=2", "b:=3"]).ok().contains("5.0"));
    assert_eq!(recorder.running.interrupt(), Some(0));
    check(&file, "auto");
}

/// The recorder keeps the checks of the server: a foreign Host is refused, although the server sees another one. Tokens are
/// not recorded.
#[test]
fn a_recorder_opens_no_door_and_keeps_secrets() {
    let file = fresh("secrets.jsonl");
    let path = file.to_str().unwrap();
    let url = faulty("login");
    let recorder = Listening::start(&["record", "--listen", "0", "-o", path, "--token", "sesame", &url]);
    run(&["ping", &recorder.url, "--header", "Host: elsewhere.example"]).failed(4, "elsewhere.example");
    run(&["ping", &recorder.url]).ok();
    assert_eq!(recorder.running.interrupt(), Some(0));
    let text = fs::read_to_string(&file).unwrap();
    assert!(text.contains("server/discover") && !text.contains("sesame"), "{text}");
}

#[test]
fn a_broken_transcript_is_2() {
    let file = fresh("broken.jsonl");
    fs::write(&file, "{\"duplexer\":\"transcript\",\"version\":1}\n{}\n").unwrap();
    run(&["replay", file.to_str().unwrap()]).failed(2, "line 2 of the transcript: missing field");
    run(&["replay", "no/such/file"]).failed(2, "no/such/file cannot be read");
    run(&["record", "-o", "no/such/folder/x", "--", PROGRAM]).failed(2, "no/such/folder/x cannot be written");
}
