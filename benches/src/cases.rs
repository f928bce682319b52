//! The table of measured cases, each of which answers the same request repeatedly in this thread.

use duplexer_types::version::ProtocolVersion;

use crate::catalog::{self, Ask};
use crate::client_call::ClientCall;
use crate::http_call::HttpCall;
use crate::kernel::Kernel;
use crate::stream_call::StreamCall;
use crate::{FRAME, Way, allocations, baseline, layers, ours, server, task_get, text};

/// One measured case.
#[derive(Debug)]
pub struct Case {
    /// Name on the command line and in the recorded figures.
    pub name: &'static str,
    /// Number of calls that makes its instructions significant against start-up.
    pub calls: u64,
    make: fn() -> Option<Work>,
}

/// Answers the request once and appends to `out`. `None` on failure.
pub type Work = Box<dyn FnMut(&mut Vec<u8>) -> Option<()>>;

/// Baseline of [`FRAME_CASE`].
pub const PLAIN_CASE: &str = "frame-plain";
/// Reads and answers a frame without a server.
pub const FRAME_CASE: &str = "frame";

/// Baseline of [`CLIENT_CASE`].
pub const PLAIN_CLIENT_CASE: &str = "client-http-plain";
/// Calls a tool over HTTP with our client.
pub const CLIENT_CASE: &str = "client-http";

/// Echo of the catalog, the baseline of [`TASK_CASE`].
pub const ECHO_CASE: &str = "call-10";
/// Looks a finished task up.
pub const TASK_CASE: &str = "task-get";

/// All cases.
pub const CASES: &[Case] = &[
    Case { name: FRAME_CASE, calls: 2000, make: || Some(frame(ours)) },
    Case { name: PLAIN_CASE, calls: 2000, make: || Some(frame(baseline)) },
    Case { name: "envelope", calls: 2000, make: || kernel(Kernel::echo(ENVELOPE, 0)) },
    Case { name: "envelope-5", calls: 2000, make: || kernel(Kernel::echo(ENVELOPE, 5)) },
    Case { name: "handshake", calls: 2000, make: || kernel(Kernel::echo(HANDSHAKE, 0)) },
    Case { name: "handshake-5", calls: 2000, make: || kernel(Kernel::echo(HANDSHAKE, 5)) },
    Case { name: ECHO_CASE, calls: 2000, make: || kernel(offered(10, Ask::Call)) },
    Case { name: "call-1000", calls: 2000, make: || kernel(offered(1000, Ask::Call)) },
    Case { name: TASK_CASE, calls: 2000, make: || kernel(task_get::finished()) },
    Case { name: "list-1", calls: 2000, make: || kernel(offered(1, Ask::List)) },
    Case { name: "list-50", calls: 2000, make: || kernel(offered(50, Ask::List)) },
    Case { name: "echo-64k", calls: 50, make: || kernel(asked("tools/call", &echo_of(LARGE))) },
    Case { name: "read-64k", calls: 50, make: || kernel(asked("resources/read", &blob_of(LARGE))) },
    Case { name: "stream-echo", calls: 1000, make: || stream(StreamCall::new(&echo_of(SMALL), 1, 1)) },
    Case { name: "stream-echo-64", calls: 50, make: || stream(StreamCall::new(&echo_of(SMALL), 64, 1)) },
    Case { name: "stream-progress-1000", calls: 10, make: || stream(StreamCall::new(PROGRESS, 1, 1001)) },
    Case { name: "http-envelope", calls: 1000, make: || http(HttpCall::envelope("echo", &echo_of(SMALL))) },
    Case { name: "http-session", calls: 1000, make: || http(HttpCall::session(&echo_of(SMALL))) },
    Case { name: "http-stateless", calls: 1000, make: || http(HttpCall::stateless(&echo_of(SMALL))) },
    Case { name: "http-echo-64k", calls: 50, make: || http(HttpCall::envelope("echo", &echo_of(LARGE))) },
    Case { name: "http-progress-1000", calls: 10, make: || http(HttpCall::envelope("progress", PROGRESS)) },
    Case { name: "client-memory", calls: 1000, make: || client(ClientCall::over_memory()) },
    Case { name: CLIENT_CASE, calls: 1000, make: || client(ClientCall::over_http()) },
    Case { name: PLAIN_CLIENT_CASE, calls: 1000, make: || client(ClientCall::plain()) },
];

/// Cases that differ from [`ECHO_CASE`] in one layer. What a layer adds has a bar (`layers::BARS`), so they have no recorded figures.
pub const LAYERS: &[Case] = &[
    Case { name: "layer-timeout", calls: 2000, make: || kernel(layers::kernel("layer-timeout")) },
    Case { name: "layer-concurrency", calls: 2000, make: || kernel(layers::kernel("layer-concurrency")) },
    Case { name: "layer-rate-limit", calls: 2000, make: || kernel(layers::kernel("layer-rate-limit")) },
    Case {
        name: "layer-response-limit",
        calls: 2000,
        make: || kernel(layers::kernel("layer-response-limit")),
    },
    Case { name: "layer-access-log", calls: 2000, make: || kernel(layers::kernel("layer-access-log")) },
    Case { name: "layer-tool-scopes", calls: 2000, make: || kernel(layers::kernel("layer-tool-scopes")) },
    Case { name: "layer-audit-log", calls: 2000, make: || kernel(layers::kernel("layer-audit-log")) },
    Case { name: "layer-result-cache", calls: 2000, make: || kernel(layers::kernel("layer-result-cache")) },
    Case { name: "layer-redaction", calls: 2000, make: || kernel(layers::kernel("layer-redaction")) },
    Case { name: "metrics", calls: 2000, make: || kernel(layers::kernel("metrics")) },
];

const ENVELOPE: ProtocolVersion = ProtocolVersion::LATEST_ENVELOPE;
const HANDSHAKE: ProtocolVersion = ProtocolVersion::LATEST_HANDSHAKE;
const SMALL: usize = 43;
const LARGE: usize = 64 * 1024;
const PROGRESS: &str = r#""name":"progress","arguments":{"n":1000}"#;

/// Returns the case with this name.
pub fn find(name: &str) -> Option<&'static Case> {
    CASES.iter().chain(LAYERS).find(|case| case.name == name)
}

impl Case {
    /// Sets up the function that answers its request; `None` on failure.
    pub fn work(&self) -> Option<Work> {
        (self.make)()
    }

    /// Counts the allocations of one call after a warm-up.
    pub fn allocations(&self) -> Option<u64> {
        let mut work = self.work()?;
        let mut out = Vec::with_capacity(4 * LARGE);
        let mut counts = Vec::with_capacity(8);
        for _ in 0..8 {
            out.clear();
            let mut answered = None;
            counts.push(allocations::during(|| answered = work(&mut out)));
            answered?;
        }
        Some(counts.into_iter().min()? as u64)
    }
}

fn frame(way: Way) -> Work {
    Box::new(move |out| way(std::hint::black_box(FRAME), out))
}

fn kernel(kernel: Option<Kernel>) -> Option<Work> {
    let kernel = kernel?;
    Some(Box::new(move |out| kernel.answer(out)))
}

fn stream(call: Option<StreamCall>) -> Option<Work> {
    let mut call = call?;
    Some(Box::new(move |out| call.answer(out)))
}

fn http(call: Option<HttpCall>) -> Option<Work> {
    let mut call = call?;
    Some(Box::new(move |out| call.answer(out)))
}

fn client(call: Option<ClientCall>) -> Option<Work> {
    let mut call = call?;
    Some(Box::new(move |out| call.answer(out)))
}

fn offered(tools: usize, ask: Ask) -> Option<Kernel> {
    catalog::asked(&catalog::server(tools)?, ENVELOPE, ask)
}

/// Returns the kernel of the server under load.
fn asked(method: &str, params: &str) -> Option<Kernel> {
    Kernel::new(&server::build(server::Offer::default()).ok()?, ENVELOPE, method, params)
}

fn echo_of(length: usize) -> String {
    format!(r#""name":"echo","arguments":{{"text":{}}}"#, text::json(&text::of(length)))
}

fn blob_of(length: usize) -> String {
    format!(r#""uri":"bench://blob/{length}""#)
}
