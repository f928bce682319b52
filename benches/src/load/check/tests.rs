use super::*;
use crate::floor::{self, Answer};
use crate::load::scenario::SCENARIOS;

fn plan(name: &str) -> Plan {
    Plan::new(SCENARIOS.iter().find(|scenario| scenario.name == name).unwrap())
}

/// Checks a message to the request 7 after this many progress steps.
fn look(plan: &Plan, message: &str, steps: u64) -> Result<Seen, String> {
    let mut flight = Flight { steps };
    plan.look(message.as_bytes(), |id| (id == 7).then_some(&mut flight))
}

/// Returns every message that the floor sends for the request 7.
fn answers(plan: &Plan) -> Vec<String> {
    let (mut request, mut out) = (Vec::new(), Vec::new());
    plan.write(7, &mut request);
    let mut answers = Vec::new();
    match floor::answer(&request, &mut out) {
        Answer::Telling(mut telling) => {
            while telling.write_next(&mut out).is_some() {
                answers.push(std::mem::take(&mut out));
            }
        }
        _ => answers.push(out),
    }
    answers.into_iter().map(|answer| String::from_utf8(answer).unwrap()).collect()
}

#[test]
fn the_floor_answers_every_scenario() {
    for scenario in SCENARIOS {
        let plan = Plan::new(scenario);
        let mut flight = Flight::default();
        let mut seen = Vec::new();
        for message in answers(&plan) {
            let found = plan.look(message.as_bytes(), |id| (id == 7).then_some(&mut flight));
            seen.push(found.unwrap_or_else(|reason| panic!("{}: {reason}", scenario.name)));
        }
        assert_eq!(seen.pop(), Some(Seen::Answer(7)), "{}", scenario.name);
        let steps = if let Ask::Progress(n) = scenario.ask { n } else { 0 };
        assert_eq!(seen.len() as u64, steps, "{}", scenario.name);
        assert!(seen.iter().all(|seen| *seen == Seen::Step(7)));
    }
}

#[test]
fn an_answer_to_another_request_or_with_another_text_is_wrong() {
    let plan = plan("stdio-echo-1");
    let right = answers(&plan).remove(0);
    for (wrong, reason) in [
        (right.replace(r#""id":7"#, r#""id":8"#), "an answer to an unknown request"),
        (right.replace("0000007", "0000008"), "a wrong answer"),
        (right.replace("He said", "She said"), "a wrong answer"),
        (right.replace(r#""content""#, r#""isError":true,"content""#), "a wrong answer"),
        (r#"{"jsonrpc":"2.0","id":7,"error":{"code":1,"message":"no"}}"#.to_owned(), "not an answer"),
        (r#"{"jsonrpc":"2.0","id":7}"#.to_owned(), "not an answer"),
        ("nonsense".to_owned(), "not a message"),
    ] {
        assert_ne!(wrong, right);
        let error = look(&plan, &wrong, 0).unwrap_err();
        assert!(error.starts_with(reason), "{error}");
    }
}

#[test]
fn sums_lists_and_resources_are_looked_at() {
    for (name, from, to) in [
        ("stdio-add", "\"sum\":7.5", "\"sum\":7.25"),
        ("stdio-list", "dummy_49", "other_49"),
        ("stdio-read-64k", "xxxx", "xxx"),
    ] {
        let plan = plan(name);
        let right = answers(&plan).remove(0);
        assert_eq!(look(&plan, &right, 0), Ok(Seen::Answer(7)), "{name}");
        let wrong = right.replacen(from, to, 2);
        assert!(look(&plan, &wrong, 0).is_err(), "{name}");
    }
}

#[test]
fn every_step_comes_once_and_in_order() {
    let plan = plan("stdio-progress");
    let messages = answers(&plan);
    let done = messages.last().unwrap();
    assert_eq!(look(&plan, &messages[2], 2), Ok(Seen::Step(7)));
    assert!(look(&plan, &messages[2], 1).unwrap_err().starts_with("a step is missing"));
    assert!(
        look(&plan, &messages[2].replace(":7,", ":9,"), 2).unwrap_err().starts_with("progress of an unknown")
    );
    assert_eq!(look(&plan, done, 1000), Ok(Seen::Answer(7)));
    assert!(look(&plan, done, 999).unwrap_err().starts_with("a wrong answer"));
}

#[test]
fn other_notifications_are_nobodys() {
    let message = r#"{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":1}}"#;
    assert_eq!(look(&plan("stdio-echo-1"), message, 0), Ok(Seen::Aside));
}
