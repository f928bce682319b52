//! Ten thousand pending calls that are cancelled, repeatedly: none gets a response, and no memory leaks.
//!
//! The first storm allocates the memory that all of them use; after it the memory must not grow. Calls come in waves,
//! because an allocator keeps some memory of the largest wave, which would hide a leak. One server gets all calls at once,
//! to show how much that is.

use std::io::{BufRead, BufReader, Write};
use std::ops::Range;
use std::process::{ChildStdin, ChildStdout};
use std::thread;
use std::time::Duration;

use super::figures::Figures;
use crate::load::{Connection, Fault, Message, Process, Server, spread};

const CALLS: u32 = 10_000;
/// Concurrent calls.
const WAVE: u32 = 1000;
const STORMS: u32 = 5;
/// Time in which the server returns free memory to the system.
const RETURNED: Duration = Duration::from_secs(3);
const TOOL: &str = "sleep";
const ARGUMENTS: &str = r#"{"ms":600000}"#;
const ECHO: &str = "echo";
const CALM: &str = r#"{"text":"calm"}"#;

pub(super) fn measure(figures: &mut Figures) -> Result<(), Fault> {
    let server = Server::start(&[])?;
    storms(figures, ("storm.envelope", WAVE), &server.process, |ids| by_leaving(&server, ids))?;
    let server = Server::start(&[])?;
    let session = Connection::open(server.port)?.open_session()?;
    storms(figures, ("storm.sessions", WAVE), &server.process, |ids| in_a_session(&server, &session, ids))?;
    let (process, input, output) = Process::piped()?;
    let mut pipes = Pipes { input, output: BufReader::new(output) };
    storms(figures, ("storm.stdio", WAVE), &process, |ids| pipes.wave(&process, ids))
}

/// All calls of a storm at once, by closing the connections.
pub(super) fn at_once(figures: &mut Figures) -> Result<(), Fault> {
    let server = Server::start(&[])?;
    storms(figures, ("at_once.memory", CALLS), &server.process, |ids| by_leaving(&server, ids))
}

/// Runs several storms of waves of a size with distinct ids, and records the memory after each storm, in MB.
fn storms(
    figures: &mut Figures,
    (series, size): (&str, u32),
    process: &Process,
    mut wave: impl FnMut(Range<u32>) -> Result<(), Fault>,
) -> Result<(), Fault> {
    for first in (0..STORMS * CALLS).step_by(size as usize) {
        let end = first + size;
        wave(first..end)?;
        if end.is_multiple_of(CALLS) {
            process.rest()?;
            thread::sleep(RETURNED);
            figures.put(series, end, process.megabytes()?);
        }
    }
    Ok(())
}

/// The envelope era over HTTP: closing the connection cancels the call.
fn by_leaving(server: &Server, ids: Range<u32>) -> Result<(), Fault> {
    for connection in waiting(server, ids, |id| Message::call(id, TOOL, ARGUMENTS))? {
        // A call that is pending for long has become an empty stream of events.
        let received = connection.leave()?;
        let received = String::from_utf8_lossy(&received);
        if received.contains("jsonrpc") {
            return Err(answered(&received));
        }
    }
    calm(&Connection::open(server.port)?.post(&Message::call(0, ECHO, CALM))?.body)
}

/// The handshake era over HTTP: a notification cancels. The HTTP request must end, so it ends as cancelled.
fn in_a_session(server: &Server, session: &str, ids: Range<u32>) -> Result<(), Fault> {
    let first = ids.start;
    let mut waiting = waiting(server, ids.clone(), |id| Message::call_in(session, id, TOOL, ARGUMENTS))?;
    spread(server, ids.end - first, |connection, number| {
        connection.post(&Message::cancelled_in(session, first + number))?.expect(202)
    })?;
    for connection in &mut waiting {
        let reply = connection.reply()?;
        if !reply.body.contains("-32800") || reply.body.contains("\"result\"") {
            return Err(answered(&reply.body));
        }
    }
    calm(&Connection::open(server.port)?.post(&Message::call_in(session, first, ECHO, CALM))?.body)
}

/// Calls in flight, each on its own connection.
fn waiting(
    server: &Server,
    ids: Range<u32>,
    call: impl Fn(u32) -> Message + Sync,
) -> Result<Vec<Connection>, Fault> {
    let waiting = spread(server, ids.end - ids.start, |_, number| {
        let mut connection = Connection::open(server.port)?;
        connection.send("POST", &call(ids.start + number))?;
        Ok(connection)
    })?;
    server.process.rest()?;
    Ok(waiting)
}

/// A server on pipes.
struct Pipes {
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Pipes {
    /// The first message after the cancellations must be the response to the call after them.
    fn wave(&mut self, process: &Process, ids: Range<u32>) -> Result<(), Fault> {
        self.write(ids.clone().map(|id| Message::call(id, TOOL, ARGUMENTS)))?;
        process.rest()?;
        self.write(ids.clone().map(Message::cancelled))?;
        process.rest()?;
        // The id can be reused.
        let id = ids.start;
        self.write(std::iter::once(Message::call(id, ECHO, CALM)))?;
        let mut line = String::new();
        self.output.read_line(&mut line)?;
        calm(&line)
    }

    fn write(&mut self, messages: impl Iterator<Item = Message>) -> Result<(), Fault> {
        let lines: String = messages.map(|message| message.body + "\n").collect();
        Ok(self.input.write_all(lines.as_bytes())?)
    }
}

fn answered(answer: &str) -> Fault {
    Fault(format!("a cancelled call was answered: {answer}"))
}

/// Checks that the server still responds.
fn calm(answer: &str) -> Result<(), Fault> {
    if answer.contains("\"text\":\"calm\"") { Ok(()) } else { Err(answered(answer)) }
}
