//! Events for the page, in order: a bounded log that pages read by position.
//!
//! A page that reads too slowly, or that is opened later, gets the number of events that it has missed.

use std::collections::VecDeque;
use std::sync::Mutex;
use std::time::Duration;

use duplexer_core::dispatch::lock;
use serde_json::Value;
use tokio::sync::Notify;
use tokio::time::timeout;

/// Maximum number of events, and of bytes of their text.
const MAX_EVENTS: usize = 20_000;
const MAX_BYTES: usize = 32 * 1024 * 1024;
/// Maximum number of events, and of bytes, in one answer.
const MAX_ANSWER: usize = 500;
const MAX_ANSWER_BYTES: usize = 1024 * 1024;
/// Time that a request waits for an event.
const WAIT: Duration = Duration::from_secs(20);

#[derive(Debug, Default)]
pub(crate) struct Events {
    log: Mutex<Log>,
    added: Notify,
}

#[derive(Debug, Default)]
struct Log {
    /// Number of the first event that is kept.
    first: u64,
    texts: VecDeque<String>,
    bytes: usize,
}

impl Events {
    /// Adds an event.
    pub(crate) fn add(&self, event: &Value) {
        let text = event.to_string();
        {
            let mut log = lock(&self.log);
            log.bytes += text.len();
            log.texts.push_back(text);
            while log.texts.len() > MAX_EVENTS || log.bytes > MAX_BYTES && log.texts.len() > 1 {
                let removed = log.texts.pop_front().map_or(0, |text| text.len());
                log.bytes -= removed;
                log.first += 1;
            }
        }
        self.added.notify_waiters();
    }

    /// Returns the events from position `from` on, as JSON. Waits for one if there is none.
    pub(crate) async fn after(&self, from: u64) -> String {
        loop {
            let added = self.added.notified();
            tokio::pin!(added);
            // Registered before the check, so that no event is missed.
            added.as_mut().enable();
            if let Some(answer) = self.answer(from) {
                return answer;
            }
            if timeout(WAIT, added).await.is_err() {
                return answer_text(&[], from, 0);
            }
        }
    }

    fn answer(&self, from: u64) -> Option<String> {
        let log = lock(&self.log);
        let end = log.first + log.texts.len() as u64;
        // A page of an earlier start can know a later position.
        let start = if from > end { log.first } else { from.max(log.first) };
        let lost = if from > end { 0 } else { start - from };
        let skipped = usize::try_from(start - log.first).ok()?;
        let mut bytes = 0;
        let texts: Vec<&str> = log
            .texts
            .iter()
            .skip(skipped)
            .take(MAX_ANSWER)
            .take_while(|text| {
                let fits = bytes < MAX_ANSWER_BYTES;
                bytes += text.len();
                fits
            })
            .map(String::as_str)
            .collect();
        if texts.is_empty() && lost == 0 {
            return None;
        }
        Some(answer_text(&texts, start + texts.len() as u64, lost))
    }
}

fn answer_text(events: &[&str], next: u64, lost: u64) -> String {
    format!(r#"{{"next":{next},"lost":{lost},"events":[{}]}}"#, events.join(","))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::json;

    use super::*;

    async fn read(events: &Events, from: u64) -> (Vec<Value>, u64, u64) {
        let answer: Value = serde_json::from_str(&events.after(from).await).unwrap();
        let all = answer["events"].as_array().unwrap().clone();
        (all, answer["next"].as_u64().unwrap(), answer["lost"].as_u64().unwrap())
    }

    #[tokio::test]
    async fn events_are_read_from_any_position() {
        let events = Events::default();
        for number in 0..3 {
            events.add(&json!({"number": number}));
        }
        let (all, next, lost) = read(&events, 1).await;
        assert_eq!((all.len(), next, lost), (2, 3, 0));
        assert_eq!(all[0]["number"], 1);
    }

    #[tokio::test]
    async fn a_reader_waits_for_the_next_event() {
        let events = Arc::new(Events::default());
        let (reading, ()) = tokio::join!(read(&events, 0), async { events.add(&json!({"late": true})) });
        assert_eq!(reading.0[0]["late"], true);
    }

    #[tokio::test]
    async fn a_slow_reader_learns_what_it_missed_and_old_events_are_dropped() {
        let events = Events::default();
        for number in 0..MAX_EVENTS + 5 {
            events.add(&json!({ "number": number }));
        }
        let (all, next, lost) = read(&events, 0).await;
        assert_eq!((all.len(), next, lost), (MAX_ANSWER, 5 + MAX_ANSWER as u64, 5));
        assert_eq!(all[0]["number"], 5);
    }

    #[tokio::test]
    async fn large_events_count_by_their_size() {
        let events = Events::default();
        let text = "x".repeat(1024 * 1024);
        for _ in 0..40 {
            events.add(&json!({ "text": text }));
        }
        assert!(lock(&events.log).bytes <= MAX_BYTES);
        let (all, _, lost) = read(&events, 0).await;
        assert!(all.len() <= 2 && lost > 5, "{} {lost}", all.len());
    }

    #[tokio::test]
    async fn a_position_of_an_earlier_start_begins_anew() {
        let events = Events::default();
        events.add(&json!({}));
        let (all, next, _) = read(&events, 1000).await;
        assert_eq!((all.len(), next), (1, 1));
    }
}
