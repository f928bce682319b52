//! Memory of idle sessions and of their open streams.

use std::thread;
use std::time::Duration;

use super::figures::Figures;
use crate::load::{Connection, Fault, Process, Server, spread};

const SIZES: [u32; 5] = [1000, 2500, 5000, 7500, 10_000];
/// Interval of the keep-alive pings of a stream.
const PING: Duration = Duration::from_secs(15);

/// Sessions of the handshake era without a connection.
pub(super) fn sessions(figures: &mut Figures) -> Result<(), Fault> {
    let server = Server::start(&[])?;
    let before = warmed_up(&server)?;
    let mut open = 0;
    for size in SIZES {
        spread(&server, size - open, |connection, _| connection.open_session())?;
        open = size;
        figures.put("sessions.memory", size, grown(&server.process, before)?);
    }
    Ok(())
}

/// Idle streams of sessions: each is a session, a connection and a pending request.
pub(super) fn streams(figures: &mut Figures) -> Result<(), Fault> {
    let server = Server::start(&[])?;
    let before = warmed_up(&server)?;
    let mut open: Vec<Connection> = Vec::new();
    let mut count = 0;
    for size in SIZES {
        open.extend(spread(&server, size - count, |connection, _| stream(connection, server.port))?);
        count = size;
        figures.put("streams.memory", size, grown(&server.process, before)?);
        let computed = server.process.cpu()?;
        thread::sleep(PING);
        let computed = server.process.cpu()?.saturating_sub(computed);
        figures.put("streams.cpu", size, computed.as_secs_f64() * 1000.0 / PING.as_secs_f64());
    }
    Ok(())
}

fn stream(connection: &mut Connection, port: u16) -> Result<Connection, Fault> {
    let session = connection.open_session()?;
    let mut stream = Connection::open(port)?;
    stream.listen_in(&session)?;
    Ok(stream)
}

/// Returns the memory of a server after a warm-up, in MB.
fn warmed_up(server: &Server) -> Result<f64, Fault> {
    spread(server, 200, |connection, _| {
        let session = connection.open_session()?;
        connection.end_session(&session)?.expect(200)
    })?;
    server.process.rest()?;
    server.process.megabytes()
}

/// Returns the growth of the memory, in MB.
fn grown(process: &Process, before: f64) -> Result<f64, Fault> {
    process.rest()?;
    Ok(process.megabytes()? - before)
}
