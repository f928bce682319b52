//! The tables of calls in flight against a naive model.

use duplexer_types::jsonrpc::RequestId;
use proptest::prelude::*;

use crate::dispatch::in_flight::{Generation, InFlight, Outstanding, Taken};

fn number(n: i64) -> RequestId {
    n.into()
}

/// DISP-01, DISP-02: ids count from one, skip chosen ones, and never collide.
#[test]
fn generated_ids_skip_those_that_callers_chose() {
    let mut outgoing = Outstanding::new();
    outgoing.begin("2".into(), ()).unwrap();
    assert_eq!(outgoing.next_id(), number(1));
    outgoing.begin(number(1), ()).unwrap();
    assert_eq!(outgoing.next_id(), number(3));
    assert_eq!(outgoing.begin(number(2), ()), Err(Taken(number(2))));
    assert_eq!(outgoing.begin("1".into(), ()), Err(Taken("1".into())));
}

/// DISP-03, DISP-12: an echo finds the exact id first, then its twin; late and unknown ones find nothing.
#[test]
fn an_echo_finds_its_request_once() {
    let mut outgoing = Outstanding::new();
    outgoing.begin(number(7), "seven").unwrap();
    assert_eq!(outgoing.find(&"7".into()), Some(&"seven"));
    assert_eq!(outgoing.settle(&"7".into()), Some("seven"));
    assert_eq!(outgoing.settle(&number(7)), None);
    assert!(outgoing.is_empty());
}

/// The second request is refused, the first continues; `1` and `"1"` run together and a cancel prefers the exact one.
#[test]
fn a_duplicate_is_refused_and_twins_run_together() {
    let mut incoming = InFlight::new();
    incoming.accept(number(1), |_| "number").unwrap();
    incoming.accept("1".into(), |_| "string").unwrap();
    assert_eq!(incoming.accept(number(1), |_| "again"), Err(Taken(number(1))));
    assert_eq!(incoming.cancel(&"1".into()), Some("string"));
    assert_eq!(incoming.cancel(&"1".into()), Some("number"));
    assert_eq!(incoming.cancel(&"1".into()), None);
}

/// A reused id is another request: the end of the first does not affect the second.
#[test]
fn an_old_generation_does_not_finish_a_new_request() {
    let mut incoming = InFlight::new();
    let first = *incoming.accept(number(1), |generation| generation).unwrap();
    incoming.cancel(&number(1)).unwrap();
    let second = *incoming.accept(number(1), |generation| generation).unwrap();
    assert_eq!(incoming.finish(&number(1), first), None);
    assert_eq!(incoming.finish(&number(1), second), Some(second));
}

#[derive(Clone, Debug)]
enum Op {
    Accept(RequestId),
    Cancel(RequestId),
    /// The n-th accepted request ends.
    Finish(usize),
    Drain,
}

fn ids() -> impl Strategy<Value = RequestId> {
    prop_oneof![(0..4_i64).prop_map(number), (0..4_i64).prop_map(|n| n.to_string().as_str().into())]
}

fn ops() -> impl Strategy<Value = Vec<Op>> {
    let op = prop_oneof![
        4 => ids().prop_map(Op::Accept),
        2 => ids().prop_map(Op::Cancel),
        4 => (0..24_usize).prop_map(Op::Finish),
        1 => Just(Op::Drain),
    ];
    prop::collection::vec(op, 0..48)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    Cancelled,
    Answered,
    Closed,
}

/// A list of every request ever accepted, with its outcome once it has one.
#[derive(Default)]
struct Naive(Vec<(RequestId, Option<Outcome>)>);

impl Naive {
    fn open(&self, id: &RequestId) -> Option<usize> {
        self.0.iter().position(|(open, outcome)| open == id && outcome.is_none())
    }

    fn open_or_twin(&self, id: &RequestId) -> Option<usize> {
        self.open(id).or_else(|| id.twin().and_then(|twin| self.open(&twin)))
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(10_000))]

    /// Under any interleaving every accepted id has exactly one outcome, and it is the model's.
    #[test]
    fn every_accepted_request_has_exactly_one_outcome(ops in ops()) {
        let mut real = InFlight::new();
        let mut naive = Naive::default();
        let mut generations: Vec<(RequestId, Generation)> = Vec::new();
        for op in ops {
            match op {
                Op::Accept(id) => {
                    let index = generations.len();
                    let accepted = real.accept(id.clone(), |generation| (index, generation)).map(|(_, generation)| *generation);
                    prop_assert_eq!(accepted.is_ok(), naive.open(&id).is_none());
                    if let Ok(generation) = accepted {
                        generations.push((id.clone(), generation));
                        naive.0.push((id, None));
                    }
                }
                Op::Cancel(id) => {
                    let expected = naive.open_or_twin(&id);
                    prop_assert_eq!(real.cancel(&id).map(|(index, _)| index), expected);
                    if let Some(index) = expected {
                        naive.0[index].1 = Some(Outcome::Cancelled);
                    }
                }
                Op::Finish(n) => {
                    let Some((id, generation)) = generations.get(n) else { continue };
                    let open = naive.0[n].1.is_none();
                    prop_assert_eq!(real.finish(id, *generation).is_some(), open);
                    naive.0[n].1.get_or_insert(Outcome::Answered);
                }
                Op::Drain => {
                    let mut drained: Vec<_> = real.drain().into_iter().map(|(_, (index, _))| index).collect();
                    drained.sort_unstable();
                    let open: Vec<_> = (0..naive.0.len()).filter(|index| naive.0[*index].1.is_none()).collect();
                    prop_assert_eq!(&drained, &open);
                    for index in open {
                        naive.0[index].1 = Some(Outcome::Closed);
                    }
                }
            }
        }
        let mut left: Vec<_> = real.drain().into_iter().map(|(_, (index, _))| index).collect();
        left.sort_unstable();
        let open: Vec<_> = (0..naive.0.len()).filter(|index| naive.0[*index].1.is_none()).collect();
        prop_assert_eq!(left, open);
    }

    /// Our own requests are settled once each, whatever the peer echoes.
    #[test]
    fn every_own_request_is_settled_at_most_once(chosen in prop::collection::vec(ids(), 0..16), echoes in prop::collection::vec(ids(), 0..32)) {
        let mut outgoing = Outstanding::new();
        let mut open: Vec<RequestId> = Vec::new();
        for id in chosen {
            let taken = open.contains(&id) || id.twin().is_some_and(|twin| open.contains(&twin));
            prop_assert_eq!(outgoing.begin(id.clone(), id.clone()).is_err(), taken);
            if !taken {
                open.push(id);
            }
            prop_assert_eq!(outgoing.len(), open.len());
        }
        for echo in echoes {
            let expected = open.iter().position(|id| *id == echo)
                .or_else(|| echo.twin().and_then(|twin| open.iter().position(|id| *id == twin)))
                .map(|at| open.remove(at));
            prop_assert_eq!(outgoing.settle(&echo), expected);
        }
        prop_assert_eq!(outgoing.is_empty(), open.is_empty());
    }
}
