//! What clients do at random nodes, and what they must see.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use duplexer_tests::scale::TOUCHED;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep, timeout};

use super::client::{Client, Finding, Kind, Outcome, Random, Stream, ensure, request, text_of};

/// Time within which another node acts on a message or a change (SCL-08, SCL-09, SCL-10).
pub const SOON: Duration = Duration::from_secs(1);

/// One action of a client.
pub struct Action {
    pub client: Arc<Client>,
    pub random: Random,
    /// Identifies the action in results and in the ledger.
    pub tag: String,
    /// Milliseconds between two progress notifications.
    pub pace: u64,
}

/// The lines that the tools must have written after an action: each once, and no others.
pub type Effects = BTreeSet<String>;

/// The kinds of actions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deed {
    Echo,
    Count,
    Ask,
    AskTwice,
    Cancel,
    Mark,
    Duplicate,
    Stranger,
    EnvelopeEcho,
    EnvelopeAsk,
    EnvelopeListen,
}

impl Deed {
    pub const ALL: [Self; 11] = [
        Self::Echo,
        Self::Count,
        Self::Ask,
        Self::AskTwice,
        Self::Cancel,
        Self::Mark,
        Self::Duplicate,
        Self::Stranger,
        Self::EnvelopeEcho,
        Self::EnvelopeAsk,
        Self::EnvelopeListen,
    ];
}

impl Action {
    pub async fn run(mut self, deed: Deed) -> Outcome<Effects> {
        let tag = self.tag.clone();
        match deed {
            Deed::Echo => self.echo().await.map(|()| Effects::new()),
            Deed::Count => self.count().await.map(|()| Effects::from([format!("count {tag}")])),
            Deed::Ask => self.ask().await.map(|()| Effects::new()),
            Deed::AskTwice => self.ask_twice().await.map(|()| Effects::new()),
            Deed::Cancel => self.cancel().await.map(|()| Effects::from([format!("count {tag}")])),
            Deed::Mark => self.mark().await.map(|()| Effects::from([format!("mark {tag}")])),
            Deed::Duplicate => self.duplicate().await.map(|()| Effects::new()),
            Deed::Stranger => self.stranger().await.map(|()| Effects::from([format!("count {tag}")])),
            Deed::EnvelopeEcho => self.envelope_echo().await.map(|()| Effects::new()),
            Deed::EnvelopeAsk => self.envelope_ask().await.map(|()| Effects::new()),
            Deed::EnvelopeListen => self.envelope_listen().await.map(|()| Effects::new()),
        }
    }

    async fn start(&mut self, tool: &str, arguments: Value) -> Outcome<Stream> {
        self.client.call(&mut self.random, tool, &self.tag, arguments).await
    }

    async fn start_count(&mut self, n: usize) -> Outcome<Stream> {
        let arguments = json!({"n": n, "ms": self.pace, "tag": self.tag});
        self.start("count", arguments).await
    }

    /// Reads the answer to a request, which must be the next message of its stream.
    async fn answer(&self, stream: &mut Stream) -> Outcome<Value> {
        let message = stream.next().await?;
        let is_own = stream.id.is_some_and(|id| message["id"] == id) && message.get("method").is_none();
        ensure(is_own, Kind::Misdelivered, || format!("{}: {message} instead of the answer", self.tag))?;
        Ok(message)
    }

    async fn expect_text(&self, stream: &mut Stream, expected: &str) -> Outcome {
        let answer = self.answer(stream).await?;
        let text = text_of(&answer);
        ensure(text == Some(expected), Kind::Misdelivered, || format!("{}: {answer}", self.tag))
    }

    async fn echo(&mut self) -> Outcome {
        let text = format!("text of {}", self.tag);
        let mut stream = self.start("echo", json!({"text": text})).await?;
        self.expect_text(&mut stream, &text).await
    }

    async fn mark(&mut self) -> Outcome {
        let arguments = json!({"tag": self.tag});
        let mut stream = self.start("mark", arguments).await?;
        let tag = self.tag.clone();
        self.expect_text(&mut stream, &tag).await
    }

    /// SCL-04: every event once, in order, without a hole, over connections that break off.
    async fn count(&mut self) -> Outcome {
        let n = 1 + self.random.below(12);
        let mut stream = self.start_count(n).await?;
        self.follow(&mut stream, 1, n).await
    }

    /// Follows a count from a step to its result.
    async fn follow(&mut self, stream: &mut Stream, from: usize, n: usize) -> Outcome {
        for step in from..=n {
            match self.random.below(8) {
                0 => stream.disconnect(),
                1 => stream.rewind(),
                _ => {}
            }
            self.progress(stream, step).await?;
        }
        if self.random.one_in(4) {
            stream.disconnect();
        }
        let expected = format!("{}:{n}", self.tag);
        self.expect_text(stream, &expected).await
    }

    /// Reads the report of a step.
    async fn progress(&self, stream: &mut Stream, step: usize) -> Outcome {
        let message = stream.next().await?;
        let is_progress = message["method"] == "notifications/progress";
        let is_own = message["params"]["progressToken"] == self.tag;
        ensure(is_progress && is_own, Kind::Misdelivered, || format!("{}: {message}", self.tag))?;
        let reported = message["params"]["message"].as_str().unwrap_or_default();
        let reported =
            reported.strip_prefix(&format!("{}:", self.tag)).and_then(|it| it.parse::<usize>().ok());
        let reported = reported.ok_or_else(|| Finding::new(Kind::Misdelivered, message.to_string()))?;
        ensure(reported >= step, Kind::Doubled, || format!("{}: step {reported} again", self.tag))?;
        ensure(reported == step, Kind::Lost, || format!("{}: step {step}, got {reported}", self.tag))
    }

    /// Reads the question of a call, and returns its id.
    async fn question(&mut self, stream: &mut Stream) -> Outcome<Value> {
        let message = stream.next().await?;
        let is_question = message["method"] == "elicitation/create"
            && message["params"]["message"] == format!("What about {}?", self.tag);
        ensure(is_question, Kind::Misdelivered, || format!("{}: {message}", self.tag))?;
        match self.random.below(4) {
            0 => stream.disconnect(),
            1 => stream.rewind(),
            _ => {}
        }
        Ok(message["id"].clone())
    }

    /// Answers a question at a random node.
    async fn reply(&mut self, question: &Value, answer: &str) -> Outcome {
        let reply = accepted(question, answer);
        let client = Arc::clone(&self.client);
        let status = client.post_anywhere(&mut self.random, &reply).await.status;
        ensure(status == 202, Kind::Lost, || format!("{}: the answer got {status}", self.tag))
    }

    /// SCL-07, SCL-42: an answer at any node reaches the handler that asked, once.
    async fn ask(&mut self) -> Outcome {
        let arguments = json!({"tag": self.tag});
        let mut stream = self.start("ask", arguments).await?;
        let question = self.question(&mut stream).await?;
        self.intrude(&question).await?;
        let answer = format!("answer {}", self.tag);
        self.reply(&question, &answer).await?;
        if self.random.one_in(2) {
            self.reply(&question, "a second answer").await?;
        }
        let expected = format!("{}:{answer}", self.tag);
        self.expect_text(&mut stream, &expected).await
    }

    /// SCL-42: who knows the id of a question, but not its session, answers nothing.
    async fn intrude(&mut self, question: &Value) -> Outcome {
        let stranger = self.client.impersonated_by(&format!("stranger-to-{}", self.client.name));
        let reply = accepted(question, "an answer of a stranger");
        let status = stranger.post_anywhere(&mut self.random, &reply).await.status;
        ensure(status == 404, Kind::Misdelivered, || format!("{}: a stranger got {status}", self.tag))?;
        let other = Client::open(&self.client.nodes, "elsewhere", &mut self.random).await?;
        other.post_anywhere(&mut self.random, &reply).await;
        other.delete_anywhere(&mut self.random).await;
        Ok(())
    }

    /// Two questions of one session at the same time, answered in the other order: ids of two nodes do not collide.
    async fn ask_twice(&mut self) -> Outcome {
        let tag = self.tag.clone();
        let (mut one, mut two) = (self.named(&tag, "-1"), self.named(&tag, "-2"));
        let (first, second) = (json!({"tag": one.tag}), json!({"tag": two.tag}));
        let mut stream_one = one.start("ask", first).await?;
        let mut stream_two = two.start("ask", second).await?;
        let question_one = one.question(&mut stream_one).await?;
        let question_two = two.question(&mut stream_two).await?;
        ensure(question_one != question_two, Kind::Misdelivered, || {
            format!("{tag}: both questions have the id {question_one}")
        })?;
        two.reply(&question_two, "two").await?;
        one.reply(&question_one, "one").await?;
        one.expect_text(&mut stream_one, &format!("{tag}-1:one")).await?;
        two.expect_text(&mut stream_two, &format!("{tag}-2:two")).await
    }

    /// Returns an action of the same client with another tag.
    fn named(&mut self, tag: &str, suffix: &str) -> Self {
        Self {
            client: Arc::clone(&self.client),
            random: self.random.fork(),
            tag: format!("{tag}{suffix}"),
            pace: self.pace,
        }
    }

    /// SCL-08: a cancellation at any node ends the call soon.
    async fn cancel(&mut self) -> Outcome {
        let steps = usize::try_from(60_000 / self.pace).unwrap();
        let mut stream = self.start_count(steps).await?;
        let before = 1 + self.random.below(4);
        for step in 1..=before {
            self.progress(&mut stream, step).await?;
        }
        let cancelled = json!({"jsonrpc": "2.0", "method": "notifications/cancelled",
            "params": {"requestId": stream.id, "reason": "enough"}});
        let client = Arc::clone(&self.client);
        let status = client.post_anywhere(&mut self.random, &cancelled).await.status;
        ensure(status == 202, Kind::Lost, || format!("{}: the cancellation got {status}", self.tag))?;
        let sent = Instant::now();
        loop {
            let message = stream.next().await?;
            if message.get("method").is_none() {
                let code = &message["error"]["code"];
                ensure(*code == -32800, Kind::Lost, || format!("{}: not cancelled: {message}", self.tag))?;
                return Ok(());
            }
            let late = sent.elapsed();
            ensure(late <= SOON * 2, Kind::Lost, || {
                format!("{}: runs {late:?} after its cancellation", self.tag)
            })?;
        }
    }

    /// SCL-31: an id is in flight once, and the request that has it is not affected by another one. It waits for an answer
    /// meanwhile, so that it cannot have ended however long a message takes.
    async fn duplicate(&mut self) -> Outcome {
        let arguments = json!({"tag": self.tag});
        let mut stream = self.start("ask", arguments).await?;
        let question = self.question(&mut stream).await?;
        let params = json!({"name": "mark", "arguments": {"tag": format!("{} again", self.tag)}});
        let duplicate = request(stream.id.unwrap_or_default(), "tools/call", params);
        let client = Arc::clone(&self.client);
        // To one node only: one that shuts down refuses it too.
        let node = client.nodes.any(&mut self.random);
        let status = client.post(node, &duplicate).await.status;
        ensure(matches!(status, 409 | 503), Kind::Doubled, || {
            format!("{}: a second request with its id got {status}", self.tag)
        })?;
        self.reply(&question, "once").await?;
        let expected = format!("{}:once", self.tag);
        self.expect_text(&mut stream, &expected).await
    }

    /// SCL-11: to another principal the session does not exist, and its request runs on.
    async fn stranger(&mut self) -> Outcome {
        let n = 6 + self.random.below(6);
        let mut stream = self.start_count(n).await?;
        self.progress(&mut stream, 1).await?;
        let stranger = self.client.impersonated_by(&format!("stranger-to-{}", self.client.name));
        let id = stream.id.unwrap_or_default();
        let cancelled =
            json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}});
        let called = request(id, "tools/call", json!({"name": "echo", "arguments": {"text": "x"}}));
        let replies = [
            stranger.post_anywhere(&mut self.random, &cancelled).await,
            stranger.post_anywhere(&mut self.random, &called).await,
            stranger.get_anywhere(&mut self.random, stream.last_id()).await,
            stranger.get_anywhere(&mut self.random, None).await,
            stranger.delete_anywhere(&mut self.random).await,
        ];
        for reply in &replies {
            let status = reply.status;
            ensure(status == 404, Kind::Misdelivered, || format!("{}: a stranger got {status}", self.tag))?;
        }
        drop(replies);
        self.follow(&mut stream, 2, n).await
    }

    /// SCL-01: every node answers.
    async fn envelope_echo(&mut self) -> Outcome {
        let params = json!({"name": "echo", "arguments": {"text": self.tag}});
        let client = Arc::clone(&self.client);
        let result = client.envelope(&mut self.random, "tools/call", params).await?;
        let text = result["content"][0]["text"].as_str();
        ensure(text == Some(&*self.tag), Kind::Misdelivered, || format!("{}: {result}", self.tag))
    }

    /// SCL-12: the state of a question is sealed at one node and opened at another.
    async fn envelope_ask(&mut self) -> Outcome {
        let client = Arc::clone(&self.client);
        let mut params = json!({"name": "ask", "arguments": {"tag": self.tag}});
        let asked = client.envelope(&mut self.random, "tools/call", params.clone()).await?;
        ensure(asked["resultType"] == "input_required", Kind::Lost, || format!("{}: {asked}", self.tag))?;
        params["requestState"] = asked["requestState"].clone();
        params["inputResponses"] = json!({"answer": {"action": "accept", "content": {"answer": "yes"}}});
        let done = client.envelope(&mut self.random, "tools/call", params).await?;
        let expected = format!("{}:yes", self.tag);
        ensure(done["content"][0]["text"] == expected, Kind::Lost, || format!("{}: {done}", self.tag))
    }

    /// SCL-10: a change published at any node is heard by a listener at any node.
    async fn envelope_listen(&mut self) -> Outcome {
        let filter = json!({"notifications": {"resourceSubscriptions": [TOUCHED]}});
        let client = Arc::clone(&self.client);
        let reply = client.send_envelope(&mut self.random, "subscriptions/listen", filter).await;
        ensure(reply.status == 200, Kind::Refused, || format!("{}: listen got {}", self.tag, reply.status))?;
        let mut events = reply.events();
        let acknowledged = events.next().await.and_then(|event| event.message).unwrap_or_default();
        ensure(acknowledged["method"] == "notifications/subscriptions/acknowledged", Kind::Lost, || {
            format!("{}: {acknowledged} instead of the acknowledgement", self.tag)
        })?;
        for _ in 0..3 {
            touch(&client, &mut self.random).await?;
            let heard = timeout(SOON, events.next()).await.ok().flatten().and_then(|event| event.message);
            let heard = heard.ok_or_else(|| Finding::new(Kind::Lost, format!("{}: a change", self.tag)))?;
            ensure(is_touched(&heard), Kind::Misdelivered, || format!("{}: {heard}", self.tag))?;
        }
        Ok(())
    }
}

/// Publishes a change at a random node.
pub async fn touch(client: &Arc<Client>, random: &mut Random) -> Outcome {
    let mut stream = client.call(random, "touch", "touch", json!({})).await?;
    let answer = stream.next().await?;
    ensure(text_of(&answer) == Some("touched"), Kind::Misdelivered, || format!("touch: {answer}"))
}

pub fn is_touched(message: &Value) -> bool {
    message["method"] == "notifications/resources/updated" && message["params"]["uri"] == TOUCHED
}

fn accepted(question: &Value, answer: &str) -> Value {
    json!({"jsonrpc": "2.0", "id": question, "result": {"action": "accept", "content": {"answer": answer}}})
}

/// The stream of a session that is subscribed to the resource which `touch` changes.
pub struct Listener {
    pub client: Arc<Client>,
    pub stream: Stream,
    random: Random,
}

impl Listener {
    /// Subscribes at one node, and reads at another.
    pub async fn open(client: &Arc<Client>, random: &mut Random) -> Outcome<Self> {
        let mut subscribed = client.start(random, "resources/subscribe", json!({"uri": TOUCHED})).await?;
        let answer = subscribed.next().await?;
        ensure(answer.get("result").is_some(), Kind::Refused, || format!("subscribe: {answer}"))?;
        let stream = Stream::standalone(client, random).await?;
        Ok(Self { client: Arc::clone(client), stream, random: random.fork() })
    }

    /// SCL-10: publishes changes at random nodes, and hears of each after it, also after having been away.
    pub async fn hear(&mut self, times: usize) -> Outcome {
        for _ in 0..times {
            if self.random.one_in(3) {
                self.stream.disconnect();
            }
            touch(&self.client, &mut self.random).await?;
            self.next(SOON * 3).await?;
        }
        Ok(())
    }

    /// Waits for a notification of a change.
    pub async fn next(&mut self, time: Duration) -> Outcome {
        let heard = timeout(time, self.stream.next()).await;
        let heard =
            heard.map_err(|_| Finding::new(Kind::Lost, format!("a change for {}", self.client.name)))??;
        ensure(is_touched(&heard), Kind::Misdelivered, || format!("{}: {heard}", self.client.name))
    }

    /// Reads what is left of earlier changes, until nothing comes for a while.
    pub async fn drain(&mut self) -> Outcome {
        while let Ok(heard) = timeout(SOON * 3, self.stream.next()).await {
            let heard = heard?;
            ensure(is_touched(&heard), Kind::Misdelivered, || format!("{}: {heard}", self.client.name))?;
        }
        Ok(())
    }
}

/// Waits for a random time, so that actions interleave.
pub async fn pause(random: &mut Random, pace: u64) {
    sleep(Duration::from_millis(pace * random.below(12) as u64)).await;
}
