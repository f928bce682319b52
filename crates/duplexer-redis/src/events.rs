//! Events of streams: a list of events and a hash with the state of each stream.

use std::sync::Arc;

use bytes::Bytes;
use duplexer_core::dispatch::BoxFuture;
use duplexer_core::error::StoreError;
use duplexer_core::run::RunId;
use duplexer_http::{
    Appended, Attach, Attached, Batch, Concluded, EventKind, EventStore, Numbering, Page, SessionDigest,
    StoredEvent, StreamId, StreamKey, StreamReader, Takeover, Wake,
};
use redis::Value;

use crate::keys::WakeName;
use crate::link::Node;
use crate::scripts::{self, ScriptCall};
use crate::value::{self, millis, unreadable};

/// Events in the store.
#[derive(Clone, Debug)]
pub(crate) struct Events(pub(crate) Arc<Node>);

impl EventStore for Events {
    fn append<'a>(
        &'a self,
        stream: &'a StreamKey,
        batch: Batch<'a>,
    ) -> BoxFuture<'a, Result<Appended, StoreError>> {
        Box::pin(async move {
            let call = self.appending(stream, &batch)?;
            let (outcome, mut rest) = value::outcome(self.0.connection.run(&call).await?)?;
            Ok(match outcome.as_str() {
                "stored" => {
                    let (last, reader) = (value::next(&mut rest)?, next_run(&mut rest)?);
                    self.0.counters.batches_appended.increment();
                    self.0.counters.events_appended.add(batch.events.len() as u64);
                    self.0.wake_reader(reader, stream);
                    Appended::UpTo { last, reader }
                }
                "full" => Appended::Full,
                "closed" => Appended::Closed,
                _ => Appended::Unknown,
            })
        })
    }

    fn read<'a>(
        &'a self,
        stream: &'a StreamKey,
        after: u64,
        at_most: usize,
    ) -> BoxFuture<'a, Result<Option<Page>, StoreError>> {
        Box::pin(async move {
            let keys = self.0.keys.session(&stream.session);
            let mut call = scripts::READ.call([keys.stream(stream.stream), keys.events(stream.stream)]);
            call.arg(after).arg(at_most.min(self.0.settings.events.stream_events));
            let Some(answer) = self.0.connection.run::<Option<Vec<Value>>>(&call).await? else {
                return Ok(None);
            };
            let page = self.read_page(stream, answer, after)?;
            if page.first > after + 1 {
                self.0.counters.events_gaps.increment();
            }
            Ok(Some(page))
        })
    }

    fn attach<'a>(
        &'a self,
        stream: &'a StreamKey,
        attach: Attach,
    ) -> BoxFuture<'a, Result<Attached, StoreError>> {
        Box::pin(async move {
            let keys = self.0.keys.session(&stream.session);
            let (state, events) = (keys.stream(stream.stream), keys.events(stream.stream));
            let mut call = scripts::ATTACH.call([state, events, keys.record(), keys.streams()]);
            call.text(attach.reader).text_or_empty(attach.after);
            call.arg(replaced(attach.takeover)).arg(millis(self.0.settings.session_expiry));
            let opened = stream.stream == StreamId::STANDALONE;
            call.arg(if opened { stream.stream.to_string() } else { String::new() });
            call.text(format_args!("{:016x}", attach.token));
            let (outcome, mut rest) = value::outcome(self.0.connection.run(&call).await?)?;
            Ok(match outcome.as_str() {
                "reader" => {
                    let (number, after) = (value::next(&mut rest)?, value::next(&mut rest)?);
                    let earlier = next_run(&mut rest)?;
                    let position: String = value::next(&mut rest)?;
                    let position = value::position(&position)?;
                    if earlier.is_some() {
                        self.0.counters.readers_replaced.increment();
                    }
                    self.0.wake_reader(earlier, stream);
                    Attached::Reader { number, after, position }
                }
                "held" => Attached::Held(next_run(&mut rest)?.ok_or_else(|| unreadable("no reader"))?),
                _ => Attached::Unknown,
            })
        })
    }

    fn detach<'a>(
        &'a self,
        stream: &'a StreamKey,
        reader: u64,
        received: u64,
    ) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(async move {
            let keys = self.0.keys.session(&stream.session);
            let mut call = scripts::DETACH.call([keys.stream(stream.stream), keys.events(stream.stream)]);
            call.arg(reader).arg(received).arg(millis(self.0.settings.read_stream));
            self.0.connection.run::<()>(&call).await
        })
    }

    fn conclude<'a>(
        &'a self,
        stream: &'a StreamKey,
        writer: RunId,
        last: &'a Bytes,
    ) -> BoxFuture<'a, Result<Concluded, StoreError>> {
        Box::pin(async move {
            let keys = self.0.keys.session(&stream.session);
            let (state, events) = (keys.stream(stream.stream), keys.events(stream.stream));
            let mut call = scripts::CONCLUDE.call([state, events, keys.in_flight()]);
            call.text(writer).arg(self.encode(stream, None, EventKind::Final, last)?);
            call.arg(millis(self.0.settings.unread_stream));
            let (outcome, mut rest) = value::outcome(self.0.connection.run(&call).await?)?;
            Ok(match outcome.as_str() {
                "ended" => {
                    self.0.counters.nodes_lost.increment();
                    self.0.wake_reader(next_run(&mut rest)?, stream);
                    Concluded::Ended
                }
                "already" => Concluded::Already,
                _ => Concluded::Unknown,
            })
        })
    }

    fn forget<'a>(&'a self, session: &'a str) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(async move {
            let keys = self.0.keys.session(session);
            let mut call = scripts::FORGET.call([keys.streams()]);
            call.arg(keys.base()).text(StreamId::STANDALONE);
            self.0.connection.run::<()>(&call).await
        })
    }

    fn watch(&self, stream: &StreamKey) -> Wake {
        let changed = self.0.wakes.watch(WakeName::of(stream)).notified_owned();
        Wake::new(changed)
    }
}

impl Events {
    fn appending(&self, stream: &StreamKey, batch: &Batch<'_>) -> Result<ScriptCall, StoreError> {
        let keys = self.0.keys.session(&stream.session);
        let settings = &self.0.settings;
        let (state, events) = (keys.stream(stream.stream), keys.events(stream.stream));
        let mut call =
            scripts::APPEND.call([state, events, keys.in_flight(), keys.streams(), keys.deleted()]);
        call.text(batch.writer);
        let (first, position) = match batch.numbering {
            Numbering::From(first) => {
                call.arg(first).arg("");
                (Some(first), None)
            }
            Numbering::Next { token, position } => {
                call.arg("").text(format_args!("{token:032x}"));
                (None, position)
            }
            other => return Err(StoreError::Failed(format!("unknown numbering {other:?}").into())),
        };
        call.text_or_empty(batch.unanswered);
        call.arg(settings.events.stream_events).arg(settings.events.stream_bytes);
        call.arg(settings.events.session_bytes);
        call.arg(millis(settings.session_expiry)).arg(millis(settings.unread_stream));
        call.text(stream.stream);
        call.arg(batch.request.map(value::json).transpose()?.unwrap_or_default()).arg(keys.base());
        call.text_or_empty(position);
        for (index, event) in (0..).zip(batch.events) {
            let number = first.map(|first| first + index);
            call.arg(self.encode(stream, number, event.kind, &event.data)?);
        }
        Ok(call)
    }

    /// Returns an event as it is stored: the letter of its kind, and the message. The store gives some events their number.
    fn encode(
        &self,
        stream: &StreamKey,
        number: Option<u64>,
        kind: EventKind,
        data: &[u8],
    ) -> Result<Vec<u8>, StoreError> {
        let letter = match kind {
            EventKind::Request => b'r',
            EventKind::Final => b'f',
            _ => b'n',
        };
        let mut event = Vec::with_capacity(data.len() + 1);
        event.push(letter);
        match &self.0.seal {
            None => event.extend_from_slice(data),
            Some(seal) => {
                let scope = SessionDigest::of(&stream.session).to_string();
                event.extend(seal.seal(&scope, &context(stream, number, letter), data)?);
            }
        }
        Ok(event)
    }

    fn decode(&self, stream: &StreamKey, number: u64, event: Vec<u8>) -> Result<StoredEvent, StoreError> {
        let mut data = Bytes::from(event);
        let letter = data.first().copied().unwrap_or_default();
        let kind = match letter {
            b'n' => EventKind::Notification,
            b'r' => EventKind::Request,
            b'f' => EventKind::Final,
            _ => return Err(unreadable("an event has an unknown kind")),
        };
        let mut data = data.split_off(1);
        if let Some(seal) = &self.0.seal {
            let scope = SessionDigest::of(&stream.session).to_string();
            let open = |number| seal.open(&scope, &context(stream, number, letter), &data);
            data = open(Some(number)).or_else(|_| open(None))?.into();
        }
        Ok(StoredEvent::new(data, kind))
    }

    fn read_page(&self, stream: &StreamKey, answer: Vec<Value>, after: u64) -> Result<Page, StoreError> {
        let mut values = answer.into_iter();
        let mut page = Page::empty(after);
        page.first = value::next(&mut values)?;
        page.ended = value::next(&mut values)?;
        page.writer = next_run(&mut values)?;
        let request: String = value::next(&mut values)?;
        if !request.is_empty() {
            page.request = Some(serde_json::from_str(&request).map_err(unreadable)?);
        }
        let (run, number) = (next_run(&mut values)?, value::next(&mut values)?);
        page.reader = run.map(|run| StreamReader { run, number });
        let events: Vec<Vec<u8>> = value::next(&mut values)?;
        let numbered = (page.first..).zip(events);
        page.events =
            numbered.map(|(number, event)| self.decode(stream, number, event)).collect::<Result<_, _>>()?;
        Ok(page)
    }
}

/// Returns what an event is sealed for, within its session.
fn context(stream: &StreamKey, number: Option<u64>, letter: u8) -> String {
    let number = number.map(|number| number.to_string()).unwrap_or_default();
    format!("{}:{number}:{}", stream.stream, char::from(letter))
}

/// Takes a run, which is empty where there is none.
fn next_run(values: &mut std::vec::IntoIter<Value>) -> Result<Option<RunId>, StoreError> {
    value::run(&value::next::<String>(values)?)
}

/// Returns which reader is replaced: `*` for any, nothing for none.
fn replaced(takeover: Takeover) -> String {
    match takeover {
        Takeover::Always => "*".to_owned(),
        Takeover::Of(run) => run.to_string(),
        _ => String::new(),
    }
}
