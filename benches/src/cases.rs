//! What is measured: one table of cases, each of which answers the same request again and again in this thread.

use duplexer_types::version::ProtocolVersion;

use crate::catalog::{self, Ask};
use crate::http_call::HttpCall;
use crate::kernel::Kernel;
use crate::stream_call::StreamCall;
use crate::{FRAME, Way, allocations, baseline, ours, server, text};

/// One thing that is measured.
#[derive(Debug)]
pub struct Case {
    /// What it is called on the command line and in the recorded figures.
    pub name: &'static str,
    /// How many calls make its instructions stand out from what start-up costs.
    pub calls: u64,
    make: fn() -> Option<Work>,
}

/// Answers the request once, behind what `out` holds already. `None` if it could not.
pub type Work = Box<dyn FnMut(&mut Vec<u8>) -> Option<()>>;

/// The case whose instructions are the measure of [`FRAME_CASE`].
pub const PLAIN_CASE: &str = "frame-plain";
/// Reading and answering a frame, without any server.
pub const FRAME_CASE: &str = "frame";

/// Every case.
pub const CASES: &[Case] = &[
    Case { name: FRAME_CASE, calls: 2000, make: || Some(frame(ours)) },
    Case { name: PLAIN_CASE, calls: 2000, make: || Some(frame(baseline)) },
    Case { name: "envelope", calls: 2000, make: || kernel(Kernel::echo(ENVELOPE, 0)) },
    Case { name: "envelope-5", calls: 2000, make: || kernel(Kernel::echo(ENVELOPE, 5)) },
    Case { name: "handshake", calls: 2000, make: || kernel(Kernel::echo(HANDSHAKE, 0)) },
    Case { name: "handshake-5", calls: 2000, make: || kernel(Kernel::echo(HANDSHAKE, 5)) },
    Case { name: "call-10", calls: 2000, make: || kernel(offered(10, Ask::Call)) },
    Case { name: "call-1000", calls: 2000, make: || kernel(offered(1000, Ask::Call)) },
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
];

const ENVELOPE: ProtocolVersion = ProtocolVersion::LATEST_ENVELOPE;
const HANDSHAKE: ProtocolVersion = ProtocolVersion::LATEST_HANDSHAKE;
const SMALL: usize = 43;
const LARGE: usize = 64 * 1024;
const PROGRESS: &str = r#""name":"progress","arguments":{"n":1000}"#;

/// The case of this name.
pub fn find(name: &str) -> Option<&'static Case> {
    CASES.iter().find(|case| case.name == name)
}

impl Case {
    /// What answers its request; `None` if it cannot be set up.
    pub fn work(&self) -> Option<Work> {
        (self.make)()
    }

    /// How often one call allocates, once the first ones have filled what is kept from call to call.
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

fn offered(tools: usize, ask: Ask) -> Option<Kernel> {
    catalog::asked(&catalog::server(tools)?, ENVELOPE, ask)
}

/// The kernel of the server that load generators measure.
fn asked(method: &str, params: &str) -> Option<Kernel> {
    Kernel::new(&server::build(server::Offer::default()).ok()?, ENVELOPE, method, params)
}

fn echo_of(length: usize) -> String {
    format!(r#""name":"echo","arguments":{{"text":{}}}"#, text::json(&text::of(length)))
}

fn blob_of(length: usize) -> String {
    format!(r#""uri":"bench://blob/{length}""#)
}
