//! Each test runs its subject in a process of its own, because the subject replaces fd 0 and fd 1.

use std::io::{BufRead, BufReader, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::process::{Child, Command, Stdio as Pipe};
use std::task::Poll;

use rustix::fs::{OFlags, fcntl_getfl, fstat};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use super::*;
use crate::transport::testing::{next, terminal, text, write};

const ROLE: &str = "DUPLEXER_STDIO_TEST";

/// This test binary again, running only `the_subject` in the given role.
fn subject(role: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "transport::stdio::tests::the_subject", "--nocapture", "--test-threads=1"]);
    command.env(ROLE, role).stdin(Pipe::piped()).stdout(Pipe::piped()).stderr(Pipe::piped());
    command
}

/// Returns what the subject wrote to its standard output as protocol, without the output of the test harness.
fn protocol(output: &str) -> Vec<&str> {
    output.lines().filter(|line| line.starts_with('{')).collect()
}

#[test]
fn the_subject() {
    let Ok(role) = std::env::var(ROLE) else { return };
    // The harness has begun a line of its own.
    println!();
    let runtime = match role.as_str() {
        "echo-multi" | "portable-echo-multi" => {
            tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()
        }
        _ => tokio::runtime::Builder::new_current_thread().enable_all().build(),
    };
    // Dropping the runtime must not wait for input.
    runtime.unwrap().block_on(async {
        match role.as_str() {
            "echo" | "echo-multi" => echo(native().unwrap()).await,
            "portable-echo" | "portable-echo-multi" => echo(portable().unwrap()).await,
            "isolation" => isolation().await,
            "second" => second(native).await,
            "portable-second" => second(portable).await,
            "crowded" => crowded().await,
            "abandoned" => abandoned(native().unwrap()).await,
            "portable-abandoned" => abandoned(portable().unwrap()).await,
            other => panic!("no role {other}"),
        }
    });
}

type Halves = (Box<dyn FrameReader>, Box<dyn FrameWriter>);

/// Claims the streams by the path of this platform.
fn native() -> Result<Halves, TransportError> {
    Stdio::claim().map(Transport::split)
}

/// Claims the streams by the path of platforms that have none of their own.
fn portable() -> Result<Halves, TransportError> {
    portable::Streams::claim().map(|streams| streams.split(DEFAULT_LIMIT))
}

async fn echo((mut reader, mut writer): Halves) {
    while let Some(incoming) = next(&mut reader).await {
        write(&mut writer, &text(Some(incoming))).await.unwrap();
    }
}

async fn isolation() {
    let (mut reader, mut writer) = Stdio::claim().unwrap().split();
    println!("{{\"printed\":\"by a handler\"}}");
    print!("{{\"half\":\"a line\"}}");
    assert_eq!(io::stdin().read(&mut [0; 10]).unwrap(), 0, "standard input is the null device");
    let inherited =
        Command::new("sh").args(["-c", "cat; echo '{\"child\":1}'; ls -l /proc/self/fd >&2"]).status();
    assert!(inherited.unwrap().success());
    let asked = text(next(&mut reader).await);
    write(&mut writer, &asked).await.unwrap();
    drop((reader, writer));
    println!("{{\"restored\":\"output\"}}");
    let mut line = String::new();
    io::stdin().read_line(&mut line).unwrap();
    println!("{{\"restored\":{}}}", line.trim());
}

async fn second(claim: fn() -> Result<Halves, TransportError>) {
    let first = claim().unwrap();
    let Err(TransportError::Setup(refusal)) = claim() else { panic!("claimed twice") };
    assert!(refusal.contains("already claimed fd 0"), "{refusal}");
    drop(first);
    let (reader, writer) = claim().unwrap();
    drop(reader);
    assert!(claim().is_err(), "the writer still has it");
    drop(writer);
    echo(claim().unwrap()).await;
}

/// No descriptor is left for a duplicate.
async fn crowded() {
    let limit = Rlimit { current: Some(3), ..getrlimit(Resource::Nofile) };
    setrlimit(Resource::Nofile, limit).unwrap();
    echo(native().unwrap()).await;
}

/// A reader that is dropped while it waits leaves nothing behind that keeps the process alive.
async fn abandoned((mut reader, mut writer): Halves) {
    let waiting = std::future::poll_fn(|cx| Poll::Ready(reader.poll_next(cx).is_pending())).await;
    assert!(waiting);
    drop(reader);
    write(&mut writer, "{\"gone\":1}").await.unwrap();
}

fn finish(mut child: Child, input: &str) -> (String, String) {
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    let errors = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{errors}");
    (String::from_utf8(output.stdout).unwrap(), errors)
}

#[test]
fn every_line_is_answered_before_the_end_on_either_runtime() {
    // STDIO-01, STDIO-05, P-STDIO-1, P-STDIO-12.
    for role in ["echo", "echo-multi", "portable-echo", "portable-echo-multi"] {
        let (output, _) = finish(subject(role).spawn().unwrap(), "{\"a\":1}\n\n{\"b\":2}\r\n{\"last\":3}");
        assert_eq!(protocol(&output), ["{\"a\":1}", "{\"b\":2}", "{\"last\":3}"], "{role}");
    }
}

#[test]
fn what_others_print_or_read_never_touches_the_protocol() {
    // STDIO-03, STDIO-06, P-STDIO-2.
    let mut child = subject("isolation").spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let stdout = child.stdout.take().unwrap();
    let pipes = [fstat(&stdin), fstat(&stdout)].map(|stat| format!("pipe:[{}]", stat.unwrap().st_ino));
    let mut stdout = BufReader::new(stdout);
    stdin.write_all(b"{\"asked\":1}\n").unwrap();
    let mut seen = String::new();
    while !seen.contains("\"output\"") {
        assert_ne!(stdout.read_line(&mut seen).unwrap(), 0, "{seen}");
    }
    stdin.write_all(b"7\n").unwrap();
    stdout.read_to_string(&mut seen).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success());
    assert_eq!(protocol(&seen), ["{\"asked\":1}", "{\"restored\":\"output\"}", "{\"restored\":7}"]);
    let errors = String::from_utf8(output.stderr).unwrap();
    for strayed in ["{\"printed\"", "{\"child\":1}", "{\"half\""] {
        assert!(errors.contains(strayed), "{strayed} is missing in {errors}");
    }
    for pipe in pipes {
        assert!(!errors.contains(&pipe), "a child has inherited a stream of the protocol: {errors}");
    }
}

#[test]
fn streams_that_cannot_be_duplicated_are_served_in_place() {
    // STDIO-03: best effort, and the flags that had to be set are restored.
    let (input, mut writer) = io::pipe().unwrap();
    let child = subject("crowded").stdin(input.try_clone().unwrap()).spawn().unwrap();
    writer.write_all(b"{\"a\":1}\n").unwrap();
    drop(writer);
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success());
    assert_eq!(protocol(&String::from_utf8(output.stdout).unwrap()), ["{\"a\":1}"]);
    assert!(!fcntl_getfl(&input).unwrap().contains(OFlags::NONBLOCK));
}

#[test]
fn a_second_claimant_is_refused_until_the_first_is_gone() {
    // STDIO-04.
    for role in ["second", "portable-second"] {
        let (output, _) = finish(subject(role).spawn().unwrap(), "{\"a\":1}\n");
        assert_eq!(protocol(&output), ["{\"a\":1}"], "{role}");
    }
}

#[test]
fn a_reader_can_be_dropped_while_standard_input_stays_open() {
    for role in ["abandoned", "portable-abandoned"] {
        let (open_pipe, _writer) = io::pipe().unwrap();
        let child = subject(role).stdin(open_pipe).spawn().unwrap();
        assert!(child.wait_with_output().unwrap().status.success());
        // There is never any input on the terminal that a thread waits for.
        let (_main, terminal) = terminal();
        let child = subject(role).stdin(terminal).spawn().unwrap();
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success());
        assert_eq!(protocol(&String::from_utf8(output.stdout).unwrap()), ["{\"gone\":1}"], "{role}");
    }
}

#[test]
fn sockets_and_files_serve_as_standard_streams_and_keep_their_flags() {
    let (mut ours, theirs) = UnixStream::pair().unwrap();
    let fd = |socket: &UnixStream| Pipe::from(OwnedFd::from(socket.try_clone().unwrap()));
    let mut child = subject("echo").stdin(fd(&theirs)).stdout(fd(&theirs)).spawn().unwrap();
    ours.write_all(b"{\"a\":1}\n").unwrap();
    let mut lines = BufReader::new(ours.try_clone().unwrap()).lines().map(Result::unwrap);
    assert!(lines.any(|line| line == "{\"a\":1}"));
    assert!(!fcntl_getfl(&theirs).unwrap().contains(OFlags::NONBLOCK));
    ours.shutdown(std::net::Shutdown::Write).unwrap();
    drop(theirs);
    assert!(child.wait().unwrap().success());

    let path = std::env::temp_dir().join(format!("duplexer-{}-stdio", std::process::id()));
    std::fs::write(&path, "{\"from\":\"a file\"}\n").unwrap();
    let child = subject("echo").stdin(std::fs::File::open(&path).unwrap()).spawn().unwrap();
    let output = child.wait_with_output().unwrap();
    std::fs::remove_file(path).unwrap();
    assert_eq!(protocol(&String::from_utf8(output.stdout).unwrap()), ["{\"from\":\"a file\"}"]);
}

#[test]
fn output_that_shares_its_pipe_with_stderr_stays_blocking_for_others() {
    let (mut reader, shared) = io::pipe().unwrap();
    let keep = shared.try_clone().unwrap();
    let mut child = subject("echo").stdout(shared.try_clone().unwrap()).stderr(shared).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(b"{\"a\":1}\n").unwrap();
    let mut seen = String::new();
    while !seen.contains("{\"a\":1}") {
        let mut byte = [0];
        reader.read_exact(&mut byte).unwrap();
        seen.push(byte[0].into());
    }
    assert!(!fcntl_getfl(&keep).unwrap().contains(OFlags::NONBLOCK));
    drop(stdin);
    assert!(child.wait().unwrap().success());
}

#[test]
fn long_lines_pass_unchanged() {
    let long = format!("{{\"long\":\"{}\"}}\n", "x".repeat(1_000_000));
    for role in ["echo", "portable-echo"] {
        let mut child = subject(role).spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        let input = long.repeat(3);
        let writer = std::thread::spawn(move || stdin.write_all(input.as_bytes()));
        let output = child.wait_with_output().unwrap();
        writer.join().unwrap().unwrap();
        assert!(output.status.success());
        let output = String::from_utf8(output.stdout).unwrap();
        assert!(protocol(&output).iter().all(|line| *line == long.trim_end()), "{role}");
        assert_eq!(protocol(&output).len(), 3, "{role}");
    }
}
