//! Checks of a program that serves its standard input and output.

mod process;

use std::time::Duration;

use duplexer::types::error::ErrorCode;
use duplexer::types::methods::Method;
use duplexer::types::version::{Era, ProtocolVersion};
use serde_json::{Value, json};

use super::messages::{self, Answer, NO_VERSION};
use super::offers::{self, Channel as _};
use super::report::Report;
use super::{latency, rules};
use crate::failure::Failure;
use crate::target::Program;
use process::Process;

/// How a process is ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ending {
    /// Its input ends.
    Input,
    /// It gets SIGTERM.
    Signal,
}

/// Checks a program. Every connection is a process of its own, because the first message decides the era.
pub(super) async fn check(
    program: &Program,
    env: &[(String, String)],
    limit: Duration,
    report: &mut Report,
) -> Result<(), Failure> {
    let start = |era: Era| Process::start(program, env, era, limit);
    let mut first = match start(Era::Envelope)? {
        Ok(process) => process,
        Err(reason) => {
            report.find(rules::REACHABLE, reason);
            return Ok(());
        }
    };
    let discovered = first.ask(Method::ServerDiscover, json!({})).await;
    let mut endings = vec![Ending::Signal, Ending::Input];
    if let Answer::Result(result) = &discovered {
        report.server = messages::identity(
            result.get("_meta").and_then(|meta| meta.get(duplexer::types::meta::key::SERVER_INFO)),
        );
        envelope(&mut first, result, report).await;
        end(first, endings.pop(), report).await;
    } else {
        first.discard(report).await;
    }
    let Ok(mut second) = start(Era::Handshake)? else { return Ok(()) };
    let opened = second.initialize(ProtocolVersion::LATEST_HANDSHAKE.as_str()).await;
    match (&discovered, &opened) {
        (_, Answer::Result(result)) => {
            report.pass(rules::HANDSHAKE_ERA);
            let is_envelope = matches!(discovered, Answer::Result(_));
            report.expect(rules::ENVELOPE_ERA, is_envelope, || {
                format!("the discovery: {}", discovered.describe())
            });
            let info = messages::identity(result.get("serverInfo"));
            report.server = report.server.take().or(info);
            handshake(&mut second, result, report).await;
            if !is_envelope && !second.has_ended() {
                let capabilities = result.get("capabilities").unwrap_or(&Value::Null);
                offers::check(&mut second, capabilities, report).await;
                latency::check(&mut second, Method::Ping, report).await;
            }
            end(second, endings.pop(), report).await;
        }
        (Answer::Result(_), _) => {
            report.find(rules::HANDSHAKE_ERA, format!("the handshake: {}", opened.describe()));
            second.discard(report).await;
        }
        _ => return neither(second, &discovered, &opened, report).await,
    }
    report.pass(rules::REACHABLE);
    report.pass(rules::ERA);
    if matches!(opened, Answer::Result(_)) {
        negotiation(start(Era::Handshake)?, report).await;
    }
    // The ending that no process has had yet.
    if let (Some(ending), Ok(mut third)) = (endings.pop(), start(Era::Handshake)?) {
        third.initialize(ProtocolVersion::LATEST_HANDSHAKE.as_str()).await;
        end(third, Some(ending), report).await;
    }
    Ok(())
}

/// No era is spoken: the program ended, or says something else.
async fn neither(
    process: Process,
    discovered: &Answer,
    opened: &Answer,
    report: &mut Report,
) -> Result<(), Failure> {
    let has_ended = process.has_ended();
    let status = process.discard(report).await;
    if has_ended {
        report.find(rules::REACHABLE, format!("the program ended before it answered ({status})"));
    } else {
        report.pass(rules::REACHABLE);
        let what = format!("the handshake: {}; the discovery: {}", opened.describe(), discovered.describe());
        report.find(rules::ERA, what);
    }
    Ok(())
}

async fn envelope(process: &mut Process, discovered: &Value, report: &mut Report) {
    let faults = messages::discovery_faults(discovered);
    report.expect(rules::DISCOVER, faults.is_empty(), || {
        format!("{}: {}", faults.join(", "), messages::brief(discovered))
    });
    report.expect(rules::RESULT_TYPE, discovered.get("resultType").is_some_and(Value::is_string), || {
        format!("the discovery: {}", messages::brief(discovered))
    });
    requests(process, Method::ServerDiscover, report).await;
    if process.has_ended() {
        return;
    }
    offers::check(process, discovered.get("capabilities").unwrap_or(&Value::Null), report).await;
    latency::check(process, Method::ServerDiscover, report).await;
}

async fn handshake(process: &mut Process, result: &Value, report: &mut Report) {
    let faults = messages::handshake_faults(result);
    report.expect(rules::INITIALIZE, faults.is_empty(), || {
        format!("{}: {}", faults.join(", "), messages::brief(result))
    });
    let ping = process.ask(Method::Ping, json!({})).await;
    report.expect(rules::PING, matches!(ping, Answer::Result(_)), || ping.describe());
    if matches!(ping, Answer::Result(_)) {
        requests(process, Method::Ping, report).await;
    }
}

/// Unknown methods and malformed input. `sound` is a request that the server answers.
async fn requests(process: &mut Process, sound: Method, report: &mut Report) {
    let unknown = process.ask_unknown().await;
    let expected = ErrorCode::METHOD_NOT_FOUND.0;
    let is_refused = matches!(unknown, Answer::Error { code, .. } if code == expected);
    report.expect(rules::UNKNOWN_METHOD, is_refused, || {
        format!("a request of an unknown method: {}", unknown.describe())
    });
    process.garbage().await;
    let after = process.ask(sound, json!({})).await;
    report.expect(rules::SURVIVES_GARBAGE, matches!(after, Answer::Result(_)), || {
        format!("a request after a line that is no JSON: {}", after.describe())
    });
}

/// An unknown revision is answered with another one.
async fn negotiation(process: Result<Process, String>, report: &mut Report) {
    let Ok(mut process) = process else { return };
    let answer = process.initialize(NO_VERSION).await;
    let offered = match &answer {
        Answer::Result(result) => result.get("protocolVersion").and_then(Value::as_str),
        _ => None,
    };
    report.expect(
        rules::NEGOTIATION,
        offered.is_some_and(|text| text.parse::<ProtocolVersion>().is_ok()),
        || format!("the handshake with the revision {NO_VERSION}: {}", answer.describe()),
    );
    process.discard(report).await;
}

async fn end(process: Process, ending: Option<Ending>, report: &mut Report) {
    match ending {
        Some(Ending::Input) => process.end_input(report).await,
        Some(Ending::Signal) => process.end_by_signal(report).await,
        None => drop(process.discard(report).await),
    }
}
