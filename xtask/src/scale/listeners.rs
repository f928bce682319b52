//! Many listeners and one change: CPU time and latency until all are notified.

#![expect(clippy::disallowed_methods, reason = "there is no runtime here whose clock could be used")]

use std::time::Instant;

use super::figures::Figures;
use super::rates::median;
use crate::load::{Connection, Fault, Message, Server, spread};

/// The default limit of a server is 1024 listeners of the envelope era.
const SIZES: [u32; 5] = [100, 250, 500, 750, 1000];
const CHANGES: u32 = 21;
const URI: &str = "bench://touched";
const CHANGED: &str = "notifications/resources/updated";

/// Opens a listener on its own connection; the other connection is for the preceding requests.
type Listen = fn(&mut Connection, u16, u32) -> Result<Connection, Fault>;

pub(super) fn measure(figures: &mut Figures) -> Result<(), Fault> {
    let eras: [(&str, Listen); 2] = [("envelope", by_request), ("sessions", in_session)];
    for (era, listen) in eras {
        let server = Server::start(&["--with-changes"])?;
        let mut listeners = Vec::new();
        let mut count = 0;
        for size in SIZES {
            let more =
                spread(&server, size - count, |connection, number| listen(connection, server.port, number));
            listeners.extend(more?);
            count = size;
            let (cpu, time) = changes(&server, &mut listeners)?;
            figures.put(&format!("listeners.{era}.cpu"), size, cpu);
            figures.put(&format!("listeners.{era}.time"), size, time);
        }
    }
    Ok(())
}

/// Measures CPU time and latency of a change until all listeners are notified, in ms: medians.
fn changes(server: &Server, listeners: &mut [Connection]) -> Result<(f64, f64), Fault> {
    let mut trigger = Connection::open(server.port)?;
    let (mut cpus, mut times) = (Vec::new(), Vec::new());
    for id in 0..CHANGES {
        server.process.rest()?;
        let (computed, begun) = (server.process.cpu()?, Instant::now());
        trigger.send("POST", &Message::call(id, "touch", "{}"))?;
        for listener in &mut *listeners {
            listener.hear(CHANGED)?;
        }
        times.push(begun.elapsed().as_secs_f64() * 1000.0);
        trigger.reply()?.expect(200)?;
        cpus.push(server.process.cpu()?.saturating_sub(computed).as_secs_f64() * 1000.0);
    }
    Ok((median(cpus), median(times)))
}

/// The envelope era: a long-lived request.
fn by_request(_: &mut Connection, port: u16, number: u32) -> Result<Connection, Fault> {
    let asked = format!(r#""notifications":{{"resourceSubscriptions":["{URI}"]}}"#);
    let mut stream = Connection::open(port)?;
    stream.send("POST", &Message::enveloped(number, "subscriptions/listen", &asked))?;
    stream.streaming()?;
    stream.hear("notifications/subscriptions/acknowledged")?;
    Ok(stream)
}

/// The handshake era: a session with a subscription, and its stream.
fn in_session(connection: &mut Connection, port: u16, _: u32) -> Result<Connection, Fault> {
    let session = connection.open_session()?;
    let mut stream = Connection::open(port)?;
    stream.listen_in(&session)?;
    let subscribe = Message::asked_in(&session, 1, "resources/subscribe", &format!(r#"{{"uri":"{URI}"}}"#));
    connection.post(&subscribe)?.expect(200)?;
    Ok(stream)
}
