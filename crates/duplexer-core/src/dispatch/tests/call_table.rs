//! The call table of connections without a read loop.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::dispatch::{
    CallOptions, CallTable, Disposition, FrameSink, Message, NotifyFuture, OutboundRequest, RejectReason,
    control_messages, lock,
};
use crate::error::CallError;

#[derive(Default)]
struct Sent(Mutex<Vec<String>>);

impl FrameSink for Sent {
    fn send(&self, frame: &[u8]) -> Result<NotifyFuture, CallError> {
        self.send_now(frame);
        Ok(NotifyFuture::done())
    }

    fn send_now(&self, frame: &[u8]) {
        lock(&self.0).push(String::from_utf8(frame.to_vec()).unwrap());
    }
}

fn notification(method: &str, params: &str) -> Message {
    Message::new(method.to_owned(), Some(params.into()))
}

/// With a limit, a call that is never completed fails its test; without one the test would wait indefinitely.
fn limited() -> CallOptions {
    CallOptions::new().timeout(Duration::from_secs(1))
}

/// DISP-22: the first of two requests with one id runs on; the id is free again after its end.
#[test]
fn an_id_is_taken_while_it_is_in_flight() {
    let correlation = CallTable::new(None);
    let first = correlation.accept(1_i64.into()).unwrap();
    assert_eq!(correlation.accept(1_i64.into()).unwrap_err(), RejectReason::InFlight);
    assert!(correlation.accept("1".into()).is_ok());
    assert_eq!(correlation.finish(&first), Disposition::Respond);
    assert!(correlation.accept(1_i64.into()).is_ok());
}

/// A request that the peer cancels is not answered, and its handler sees the cancellation.
#[test]
fn a_cancelled_request_is_not_answered() {
    let correlation = CallTable::new(None);
    let call = correlation.accept(7_i64.into()).unwrap();
    correlation.observe(&notification(control_messages::CANCELLED, r#"{"requestId":"7"}"#));
    assert!(call.cancellation().is_cancelled());
    assert_eq!(correlation.finish(&call), Disposition::Cancelled);
}

#[tokio::test(start_paused = true)]
async fn an_answer_and_its_progress_find_the_caller() {
    let correlation = CallTable::new(None);
    let line = Sent::default();
    let seen = Arc::new(Mutex::new(Vec::new()));
    let reported = Arc::clone(&seen);
    let options = limited().on_progress(move |progress| lock(&reported).push(progress.progress));
    let request = OutboundRequest::new("x/y").options(options);
    let peer = async {
        correlation.observe(&notification(control_messages::PROGRESS, r#"{"progressToken":1,"progress":5}"#));
        correlation.settle(&1_i64.into(), Ok("{}".into()));
    };
    let (answer, ()) = tokio::join!(correlation.call(request, &line), peer);
    assert_eq!(answer.unwrap(), "{}");
    assert_eq!(*lock(&seen), [5.0]);
}

/// DISP-01, DISP-02: the ids of other requests skip one that a caller has chosen.
#[tokio::test(start_paused = true)]
async fn a_chosen_id_is_in_flight_once() {
    let correlation = CallTable::new(None);
    let line = Sent::default();
    let request = |options| OutboundRequest::new("x/y").options(options);
    let answer = |id: i64| correlation.settle(&id.into(), Ok(id.to_string().into()));
    let chosen = correlation.call(request(limited().id(7_i64)), &line);
    assert_eq!(tokio::join!(chosen, async { answer(7) }).0.unwrap(), "7");
    let (chosen, other, ()) = tokio::join!(
        correlation.call(request(limited().id(1_i64)), &line),
        correlation.call(request(limited()), &line),
        async {
            answer(1);
            answer(2);
        }
    );
    assert_eq!((chosen.unwrap(), other.unwrap()), ("1".into(), "2".into()));
}

#[tokio::test(start_paused = true)]
async fn a_timeout_cancels_the_request() {
    let correlation = CallTable::new(None);
    let line = Sent::default();
    let call = correlation.call(OutboundRequest::new("x/y").options(limited()), &line);
    let outcome = tokio::time::timeout(Duration::from_secs(60), call).await.expect("the call ends");
    assert!(matches!(outcome, Err(CallError::Timeout(_))));
    let sent = lock(&line.0).clone();
    assert!(sent[1].contains(r#""requestId":1"#), "{sent:?}");
}

#[tokio::test(start_paused = true)]
async fn the_end_of_the_connection_ends_what_waits() {
    let correlation = CallTable::new(None);
    let line = Sent::default();
    let call = correlation.accept(1_i64.into()).unwrap();
    let request = OutboundRequest::new("x/y").options(limited());
    let (outcome, ()) = tokio::join!(correlation.call(request, &line), async { correlation.close() });
    assert!(matches!(outcome, Err(CallError::Closed)));
    assert!(call.cancellation().is_cancelled());
    assert_eq!(correlation.finish(&call), Disposition::Respond);
    assert_eq!(correlation.accept(2_i64.into()).unwrap_err(), RejectReason::Closed);
    let late = correlation.call(OutboundRequest::new("x/y"), &line).await;
    assert!(matches!(late, Err(CallError::Closed)));
    assert_eq!(format!("{correlation:?}"), "CallTable { phase: Closed, .. }");
}
