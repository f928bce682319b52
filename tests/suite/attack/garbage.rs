//! Requests with a few mutated bytes: a short form of a long fuzzing run.

use serde_json::{Value, json};
use tokio::io::AsyncWriteExt;
use tokio::task::JoinSet;

use super::lines::spawn;
use super::site::{Post, Site};
use super::{ERAS, echo, request};

/// Pseudo-random numbers that are the same in every run.
struct Chance(u64);

impl Chance {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % bound as u64).unwrap()
    }

    /// Changes, removes or doubles a few bytes, or truncates the text.
    fn mutated(&mut self, frame: &Value) -> Vec<u8> {
        const BYTES: &[u8] = b"{}[]\":,\\0-e.nult \x00\x7f\xff\xc3";
        let mut bytes = frame.to_string().into_bytes();
        for _ in 0..=self.below(3) {
            let at = self.below(bytes.len());
            match self.below(16) {
                0..8 => bytes[at] = BYTES[self.below(BYTES.len())],
                8..11 if bytes.len() > 1 => drop(bytes.remove(at)),
                11..15 => bytes.insert(at, bytes[at]),
                _ => bytes.truncate(at.max(1)),
            }
        }
        bytes.retain(|byte| *byte != b'\n');
        bytes
    }
}

fn frame(revision: &str, turn: usize) -> Value {
    let id = 100_000 + turn;
    match turn % 5 {
        0 => echo(revision, id, "x"),
        1 => request(revision, id.to_string(), "tools/list", json!({})),
        2 => request(revision, id, "resources/read", json!({ "uri": "test://one" })),
        3 => json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": -5 } }),
        _ => json!({ "jsonrpc": "2.0", "id": id, "result": {} }),
    }
}

/// Returns the id that the response to a text must carry, if an independent JSON parser finds one. A response has none.
fn owed(text: &[u8]) -> Option<Value> {
    let Ok(Value::Object(frame)) = serde_json::from_slice(text) else { return None };
    let is_response = frame.contains_key("result") || frame.contains_key("error");
    let id = frame.get("id").filter(|id| id.is_string() || id.is_i64());
    if is_response { None } else { id.cloned() }
}

/// Section 3.1, garbage: no line ends the process, and each line with an id is answered once with that id.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn mutated_lines_end_nothing() {
    for revision in ERAS {
        let mut wire = spawn();
        wire.open(revision).await;
        wire.send(echo(revision, "first", "x")).await;
        wire.answer_to("first").await;
        let (mut writer, mut writing) = (wire.take_writer(), JoinSet::new());
        writing.spawn(async move {
            let (mut chance, mut ids) = (Chance(0x5eed_1234_5678_9abc), Vec::new());
            for turn in 0..2000 {
                let line = chance.mutated(&frame(revision, turn));
                // On a stream, invalid UTF-8 is replaced and the rest of the line is read.
                ids.extend(owed(String::from_utf8_lossy(&line).as_bytes()).map(|id| id.to_string()));
                writer.write_all(&[&line[..], b"\n"].concat()).await.unwrap();
            }
            let last = echo(revision, "last", "still here").to_string() + "\n";
            writer.write_all(last.as_bytes()).await.unwrap();
            (writer, ids)
        });
        assert_eq!(wire.answer_to("last").await["result"]["content"][0]["text"], "still here");
        let (writer, mut owed) = writing.join_next().await.unwrap().unwrap();
        drop(writer);
        let (answers, ended) = wire.rest().await;
        assert!(ended.is_orderly(), "{ended:?}");
        let mut given: Vec<_> =
            answers.iter().filter_map(|answer| Some(answer.get("id")?.to_string())).collect();
        owed.sort();
        given.sort();
        assert!(owed.len() > 300, "most are damaged beyond reading, but not all");
        assert_eq!(given, owed);
    }
}

/// Section 3.1, garbage: no body ends the process; each is answered, and the next request on the connection is served.
#[tokio::test]
async fn mutated_bodies_end_nothing() {
    let site = Site::open().await;
    for revision in ERAS {
        let mut chance = Chance(0x5eed_8765_4321_abcd);
        for turn in 0..300 {
            let frame = frame(revision, turn);
            let body = chance.mutated(&frame);
            let head = Post::of(revision, &frame).head();
            let bytes = [format!("{head}content-length: {}\r\n\r\n", body.len()).as_bytes(), &body].concat();
            let reply = site.exchange(&bytes).await.expect("a response");
            assert!([200, 202, 400, 404].contains(&reply.status), "{}: {}", reply.status, reply.body);
            let answered = if reply.status == 202 { None } else { reply.answer().get("id").cloned() };
            assert_eq!(answered, owed(&body), "{} {}", String::from_utf8_lossy(&body), reply.body);
        }
    }
    site.serves().await;
}
