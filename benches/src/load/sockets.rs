//! Load on sockets: a fixed number of connections, each with one request in flight.

use std::io::{ErrorKind, Write as _};
use std::time::{Duration, Instant};

use tokio::net::TcpStream;
use tokio::task::JoinSet;

use super::check::{Flight, Plan, Seen};
use super::response::{Reader, Response, events};
use super::scenario::{Kind, Scenario};
use super::server::Server;
use crate::message::{ENVELOPE_VERSION, Era, HANDSHAKE_VERSION, INITIALIZE, INITIALIZED};

/// The connections to one server.
#[derive(Debug)]
pub(super) struct Sockets {
    port: u16,
    width: usize,
    connections: Vec<Connection>,
}

impl Sockets {
    pub(super) fn new(port: u16, scenario: &Scenario) -> Self {
        Self { port, width: scenario.width, connections: Vec::new() }
    }

    /// Connects as soon as the server listens, and opens a session on each connection if the scenario has sessions.
    pub(super) async fn open(&mut self, server: &mut Server, scenario: &Scenario) -> Result<(), String> {
        while TcpStream::connect(("127.0.0.1", self.port)).await.is_err() {
            if server.has_ended() {
                return Err("it has ended before it listened".to_owned());
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        for number in 0..self.width {
            self.connections.push(Connection::open(self.port, number, scenario).await?);
        }
        Ok(())
    }

    /// Sends requests on every connection until the deadline. Returns the latencies.
    pub(super) async fn load(&mut self, plan: &Plan, until: Instant) -> Result<Vec<Duration>, String> {
        let mut workers = JoinSet::new();
        for mut connection in self.connections.drain(..) {
            let plan = plan.clone();
            workers.spawn(async move {
                let latencies = connection.ask_until(&plan, until).await?;
                Ok::<_, String>((connection, latencies))
            });
        }
        let mut all = Vec::new();
        while let Some(ended) = workers.join_next().await {
            let (connection, latencies) = ended.map_err(|error| error.to_string())??;
            self.connections.push(connection);
            all.extend(latencies);
        }
        Ok(all)
    }
}

/// One connection and the constant head of its requests.
#[derive(Debug)]
struct Connection {
    stream: TcpStream,
    port: u16,
    head: Vec<u8>,
    reader: Reader,
    out: Vec<u8>,
    /// Read buffer.
    room: Vec<u8>,
    next_id: u64,
}

impl Connection {
    async fn open(port: u16, number: usize, scenario: &Scenario) -> Result<Self, String> {
        let mut head = Vec::new();
        // Writing into memory does not fail, here and below.
        let _ = write!(
            head,
            "POST /mcp HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nContent-Type: application/json\r\n\
             Accept: application/json, text/event-stream\r\n"
        );
        let mut connection = Self {
            stream: connect(port).await?,
            port,
            head,
            reader: Reader::default(),
            out: Vec::new(),
            room: vec![0; 64 * 1024],
            // Ids are unique across connections.
            next_id: ((number as u64) << 32) + 1,
        };
        if scenario.era == Era::Envelope {
            let named = scenario.ask.name().map_or_else(String::new, |name| format!("Mcp-Name: {name}\r\n"));
            let _ = write!(
                connection.head,
                "MCP-Protocol-Version: {ENVELOPE_VERSION}\r\nMcp-Method: {}\r\n{named}",
                scenario.ask.method()
            );
        } else {
            connection.shake_hands(scenario.kind).await?;
        }
        Ok(connection)
    }

    async fn shake_hands(&mut self, kind: Kind) -> Result<(), String> {
        let opened = self.exchange(INITIALIZE.as_bytes()).await?;
        if opened.status != 200 {
            return Err(format!("the handshake was answered with {}", opened.status));
        }
        match (kind, opened.session) {
            (Kind::Sessions, None) => return Err("the handshake has opened no session".to_owned()),
            (Kind::Sessions, Some(session)) => {
                let _ = write!(self.head, "Mcp-Session-Id: {session}\r\n");
            }
            // A stateless server can offer a session; the client can ignore it.
            _ => {}
        }
        let _ = write!(self.head, "MCP-Protocol-Version: {HANDSHAKE_VERSION}\r\n");
        let ready = self.exchange(INITIALIZED.as_bytes()).await?;
        if ready.status >= 300 {
            return Err(format!("the end of the handshake was answered with {}", ready.status));
        }
        Ok(())
    }

    #[expect(clippy::disallowed_methods, reason = "what is measured is real time")]
    async fn ask_until(&mut self, plan: &Plan, until: Instant) -> Result<Vec<Duration>, String> {
        let mut latencies = Vec::new();
        let mut body = Vec::new();
        loop {
            let begun = Instant::now();
            if begun >= until {
                return Ok(latencies);
            }
            let id = self.next_id;
            self.next_id += 1;
            body.clear();
            plan.write(id, &mut body);
            let response = self.exchange(&body).await?;
            check(plan, id, &response)?;
            latencies.push(begun.elapsed());
        }
    }

    async fn exchange(&mut self, body: &[u8]) -> Result<Response, String> {
        self.out.clear();
        self.out.extend_from_slice(&self.head);
        let _ = write!(self.out, "Content-Length: {}\r\n\r\n", body.len());
        self.out.extend_from_slice(body);
        self.write().await?;
        loop {
            if let Some(response) = self.reader.next()? {
                if response.closes {
                    self.stream = connect(self.port).await?;
                }
                return Ok(response);
            }
            match self.stream.try_read(&mut self.room) {
                Ok(0) => return Err("it has closed the connection".to_owned()),
                Ok(count) => self.reader.push(&self.room[..count]),
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    self.stream.readable().await.map_err(|error| error.to_string())?;
                }
                Err(error) => return Err(error.to_string()),
            }
        }
    }

    async fn write(&mut self) -> Result<(), String> {
        let mut written = 0;
        while written < self.out.len() {
            match self.stream.try_write(&self.out[written..]) {
                Ok(count) => written += count,
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    self.stream.writable().await.map_err(|error| error.to_string())?;
                }
                Err(error) => return Err(error.to_string()),
            }
        }
        Ok(())
    }
}

async fn connect(port: u16) -> Result<TcpStream, String> {
    let stream = TcpStream::connect(("127.0.0.1", port)).await.map_err(|error| error.to_string())?;
    stream.set_nodelay(true).map_err(|error| error.to_string())?;
    Ok(stream)
}

/// Checks the response and the notifications before it.
fn check(plan: &Plan, id: u64, response: &Response) -> Result<(), String> {
    let mut flight = Flight::default();
    let mut answered = false;
    let mut look = |message: &[u8]| {
        let seen = plan.look(message, |found| (found == id).then_some(&mut flight))?;
        answered |= seen == Seen::Answer(id);
        Ok::<_, String>(())
    };
    if response.events {
        events(&response.body).try_for_each(&mut look)?;
    } else {
        look(&response.body)?;
    }
    if answered { Ok(()) } else { Err("a response without an answer".to_owned()) }
}
