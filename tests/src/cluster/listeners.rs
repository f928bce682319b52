//! Changes: one task publishes them, and listeners of both eras hear of each (SCL-10).

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout};

use super::client::{AGAIN, Front, Session};
use super::envelope::EnvelopeClient;
use super::report::{Failure, Finding, Kind, Outcome, ensure};
use super::stream::Stream;
use crate::random::Random;
use crate::scale::TOUCHED;

/// Number of listeners of each era.
const LISTENERS: usize = 3;
/// Time within which a listener hears of a change, also if its node was cut off from the store meanwhile.
const HEARD: Duration = Duration::from_secs(20);
/// Interval at which the publisher looks whether all have heard.
const LOOK: Duration = Duration::from_millis(5);

/// What a listener has heard.
#[derive(Clone, Copy, Default)]
struct Ear {
    /// Since when it listens without having missed anything.
    since: Option<Instant>,
    /// The last notification.
    heard: Option<Instant>,
}

#[derive(Default)]
struct SharedEar(Mutex<Ear>);

impl SharedEar {
    fn ear(&self) -> Ear {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn set(&self, change: impl FnOnce(&mut Ear)) {
        change(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner));
    }

    /// Returns whether the listener has heard of a change since a time, or did not listen all the time.
    fn is_settled(&self, since: Instant) -> bool {
        let ear = self.ear();
        ear.since.is_none_or(|listening| listening > since) || ear.heard.is_some_and(|heard| heard > since)
    }
}

/// All listeners, and the publisher.
pub struct Listeners {
    publisher: JoinSet<()>,
    tasks: JoinSet<()>,
    stop: watch::Sender<bool>,
    front: Arc<Front>,
}

impl Listeners {
    /// Starts them.
    pub fn start(front: &Arc<Front>, random: &mut Random) -> Self {
        let (stop, stopped) = watch::channel(false);
        let (mut publisher, mut tasks, mut ears) = (JoinSet::new(), JoinSet::new(), Vec::new());
        for number in 0..LISTENERS {
            let ear = Arc::new(SharedEar::default());
            ears.push(Arc::clone(&ear));
            tasks.spawn(in_session(Arc::clone(front), format!("listener-{number}"), ear, random.fork()));
            let ear = Arc::new(SharedEar::default());
            ears.push(Arc::clone(&ear));
            let client = EnvelopeClient { front: Arc::clone(front), name: format!("listening-{number}") };
            tasks.spawn(without_session(client, ear));
        }
        let client = EnvelopeClient { front: Arc::clone(front), name: "publisher".to_owned() };
        publisher.spawn(publish(client, ears, random.fork(), stopped));
        Self { publisher, tasks, stop, front: Arc::clone(front) }
    }

    /// Ends the publisher after its last change was heard, then the listeners.
    pub async fn stop(mut self, limit: Duration) {
        let _ = self.stop.send(true);
        if timeout(limit, self.publisher.join_next()).await.is_err() {
            self.front.report.found(Kind::Stuck, "the publisher at the end");
        }
        self.publisher.shutdown().await;
        self.tasks.shutdown().await;
    }
}

async fn publish(
    client: EnvelopeClient,
    ears: Vec<Arc<SharedEar>>,
    mut random: Random,
    stopped: watch::Receiver<bool>,
) {
    let (report, history) = (&client.front.report, &client.front.history);
    while !*stopped.borrow() {
        let start = Instant::now();
        let outcome = touch(&client, start).await;
        let is_published = outcome.is_ok();
        if is_published {
            wait_for_all(&client.front, &ears, start).await;
        }
        report.record("touch", outcome, history);
        sleep(Duration::from_millis(random.below(150) as u64)).await;
    }
}

async fn touch(client: &EnvelopeClient, from: Instant) -> Outcome {
    let (result, node) = client.call(json!({"name": "touch", "arguments": {}})).await?;
    if result["isError"] == true {
        return Err(Failure::NotStored { node, from });
    }
    ensure(result["content"][0]["text"] == "touched", Kind::Foreign, || format!("touch: {result}"))
}

/// Waits until every listener has heard of a change that was published after `start`.
async fn wait_for_all(front: &Front, ears: &[Arc<SharedEar>], start: Instant) {
    let published = Instant::now();
    loop {
        let deaf: Vec<usize> = ears
            .iter()
            .enumerate()
            .filter(|(_, ear)| !ear.is_settled(start))
            .map(|(index, _)| index)
            .collect();
        if deaf.is_empty() {
            front.report.took("change to be heard by all listeners", published.elapsed());
            return;
        }
        if published.elapsed() > HEARD {
            // The listeners alternate: those with even numbers have sessions.
            let text = format!("a change was not heard by listeners {deaf:?} in {HEARD:?}");
            front.report.record("touch", Err(Finding::new(Kind::Lost, text).into()), &front.history);
            return;
        }
        sleep(LOOK).await;
    }
}

fn is_touched(message: &Value) -> bool {
    message["method"] == "notifications/resources/updated" && message["params"]["uri"] == TOUCHED
}

/// Listens in a session, on the stream for messages outside a request. It is resumed, so nothing is missed.
async fn in_session(front: Arc<Front>, name: String, ear: Arc<SharedEar>, mut random: Random) {
    loop {
        let Err(failure) = listen(&front, &name, &ear, &mut random).await;
        ear.set(|ear| ear.since = None);
        front.report.record(&name, Err(failure), &front.history);
        sleep(AGAIN).await;
    }
}

async fn listen(
    front: &Arc<Front>,
    name: &str,
    ear: &SharedEar,
    random: &mut Random,
) -> Outcome<std::convert::Infallible> {
    let session = Session::open(front, name).await?;
    let mut subscribed = session.start(random, "resources/subscribe", json!({"uri": TOUCHED})).await?;
    let answer = subscribed.next().await?;
    ensure(answer.get("result").is_some(), Kind::Refused, || format!("subscribe: {answer}"))?;
    let mut stream = Stream::standalone(&session, random).await?;
    ear.set(|ear| ear.since = Some(Instant::now()));
    loop {
        if random.one_in(40) {
            stream.disconnect();
        }
        let message = stream.next().await?;
        // A log of changes that the store has lost: everything may have changed.
        let is_anything = message["method"].as_str().is_some_and(|method| method.ends_with("list_changed"));
        if is_anything && front.history.has_lost_changes() {
            continue;
        }
        ensure(is_touched(&message), Kind::Foreign, || format!("{name}: {message}"))?;
        ear.set(|ear| ear.heard = Some(Instant::now()));
    }
}

/// Listens in the envelope era. A listener whose connection ends has to listen again.
async fn without_session(client: EnvelopeClient, ear: Arc<SharedEar>) {
    let filter = json!({"notifications": {"resourceSubscriptions": [TOUCHED]}});
    loop {
        match client.send("subscriptions/listen", filter.clone()).await {
            Ok(mut answer) => {
                while let Some(message) = answer.next().await {
                    if message["method"] == "notifications/subscriptions/acknowledged" {
                        ear.set(|ear| ear.since = Some(Instant::now()));
                    } else if is_touched(&message) {
                        ear.set(|ear| ear.heard = Some(Instant::now()));
                    } else if message.get("result").is_none() {
                        client.front.report.found(Kind::Foreign, format!("{}: {message}", client.name));
                    }
                }
                ear.set(|ear| ear.since = None);
            }
            Err(failure) => {
                client.front.report.record(&client.name, Err(failure), &client.front.history);
            }
        }
        sleep(AGAIN).await;
    }
}
