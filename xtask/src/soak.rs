//! `cargo xtask soak`: memory of the server under thousands of sessions.
//!
//! Opens the maximum number of sessions and abandons them: they must be small, and removed after their idle timeout. Then
//! opens, uses and ends sessions without a pause: the memory must not grow.
//!
//! `cargo xtask soak tasks`: tasks across the end of a process and of a node, with the lease that servers have by default.
//! `cargo xtask soak hour`: an hour of both eras with clients that fail on purpose.

#![expect(clippy::disallowed_methods, reason = "there is no runtime here whose clock could be used")]

mod actions;
mod hour;
mod plot;

use std::io::Write as _;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use crate::Failure;
use crate::load::{self, Connection, Fault, Message, Reply, Server, spread};
use crate::{process, valkey};

/// Default maximum of sessions of a server.
const SESSIONS: u32 = 10_000;
/// Maximum memory of an abandoned session, in bytes.
const SESSION_LIMIT: u64 = 20_000;
const REQUESTS: u32 = 1_000_000;
/// Idle timeout of a session in this run.
const IDLE: Duration = Duration::from_secs(30);
/// Seconds for which a node that is gone keeps its tasks, by default.
const LEASE: &str = "30";
/// Permitted growth of the memory, in addition to a tenth, in kB.
const SLACK: u32 = 4 * 1024;

pub(crate) fn command(arguments: &[String]) -> Result<(), Failure> {
    let requests = match arguments {
        [] => REQUESTS,
        [part] if part == "tasks" => return tasks(),
        [part, options @ ..] if part == "hour" => {
            let (minutes, output) = hour_options(options)?;
            return hour::run(minutes, output).map_err(failed);
        }
        [option, number] if option == "--requests" => {
            number.parse().map_err(|_| Failure::Usage(format!("'{number}' is not a number of requests")))?
        }
        _ => return Err(Failure::Usage("soak takes nothing but `tasks`, `hour` or `--requests N`".into())),
    };
    run(requests).map_err(failed)
}

/// Reads `--minutes N` and `--record`.
fn hour_options(options: &[String]) -> Result<(u32, hour::Output), Failure> {
    let (mut minutes, mut output) = (hour::MINUTES, hour::Output::Build);
    let mut rest = options.iter();
    while let Some(option) = rest.next() {
        match option.as_str() {
            "--record" => output = hour::Output::Documentation,
            "--minutes" => {
                let number = rest.next().map(String::as_str).unwrap_or_default();
                // A comparison needs a sample in each half.
                let read = number.parse().ok().filter(|minutes| *minutes >= 2);
                minutes = read.ok_or_else(|| {
                    Failure::Usage(format!("--minutes needs a whole number from 2 on, got `{number}`"))
                })?;
            }
            other => {
                return Err(Failure::Usage(format!(
                    "soak hour takes --minutes N and --record, got `{other}`"
                )));
            }
        }
    }
    Ok((minutes, output))
}

fn failed(fault: impl std::fmt::Display) -> Failure {
    eprintln!("error: {fault}");
    Failure::Failed
}

/// The tests of tasks, which the test command runs with a short lease.
fn tasks() -> Result<(), Failure> {
    let mut command = Command::new(process::program("cargo"));
    command.args(["test", "--locked", "--package", "duplexer-tests", "--test", "suite", "--", "tasks::"]);
    valkey::provide(&mut command);
    process::run(command.env("TASK_LEASE", LEASE)).map_err(failed)
}

fn run(requests: u32) -> Result<(), Fault> {
    load::build()?;
    let server = Server::start(&["--session-idle", &IDLE.as_secs().to_string()])?;
    abandoned(&server)?;
    churn(&server, requests)
}

/// Abandoned sessions.
fn abandoned(server: &Server) -> Result<(), Fault> {
    spread(server, 200, |connection, _| cycle(connection))?;
    let before = server.process.memory()?;
    let opened = Instant::now();
    let sessions = spread(server, SESSIONS, |connection, _| connection.open_session())?;
    let grown = server.process.memory()?.saturating_sub(before);
    let each = u64::from(grown) * 1024 / u64::from(SESSIONS);
    println!("{SESSIONS} sessions opened in {:.1?}: {each} bytes each", opened.elapsed());
    if each > SESSION_LIMIT {
        return Err(Fault(format!("a session costs {each} bytes, more than {SESSION_LIMIT}")));
    }
    let mut connection = Connection::open(server.port)?;
    let refused = connection.initialize()?;
    if refused.status != 503 || refused.header("retry-after").is_none() {
        return Err(Fault(format!("one session more was answered with {}", refused.status)));
    }
    let until = Instant::now() + IDLE + IDLE / 4;
    while connection.initialize()?.status == 503 {
        if Instant::now() > until {
            return Err(Fault("abandoned sessions are not taken away".into()));
        }
        thread::sleep(Duration::from_millis(500));
    }
    thread::sleep(IDLE / 4);
    let gone = spread(server, SESSIONS, |connection, number| {
        let session = sessions.get(number as usize).map_or("", String::as_str);
        Ok(echo(connection, session)?.status)
    })?;
    match gone.iter().find(|status| **status != 404) {
        Some(status) => return Err(Fault(format!("an abandoned session is answered with {status}"))),
        None => println!("all of them are gone after {}", Seconds(IDLE)),
    }
    println!("memory: {} before, {} after", Megabytes(before), Megabytes(server.process.memory()?));
    Ok(())
}

/// Short sessions of four requests each.
fn churn(server: &Server, requests: u32) -> Result<(), Fault> {
    let tenth = (requests / 40).max(1);
    let begun = Instant::now();
    let mut first = None;
    for part in 1..=10 {
        spread(server, tenth, |connection, _| cycle(connection))?;
        let now = server.process.memory()?;
        let limit = first.get_or_insert(now);
        print!("\r{:>9} requests, {}", part * tenth * 4, Megabytes(now));
        std::io::stdout().flush()?;
        if now > *limit + *limit / 10 + SLACK {
            println!();
            return Err(Fault(format!(
                "the memory has grown from {} to {}",
                Megabytes(*limit),
                Megabytes(now)
            )));
        }
    }
    println!("\n{} requests in {:.1?}: the memory stays where it was", tenth * 40, begun.elapsed());
    Ok(())
}

/// A session from its handshake to its end.
fn cycle(connection: &mut Connection) -> Result<(), Fault> {
    let session = connection.open_session()?;
    echo(connection, &session)?.expect(200)?;
    connection.end_session(&session)?.expect(200)
}

fn echo(connection: &mut Connection, session: &str) -> Result<Reply, Fault> {
    connection.post(&Message::call_in(session, 1, "echo", r#"{"text":"x"}"#))
}

/// Formats kB as MB.
struct Megabytes(u32);

impl std::fmt::Display for Megabytes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let bytes = u64::from(self.0) * 1024;
        write!(f, "{}.{} MB", bytes / 1_000_000, bytes / 100_000 % 10)
    }
}

struct Seconds(Duration);

impl std::fmt::Display for Seconds {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} s", self.0.as_secs())
    }
}

#[cfg(test)]
mod tests {
    use super::{hour, hour_options};

    #[test]
    fn options_of_the_hour_are_read() {
        let read =
            |words: &[&str]| hour_options(&words.iter().map(|&word| word.to_owned()).collect::<Vec<_>>());
        assert_eq!(read(&[]), Ok((60, hour::Output::Build)));
        assert_eq!(read(&["--minutes", "2", "--record"]), Ok((2, hour::Output::Documentation)));
        for wrong in [&["--minutes"][..], &["--minutes", "1"], &["--hours", "1"]] {
            assert!(read(wrong).is_err(), "{wrong:?}");
        }
    }
}
