//! Questions of the server, answered line by line.

use crate::support::{Demo, Place, Ran, run_with};

fn book(place: &Place, answers: &str) -> Ran {
    run_with(&place.line(&["call", "book", "day=Friday", "--interactive"]), answers)
}

#[test]
fn a_form_is_filled_field_by_field() {
    let demo = Demo::start();
    for place in Place::all(&demo) {
        let booked = book(&place, "4\ngarden\nA quiet corner\n");
        for text in
            ["A table for Friday", "How many people? (whole number, 1 to 12)", "1) inside", "[nothing]"]
        {
            assert!(booked.stderr.contains(text), "{text:?} is not in {}", booked.stderr);
        }
        assert_eq!(booked.ok(), "A table for 4 in the garden, Friday. We noted: A quiet corner.\n");
    }
}

#[test]
fn a_wrong_answer_is_asked_for_again() {
    let demo = Demo::start();
    for place in Place::all(&demo) {
        let booked = book(&place, "many\n13\n\n2\nroof\n1\n\n");
        for text in
            ["`many` is not a whole number", "at most 12", "an answer is needed", "`roof` is not among"]
        {
            assert!(booked.stderr.contains(text), "{text:?} is not in {}", booked.stderr);
        }
        assert_eq!(booked.ok(), "A table for 2 inside, Friday.\n");
    }
}

#[test]
fn a_question_can_be_refused_or_left() {
    let demo = Demo::start();
    for place in Place::all(&demo) {
        let check = |answers: &str, text: &str| {
            let ran = book(&place, answers);
            assert_eq!((ran.code, ran.stdout.as_str()), (Some(1), text), "{ran:?}");
        };
        check("4\n/decline\n", "The user declined to answer.\n");
        check("/cancel\n", "The user dismissed the question.\n");
        check("4\n", "The user dismissed the question.\n");
    }
}

#[test]
fn a_page_is_opened_only_if_the_person_agrees() {
    let demo = Demo::start();
    for place in Place::all(&demo) {
        let check = |answers: &str, text: &str| {
            let ran = run_with(&place.line(&["call", "tour", "--interactive"]), answers);
            assert!(ran.stderr.contains("It wants you to open https://modelcontextprotocol.io"), "{ran:?}");
            assert_eq!(ran.ok(), text);
        };
        check("perhaps\ny\n", "The user has a look.\n");
        check("n\n", "The user knows already.\n");
        check("/decline\n", "The user knows already.\n");
        check("", "The user knows already.\n");
    }
}

#[test]
fn without_a_person_a_question_is_declined_and_that_is_said() {
    let demo = Demo::start();
    for place in Place::all(&demo) {
        let ran = run_with(&place.line(&["call", "book", "day=Friday"]), "4\n1\n\n");
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(1), "The user declined to answer.\n"));
        assert!(
            ran.stderr.contains("declined: there is no terminal to answer at (--interactive reads"),
            "{ran:?}"
        );
    }
}
