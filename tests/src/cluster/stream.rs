//! The messages of one stream, over any number of connections to any nodes.

use std::sync::Arc;

use serde_json::Value;
use tokio::time::{Instant, sleep, timeout};

use super::client::{AGAIN, STUCK, Sent, Session, pause, refused};
use super::report::{Failure, Finding, Kind, Outcome, ensure};
use crate::random::Random;
use crate::reply::{Event, Events, Reply};

/// A stream that is resumed where it breaks off.
pub struct Stream {
    session: Arc<Session>,
    /// The request of the stream. `None`: the stream for messages outside a request.
    pub id: Option<i64>,
    /// The node that runs the request.
    pub node: Option<usize>,
    /// When the request was sent.
    pub from: Instant,
    events: Option<Events>,
    /// A response that was a JSON body.
    whole: Option<Value>,
    /// All events with an id, in order.
    log: Vec<(String, Option<Value>)>,
    /// Number of events at the end of the log that the client has to receive again.
    again: usize,
    random: Random,
}

impl Stream {
    /// Returns the stream of a request whose response is this one.
    pub async fn of(session: &Arc<Session>, id: i64, reply: Reply, from: Instant, random: Random) -> Self {
        let node = session.front.node_of(&reply);
        let mut stream = Self::new(session, Some(id), node, random);
        stream.from = from;
        if reply.is_stream() {
            stream.events = Some(reply.events());
        } else {
            stream.whole = Some(reply.json().await);
        }
        stream
    }

    /// Opens the stream for messages outside a request.
    pub async fn standalone(session: &Arc<Session>, random: &mut Random) -> Outcome<Self> {
        let mut stream = Self::new(session, None, None, random.fork());
        stream.resume().await?;
        Ok(stream)
    }

    fn new(session: &Arc<Session>, id: Option<i64>, node: Option<usize>, random: Random) -> Self {
        Self {
            session: Arc::clone(session),
            id,
            node,
            from: Instant::now(),
            events: None,
            whole: None,
            log: Vec::new(),
            again: 0,
            random,
        }
    }

    /// Returns the id of the last event.
    pub fn last_id(&self) -> Option<&str> {
        self.log.last().map(|(id, _)| &**id)
    }

    /// Breaks the connection off, if the stream can be resumed. Sometimes forgets the last events: they are sent again.
    pub fn disconnect(&mut self) {
        if self.log.is_empty() || self.whole.is_some() {
            return;
        }
        self.events = None;
        if self.again == 0 && self.log.len() > 1 && self.random.one_in(2) {
            self.again = self.random.below(self.log.len());
        }
    }

    /// Returns the next message that was not received before.
    pub async fn next(&mut self) -> Outcome<Value> {
        if let Ok(message) = timeout(STUCK, self.next_message()).await {
            return message.and_then(|message| self.unless_lost(message));
        }
        let text = format!("request {:?} of {}: silent for {STUCK:?}", self.id, self.session.name);
        Err(Finding::new(Kind::Stuck, text).into())
    }

    async fn next_message(&mut self) -> Outcome<Value> {
        if let Some(whole) = self.whole.take() {
            return Ok(whole);
        }
        loop {
            if self.events.is_none() {
                self.resume().await?;
            }
            while let Some(event) = self.read().await {
                if let Some(message) = self.accept(event)? {
                    return Ok(message);
                }
            }
            self.events = None;
            sleep(AGAIN).await;
        }
    }

    /// Reads until the server ends the stream.
    pub async fn read_to_end(&mut self) {
        while self.read().await.is_some() {}
    }

    async fn read(&mut self) -> Option<Event> {
        self.events.as_mut()?.next().await
    }

    fn unless_lost(&self, message: Value) -> Outcome<Value> {
        if message["error"]["data"]["reason"] == "node_lost" {
            return Err(Failure::NodeLost { node: self.node, from: self.from });
        }
        if message["error"]["message"].as_str().is_some_and(|text| text.contains("could not be stored")) {
            return Err(Failure::NotStored { node: self.node, from: self.from });
        }
        Ok(message)
    }

    async fn resume(&mut self) -> Outcome {
        let received = self.log.len() - self.again;
        let last = received.checked_sub(1).map(|index| self.log[index].0.clone());
        if last.is_none() && self.id.is_some() {
            // It broke before its first event, so there is nothing to resume it with.
            return Err(Failure::Broken { node: self.node, from: self.from });
        }
        let limit = Instant::now() + STUCK;
        loop {
            match self.session.get(last.as_deref()).await {
                Sent::Reply(reply) if reply.status == 200 => {
                    self.events = Some(reply.events());
                    return Ok(());
                }
                Sent::Reply(reply) if reply.status == 404 => return Err(self.session.gone()),
                // The stream of messages outside a request can still have a reader whose connection broke.
                Sent::Reply(reply) if reply.status != 503 && (reply.status != 409 || last.is_some()) => {
                    return Err(refused("GET", &reply));
                }
                _ => {
                    pause(limit, || format!("request {:?} cannot be resumed after {last:?}", self.id))
                        .await?;
                }
            }
        }
    }

    /// Compares an event with those before it. Returns its message if it is new.
    fn accept(&mut self, event: Event) -> Outcome<Option<Value>> {
        let Event { id: Some(id), message } = event else { return Ok(event.message) };
        if self.again > 0 {
            return self.accept_again(&id, message.as_ref());
        }
        if message.is_none() {
            // A priming event: it names the position.
            if self.log.is_empty() {
                self.log.push((id, None));
            }
            return Ok(None);
        }
        let known = self.log.iter().any(|(known, _)| *known == id);
        ensure(!known, Kind::Doubled, || format!("event {id} again: {message:?}"))?;
        let (before, number) = (self.log.last().and_then(|(id, _)| number(id)), number(&id));
        if let (Some(before), Some(number)) = (before, number) {
            ensure(number > before, Kind::Reordered, || format!("event {id} after number {before}"))?;
            ensure(number == before + 1, Kind::Lost, || format!("event {id} follows number {before}"))?;
        }
        self.log.push((id, message.clone()));
        Ok(message)
    }

    fn accept_again(&mut self, id: &str, message: Option<&Value>) -> Outcome<Option<Value>> {
        let expected = &self.log[self.log.len() - self.again];
        if message.is_none() && expected.1.is_some() {
            return Ok(None);
        }
        let is_same = expected.0 == id && expected.1.as_ref() == message;
        ensure(is_same, Kind::Lost, || format!("sent again: {id} {message:?} instead of {expected:?}"))?;
        self.again -= 1;
        Ok(None)
    }
}

/// Returns the number in an event id.
fn number(id: &str) -> Option<u64> {
    id.rsplit_once('-')?.1.parse().ok()
}
