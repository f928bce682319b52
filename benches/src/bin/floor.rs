//! The floor for comparisons: `floor stdio`, `floor http PORT`.
//!
//! Over stdio one thread reads lines from a pipe and writes when no further line is available. Over HTTP it is hyper with
//! default settings and a thread per core. See `duplexer_bench::floor` for its limits.

use std::convert::Infallible;
use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::os::fd::AsFd;
use std::pin::Pin;
use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};

use bytes::Bytes;
use duplexer_bench::floor::{Answer, Telling, answer};
use http::header::{CONTENT_TYPE, HeaderValue};
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt, Either, Full};
use hyper::body::{Body, Frame, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::net::TcpListener;
use tokio::task::JoinSet;

/// Maximum size of a write.
const CHUNK: usize = 64 * 1024;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let port = |text: &String| text.parse::<u16>().ok();
    let served = match &arguments[..] {
        [transport] if transport == "stdio" => stdio(),
        [transport, number] if transport == "http" && port(number).is_some() => {
            http(port(number).unwrap_or_default())
        }
        _ => {
            eprintln!("usage: floor stdio | floor http PORT");
            return ExitCode::FAILURE;
        }
    };
    match served {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("floor: {error}");
            ExitCode::FAILURE
        }
    }
}

fn stdio() -> std::io::Result<()> {
    // The raw descriptors: the wrappers of the standard library would search for line ends.
    let mut input =
        BufReader::with_capacity(CHUNK, File::from(std::io::stdin().as_fd().try_clone_to_owned()?));
    let mut output = File::from(std::io::stdout().as_fd().try_clone_to_owned()?);
    let (mut line, mut out) = (Vec::new(), Vec::with_capacity(2 * CHUNK));
    while input.read_until(b'\n', &mut line)? > 0 {
        match answer(&line, &mut out) {
            Answer::Nothing => {}
            Answer::Whole | Answer::Opened => out.push(b'\n'),
            Answer::Telling(mut telling) => {
                while telling.write_next(&mut out).is_some() {
                    out.push(b'\n');
                    if out.len() > CHUNK {
                        output.write_all(&out)?;
                        out.clear();
                    }
                }
            }
        }
        line.clear();
        if out.len() > CHUNK || memchr::memchr(b'\n', input.buffer()).is_none() {
            output.write_all(&out)?;
            out.clear();
        }
    }
    output.write_all(&out)
}

fn http(port: u16) -> std::io::Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        let listener = TcpListener::bind(("127.0.0.1", port)).await?;
        let mut connections = JoinSet::new();
        loop {
            let (stream, _) = listener.accept().await?;
            stream.set_nodelay(true)?;
            let connection =
                http1::Builder::new().serve_connection(TokioIo::new(stream), service_fn(respond));
            // A broken connection affects only its client.
            connections.spawn(async { connection.await.unwrap_or_default() });
            while connections.try_join_next().is_some() {}
        }
    })
}

type Reply = Response<Either<Full<Bytes>, Events>>;

async fn respond(request: Request<Incoming>) -> Result<Reply, hyper::Error> {
    let message = request.into_body().collect().await?.to_bytes();
    let mut out = Vec::with_capacity(message.len() + 256);
    Ok(match answer(&message, &mut out) {
        Answer::Nothing => {
            let mut reply = Response::new(Either::Left(Full::default()));
            *reply.status_mut() = StatusCode::ACCEPTED;
            reply
        }
        Answer::Whole => json(out),
        Answer::Opened => {
            static SESSIONS: AtomicU64 = AtomicU64::new(0);
            let mut reply = json(out);
            let session = HeaderValue::from(SESSIONS.fetch_add(1, Ordering::Relaxed));
            reply.headers_mut().insert("mcp-session-id", session);
            reply
        }
        Answer::Telling(telling) => {
            let mut reply = Response::new(Either::Right(Events(telling)));
            reply.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
            reply
        }
    })
}

fn json(text: Vec<u8>) -> Reply {
    let mut reply = Response::new(Either::Left(Full::new(Bytes::from(text))));
    reply.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    reply
}

/// Body of one event per notification.
struct Events(Telling);

impl Body for Events {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let mut event = Vec::with_capacity(192);
        event.extend_from_slice(b"data: ");
        if self.0.write_next(&mut event).is_none() {
            return Poll::Ready(None);
        }
        event.extend_from_slice(b"\n\n");
        Poll::Ready(Some(Ok(Frame::data(Bytes::from(event)))))
    }
}
