//! A child process from its start to its end: over both paths what both promise, then what only Unix can do.

use std::future::{Future, poll_fn};
use std::os::unix::process::ExitStatusExt;
use std::pin::pin;
use std::sync::{Arc, Mutex};
use std::task::Poll;

use tokio::sync::mpsc;

use super::portable::PortableProcess;
use super::running::STEP_TIMEOUT;
use super::*;
use crate::transport::Frames;
use crate::transport::testing::{next, text, write};

fn shell(script: &str) -> ChildCommand {
    ChildCommand::new("sh").args(["-c", script]).stderr(Stderr::Discard)
}

/// The streams of a process on any path.
struct Opened<P: Process>(Streams<P>);

impl<P: Process> Opened<P> {
    fn split(self) -> (Box<dyn FrameReader>, Box<dyn FrameWriter>) {
        self.0.split(DEFAULT_LIMIT)
    }
}

impl ChildCommand {
    fn open<P: Process>(self) -> Result<(Opened<P>, Running<P>), TransportError> {
        self.start().map(|(streams, running)| (Opened(streams), running))
    }
}

/// Runs each test over the path of this platform and over the portable one.
macro_rules! over_both_paths {
    ($($name:ident),* $(,)?) => {
        mod native_path {
            $(#[tokio::test] async fn $name() { super::$name::<super::NativeProcess>().await; })*
        }
        mod portable_path {
            $(#[tokio::test] async fn $name() { super::$name::<super::PortableProcess>().await; })*
        }
    };
}

over_both_paths! {
    a_process_answers_and_ends_when_its_input_is_closed,
    dropping_or_closing_the_writer_ends_the_input,
    a_program_that_does_not_exist_is_named_in_the_error,
    a_process_gets_a_short_environment_and_what_the_caller_adds,
    a_process_that_ignores_the_end_of_input_and_sigterm_is_killed,
    output_is_drained_while_the_process_ends,
    a_flood_on_stderr_blocks_neither_side,
    every_line_of_stderr_reaches_the_sink_also_the_last,
    what_is_being_written_is_flushed_before_the_input_is_closed,
    a_process_that_does_not_read_cannot_hold_the_shutdown_up,
}

/// Returns the state of a process as the kernel names it; `None` if there is no such process.
fn state(id: &str) -> Option<char> {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", id.trim())).ok()?;
    stat.rsplit(')').next()?.trim().chars().next()
}

async fn a_process_answers_and_ends_when_its_input_is_closed<P: Process>() {
    // CSTD-01, P-STDIO-7.
    let (transport, child) = ChildCommand::new("cat").open::<P>().unwrap();
    let (mut reader, mut writer) = transport.split();
    for line in ["{\"a\":1}", "{\"b\":2}"] {
        write(&mut writer, line).await.unwrap();
        assert_eq!(text(next(&mut reader).await), line);
    }
    assert_eq!(child.shutdown().await.unwrap().code(), Some(0));
    assert!(next(&mut reader).await.is_none());
    assert!(matches!(write(&mut writer, "{}").await, Err(TransportError::Closed)));
}

async fn dropping_or_closing_the_writer_ends_the_input<P: Process>() {
    for close in [true, false] {
        let (transport, child) = shell("cat; echo '{\"end\":1}'").open::<P>().unwrap();
        let (mut reader, mut writer) = transport.split();
        if close {
            poll_fn(|cx| writer.poll_close(cx)).await.unwrap();
        } else {
            drop(writer);
        }
        assert_eq!(text(next(&mut reader).await), "{\"end\":1}");
        assert!(next(&mut reader).await.is_none());
        assert!(child.shutdown().await.unwrap().success());
    }
}

async fn a_program_that_does_not_exist_is_named_in_the_error<P: Process>() {
    let error = ChildCommand::new("/no/such/server").open::<P>().map(|_| ()).unwrap_err();
    assert!(error.to_string().starts_with("`/no/such/server` cannot be started: "), "{error}");
}

async fn a_process_gets_a_short_environment_and_what_the_caller_adds<P: Process>() {
    // CSTD-01. The test harness itself has many variables.
    let ours = ["PWD", "SHLVL", "_", "OLDPWD"];
    for (program, most) in
        [(shell("env; pwd"), INHERITED_VARIABLES), (shell("/usr/bin/env; pwd").env_clear(), &[])]
    {
        let (transport, child) = program.env("ADDED", "by caller").current_dir("/usr").open::<P>().unwrap();
        let (mut reader, _writer) = transport.split();
        let mut lines = Vec::new();
        while let Some(line) = next(&mut reader).await {
            lines.push(text(Some(line)));
        }
        assert_eq!(lines.pop().as_deref(), Some("/usr"));
        assert!(lines.iter().any(|line| line == "ADDED=by caller"));
        for line in lines {
            let name = line.split('=').next().unwrap();
            assert!(most.contains(&name) || ours.contains(&name) || name == "ADDED", "{line}");
        }
        child.shutdown().await.unwrap();
    }
}

#[tokio::test]
async fn a_process_leads_a_group_of_its_own() {
    // CSTD-01.
    let (transport, child) = shell("cut -d' ' -f5 /proc/$$/stat; cat").spawn().unwrap();
    let (mut reader, _writer) = transport.split();
    assert_eq!(text(next(&mut reader).await), child.id().to_string());
    child.shutdown().await.unwrap();
}

async fn a_process_that_ignores_the_end_of_input_and_sigterm_is_killed<P: Process>() {
    // CSTD-01, C13.
    let (transport, child) =
        shell("trap '' TERM; echo ready; while :; do sleep 100; done").open::<P>().unwrap();
    let (mut reader, _writer) = transport.split();
    assert_eq!(text(next(&mut reader).await), "ready");
    assert_eq!(child.shutdown().await.unwrap().signal(), Some(9));
}

#[tokio::test]
async fn a_process_that_ignores_the_end_of_input_is_asked_to_terminate() {
    // CSTD-01.
    let script = "trap 'exit 7' TERM; echo ready; while :; do sleep 100; done";
    let (transport, child) = shell(script).spawn().unwrap();
    let (mut reader, _writer) = transport.split();
    assert_eq!(text(next(&mut reader).await), "ready");
    let begun = tokio::time::Instant::now();
    assert_eq!(child.shutdown().await.unwrap().code(), Some(7));
    assert!((STEP_TIMEOUT..2 * STEP_TIMEOUT).contains(&begun.elapsed()));
}

#[tokio::test]
#[cfg(target_os = "linux")]
async fn what_a_process_has_started_ends_with_it() {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    use rustix::process::{Pid, PidfdFlags, pidfd_open};

    // CSTD-01: the shell ends at once, its child holds on to the output.
    let (transport, child) = shell("sleep 1000 & echo $!; exec cat").spawn().unwrap();
    let (mut reader, _writer) = transport.split();
    let sleeper = Pid::from_raw(text(next(&mut reader).await).parse().unwrap()).unwrap();
    let sleeper = pidfd_open(sleeper, PidfdFlags::empty()).unwrap();
    child.shutdown().await.unwrap();
    let patience = Timespec { tv_sec: 10, tv_nsec: 0 };
    let ended = poll(&mut [PollFd::new(&sleeper, PollFlags::IN)], Some(&patience));
    assert_eq!(ended, Ok(1));
}

#[tokio::test]
async fn dropping_the_handle_kills_the_group_and_leaves_no_zombie() {
    let (transport, mut child) =
        shell("trap '' TERM; sleep 1000 & echo $$; cat; sleep 1000").spawn().unwrap();
    let (mut reader, _writer) = transport.split();
    let id = text(next(&mut reader).await);
    let status = child.running.process.status.take().unwrap();
    drop(child);
    assert_eq!(status.await.unwrap().unwrap().signal(), Some(9));
    assert_eq!(state(&id), None);
    assert!(next(&mut reader).await.is_none());
}

#[test]
fn a_process_is_reaped_even_if_its_runtime_has_ended() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let (transport, mut child) = runtime.block_on(async { shell("cat").spawn().unwrap() });
    drop(runtime);
    let status = child.running.process.status.take().unwrap();
    drop((transport, child));
    assert_eq!(status.blocking_recv().unwrap().unwrap().signal(), Some(9));
}

#[tokio::test]
async fn a_cancelled_shutdown_kills_at_once() {
    let (transport, mut child) = shell("trap '' TERM; echo ready; sleep 1000").spawn().unwrap();
    let (mut reader, _writer) = transport.split();
    assert_eq!(text(next(&mut reader).await), "ready");
    let status = child.running.process.status.take().unwrap();
    {
        let mut shutdown = pin!(child.shutdown());
        let waits = poll_fn(|cx| Poll::Ready(shutdown.as_mut().poll(cx).is_pending())).await;
        assert!(waits);
    }
    assert_eq!(status.await.unwrap().unwrap().signal(), Some(9));
}

async fn output_is_drained_while_the_process_ends<P: Process>() {
    // CSTD-01: the output is far more than a pipe holds, so the process could not end if it were not read.
    let (transport, child) = shell("cat; head -c 3000000 /dev/zero; exit 3").open::<P>().unwrap();
    let _halves = transport.split();
    assert_eq!(child.shutdown().await.unwrap().code(), Some(3));
}

async fn a_flood_on_stderr_blocks_neither_side<P: Process>() {
    // C12, robustness 1.2 "stderr pipe fills".
    let flood =
        "head -c 3000000 /dev/zero | tr '\\0' '\\n' >&2; head -c 3000000 /dev/zero >&2; echo done; cat";
    for stderr in [Stderr::Discard, Stderr::lines(|_| ()), Stderr::lines(|_| panic!("a bad sink"))] {
        let (transport, child) = shell(flood).stderr(stderr).open::<P>().unwrap();
        let (mut reader, _writer) = transport.split();
        assert_eq!(text(next(&mut reader).await), "done");
        assert!(child.shutdown().await.unwrap().success());
    }
}

async fn every_line_of_stderr_reaches_the_sink_also_the_last<P: Process>() {
    let (sender, mut lines) = mpsc::channel(10);
    let sink = Stderr::lines(move |line| sender.try_send(line.to_owned()).unwrap());
    let script = "echo one >&2; echo two >&2; cat; printf 'last words' >&2";
    let (transport, child) = shell(script).stderr(sink).open::<P>().unwrap();
    assert_eq!(lines.recv().await.as_deref(), Some("one"));
    assert_eq!(lines.recv().await.as_deref(), Some("two"));
    child.shutdown().await.unwrap();
    drop(transport);
    assert_eq!(lines.recv().await.as_deref(), Some("last words"));
    assert_eq!(lines.recv().await, None);
}

async fn what_is_being_written_is_flushed_before_the_input_is_closed<P: Process>() {
    // CSTD-01: far more than a pipe holds, so that the write is in progress when the shutdown begins.
    let counted = Arc::new(Mutex::new(String::new()));
    let sink = Arc::clone(&counted);
    let stderr = Stderr::lines(move |line| sink.lock().unwrap().push_str(line.trim()));
    let (transport, child) = shell("wc -c >&2").stderr(stderr).open::<P>().unwrap();
    let (_reader, mut writer) = transport.split();
    let mut frames = Frames::default();
    frames.push(&vec![b'x'; 3_999_999], None);
    let first = poll_fn(|cx| Poll::Ready(writer.poll_write(cx, &mut frames))).await;
    assert!(first.is_pending());
    let writing = poll_fn(|cx| writer.poll_write(cx, &mut frames));
    let (written, status) = tokio::join!(writing, child.shutdown());
    written.unwrap();
    assert!(status.unwrap().success());
    assert_eq!(*counted.lock().unwrap(), "4000000");
}

async fn a_process_that_does_not_read_cannot_hold_the_shutdown_up<P: Process>() {
    // C11.
    let (transport, child) = shell("trap '' TERM; echo ready; exec sleep 1000").open::<P>().unwrap();
    let (mut reader, mut writer) = transport.split();
    assert_eq!(text(next(&mut reader).await), "ready");
    let frame = "x".repeat(3_000_000);
    let (written, status) = tokio::join!(write(&mut writer, &frame), child.shutdown());
    assert!(matches!(written, Err(TransportError::Closed)));
    assert_eq!(status.unwrap().signal(), Some(9));
}

#[tokio::test]
async fn on_the_portable_path_a_dropped_process_is_killed() {
    let (transport, child) =
        shell("trap '' TERM; echo ready; exec sleep 1000").open::<PortableProcess>().unwrap();
    let (mut reader, _writer) = transport.split();
    assert_eq!(text(next(&mut reader).await), "ready");
    drop(child);
    assert!(next(&mut reader).await.is_none());
}
