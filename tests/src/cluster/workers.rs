//! The clients that call tools, in both eras, until the load ends.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Mutex, watch};
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout};

use super::actions::{Action, Deed, EnvelopeDeed, think};
use super::client::{AGAIN, Front, Session};
use super::envelope::EnvelopeClient;
use super::report::{Finding, Kind, Outcome};
use crate::random::Random;

/// Sessions that live as long as the load, and the tasks that use each of them at the same time.
const SESSIONS: usize = 6;
const TASKS: usize = 2;
/// Clients of the envelope era.
const ENVELOPE_CLIENTS: usize = 4;
/// Time after which an action is given up, whatever it does.
const LIMIT: Duration = Duration::from_secs(120);

/// A session that is replaced by another one after the store has lost it.
struct Slot {
    front: Arc<Front>,
    name: String,
    current: Mutex<Option<Arc<Session>>>,
}

impl Slot {
    async fn session(&self) -> Outcome<Arc<Session>> {
        let mut current = self.current.lock().await;
        if let Some(session) = &*current {
            return Ok(Arc::clone(session));
        }
        let session = Session::open(&self.front, &self.name).await?;
        *current = Some(Arc::clone(&session));
        Ok(session)
    }

    /// Forgets a session, unless it was replaced already.
    async fn forget(&self, lost: &Arc<Session>) {
        let mut current = self.current.lock().await;
        if current.as_ref().is_some_and(|session| Arc::ptr_eq(session, lost)) {
            *current = None;
        }
    }
}

/// All tasks that call tools.
pub struct Workers {
    tasks: JoinSet<()>,
    stop: watch::Sender<bool>,
    front: Arc<Front>,
}

impl Workers {
    /// Starts them.
    pub fn start(front: &Arc<Front>, random: &mut Random) -> Self {
        let (stop, stopped) = watch::channel(false);
        let mut tasks = JoinSet::new();
        for number in 0..SESSIONS {
            let name = format!("session-{number}");
            let slot = Arc::new(Slot { front: Arc::clone(front), name, current: Mutex::default() });
            for task in 0..TASKS {
                tasks.spawn(in_session(Arc::clone(&slot), task, random.fork(), stopped.clone()));
            }
        }
        for number in 0..ENVELOPE_CLIENTS {
            let client = EnvelopeClient { front: Arc::clone(front), name: format!("envelope-{number}") };
            tasks.spawn(without_session(client, random.fork(), stopped.clone()));
        }
        Self { tasks, stop, front: Arc::clone(front) }
    }

    /// Ends the load, and waits for the actions that run.
    pub async fn stop(mut self, limit: Duration) {
        let _ = self.stop.send(true);
        if timeout(limit, async { while self.tasks.join_next().await.is_some() {} }).await.is_err() {
            self.front.report.found(Kind::Stuck, format!("{} actions at the end", self.tasks.len()));
        }
        self.tasks.shutdown().await;
    }
}

async fn in_session(slot: Arc<Slot>, task: usize, mut random: Random, stopped: watch::Receiver<bool>) {
    let (report, history) = (&slot.front.report, &slot.front.history);
    for index in 0.. {
        if *stopped.borrow() {
            break;
        }
        let session = match slot.session().await {
            Ok(session) => session,
            Err(failure) => {
                report.record("open", Err(failure), history);
                tokio::time::sleep(AGAIN).await;
                continue;
            }
        };
        let deed = Deed::ALL[random.below(Deed::ALL.len())];
        let tag = format!("{}-{task}/{index}", slot.name);
        let action = Action { session: Arc::clone(&session), random: random.fork(), tag: tag.clone() };
        let start = Instant::now();
        let outcome = limited(action.run(deed)).await;
        if deed == Deed::Echo && outcome.is_ok() {
            report.echo_took(0, start.elapsed(), history);
        }
        if matches!(outcome, Err(super::report::Failure::SessionGone { .. })) && deed != Deed::Delete {
            slot.forget(&session).await;
        }
        report.record(&format!("{deed:?} {tag}"), outcome, history);
        think(&mut random).await;
    }
}

async fn without_session(client: EnvelopeClient, mut random: Random, stopped: watch::Receiver<bool>) {
    let (report, history) = (&client.front.report, &client.front.history);
    for index in 0.. {
        if *stopped.borrow() {
            break;
        }
        let deed = EnvelopeDeed::ALL[random.below(EnvelopeDeed::ALL.len())];
        let tag = format!("{}/{index}", client.name);
        let start = Instant::now();
        let outcome = limited(deed.run(&client, &tag, &mut random)).await;
        if deed == EnvelopeDeed::Echo && outcome.is_ok() {
            report.echo_took(1, start.elapsed(), history);
        }
        report.record(&format!("{deed:?} (envelope) {tag}"), outcome, history);
        think(&mut random).await;
    }
}

async fn limited(action: impl Future<Output = Outcome>) -> Outcome {
    let stuck = || Err(Finding::new(Kind::Stuck, format!("no outcome in {LIMIT:?}")).into());
    timeout(LIMIT, action).await.unwrap_or_else(|_| stuck())
}
