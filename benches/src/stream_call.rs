//! Requests through a whole server on a stream in this thread: lines, dispatcher, kernel, outbox, lines. No descriptor is
//! read or written; the other end is in memory.

use duplexer_core::transport::{TransportContext, lines};
use duplexer_server::serve;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};
use tokio::runtime::{Builder, Runtime};
use tokio::task::JoinSet;

use crate::message::{Era, Request};
use crate::server;

/// A server, and the client's end of its stream.
#[derive(Debug)]
pub struct StreamCall {
    runtime: Runtime,
    /// The server's task ends with this.
    _serving: JoinSet<()>,
    stream: DuplexStream,
    requests: Vec<u8>,
    /// How many lines come back.
    answers: usize,
    room: Vec<u8>,
}

/// Room for everything that is sent at once, so that nobody waits for the other in the middle.
const ROOM: usize = 1024 * 1024;

impl StreamCall {
    /// So many calls of a tool, sent at once. `params` are the members of an object, without `_meta`; each call is
    /// answered with `lines` lines.
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
            // It ends when this end is dropped.
            let _ = serve(&running, lines::over(reader, writer, context, lines::DEFAULT_LIMIT)).await;
        };
        serving.spawn_on(serve, runtime.handle());
        let answers = usize::try_from(calls).ok()? * lines;
        Some(Self { runtime, _serving: serving, stream, requests, answers, room: vec![0; 64 * 1024] })
    }

    /// Sends the requests and reads all that comes back; `None` if the server has ended.
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
