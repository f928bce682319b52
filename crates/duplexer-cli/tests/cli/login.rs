//! Logins at the protected demo.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Stdio};

use crate::support::{Demo, PROGRAM, data_folder, run, spawn};

/// Sends a request and returns head and body of the answer.
fn http(url: &str, method: &str, headers: &str, body: &str) -> (String, String) {
    let rest = url.strip_prefix("http://").unwrap();
    let (host, path) = rest.split_once('/').unwrap();
    let mut stream = TcpStream::connect(host).unwrap();
    let length = body.len();
    write!(
        stream,
        "{method} /{path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\nContent-Length: {length}\r\n{headers}\r\n{body}"
    )
    .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    (head.to_owned(), body.to_owned())
}

fn header<'a>(head: &'a str, name: &str) -> &'a str {
    let line = head.lines().find(|line| line.to_ascii_lowercase().starts_with(&format!("{name}:")));
    line.unwrap_or_else(|| panic!("{name} in {head}")).split_once(':').unwrap().1.trim()
}

/// Logs in like a person with a browser.
fn consent(page: &str) {
    let (head, body) = http(page, "GET", "", "");
    let cookie = header(&head, "set-cookie").split(';').next().unwrap();
    let handle = body.split_once("name=\"request\" value=\"").unwrap().1.split('"').next().unwrap();
    let origin: Vec<&str> = page.split('/').take(3).collect();
    let form = format!("request={handle}&decision=allow");
    let headers = format!("Cookie: {cookie}\r\nContent-Type: application/x-www-form-urlencoded\r\n");
    let (head, _) = http(&format!("{}/authorize/consent", origin.join("/")), "POST", &headers, &form);
    let (head, _) = http(header(&head, "location"), "GET", "", "");
    assert!(head.starts_with("HTTP/1.1 200"), "{head}");
}

/// Finishes a login that prints its page.
fn finish(mut login: Child) {
    let mut line = String::new();
    BufReader::new(login.stderr.take().unwrap()).read_line(&mut line).unwrap();
    consent(line.trim().strip_prefix("Log in at: ").unwrap_or_else(|| panic!("{line}")));
    assert!(login.wait().unwrap().success());
}

/// OAC-96: with `--keyring` tokens are in the keyring of this machine, and in no file; without it nothing is found.
#[cfg(feature = "keyring")]
#[test]
fn a_login_can_be_stored_in_the_keyring() {
    let demo = Demo::with(&["--auth", "dev"]);
    let status = run(&["status", &demo.url, "--keyring"]);
    if status.code != Some(0) {
        // Containers often deny the system calls of the keyring.
        return eprintln!("SKIPPED: there is no keyring here: {}", status.stderr);
    }
    assert_eq!(status.stdout, "not logged in\n");
    finish(spawn(&["login", &demo.url, "--no-browser", "--keyring"], Stdio::null()));
    let stored = run(&["status", &demo.url, "--keyring"]).ok();
    if stored == "not logged in\n" {
        return eprintln!("SKIPPED: the keyring of this machine does not outlive a process");
    }
    assert!(stored.starts_with("logged in at http://127.0.0.1:"), "{stored}");
    assert_eq!(run(&["status", &demo.url]).ok(), "not logged in\n");
    assert_eq!(run(&["call", &demo.url, "add", "a:=2", "b:=3", "--keyring"]).code, Some(0));
    assert_eq!(run(&["call", &demo.url, "add", "a:=2", "b:=3"]).code, Some(4));
    assert_eq!(run(&["logout", &demo.url, "--keyring"]).ok(), "not logged in\n");
    assert_eq!(run(&["ping", &demo.url, "--keyring"]).code, Some(4));
}

/// A login is stored, used by other runs without a terminal, and ends with a logout.
#[test]
fn a_login_is_used_until_the_logout() {
    let demo = Demo::with(&["--auth", "dev"]);
    assert_eq!(run(&["status", &demo.url]).ok(), "not logged in\n");
    run(&["ping", &demo.url]).failed(4, "`duplexer login URL` stores a token");
    finish(spawn(&["login", &demo.url, "--no-browser"], Stdio::null()));
    let status = run(&["status", &demo.url]).ok();
    assert!(status.starts_with("logged in at http://127.0.0.1:"), "{status}");
    assert!(status.contains("; renewed without a login in 59 minutes"), "{status}");
    assert_eq!(run(&["call", &demo.url, "add", "a:=2", "b:=3"]).code, Some(0));
    let folder = data_folder().join("duplexer/oauth");
    assert!(std::fs::read_dir(folder).unwrap().count() > 0);
    assert_eq!(run(&["logout", &demo.url]).ok(), "not logged in\n");
    assert_eq!(run(&["ping", &demo.url]).code, Some(4));
    assert_eq!(run(&["ping", &demo.url, "--token", "wrong"]).code, Some(4));
    for verb in ["login", "logout", "status"] {
        run(&[verb, &demo.url, "--token", "secret"]).failed(2, "--token is for requests");
    }
}

/// Reads standard error until a login prints its page, and logs in there.
fn consent_when_asked(running: &mut Child) {
    for line in BufReader::new(running.stderr.take().unwrap()).lines() {
        let line = line.unwrap();
        if let Some((_, page)) = line.split_once("Log in at: ") {
            return consent(page.trim());
        }
    }
    panic!("no login was necessary");
}

/// A host that only starts programs reaches a protected server through `duplexer proxy`, which logs in with the first request
/// and uses the stored login afterwards.
#[test]
fn a_proxy_logs_in_for_its_client() {
    let demo = Demo::with(&["--auth", "dev"]);
    let folder = format!("XDG_DATA_HOME={}", data_folder().display());
    for era in ["envelope", "handshake"] {
        let call = ["call", "--era", era, "--env", &folder, "add", "a:=2", "b:=3", "--"];
        let proxy = [PROGRAM, "proxy", "--no-browser", &demo.url];
        let words = [&call[..], &proxy[..]].concat();
        let mut first = spawn(&words, Stdio::null());
        consent_when_asked(&mut first);
        let first = first.wait_with_output().unwrap();
        assert!(first.status.success() && String::from_utf8(first.stdout).unwrap().contains("5.0"), "{era}");
        let again = run(&words);
        assert!(!again.stderr.contains("Log in at"), "{era}: {again:?}");
        assert!(again.ok().contains("5.0"), "{era}");
        assert_eq!(run(&["logout", &demo.url]).ok(), "not logged in\n");
    }
    let words = ["call", "add", "a:=2", "b:=3", "--", PROGRAM, "proxy", "--token", "wrong", &demo.url];
    let refused = run(&words);
    assert!(refused.code != Some(0) && refused.stderr.contains("401"), "{refused:?}");
}
