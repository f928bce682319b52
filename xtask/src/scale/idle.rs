//! What is there and does nothing: sessions, and their open streams.

use std::thread;
use std::time::Duration;

use super::figures::Figures;
use crate::load::{Connection, Fault, Process, Server, spread};

const SIZES: [u32; 5] = [1000, 2500, 5000, 7500, 10_000];
/// One ping per stream goes out in this time.
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

/// Streams of sessions on which nothing is told: each a session, a connection and a request that waits.
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

/// The memory of a server that has served before, in MB.
fn warmed_up(server: &Server) -> Result<f64, Fault> {
    spread(server, 200, |connection, _| {
        let session = connection.open_session()?;
        connection.end_session(&session)?.expect(200)
    })?;
    server.process.rest()?;
    server.process.megabytes()
}

/// How much more memory it holds than before, in MB.
fn grown(process: &Process, before: f64) -> Result<f64, Fault> {
    process.rest()?;
    Ok(process.megabytes()? - before)
}
