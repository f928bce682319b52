//! Requests and their responses.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use duplexer_types::json::{Json, JsonObject};
use duplexer_types::jsonrpc::RequestId;
use serde_json::{Value, json};
use tokio::sync::Notify;
use tokio::time::Instant;

use super::over_every_kind;
use crate::dispatch::tests::link::{Kind, value};
use crate::dispatch::tests::{Reply, TestInbound};
use crate::dispatch::{CallClock, CallOptions, OutboundRequest, lock};
use crate::error::CallError;
use crate::transport::BackChannel;

over_every_kind!(
    a_request_is_answered_by_the_other_ends_handler,
    requests_are_handled_concurrently,
    a_thousand_calls_at_once_each_get_their_own_answer,
    generated_ids_count_from_one_and_skip_chosen_ones,
    a_chosen_id_arrives_as_it_is_and_cannot_be_used_twice,
    a_progress_callback_names_the_request_and_is_called_in_order,
    meta_is_written_only_if_there_is_some_and_is_merged,
    a_call_that_is_not_answered_in_time_fails,
    progress_does_not_extend_a_timeout,
    progress_extends_an_idle_timeout,
    time_in_a_pause_does_not_count_towards_the_timeout,
    dropping_a_call_interrupts_its_handler,
    a_handler_can_send_its_caller_a_request,
    without_a_back_channel_a_handler_cannot_send_requests,
    a_handler_sees_the_transport_context,
    the_channel_of_an_ended_request_is_closed,
);

/// Reports the id, the params and the `_meta` that arrived.
fn mirror() -> TestInbound {
    TestInbound::new().on("mirror", |cx, call| async move {
        let id = cx.id.map(|id| Json::encode(&id).unwrap().decode::<Value>().unwrap());
        let part = |text: Option<&str>| text.map(|text| serde_json::from_str::<Value>(text).unwrap());
        Ok(Reply::of(&json!({"id": id, "params": part(call.params()), "meta": part(call.meta())})))
    })
}

/// Never answers, and reports when it starts and when it is dropped.
#[derive(Clone, Default)]
struct Stuck {
    started: Arc<Notify>,
    dropped: Arc<Notify>,
}

struct Dropped(Arc<Notify>);

impl Drop for Dropped {
    fn drop(&mut self) {
        self.0.notify_one();
    }
}

impl Stuck {
    fn inbound(&self) -> TestInbound {
        let stuck = self.clone();
        mirror().on("stuck", move |_, _| {
            let (started, dropped) = (Arc::clone(&stuck.started), Dropped(Arc::clone(&stuck.dropped)));
            async move {
                let _dropped = dropped;
                started.notify_one();
                std::future::pending().await
            }
        })
    }
}

/// DISP-20, DIR-01.
async fn a_request_is_answered_by_the_other_ends_handler(kind: Kind) {
    let link = kind.link(TestInbound::new(), TestInbound::new()).await;
    let params = json!({"text": "hello \u{e9} \n \" there", "n": 1.5, "nothing": null});
    assert_eq!(link.left.call("echo", params.clone()).await.unwrap(), params);
    assert_eq!(link.right.call("echo", params.clone()).await.unwrap(), params);
    let bare = link.left.peer.request(OutboundRequest::new("echo")).await;
    assert_eq!(value(bare).unwrap(), json!({}));
}

/// DISP-20: the second is answered while the first still waits for it.
async fn requests_are_handled_concurrently(kind: Kind) {
    let gate = Arc::new(Notify::new());
    let opened = Arc::clone(&gate);
    let inbound = TestInbound::new()
        .on("wait", move |_, _| {
            let gate = Arc::clone(&gate);
            async move {
                gate.notified().await;
                Ok(Reply::of(&json!({"waited": true})))
            }
        })
        .on("open", move |_, _| {
            opened.notify_one();
            async { Ok(Reply::of(&json!({}))) }
        });
    let link = kind.link(TestInbound::new(), inbound).await;
    let (waited, opened) = tokio::join!(link.left.call("wait", json!({})), link.left.call("open", json!({})));
    assert_eq!(waited.unwrap(), json!({"waited": true}));
    opened.unwrap();
}

/// DISP-12, DISP-33.
async fn a_thousand_calls_at_once_each_get_their_own_answer(kind: Kind) {
    let inbound = TestInbound::new().on("late", |_, call| async move {
        for _ in 0..call.params().map_or(0, str::len) % 5 {
            tokio::task::yield_now().await;
        }
        Ok(Reply::Text(call.params().unwrap_or_default().to_owned()))
    });
    let link = Arc::new(kind.link(TestInbound::new(), inbound).await);
    let mut calls = tokio::task::JoinSet::new();
    for n in 0..1000 {
        let link = Arc::clone(&link);
        calls.spawn(async move {
            let params = json!({"n": n, "pad": "x".repeat(n % 7)});
            assert_eq!(link.left.call("late", params.clone()).await.unwrap(), params);
        });
    }
    assert_eq!(calls.join_all().await.len(), 1000);
}

/// DISP-01, DIR-03.
async fn generated_ids_count_from_one_and_skip_chosen_ones(kind: Kind) {
    let stuck = Stuck::default();
    let link = kind.link(TestInbound::new(), stuck.inbound()).await;
    let chosen = link.left.call_with("stuck", json!({}), CallOptions::new().id("2"));
    tokio::pin!(chosen);
    let calls = async {
        stuck.started.notified().await;
        for expected in [1, 3, 4] {
            assert_eq!(link.left.call("mirror", json!({})).await.unwrap()["id"], json!(expected));
        }
    };
    tokio::select! {
        _ = &mut chosen => panic!("stuck calls are not answered"),
        () = calls => {}
    }
}

/// DISP-02, DISP-03, DIR-03: nor can its twin of the other JSON type.
async fn a_chosen_id_arrives_as_it_is_and_cannot_be_used_twice(kind: Kind) {
    let stuck = Stuck::default();
    let link = kind.link(TestInbound::new(), stuck.inbound()).await;
    for id in [RequestId::from("seven"), RequestId::from(7_i64), RequestId::from("7"), RequestId::from("")] {
        let sent = Json::encode(&id).unwrap().decode::<Value>().unwrap();
        let seen = link.left.call_with("mirror", json!({}), CallOptions::new().id(id)).await.unwrap();
        assert_eq!(seen["id"], sent);
    }
    let open = link.left.call_with("stuck", json!({}), CallOptions::new().id(7_i64));
    tokio::pin!(open);
    let others = async {
        stuck.started.notified().await;
        for taken in [RequestId::from(7_i64), RequestId::from("7")] {
            let refused =
                link.left.call_with("mirror", json!({}), CallOptions::new().id(taken.clone())).await;
            assert!(matches!(refused, Err(CallError::DuplicateId(id)) if id == taken));
        }
    };
    tokio::select! {
        _ = &mut open => panic!("stuck calls are not answered"),
        () = others => {}
    }
}

/// DISP-04, DISP-26, DIR-07: and a callback that panics affects only its own call.
async fn a_progress_callback_names_the_request_and_is_called_in_order(kind: Kind) {
    let inbound = TestInbound::new().on("work", |cx, call| async move {
        let meta: Value = serde_json::from_str(call.meta().unwrap()).unwrap();
        for step in 1..=4 {
            let params = json!({"progressToken": meta["progressToken"], "progress": step, "total": 4.5, "message": "m"});
            cx.channel.notify("notifications/progress", Some(&Json::from(params))).await;
        }
        Ok(Reply::of(&json!({"token": meta["progressToken"]})))
    });
    let link = kind.link(TestInbound::new(), inbound).await;
    let seen = Arc::new(Mutex::new(Vec::new()));
    let sink = Arc::clone(&seen);
    let options = CallOptions::new().id("tok").on_progress(move |progress| {
        lock(&sink).push((progress.progress, progress.total, progress.message));
        assert!(lock(&sink).len() != 2, "secret: callback");
    });
    let answer = link.left.call_with("work", json!({"a": 1}), options).await.unwrap();
    assert_eq!(answer["token"], json!("tok"));
    let expected: Vec<_> =
        [1.0, 2.0, 3.0, 4.0].into_iter().map(|step| (step, Some(4.5), Some("m".to_owned()))).collect();
    assert_eq!(*lock(&seen), expected);
}

/// DISP-05.
async fn meta_is_written_only_if_there_is_some_and_is_merged(kind: Kind) {
    let link = kind.link(TestInbound::new(), mirror()).await;
    let bare = link.left.call("mirror", json!({"a": 1})).await.unwrap();
    assert_eq!((&bare["params"], &bare["meta"]), (&json!({"a": 1}), &Value::Null));
    let meta = JsonObject::new().with("k", Json::from(json!([1]))).with("own", Json::from(json!("ours")));
    let request = OutboundRequest::new("mirror")
        .params(json!({"a": 1, "_meta": {"own": "theirs", "kept": true}}))
        .meta(meta);
    let both = value(link.left.peer.request(request).await).unwrap();
    assert_eq!(both["meta"], json!({"own": "ours", "kept": true, "k": [1]}));
    assert_eq!(both["params"]["a"], json!(1));
}

/// DISP-07, DIR-05: and its handler is interrupted.
async fn a_call_that_is_not_answered_in_time_fails(kind: Kind) {
    let stuck = Stuck::default();
    let link = kind.link(TestInbound::new(), stuck.inbound()).await;
    let options = CallOptions::new().timeout(Duration::from_millis(20));
    let error = link.left.call_with("stuck", json!({}), options).await.unwrap_err();
    let object = error.as_error_object().unwrap();
    let text = match kind {
        Kind::Direct => "Timed out after 0.02s waiting for 'stuck'",
        Kind::Memory | Kind::Pipes => "Request 'stuck' timed out",
    };
    assert_eq!((object.code.0, &*object.message), (-32001, text));
    stuck.dropped.notified().await;
    link.left.call("echo", json!({})).await.unwrap();
}

/// DISP-07.
async fn progress_does_not_extend_a_timeout(kind: Kind) {
    let inbound = TestInbound::new().on("busy", |cx, _| async move {
        loop {
            let params = Json::from(json!({"progressToken": 1, "progress": 1}));
            cx.channel.notify("notifications/progress", Some(&params)).await;
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    });
    let link = kind.link(TestInbound::new(), inbound).await;
    let calls = Arc::new(AtomicUsize::new(0));
    let seen = Arc::clone(&calls);
    let options = CallOptions::new().timeout(Duration::from_millis(40)).on_progress(move |_| {
        seen.fetch_add(1, Ordering::Relaxed);
    });
    let outcome = link.left.call_with("busy", json!({}), options).await;
    assert!(matches!(outcome, Err(CallError::Timeout(_))));
    assert!(calls.load(Ordering::Relaxed) > 1);
}

/// A call with an idle timeout lives as long as progress is reported, and not longer than its timeout.
async fn progress_extends_an_idle_timeout(kind: Kind) {
    let inbound = TestInbound::new().on("busy", |cx, params| async move {
        let rounds = params.params().map_or(0, |text| if text.contains("short") { 7 } else { 1000 });
        for _ in 0..rounds {
            let params = Json::from(json!({"progressToken": 1, "progress": 1}));
            cx.channel.notify("notifications/progress", Some(&params)).await;
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        Ok(Reply::of(&json!({})))
    });
    let link = kind.link(TestInbound::new(), inbound).await;
    let options =
        || CallOptions::new().id(1_i64).idle_timeout(Duration::from_millis(500)).on_progress(|_| {});
    link.left.call_with("busy", json!({"short": 1}), options()).await.unwrap();
    let start = Instant::now();
    let capped = options().timeout(Duration::from_secs(1));
    let outcome = link.left.call_with("busy", json!({}), capped).await;
    assert!(matches!(outcome, Err(CallError::Timeout(_))));
    assert!(start.elapsed() >= Duration::from_secs(1), "progress has extended the idle timeout");
}

/// DISP-08: the handler takes three times the timeout, all but a little of it in a pause.
async fn time_in_a_pause_does_not_count_towards_the_timeout(kind: Kind) {
    let clock = CallClock::new();
    let pausing = clock.clone();
    let inbound = TestInbound::new().on("login", move |_, _| {
        let pausing = pausing.clone();
        async move {
            let pause = pausing.pause();
            tokio::time::sleep(Duration::from_millis(300)).await;
            drop(pause);
            Ok(Reply::of(&json!({})))
        }
    });
    let link = kind.link(TestInbound::new(), inbound).await;
    let options = CallOptions::new().timeout(Duration::from_millis(100)).clock(clock);
    link.left.call_with("login", json!({}), options).await.unwrap();
}

/// DISP-09, DISP-24.
async fn dropping_a_call_interrupts_its_handler(kind: Kind) {
    let stuck = Stuck::default();
    let link = kind.link(TestInbound::new(), stuck.inbound()).await;
    tokio::select! {
        _ = link.left.call("stuck", json!({})) => panic!("stuck calls are not answered"),
        () = stuck.started.notified() => {}
    }
    stuck.dropped.notified().await;
    assert_eq!(link.left.call("mirror", json!({})).await.unwrap()["id"], json!(2));
}

async fn a_handler_can_send_its_caller_a_request(kind: Kind) {
    let asking = TestInbound::new().on("ask", |cx, _| async move {
        let request = OutboundRequest::new("name").params(json!({"who": "you"}));
        let answer = value(cx.channel.request(request).await)?;
        Ok(Reply::of(&json!({"heard": answer})))
    });
    let named = TestInbound::new().on("name", |_, call| async move {
        assert_eq!(call.params(), Some(r#"{"who":"you"}"#));
        Ok(Reply::of(&json!("left")))
    });
    let link = kind.link(named, asking).await;
    assert_eq!(link.left.call("ask", json!({})).await.unwrap(), json!({"heard": "left"}));
}

/// TYP-27, DIR-08.
async fn without_a_back_channel_a_handler_cannot_send_requests(kind: Kind) {
    let asking = TestInbound::new().on("ask", |cx, _| async move {
        cx.channel.request(OutboundRequest::new("roots/list")).await?;
        Ok(Reply::of(&json!({})))
    });
    let mut context = kind.context();
    context.back_channel = BackChannel::Closed;
    let link = kind.link_with(TestInbound::new(), asking, context).await;
    let Err(CallError::Rpc(error)) = link.left.call("ask", json!({})).await else { panic!("refused") };
    assert_eq!(error.code.0, -32600);
    assert_eq!(
        error.message,
        "Cannot send 'roots/list': this transport context has no back-channel for server-initiated requests."
    );
}

/// DISP-30, DIR-08.
async fn a_handler_sees_the_transport_context(kind: Kind) {
    let inbound = TestInbound::new().on("context", |cx, _| async move {
        let headers: Vec<_> = cx.transport.header("X-One").collect();
        Ok(Reply::of(&json!({"kind": cx.transport.kind, "headers": headers})))
    });
    let mut context = kind.context();
    context.headers = vec![("x-one".into(), "1".into()), ("x-two".into(), "2".into())].into();
    let link = kind.link_with(TestInbound::new(), inbound, context).await;
    let seen = link.left.call("context", json!({})).await.unwrap();
    assert_eq!(seen, json!({"kind": kind.context().kind, "headers": ["1"]}));
}

/// DISP-31.
async fn the_channel_of_an_ended_request_is_closed(kind: Kind) {
    let kept = Arc::new(Mutex::new(None));
    let keep = Arc::clone(&kept);
    let inbound = TestInbound::new().on("leak", move |cx, _| {
        *lock(&keep) = Some(cx.channel);
        async { Ok(Reply::of(&json!({}))) }
    });
    let received = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&received);
    let listening = TestInbound::new().on_notification(move |_, _| {
        count.fetch_add(1, Ordering::Relaxed);
        async {}
    });
    let link = kind.link(listening, inbound).await;
    link.left.call("leak", json!({})).await.unwrap();
    let channel = lock(&kept).take().unwrap();
    let refused = channel.request(OutboundRequest::new("x")).await;
    assert!(matches!(refused, Err(CallError::NoBackChannel(method)) if method == "x"));
    channel.notify("late", None).await;
    // A later message arrives, so the earlier one was not merely slow.
    link.right.peer.notify("fence", None).await;
    link.right.call("echo", json!({})).await.unwrap();
    assert_eq!(received.load(Ordering::Relaxed), 1);
}
