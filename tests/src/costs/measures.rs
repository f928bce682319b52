//! The measures, one function each.

use std::time::Duration;

use serde_json::json;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};

use super::Figure;
use super::connection::{Connection, Era, call, message, session};
use super::process::Process;
use crate::reply::Events;
use crate::scale::TOUCHED;

/// Connections at once.
const CONNECTIONS: usize = 16;
/// Rounds of slices, and the length of a slice.
const ROUNDS: usize = 15;
const SLICE: Duration = Duration::from_millis(400);
/// Commands of an idle node per second.
const IDLE: f64 = 2.6;
/// Listeners on all nodes.
const LISTENERS: usize = 10_000;

/// The processes that are measured.
pub struct Measure {
    /// A node with stores in memory.
    memory: Process,
    nodes: Vec<Process>,
    commands: redis::aio::MultiplexedConnection,
}

impl Measure {
    /// Connects to the store.
    pub async fn new(memory: Process, nodes: Vec<Process>, url: &str) -> Self {
        let client = redis::Client::open(url).expect("the address of the store");
        let commands = client.get_multiplexed_async_connection().await.expect("the store");
        Self { memory, nodes, commands }
    }

    /// Returns the commands so far: all of them, those that nodes have sent, and the time of the latter in microseconds.
    async fn commands(&self) -> [u64; 3] {
        let mut connection = self.commands.clone();
        let text: String =
            redis::cmd("INFO").arg("commandstats").query_async(&mut connection).await.expect("the store");
        let mut sums = [0; 3];
        for line in text.lines().filter_map(|line| line.strip_prefix("cmdstat_")) {
            let (name, rest) = line.split_once(':').unwrap_or((line, ""));
            let number = |field: &str| {
                let value = rest.split(',').find_map(|part| part.strip_prefix(field)?.strip_prefix('='));
                value.and_then(|value| value.parse::<u64>().ok()).unwrap_or_default()
            };
            if name == "info" {
                continue;
            }
            sums[0] += number("calls");
            // Other commands that nodes send by themselves are those of an idle node.
            if matches!(name, "evalsha" | "eval") {
                sums[1] += number("calls");
                sums[2] += number("usec");
            }
        }
        sums
    }

    /// SCL-75: what idle nodes ask of the store.
    pub async fn idle(&self) -> Vec<Figure> {
        let (start, before) = (Instant::now(), self.commands().await);
        sleep(Duration::from_secs(20)).await;
        let count = self.commands().await[0] - before[0];
        let rate = ratio(count, 1) / start.elapsed().as_secs_f64() / ratio(self.nodes.len() as u64, 1);
        let value = format!("{rate:.1} commands/s");
        vec![figure("idle node", value, "3 commands/s", rate <= 3.0)]
    }

    /// Calls `echo`, and returns what each call has cost the store, without what idle nodes do meanwhile.
    async fn calls(&self, era: &Era) -> Calls {
        const CALLS: u64 = 2000;
        let mut connection = Connection::open(self.nodes[0].port).await;
        connection.echo(era).await;
        sleep(Duration::from_millis(200)).await;
        let (start, before) = (Instant::now(), self.commands().await);
        for _ in 0..CALLS {
            connection.echo(era).await;
        }
        sleep(Duration::from_millis(200)).await;
        let (after, elapsed) = (self.commands().await, start.elapsed().as_secs_f64());
        let idle = IDLE * ratio(self.nodes.len() as u64, 1) * elapsed;
        Calls {
            commands: ((ratio(after[0] - before[0], 1) - idle) / ratio(CALLS, 1)).max(0.0),
            trips: ratio(after[1] - before[1], CALLS),
            time: ratio(after[2] - before[2], CALLS),
        }
    }

    /// SCL-01, SCL-70: the trips and the processor time of an envelope echo, with a store and without.
    pub async fn envelope(&self) -> Vec<Figure> {
        let Calls { commands, .. } = self.calls(&Era::Envelope).await;
        let (memory, node) = (
            Load::open(&self.memory, &Era::Envelope).await,
            Load::open(&self.nodes[0], &Era::Envelope).await,
        );
        let Rounds { processor, .. } = rounds(memory, node).await;
        let value = format!("{processor:.2} x");
        vec![
            figure("envelope echo: commands of the store", format!("{commands:.2}"), "0", commands < 0.01),
            figure(
                "envelope echo, 16 at once: processor time of the node, of that without a store",
                value,
                "1.03 x",
                processor <= 1.03,
            ),
        ]
    }

    /// A session echo, one at a time and 16 at once.
    pub async fn session(&self) -> Vec<Figure> {
        let (here, there) = (session(self.memory.port).await, session(self.nodes[0].port).await);
        let mut medians = Vec::new();
        for _ in 0..5 {
            let memory = latency(self.memory.port, &here).await;
            medians.push((latency(self.nodes[0].port, &there).await, memory));
        }
        let shared = median(medians.iter().map(|(shared, _)| *shared).collect());
        let memory = median(medians.iter().map(|(_, memory)| *memory).collect());
        let more = shared - memory;
        let one = format!("{shared:.2} ms, {memory:.2} ms in memory");
        let (memory, node) =
            (Load::open(&self.memory, &here).await, Load::open(&self.nodes[0], &there).await);
        let Rounds { processor, rate, requests } = rounds(memory, node).await;
        vec![
            figure("session echo, one at a time: median", one, "0.6 ms more", more <= 0.6),
            figure(
                "session echo, 16 at once: rate, of that of stores in memory",
                format!("{:.0} % ({requests:.0}/s)", rate * 100.0),
                "40 %",
                rate >= 0.4,
            ),
            figure(
                "session echo, 16 at once: processor time of the node, of that with stores in memory",
                format!("{processor:.2} x"),
                "2.5 x",
                processor <= 2.5,
            ),
        ]
    }

    /// SCL-71: commands and time of the store.
    pub async fn store_time(&self) -> Vec<Figure> {
        let Calls { commands, trips, time } = self.calls(&session(self.nodes[0].port).await).await;
        vec![
            figure("session echo: trips", format!("{trips:.2}"), "2 awaited, 1 not", trips <= 3.01),
            figure("session echo: commands of the store", format!("{commands:.1}"), "20", commands <= 20.0),
            figure("session echo: time of the store", format!("{time:.0} µs"), "60 µs", time <= 60.0),
        ]
    }

    /// SCL-36, SCL-73: progress of four calls at once, each with one reader.
    pub async fn progress(&self) -> Vec<Figure> {
        const CALLS: usize = 4;
        const EVENTS: usize = 1000;
        const TIMES: usize = 7;
        let era = session(self.nodes[0].port).await;
        let (mut rates, before) = (Vec::new(), self.commands().await);
        for _ in 0..TIMES {
            let (start, mut readers) = (Instant::now(), JoinSet::new());
            for _ in 0..CALLS {
                let (era, connection) = (era.clone(), Connection::open(self.nodes[0].port).await);
                let count = call(&era, "count", &json!({"n": EVENTS, "ms": 0, "tag": "t"}));
                readers.spawn(async move {
                    let mut events = connection.reply(&era, &count).await.events();
                    let mut seen = 0;
                    while let Some(event) = events.next().await {
                        seen += usize::from(event.message.is_some());
                    }
                    assert_eq!(seen, EVENTS + 1, "all events and the answer");
                });
            }
            while let Some(read) = readers.join_next().await {
                read.expect("a reader");
            }
            rates.push(ratio((CALLS * EVENTS) as u64, 1) / start.elapsed().as_secs_f64());
        }
        sleep(Duration::from_millis(200)).await;
        let trips = ratio(self.commands().await[1] - before[1], (CALLS * TIMES) as u64);
        let rate = median(rates);
        vec![
            figure("progress, 1 000 events: trips", format!("{trips:.1}"), "40", trips <= 40.0),
            figure(
                "progress, 1 000 events per call",
                format!("{rate:.0} events/s"),
                "100 000 events/s",
                rate >= 100_000.0,
            ),
        ]
    }

    /// A question that is answered at the node that asks, and at another.
    pub async fn questions(&self) -> Vec<Figure> {
        let era = session(self.nodes[0].port).await;
        let mut times = [Vec::new(), Vec::new()];
        for round in 0..200 {
            let node = round % 2;
            times[node].push(self.question(&era, node).await);
        }
        let [same, other] = times.map(median);
        let value = format!("{other:.2} ms, {same:.2} ms at the same node");
        vec![figure("elicitation, answered at another node: median", value, "5 ms more", other - same <= 5.0)]
    }

    async fn question(&self, era: &Era, answered_at: usize) -> f64 {
        let start = Instant::now();
        let asking = Connection::open(self.nodes[0].port).await;
        let mut events = asking.reply(era, &call(era, "ask", &json!({"tag": "t"}))).await.events();
        let question = next(&mut events).await;
        let answer = json!({"jsonrpc": "2.0", "id": question["id"],
            "result": {"action": "accept", "content": {"answer": "yes"}}});
        let answering = Connection::open(self.nodes[answered_at].port).await;
        assert_eq!(answering.reply(era, &answer).await.status, 202);
        assert_eq!(next(&mut events).await["result"]["content"][0]["text"], "t:yes");
        millis(start)
    }

    /// SCL-76: listeners on all nodes hear one change.
    pub async fn listeners(&self) -> Vec<Figure> {
        let filter = json!({"notifications": {"resourceSubscriptions": [TOUCHED]}});
        let mut listening = JoinSet::new();
        for number in 0..LISTENERS {
            let listen = message(&Era::Envelope, "subscriptions/listen", filter.clone());
            let connection = Connection::open(self.nodes[number % self.nodes.len()].port).await;
            let reply = connection.reply(&Era::Envelope, &listen).await;
            if !reply.is_stream() {
                let (status, body) = (reply.status, reply.json().await);
                panic!("listener {number}: status {status}: {body}");
            }
            let mut events = reply.events();
            next(&mut events).await;
            listening.spawn(async move {
                let heard = next(&mut events).await;
                assert_eq!(heard["params"]["uri"], TOUCHED);
            });
        }
        let before = self.commands().await;
        let mut publisher = Connection::open(self.nodes[0].port).await;
        let start = Instant::now();
        publisher.send(&Era::Envelope, &call(&Era::Envelope, "touch", &json!({}))).await;
        while let Some(heard) = listening.join_next().await {
            heard.expect("a listener");
        }
        let time = start.elapsed().as_secs_f64();
        let trips = self.commands().await[1] - before[1];
        vec![
            figure(
                "10 000 listeners on 3 nodes hear a change",
                format!("{:.0} ms", time * 1000.0),
                "1 s",
                time <= 1.0,
            ),
            figure(
                "a change with 10 000 listeners: scripts of the publisher",
                trips.to_string(),
                "1",
                trips == 1,
            ),
        ]
    }
}

async fn next(events: &mut Events) -> serde_json::Value {
    loop {
        if let Some(message) = events.next().await.expect("an event").message {
            return message;
        }
    }
}

/// What a call costs the store: commands, those in scripts included, scripts, and its time in microseconds.
struct Calls {
    commands: f64,
    trips: f64,
    time: f64,
}

/// Connections to one node that call without a pause.
struct Load<'a> {
    process: &'a Process,
    era: Era,
    connections: Vec<Connection>,
}

/// What one slice has shown: requests per second, and processor time per request.
struct Slice {
    rate: f64,
    processor: f64,
}

impl<'a> Load<'a> {
    async fn open(process: &'a Process, era: &Era) -> Self {
        let mut connections = Vec::new();
        for _ in 0..CONNECTIONS {
            connections.push(Connection::open(process.port).await);
        }
        Self { process, era: era.clone(), connections }
    }

    async fn slice(&mut self) -> Slice {
        let (start, before) = (Instant::now(), self.process.processor_time());
        let mut running = JoinSet::new();
        for mut connection in self.connections.drain(..) {
            let era = self.era.clone();
            running.spawn(async move {
                let mut requests = 0_u64;
                while start.elapsed() < SLICE {
                    connection.echo(&era).await;
                    requests += 1;
                }
                (connection, requests)
            });
        }
        let mut requests = 0;
        while let Some(ended) = running.join_next().await {
            let (connection, count) = ended.expect("a connection");
            self.connections.push(connection);
            requests += count;
        }
        let elapsed = start.elapsed().as_secs_f64();
        // Work that no request awaits belongs to the requests too.
        sleep(Duration::from_millis(20)).await;
        let processor = ratio(self.process.processor_time() - before, requests);
        Slice { rate: ratio(requests, 1) / elapsed, processor }
    }
}

/// Medians over the rounds: of the ratios, and of the requests per second with the store.
struct Rounds {
    processor: f64,
    rate: f64,
    requests: f64,
}

/// Loads a node with stores in memory and one with a shared store in turn.
async fn rounds(mut memory: Load<'_>, mut node: Load<'_>) -> Rounds {
    let (mut processor, mut rate, mut requests) = (Vec::new(), Vec::new(), Vec::new());
    for round in 0..=ROUNDS {
        let (without, with) = (memory.slice().await, node.slice().await);
        // The first round warms both up.
        if round > 0 {
            processor.push(with.processor / without.processor);
            rate.push(with.rate / without.rate);
            requests.push(with.rate);
        }
    }
    Rounds { processor: median(processor), rate: median(rate), requests: median(requests) }
}

/// Returns the median time of calls one at a time, in milliseconds.
async fn latency(port: u16, era: &Era) -> f64 {
    let mut connection = Connection::open(port).await;
    let mut times = Vec::new();
    for _ in 0..400 {
        let start = Instant::now();
        connection.echo(era).await;
        times.push(millis(start));
    }
    median(times)
}

fn millis(start: Instant) -> f64 {
    start.elapsed().as_secs_f64() * 1000.0
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn ratio(count: u64, parts: u64) -> f64 {
    let number = |count: u64| f64::from(u32::try_from(count).unwrap_or(u32::MAX));
    number(count) / number(parts)
}

fn figure(what: &'static str, value: String, bar: &'static str, met: bool) -> Figure {
    println!("{what}: {value} (bar: {bar})");
    Figure { what, value, bar, met }
}
