//! How each kind of descriptor is read and written.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;

use rustix::fs::{CWD, FileType, Mode, mknodat};

use super::*;
use crate::transport::lines::LineReader;
use crate::transport::testing::{next, terminal, text, write};
use crate::transport::{FrameReader, TransportContext};

const LIMIT: usize = 1024 * 1024;

fn reader(fd: impl Into<OwnedFd>) -> Box<dyn FrameReader> {
    let input = Input::open(Descriptor::owned(fd)).unwrap();
    Box::new(LineReader::new(input, TransportContext::stream("test"), LIMIT))
}

fn writer(fd: impl Into<OwnedFd>) -> Box<dyn FrameWriter> {
    Box::new(Output::open(Descriptor::owned(fd)).unwrap())
}

/// Returns a path that no other test uses.
fn path(name: &str) -> std::path::PathBuf {
    std::env::temp_dir().join(format!("duplexer-{}-{name}", std::process::id()))
}

fn named_pipe(name: &str) -> std::path::PathBuf {
    let path = path(name);
    let _ = std::fs::remove_file(&path);
    mknodat(CWD, &path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
    path
}

fn nonblocking(fd: impl AsFd) -> bool {
    fcntl_getfl(fd).unwrap().contains(OFlags::NONBLOCK)
}

#[test]
fn every_kind_of_descriptor_is_recognised() {
    let (pipe_reader, pipe_writer) = io::pipe().unwrap();
    assert_eq!(kind(&pipe_reader), Ok(Kind::Pipe));
    assert_eq!(kind(&pipe_writer), Ok(Kind::Pipe));
    let (socket, _other) = UnixStream::pair().unwrap();
    assert_eq!(kind(&socket), Ok(Kind::Socket));
    let (datagrams, _other) = std::os::unix::net::UnixDatagram::pair().unwrap();
    assert_eq!(kind(&datagrams), Ok(Kind::Blocking));
    assert_eq!(kind(File::open("/dev/null").unwrap()), Ok(Kind::Blocking));
    assert_eq!(kind(File::open("/proc/self/exe").unwrap()), Ok(Kind::Blocking));
    let (main, terminal) = terminal();
    assert_eq!(kind(&main), Ok(Kind::Blocking));
    assert_eq!(kind(&terminal), Ok(Kind::Blocking));
}

#[test]
#[cfg(target_os = "linux")]
fn a_named_pipe_is_not_watched_because_its_end_may_not_be_final() {
    let path = named_pipe("kind");
    let named = File::options().read(true).write(true).open(&path).unwrap();
    std::fs::remove_file(path).unwrap();
    assert_eq!(kind(&named), Ok(Kind::Blocking));
}

#[tokio::test]
#[cfg(target_os = "linux")]
async fn serving_a_pipe_or_socket_leaves_the_flags_of_the_shared_description_alone() {
    let (input, _writer) = io::pipe().unwrap();
    let (_reader, output) = io::pipe().unwrap();
    let (socket, _other) = UnixStream::pair().unwrap();
    let _input = reader(input.try_clone().unwrap());
    let _output = writer(output.try_clone().unwrap());
    let _socket = (reader(socket.try_clone().unwrap()), writer(socket.try_clone().unwrap()));
    assert!(!nonblocking(&input) && !nonblocking(&output) && !nonblocking(&socket));
}

#[tokio::test]
async fn flags_that_had_to_be_set_in_place_are_restored() {
    let (input, _writer) = io::pipe().unwrap();
    let mut descriptor = Descriptor::owned(input.try_clone().unwrap());
    descriptor.set_nonblocking().unwrap();
    assert!(nonblocking(&input));
    drop(descriptor);
    assert!(!nonblocking(&input));
}

#[tokio::test]
async fn a_pipe_carries_lines_both_ways_and_ends() {
    let (input, mut peer_writer) = io::pipe().unwrap();
    let (mut peer_reader, output) = io::pipe().unwrap();
    let (mut reader, mut writer) = (reader(input), writer(output));
    assert!(is_quiet(&mut reader).await);
    for index in 0..100 {
        let line = format!("{{\"n\":{index}}}");
        writeln!(peer_writer, "{line}").unwrap();
        assert_eq!(text(next(&mut reader).await), line);
        write(&mut writer, &line).await.unwrap();
        let mut back = vec![0; line.len() + 1];
        peer_reader.read_exact(&mut back).unwrap();
        assert_eq!(back, format!("{line}\n").as_bytes());
    }
    peer_writer.write_all(b"{\"last\":1}").unwrap();
    drop(peer_writer);
    assert_eq!(text(next(&mut reader).await), "{\"last\":1}");
    assert!(next(&mut reader).await.is_none());
    drop(peer_reader);
    assert!(matches!(write(&mut writer, "{}").await, Err(TransportError::Closed)));
}

/// Whether there is nothing to read yet.
async fn is_quiet(reader: &mut Box<dyn FrameReader>) -> bool {
    std::future::poll_fn(|cx| Poll::Ready(reader.poll_next(cx).is_pending())).await
}

#[tokio::test]
async fn a_peer_that_went_before_the_pipe_was_opened_is_noticed() {
    let (input, mut peer_writer) = io::pipe().unwrap();
    peer_writer.write_all(b"{\"a\":1}\n").unwrap();
    drop(peer_writer);
    let mut reader = reader(input);
    assert_eq!(text(next(&mut reader).await), "{\"a\":1}");
    assert!(next(&mut reader).await.is_none());
    let (peer_reader, output) = io::pipe().unwrap();
    drop(peer_reader);
    assert!(matches!(write(&mut writer(output), "{}").await, Err(TransportError::Closed)));
}

/// More than any buffer between the two ends holds, so that reads and writes stop half way.
async fn much_through(mut reader: Box<dyn FrameReader>, mut writer: Box<dyn FrameWriter>) {
    let mut frames = Frames::default();
    for index in 0..20_000 {
        frames.push(format!("{{\"n\":{index},\"pad\":\"{}\"}}", "x".repeat(index % 300)).as_bytes(), None);
    }
    let writing = async {
        std::future::poll_fn(|cx| writer.poll_write(cx, &mut frames)).await.unwrap();
        drop(writer);
    };
    let reading = async {
        for index in 0..20_000 {
            assert!(text(next(&mut reader).await).starts_with(&format!("{{\"n\":{index},")));
        }
        assert!(next(&mut reader).await.is_none());
    };
    tokio::join!(writing, reading);
}

#[tokio::test]
async fn much_goes_through_a_pipe_without_loss_on_one_thread() {
    let (input, output) = io::pipe().unwrap();
    much_through(reader(input), writer(output)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn much_goes_through_a_socket_without_loss_on_many_threads() {
    let (input, output) = UnixStream::pair().unwrap();
    much_through(reader(input), writer(output)).await;
}

#[tokio::test]
async fn much_goes_through_a_named_pipe_by_threads_without_loss() {
    let path = named_pipe("much");
    let open = |path: &std::path::Path| File::options().read(true).write(true).open(path).unwrap();
    let keep = open(&path);
    let (input, output) = (File::open(&path).unwrap(), File::options().write(true).open(&path).unwrap());
    drop(keep);
    std::fs::remove_file(path).unwrap();
    let (reader, writer) = (reader(input), writer(output));
    much_through(reader, writer).await;
}

#[tokio::test]
async fn regular_files_and_the_null_device_are_read_to_their_end() {
    let path = path("file");
    std::fs::write(&path, "{\"a\":1}\n{\"b\":2}").unwrap();
    let mut from_file = reader(File::open(&path).unwrap());
    assert_eq!(text(next(&mut from_file).await), "{\"a\":1}");
    assert_eq!(text(next(&mut from_file).await), "{\"b\":2}");
    assert!(next(&mut from_file).await.is_none());
    let mut to_file = writer(File::create(&path).unwrap());
    write(&mut to_file, "{\"c\":3}").await.unwrap();
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "{\"c\":3}\n");
    std::fs::remove_file(path).unwrap();
    assert!(next(&mut reader(File::open("/dev/null").unwrap())).await.is_none());
}

#[tokio::test]
async fn an_abandoned_reader_of_a_terminal_does_not_swallow_what_is_typed_later() {
    let (mut main, terminal) = terminal();
    let mut first = reader(terminal.try_clone().unwrap());
    assert!(is_quiet(&mut first).await);
    main.write_all(b"{\"a\":1}\n").unwrap();
    assert_eq!(text(next(&mut first).await), "{\"a\":1}");
    assert!(is_quiet(&mut first).await);
    drop(first);
    let mut second = reader(terminal);
    main.write_all(b"{\"b\":2}\n").unwrap();
    assert_eq!(text(next(&mut second).await), "{\"b\":2}");
}

#[tokio::test]
async fn a_full_pipe_served_by_a_thread_whose_description_someone_made_nonblocking_still_gets_everything() {
    let (mut peer_reader, output) = io::pipe().unwrap();
    let mut shared = Descriptor::owned(output.try_clone().unwrap());
    shared.set_nonblocking().unwrap();
    let mut writer: Box<dyn FrameWriter> =
        Box::new(Output::Thread(start_sink(Descriptor::owned(output)).unwrap()));
    let expected = "x".repeat(500_000);
    let frame = expected.clone();
    let reading = tokio::task::spawn_blocking(move || {
        let mut back = vec![0; frame.len() + 1];
        peer_reader.read_exact(&mut back).unwrap();
        back
    });
    write(&mut writer, &expected).await.unwrap();
    assert_eq!(reading.await.unwrap().trim_ascii_end(), expected.as_bytes());
}
