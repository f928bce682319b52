//! Requests with a few bytes changed: the short form of a night of them.

use serde_json::{Value, json};
use tokio::io::AsyncWriteExt;
use tokio::task::JoinSet;

use super::lines::spawn;
use super::site::{Post, Site};
use super::{ERAS, echo, request};

/// Numbers that look like chance and are the same in every run.
struct Chance(u64);

impl Chance {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % bound as u64).unwrap()
    }

    /// A few bytes changed, left out, doubled or cut off.
    fn mutated(&mut self, frame: &Value) -> Vec<u8> {
        const BYTES: &[u8] = b"{}[]\":,\\0-e.nult \x00\x7f\xff\xc3";
        let mut bytes = frame.to_string().into_bytes();
        for _ in 0..=self.below(4) {
            let at = self.below(bytes.len());
            match self.below(4) {
                0 => bytes[at] = BYTES[self.below(BYTES.len())],
                1 if bytes.len() > 1 => drop(bytes.remove(at)),
                2 => bytes.insert(at, bytes[at]),
                _ => bytes.truncate(at.max(1)),
            }
        }
        bytes.retain(|byte| *byte != b'\n');
        bytes
    }
}

fn frames(revision: &str) -> Vec<Value> {
    vec![
        echo(revision, 7, "x"),
        request(revision, "7", "tools/list", json!({})),
        request(revision, 7, "resources/read", json!({ "uri": "test://one" })),
        json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": 7 } }),
        json!({ "jsonrpc": "2.0", "id": 7, "result": {} }),
    ]
}

/// Section 3.1, garbage: no line ends the process, and whatever is answered is JSON-RPC.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn mutated_lines_end_nothing() {
    for revision in ERAS {
        let mut wire = spawn();
        wire.open(revision).await;
        wire.send(echo(revision, "first", "x")).await;
        wire.answer_to("first").await;
        let (mut writer, mut writing) = (wire.take_writer(), JoinSet::new());
        writing.spawn(async move {
            let (mut chance, frames) = (Chance(0x5eed_1234_5678_9abc), frames(revision));
            for turn in 0..2000 {
                let line = chance.mutated(&frames[turn % frames.len()]);
                writer.write_all(&[&line[..], b"\n"].concat()).await.unwrap();
            }
            let last = echo(revision, "last", "still here").to_string() + "\n";
            writer.write_all(last.as_bytes()).await.unwrap();
            writer
        });
        assert_eq!(wire.answer_to("last").await["result"]["content"][0]["text"], "still here");
        drop(writing.join_next().await);
        assert!(wire.rest().await.1.in_order());
    }
}

/// Section 3.1, garbage: nor does a body; each is answered, and the next request on the connection is served.
#[tokio::test]
async fn mutated_bodies_end_nothing() {
    let site = Site::open().await;
    for revision in ERAS {
        let (mut chance, frames) = (Chance(0x5eed_8765_4321_abcd), frames(revision));
        for turn in 0..300 {
            let frame = &frames[turn % frames.len()];
            let body = chance.mutated(frame);
            let head = Post::of(revision, frame).head();
            let bytes = [format!("{head}content-length: {}\r\n\r\n", body.len()).as_bytes(), &body].concat();
            let reply = site.exchange(&bytes).await.expect("a response");
            assert!([200, 202, 400, 404].contains(&reply.status), "{}: {}", reply.status, reply.body);
            if reply.status != 202 {
                reply.frames();
            }
        }
    }
    site.serves().await;
}
