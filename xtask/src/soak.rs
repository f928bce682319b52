//! `cargo xtask soak`: sessions by the thousand against our own server, and what they leave behind in its memory.
//!
//! Opens as many sessions as a server holds and abandons them: they must be small, and gone after their idle time. Then
//! opens, uses and ends sessions without a pause: the memory must stay where it was.

#![expect(clippy::disallowed_methods, reason = "there is no runtime here whose clock could be used")]

mod client;

use std::io::Write as _;
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use self::client::{Connection, Fault};
use crate::Failure;
use crate::process::{self, PACKAGE_OF_BENCHES};

/// How many sessions a server holds unless told otherwise.
const SESSIONS: usize = 10_000;
/// What an abandoned session may cost, in bytes.
const SESSION_LIMIT: usize = 20_000;
const REQUESTS: usize = 1_000_000;
/// How long an abandoned session lives in this run.
const IDLE: Duration = Duration::from_secs(30);
/// Connections that work side by side.
const CONNECTIONS: usize = 8;
/// How much the memory may grow while sessions come and go, beside a tenth of itself.
const SLACK: usize = 4 * 1024 * 1024;

pub(crate) fn command(arguments: &[String]) -> Result<(), Failure> {
    let requests = match arguments {
        [] => REQUESTS,
        [option, number] if option == "--requests" => {
            number.parse().map_err(|_| Failure::Usage(format!("'{number}' is not a number of requests")))?
        }
        _ => return Err(Failure::Usage("soak takes nothing but --requests N".into())),
    };
    run(requests).map_err(|fault| {
        eprintln!("error: {fault}");
        Failure::Failed
    })
}

fn run(requests: usize) -> Result<(), Fault> {
    let folder = process::released(PACKAGE_OF_BENCHES, &["bench-server"]).map_err(Fault)?;
    let server = Server::start(&folder)?;
    abandoned(&server)?;
    churn(&server, requests)
}

/// The server under load. Dropping it ends it.
struct Server {
    child: Child,
    port: u16,
}

impl Server {
    fn start(folder: &Path) -> Result<Self, Fault> {
        let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        let mut command = Command::new(folder.join("bench-server"));
        command.args(["http", &port.to_string(), "--session-idle", &IDLE.as_secs().to_string()]);
        let server = Self { child: command.stdin(Stdio::null()).spawn()?, port };
        let until = Instant::now() + Duration::from_secs(10);
        while Connection::open(port).is_err() {
            if Instant::now() > until {
                return Err(Fault("the server does not listen".into()));
            }
            thread::sleep(Duration::from_millis(20));
        }
        Ok(server)
    }

    /// What the process holds in memory, in bytes.
    fn memory(&self) -> Result<usize, Fault> {
        let path = format!("/proc/{}/status", self.child.id());
        let text = std::fs::read_to_string(path)?;
        let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let kilobytes = line.and_then(|rest| rest.trim().strip_suffix(" kB")?.trim().parse::<usize>().ok());
        kilobytes
            .map(|count| count * 1024)
            .ok_or_else(|| Fault("the system does not say how much memory it has".into()))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Both fail only if it has ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Runs `work` for the numbers below `count`, on several connections at once.
fn spread<T: Send>(
    server: &Server,
    count: usize,
    work: impl Fn(&mut Connection, usize) -> Result<T, Fault> + Sync,
) -> Result<Vec<T>, Fault> {
    let next = AtomicUsize::new(0);
    thread::scope(|scope| {
        let workers: Vec<_> = (0..CONNECTIONS)
            .map(|_| {
                scope.spawn(|| {
                    let mut connection = Connection::open(server.port)?;
                    let mut results = Vec::new();
                    loop {
                        let number = next.fetch_add(1, Ordering::Relaxed);
                        if number >= count {
                            return Ok::<_, Fault>(results);
                        }
                        results.push(work(&mut connection, number)?);
                    }
                })
            })
            .collect();
        let mut all = Vec::new();
        for worker in workers {
            all.extend(worker.join().map_err(|_| Fault("a connection panicked".into()))??);
        }
        Ok(all)
    })
}

/// Sessions that nobody uses any more.
fn abandoned(server: &Server) -> Result<(), Fault> {
    spread(server, 200, |connection, _| cycle(connection))?;
    let before = server.memory()?;
    let opened = Instant::now();
    let sessions = spread(server, SESSIONS, |connection, _| connection.open_session())?;
    let each = server.memory()?.saturating_sub(before) / SESSIONS;
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
        let session = sessions.get(number).map_or("", String::as_str);
        Ok(connection.call(session)?.status)
    })?;
    match gone.iter().find(|status| **status != 404) {
        Some(status) => return Err(Fault(format!("an abandoned session is answered with {status}"))),
        None => println!("all of them are gone after {}", Seconds(IDLE)),
    }
    println!("memory: {} before, {} after", Megabytes(before), Megabytes(server.memory()?));
    Ok(())
}

/// Sessions that come and go: four requests each.
fn churn(server: &Server, requests: usize) -> Result<(), Fault> {
    let tenth = (requests / 40).max(1);
    let begun = Instant::now();
    let mut first = None;
    for part in 1..=10 {
        spread(server, tenth, |connection, _| cycle(connection))?;
        let now = server.memory()?;
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
    connection.call(&session)?.expect(200)?;
    connection.end_session(&session)?.expect(200)
}

struct Megabytes(usize);

impl std::fmt::Display for Megabytes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{} MB", self.0 / 1_000_000, self.0 / 100_000 % 10)
    }
}

struct Seconds(Duration);

impl std::fmt::Display for Seconds {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} s", self.0.as_secs())
    }
}
