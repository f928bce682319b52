//! What clients do, and what they must see.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::{Instant, sleep, timeout};

use super::client::{Sent, Session, request};
use super::envelope::EnvelopeClient;
use super::report::{Finding, Kind, Outcome, Runs, ensure};
use super::stream::Stream;
use crate::random::Random;

/// Time within which a cancellation or the end of a session takes effect. In health it is a second (SCL-08, SCL-09); a
/// node that is cut off from the store learns of it after the cut.
const EFFECT: Duration = Duration::from_secs(15);

/// One action.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deed {
    /// A call with an answer.
    Echo,
    /// A call with an effect.
    Mark,
    /// A call with progress.
    Count,
    /// A call with a question.
    Ask,
    /// A call that is cancelled.
    Cancel,
    /// Another principal uses the session.
    Stranger,
    /// A session that ends.
    Delete,
}

impl Deed {
    /// The actions in a session, the frequent ones several times.
    pub const ALL: [Self; 10] = [
        Self::Echo,
        Self::Echo,
        Self::Mark,
        Self::Count,
        Self::Count,
        Self::Ask,
        Self::Ask,
        Self::Cancel,
        Self::Stranger,
        Self::Delete,
    ];
}

/// An action of a session.
pub struct Action {
    /// The session.
    pub session: Arc<Session>,
    /// Decides what is left to chance.
    pub random: Random,
    /// Identifies the action in results and in the ledger.
    pub tag: String,
}

impl Action {
    /// Runs an action.
    pub async fn run(mut self, deed: Deed) -> Outcome {
        match deed {
            Deed::Echo => self.echo().await,
            Deed::Mark => self.mark().await,
            Deed::Count => self.count().await,
            Deed::Ask => self.ask().await,
            Deed::Cancel => self.cancel().await,
            Deed::Stranger => self.stranger().await,
            Deed::Delete => self.delete().await,
        }
    }

    async fn start(&mut self, tool: &str, arguments: Value) -> Outcome<Stream> {
        self.session.call(&mut self.random, tool, &self.tag, arguments).await
    }

    fn expect_line(&self, tool: &str, runs: Runs) {
        self.session.front.report.expect_line(format!("{tool} {}", self.tag), runs);
    }

    async fn start_count(&mut self, n: usize, ms: usize) -> Outcome<Stream> {
        self.expect_line("count", Runs::AtMostOnce);
        let arguments = json!({"n": n, "ms": ms, "tag": self.tag});
        self.start("count", arguments).await
    }

    async fn expect_text(&self, stream: &mut Stream, expected: &str) -> Outcome {
        self.expect_one_of(stream, &[expected.to_owned()]).await
    }

    async fn expect_one_of(&self, stream: &mut Stream, expected: &[String]) -> Outcome {
        let answer = stream.next().await?;
        let is_own = stream.id.is_some_and(|id| answer["id"] == id) && answer.get("method").is_none();
        ensure(is_own, Kind::Foreign, || format!("{}: {answer} instead of the answer", self.tag))?;
        let text = answer["result"]["content"][0]["text"].as_str().unwrap_or_default();
        ensure(expected.iter().any(|it| it == text), Kind::Foreign, || format!("{}: {answer}", self.tag))
    }

    async fn echo(&mut self) -> Outcome {
        let text = format!("text of {}", self.tag);
        let mut stream = self.start("echo", json!({"text": text})).await?;
        self.expect_text(&mut stream, &text).await
    }

    async fn mark(&mut self) -> Outcome {
        self.expect_line("mark", Runs::AtMostOnce);
        let arguments = json!({"tag": self.tag});
        let mut stream = self.start("mark", arguments).await?;
        let tag = self.tag.clone();
        self.expect_text(&mut stream, &tag).await?;
        self.expect_line("mark", Runs::Once);
        Ok(())
    }

    /// SCL-04: every event once, in order, without a hole, over connections that break off.
    async fn count(&mut self) -> Outcome {
        let (n, ms) = (1 + self.random.below(12), 10 + self.random.below(150));
        let mut stream = self.start_count(n, ms).await?;
        for step in 1..=n {
            if self.random.one_in(5) {
                stream.disconnect();
            }
            self.progress(&mut stream, step).await?;
        }
        let expected = format!("{}:{n}", self.tag);
        self.expect_text(&mut stream, &expected).await?;
        self.expect_line("count", Runs::Once);
        Ok(())
    }

    async fn progress(&self, stream: &mut Stream, step: usize) -> Outcome {
        let message = stream.next().await?;
        expect_progress(&message, &self.tag, step)
    }

    /// SCL-07, SCL-42: an answer at any node reaches the handler that asked, once.
    async fn ask(&mut self) -> Outcome {
        let arguments = json!({"tag": self.tag});
        let mut stream = self.start("ask", arguments).await?;
        let question = stream.next().await?;
        let is_question = question["method"] == "elicitation/create"
            && question["params"]["message"] == format!("What about {}?", self.tag);
        ensure(is_question, Kind::Foreign, || format!("{}: {question}", self.tag))?;
        if self.random.one_in(3) {
            stream.disconnect();
        }
        let times = 1 + self.random.below(2);
        for answer in ["first", "second"].into_iter().take(times) {
            let reply = json!({"jsonrpc": "2.0", "id": question["id"],
                "result": {"action": "accept", "content": {"answer": answer}}});
            self.session.deliver(&reply).await?;
        }
        // Two answers at two nodes have no order. The handler gets one of them.
        let expected: Vec<String> =
            ["first", "second"].iter().take(times).map(|answer| format!("{}:{answer}", self.tag)).collect();
        self.expect_one_of(&mut stream, &expected).await
    }

    /// SCL-08: a cancellation at any node ends the call.
    async fn cancel(&mut self) -> Outcome {
        let mut stream = self.start_count(2000, 50).await?;
        let before = 1 + self.random.below(6);
        for step in 1..=before {
            self.progress(&mut stream, step).await?;
        }
        let cancelled = json!({"jsonrpc": "2.0", "method": "notifications/cancelled",
            "params": {"requestId": stream.id, "reason": "enough"}});
        self.session.deliver(&cancelled).await?;
        let sent = Instant::now();
        loop {
            let message = stream.next().await?;
            if message.get("method").is_none() {
                let is_cancelled = message["error"]["code"] == -32800;
                ensure(is_cancelled, Kind::Lost, || format!("{}: not cancelled: {message}", self.tag))?;
                self.session.front.report.took("cancellation", sent.elapsed());
                return Ok(());
            }
            let late = sent.elapsed();
            ensure(late <= EFFECT, Kind::Lost, || {
                format!("{}: runs {late:?} after its cancellation", self.tag)
            })?;
        }
    }

    /// SCL-11: to another principal the session does not exist, and its request runs on.
    async fn stranger(&mut self) -> Outcome {
        let n = 4 + self.random.below(6);
        let mut stream = self.start_count(n, 40).await?;
        self.progress(&mut stream, 1).await?;
        let stranger = self.session.impersonated();
        let id = stream.id.unwrap_or_default();
        let cancelled = json!({"jsonrpc": "2.0", "method": "notifications/cancelled",
            "params": {"requestId": id}});
        let called = request(id, "tools/call", json!({"name": "echo", "arguments": {"text": "x"}}));
        let replies = [
            stranger.post(&cancelled).await,
            stranger.post(&called).await,
            stranger.get(stream.last_id()).await,
            stranger.delete().await,
        ];
        for sent in replies {
            if let Sent::Reply(reply) = sent {
                let status = reply.status;
                let is_unknown = matches!(status, 404 | 503);
                ensure(is_unknown, Kind::Foreign, || format!("{}: a stranger got {status}", self.tag))?;
            }
        }
        for step in 2..=n {
            self.progress(&mut stream, step).await?;
        }
        let expected = format!("{}:{n}", self.tag);
        self.expect_text(&mut stream, &expected).await?;
        self.expect_line("count", Runs::Once);
        Ok(())
    }

    /// SCL-09: from the answer to `DELETE` on no node admits a message of the session, and what runs for it ends.
    async fn delete(&mut self) -> Outcome {
        let front = Arc::clone(&self.session.front);
        self.session = Session::open(&front, &self.tag).await?;
        let mut running = self.start_count(2000, 50).await?;
        self.progress(&mut running, 1).await?;
        let limit = Instant::now() + super::client::STUCK;
        loop {
            match self.session.delete().await {
                // After a connection that broke, the session can be deleted already.
                Sent::Reply(reply) if (200..300).contains(&reply.status) || reply.status == 404 => break,
                Sent::Reply(reply) if reply.status != 503 => {
                    return Err(super::client::refused("DELETE", &reply));
                }
                _ => super::client::pause(limit, || "DELETE".to_owned()).await?,
            }
        }
        let deleted = Instant::now();
        for _ in 0..4 {
            let arguments = json!({"name": "mark", "arguments": {"tag": format!("{} again", self.tag)}});
            let message = request(self.session.new_id(), "tools/call", arguments);
            if let Sent::Reply(reply) = self.session.post(&message).await {
                let is_gone = matches!(reply.status, 404 | 503);
                ensure(is_gone, Kind::Foreign, || format!("after DELETE: {}", reply.status))?;
            }
        }
        let ended = timeout(EFFECT, running.read_to_end()).await.is_ok();
        ensure(ended, Kind::Lost, || format!("{}: runs {:?} after DELETE", self.tag, deleted.elapsed()))
    }
}

/// Checks the report of a step.
fn expect_progress(message: &Value, tag: &str, step: usize) -> Outcome {
    let is_progress = message["method"] == "notifications/progress";
    let reported = message["params"]["message"].as_str().unwrap_or_default();
    let reported = reported.strip_prefix(&format!("{tag}:")).and_then(|it| it.parse::<usize>().ok());
    let reported = reported.filter(|_| is_progress && message["params"]["progressToken"] == tag);
    let reported = reported.ok_or_else(|| Finding::new(Kind::Foreign, format!("{tag}: {message}")))?;
    ensure(reported >= step, Kind::Doubled, || format!("{tag}: step {reported} again"))?;
    ensure(reported == step, Kind::Lost, || format!("{tag}: step {step}, got {reported}"))
}

/// One action of a client of the envelope era.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EnvelopeDeed {
    /// A call with an answer.
    Echo,
    /// A call with an effect.
    Mark,
    /// A call with progress.
    Count,
    /// A call with a question, whose state any node opens.
    Ask,
}

impl EnvelopeDeed {
    /// All actions.
    pub const ALL: [Self; 4] = [Self::Echo, Self::Mark, Self::Count, Self::Ask];

    /// Runs an action.
    pub async fn run(self, client: &EnvelopeClient, tag: &str, random: &mut Random) -> Outcome {
        match self {
            Self::Echo => {
                let (result, _) = client.call(json!({"name": "echo", "arguments": {"text": tag}})).await?;
                expect_result(&result, tag)
            }
            Self::Mark => {
                let line = format!("mark {tag}");
                client.front.report.expect_line(line.clone(), Runs::AtMostOnce);
                let (result, _) = client.call(json!({"name": "mark", "arguments": {"tag": tag}})).await?;
                expect_result(&result, tag)?;
                client.front.report.expect_line(line, Runs::Once);
                Ok(())
            }
            Self::Count => envelope_count(client, tag, random).await,
            Self::Ask => envelope_ask(client, tag).await,
        }
    }
}

fn expect_result(result: &Value, text: &str) -> Outcome {
    ensure(result["content"][0]["text"] == text, Kind::Foreign, || format!("{text}: {result}"))
}

async fn envelope_count(client: &EnvelopeClient, tag: &str, random: &mut Random) -> Outcome {
    let (n, line) = (1 + random.below(8), format!("count {tag}"));
    client.front.report.expect_line(line.clone(), Runs::AtMostOnce);
    let params = json!({"name": "count", "arguments": {"n": n, "ms": 20, "tag": tag},
        "_meta": {"progressToken": tag}});
    let mut answer = client.send("tools/call", params).await?;
    for step in 1..=n {
        match answer.next().await {
            Some(message) => expect_progress(&message, tag, step)?,
            None => break,
        }
    }
    expect_result(&answer.result().await?, &format!("{tag}:{n}"))?;
    client.front.report.expect_line(line, Runs::Once);
    Ok(())
}

/// SCL-12: the state of a question is sealed at one node and opened at another.
async fn envelope_ask(client: &EnvelopeClient, tag: &str) -> Outcome {
    let mut params = json!({"name": "ask", "arguments": {"tag": tag}});
    let (asked, _) = client.call(params.clone()).await?;
    ensure(asked["resultType"] == "input_required", Kind::Lost, || format!("{tag}: {asked}"))?;
    params["requestState"] = asked["requestState"].clone();
    params["inputResponses"] = json!({"answer": {"action": "accept", "content": {"answer": "yes"}}});
    let (done, _) = client.call(params).await?;
    expect_result(&done, &format!("{tag}:yes"))
}

/// Waits for a random time, so that actions interleave.
pub async fn think(random: &mut Random) {
    sleep(Duration::from_millis(random.below(80) as u64)).await;
}
