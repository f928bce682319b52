//! The step runner with short steps: the real table takes minutes.

use super::{Absence, Action, Need, STEPS, Step, Summary, Verdict, cargo, run};

const GOOD: Action = cargo(&["--version"]);
const BAD: Action = cargo(&["--no-such-option"]);

const fn step(name: &'static str, needs: &'static [Need], action: Action) -> Step {
    Step { name, needs, action }
}

fn summary(steps: &[Step], absence: Absence) -> String {
    let verdicts = run(steps, absence);
    Summary { steps, verdicts: &verdicts }.to_string()
}

fn last_line(text: &str) -> &str {
    text.lines().last().unwrap_or_default()
}

#[test]
fn the_last_line_counts_the_steps() {
    let text = summary(&[step("one", &[], GOOD), step("two", &[], GOOD)], Absence::Fails);
    assert_eq!(last_line(&text), "2 passed, 0 failed");
}

#[test]
fn the_first_failure_stops_the_run_and_names_the_command_that_repeats_it() {
    let text =
        summary(&[step("one", &[], GOOD), step("two", &[], BAD), step("three", &[], GOOD)], Absence::Fails);
    assert!(text.contains("FAILED   two"), "{text}");
    assert!(text.contains("to repeat it: cargo --no-such-option"), "{text}");
    assert!(text.contains("not run  three"), "{text}");
    assert_eq!(last_line(&text), "1 passed, 1 failed");
}

#[test]
fn a_missing_program_skips_the_step_loudly_on_a_developers_machine() {
    let steps = [step("interop", &[Need::Program("an-absent-program")], GOOD), step("two", &[], GOOD)];
    let text = summary(&steps, Absence::Skips);
    assert!(text.contains("SKIPPED  interop"), "{text}");
    assert!(text.contains("an-absent-program"), "{text}");
    assert!(text.contains("WARNING: 1 skipped"), "{text}");
    assert_eq!(last_line(&text), "1 passed, 0 failed");
}

#[test]
fn a_missing_program_fails_the_step_under_continuous_integration() {
    let verdicts = run(&[step("interop", &[Need::Program("an-absent-program")], GOOD)], Absence::Fails);
    assert!(matches!(&verdicts[..], [Verdict::Failed(reason)] if reason.contains("CI=true")));
}

#[test]
fn a_missing_target_is_named_loudly_and_never_a_failure() {
    let steps = [step("elsewhere", &[Need::Target("pdp11-dec-unix")], GOOD)];
    for absence in [Absence::Skips, Absence::Fails] {
        let text = summary(&steps, absence);
        assert!(text.contains("SKIPPED  elsewhere"), "{text}");
        assert!(text.contains("the Rust target pdp11-dec-unix is not installed"), "{text}");
        assert!(text.contains("WARNING: 1 skipped"), "{text}");
        assert_eq!(last_line(&text), "0 passed, 0 failed");
    }
}

#[test]
fn the_table_needs_only_the_rust_toolchain_for_its_first_steps() {
    let names: Vec<&str> = STEPS.iter().filter(|step| step.needs.is_empty()).map(|step| step.name).collect();
    assert_eq!(names, ["formatting", "lints", "tests", "documentation", "tidy"]);
}
