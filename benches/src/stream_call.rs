//! Requests through a whole server on an in-memory stream in this thread: lines, dispatcher, kernel, outbox, lines.

use duplexer_core::transport::{TransportContext, lines};
use duplexer_server::serve;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};
use tokio::runtime::{Builder, Runtime};
use tokio::task::JoinSet;

use crate::message::{Era, Request};
use crate::server;

/// A server and the client end of its stream.
#[derive(Debug)]
pub struct StreamCall {
    runtime: Runtime,
    /// Owns the task of the server.
    _serving: JoinSet<()>,
    stream: DuplexStream,
    requests: Vec<u8>,
    /// Lines in the response.
    answers: usize,
    room: Vec<u8>,
}

/// Capacity for all requests at once, so that neither side blocks on the other.
const ROOM: usize = 1024 * 1024;

impl StreamCall {
    /// Creates a case with `calls` concurrent calls of a tool. `params` are the members of an object, without `_meta`;
    /// each call has a response of `lines` lines.
    pub fn new(params: &str, calls: u64, lines: usize) -> Option<Self> {
        let mut requests = Vec::new();
        for id in 1..=calls {
            let request = Request { method: "tools/call", params, era: Era::Envelope, token: Some(id) };
            request.write(id, &mut requests);
            requests.push(b'\n');
        }
        let runtime = Builder::new_current_thread().enable_all().build().ok()?;
        let server = server::build(server::Offer::default()).ok()?;
        let (stream, far) = tokio::io::duplex(ROOM);
        let running = runtime.block_on(server.start()).ok()?;
        let mut serving = JoinSet::new();
        let serve = async move {
            let (reader, writer) = tokio::io::split(far);
            let context = TransportContext::stream("bench");
            // The task ends when this end is dropped.
            let _ = serve(&running, lines::over(reader, writer, context, lines::DEFAULT_LIMIT)).await;
        };
        serving.spawn_on(serve, runtime.handle());
        let answers = usize::try_from(calls).ok()? * lines;
        Some(Self { runtime, _serving: serving, stream, requests, answers, room: vec![0; 64 * 1024] })
    }

    /// Sends the requests and reads the responses; `None` if the server has ended.
    pub fn answer(&mut self, out: &mut Vec<u8>) -> Option<()> {
        let Self { runtime, stream, requests, room, .. } = self;
        runtime.block_on(async {
            stream.write_all(requests).await.ok()?;
            let mut lines = 0;
            while lines < self.answers {
                let count = stream.read(room).await.ok().filter(|count| *count > 0)?;
                lines += memchr::memchr_iter(b'\n', &room[..count]).count();
                out.extend_from_slice(&room[..count]);
            }
            Some(())
        })
    }
}
