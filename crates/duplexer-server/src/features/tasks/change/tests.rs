//! The state machine against any sequence of changes.

use duplexer_types::elicitation::{ElicitParams, ElicitResult, FormSchema};
use duplexer_types::roots::ListRootsResult;
use proptest::prelude::*;

use super::*;
use crate::features::tasks::record::{TaskId, TaskLease, TaskState, TaskTimes, TaskedCall};
use duplexer_types::input::InputRequest;

const RUN: RunId = RunId(7);

pub(crate) fn record(id: &str) -> TaskRecord {
    let now = UnixMillis(1_000);
    TaskRecord {
        id: TaskId::from(id),
        revision: 0,
        owner: None,
        call: TaskedCall {
            tool: "t".into(),
            arguments: Json::object(),
            version: "2026-07-28".into(),
            client_info: None,
            capabilities: None,
            progress_token: None,
        },
        times: TaskTimes { created: now, updated: now, ended: None, retention: 600_000 },
        state: TaskState::default(),
        lease: TaskLease {
            run: Some(RUN),
            epoch: 1,
            until: UnixMillis(31_000),
            attempt: 1,
            resumable: false,
            handed_over: false,
        },
    }
}

fn question(key: &str, text: &str) -> Change {
    let request = InputRequest::from(ElicitParams::form(text, FormSchema::new(JsonObject::new())));
    Change::Ask { key: key.into(), request: Json::encode(&request).unwrap(), digest: text.into() }
}

fn answers(answers: &[(&str, InputResponse)]) -> Change {
    Change::Answer(answers.iter().map(|(key, answer)| ((*key).to_owned(), answer.clone())).collect())
}

fn yes() -> InputResponse {
    InputResponse::Elicit(ElicitResult::accept(JsonObject::new()))
}

fn end(outcome: TaskOutcome) -> Change {
    Change::End { outcome, message: None }
}

fn apply(record: &mut TaskRecord, change: &Change) -> Result<Applied, Refused> {
    record.apply(change, Author::Anyone, UnixMillis(2_000), &TaskLimits::default())
}

fn any_change() -> impl Strategy<Value = Change> {
    prop_oneof![
        ("[a-c]", "[x-z]").prop_map(|(key, text)| question(&key, &text)),
        "[a-c](#[23])?".prop_map(|key| answers(&[(&key, yes())])),
        "[a-c]".prop_map(|key| answers(&[(&key, InputResponse::ListRoots(ListRootsResult::new([])))])),
        "[a-z]{0,3}".prop_map(Change::Message),
        Just(Change::RequestCancel),
        Just(Change::HandOver(UnixMillis(9_000))),
        Just(end(TaskOutcome::Cancelled)),
        Just(end(lost("gone"))),
        Just(end(TaskOutcome::Result { result: Json::object(), is_error: false })),
    ]
}

proptest! {
    /// TSK-01, P-TASK-8, TSK-02, TSK-23, P-TASK-13: any sequence of changes leaves no final state, never reuses a key, and counts revisions.
    #[test]
    fn no_change_leaves_a_final_state(changes in proptest::collection::vec(any_change(), 0..40)) {
        let mut now = record("t");
        for change in &changes {
            let before = now.clone();
            let applied = apply(&mut now, change);
            if let Ok(Applied::Changed) = applied {
                prop_assert_eq!(now.revision, before.revision + 1);
            } else {
                prop_assert_eq!(&now, &before, "a refused change changes nothing");
            }
            if before.is_final() {
                prop_assert_eq!(&now, &before);
            }
            prop_assert_eq!(now.is_final(), now.times.ended.is_some());
            let mut keys: Vec<_> = now.state.questions.iter().map(|asked| &asked.key).collect();
            keys.sort();
            keys.dedup();
            prop_assert_eq!(keys.len(), now.state.questions.len());
            for asked in &before.state.questions {
                let later = now.state.questions.iter().find(|it| it.key == asked.key).unwrap();
                prop_assert!(later.request == asked.request && (asked.answer.is_none() || later.answer == asked.answer));
            }
        }
    }
}

/// TSK-D13: a run that has lost its lease changes nothing.
#[test]
fn a_run_of_an_earlier_epoch_is_fenced() {
    let mut taken = record("t")
        .taken_over(crate::features::tasks::store::Taker { run: RunId(8), until: UnixMillis(9_000) });
    let limits = TaskLimits::default();
    let late = taken.apply(&end(TaskOutcome::Cancelled), Author::Run(RUN, 1), UnixMillis(5_000), &limits);
    assert!(matches!(late, Err(Refused::Fenced)), "{late:?}");
    let holder =
        taken.apply(&end(TaskOutcome::Cancelled), Author::Run(RunId(8), 2), UnixMillis(5_000), &limits);
    assert!(matches!(holder, Ok(Applied::Changed)));
    let again =
        taken.apply(&end(TaskOutcome::Cancelled), Author::Run(RunId(8), 2), UnixMillis(5_000), &limits);
    assert!(matches!(again, Err(Refused::Final)));
}

/// TSK-21, TSK-22, TSK-24, TSK-D11: unknown keys and wrong kinds are ignored; an answered key is closed; the same key with
/// another question gets a number.
#[test]
fn answers_close_the_questions_they_fit() {
    let mut now = record("t");
    apply(&mut now, &question("who", "Who?")).unwrap();
    apply(&mut now, &question("sure", "Sure?")).unwrap();
    assert_eq!(apply(&mut now, &question("who", "Who?")).unwrap(), Applied::Unchanged, "the same question");
    let roots = InputResponse::ListRoots(ListRootsResult::new([]));
    let senseless = InputResponse::Other(Json::object());
    let ignored = answers(&[("who", roots), ("sure", senseless), ("never", yes())]);
    assert_eq!(apply(&mut now, &ignored).unwrap(), Applied::Unchanged);
    apply(&mut now, &answers(&[("who", yes())])).unwrap();
    let open = |now: &TaskRecord| now.open_questions().map(|asked| asked.key.clone()).collect::<Vec<_>>();
    assert_eq!(open(&now), ["sure"]);
    apply(&mut now, &question("who", "Who else?")).unwrap();
    assert_eq!(open(&now), ["sure", "who#2"]);
}

/// TSK-84, TSK-D16: open questions, all questions, answers and results are bounded.
#[test]
fn questions_answers_and_results_are_bounded() {
    let limits = TaskLimits {
        open_questions: 1,
        questions: 2,
        answer_bytes: 40,
        result_bytes: 10,
        ..TaskLimits::default()
    };
    let mut now = record("t");
    let mut apply = |change: &Change| now.apply(change, Author::Anyone, UnixMillis(2_000), &limits);
    apply(&question("a", "a")).unwrap();
    assert!(matches!(apply(&question("b", "b")), Err(Refused::Limit(_))));
    let text = JsonObject::new().with("text", Json::from("x".repeat(50)));
    let large = InputResponse::Elicit(ElicitResult::accept(text));
    assert!(matches!(apply(&answers(&[("a", large)])), Err(Refused::Limit(_))));
    apply(&answers(&[("a", yes())])).unwrap();
    apply(&question("b", "b")).unwrap();
    apply(&answers(&[("b", yes())])).unwrap();
    assert!(matches!(apply(&question("c", "c")), Err(Refused::Limit(_))));
    apply(&end(TaskOutcome::Result { result: Json::from("x".repeat(50)), is_error: false })).unwrap();
    let Some(TaskOutcome::Result { result, is_error: true }) = &now.state.outcome else { panic!("{now:?}") };
    assert!(result.as_str().contains("a task keeps at most 10"), "{result}");
}
