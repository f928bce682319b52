//! `duplexer ping`: whether a server responds, and which revision it uses.

use duplexer::types::version::Era;
use tokio::time::Instant;

use crate::failure::Failure;
use crate::output::Output;
use crate::session::Session;
use crate::text::{Style, Text};

/// Sends a cheap request of the era: `ping` or `server/discover`.
pub(super) async fn run(session: &Session, output: &Output) -> Result<(), Failure> {
    let client = &session.client;
    let asked = Instant::now();
    let (raw, era) = match client.era() {
        Era::Handshake => (session.ask(client.ping()).await?, "handshake"),
        Era::Envelope => (session.ask(client.discover()).await?, "envelope"),
    };
    let taken = asked.elapsed();
    if output.is_json() {
        return output.json(&raw);
    }
    let who = match client.server_info() {
        Some(info) => format!("{} {}", info.title.as_ref().unwrap_or(&info.name), info.version),
        None => "A server without a name".to_owned(),
    };
    let milliseconds = taken.as_secs_f64() * 1000.0;
    let how = format!(" answers in {milliseconds:.1} ms and speaks {} ({era})", client.protocol_version());
    output.text(&Text::new().then(Style::Name, who).then(Style::Plain, how))
}
