//! The server scenarios of the skills extension, which belong to no set of requirements.
//!
//! The suite passes a scenario whose checks it has skipped. Here every check must have succeeded.

use std::process::Stdio;
use std::thread;

use super::{SUITE, output_of};
use crate::npm::Packages;

/// The scenarios and their numbers of checks.
const SCENARIOS: [(&str, usize); 3] =
    [("sep-2640-skills-enumeration", 31), ("sep-2640-skills-manifest", 5), ("sep-2640-skills-directory", 6)];

/// The checks of cache members, which the handshake era does not have.
const OF_CACHES: [&str; 2] =
    ["sep-2640-skills-list-cache-attributes", "sep-2640-skills-get-cache-attributes"];

/// Runs the scenarios at once, then each by itself.
pub(super) fn check(url: &str, packages: &Packages, revision: &str) -> Result<(), String> {
    let run = |scenario: &(&str, usize)| run(url, packages, revision, scenario);
    let together: Vec<_> = thread::scope(|scope| {
        let running: Vec<_> = SCENARIOS.iter().map(|scenario| scope.spawn(move || run(scenario))).collect();
        let ended = running.into_iter().map(thread::ScopedJoinHandle::join);
        ended.map(|verdict| verdict.unwrap_or_else(|_| Err("a run has panicked".to_owned()))).collect()
    });
    together.into_iter().collect::<Result<(), _>>()?;
    SCENARIOS.iter().try_for_each(run)?;
    let checks: usize = SCENARIOS.iter().map(|(_, checks)| checks).sum();
    let checks = if revision < "2026" { checks - OF_CACHES.len() } else { checks };
    println!(
        "{revision}: {} scenarios of skills passed, together and alone: {checks} checks",
        SCENARIOS.len()
    );
    Ok(())
}

fn run(url: &str, packages: &Packages, revision: &str, (name, checks): &(&str, usize)) -> Result<(), String> {
    let mut suite = packages.node(packages.file(SUITE));
    suite.args(["server", "--url", url, "--scenario", name, "--spec-version", revision, "--force"]);
    let output = output_of(suite.stderr(Stdio::inherit()))?;
    judge(&output, revision, *checks).map_err(|reason| format!("{revision}: {name}: {reason}\n{output}"))
}

/// Succeeds if all checks have succeeded. Those of cache members are skipped in the handshake era.
fn judge(output: &str, revision: &str, checks: usize) -> Result<(), String> {
    let of_skills = || output.lines().filter(|line| line.contains("[sep-2640-"));
    let succeeded = of_skills().filter(|line| line.contains("SUCCESS")).count();
    let is_skipped = |line: &&str| {
        revision < "2026" && line.contains("SKIPPED") && OF_CACHES.iter().any(|check| line.contains(check))
    };
    let skipped = of_skills().filter(is_skipped).count();
    if succeeded + skipped != checks || of_skills().count() != checks {
        return Err(format!("{succeeded} of {checks} checks succeeded"));
    }
    if output.contains("0 failed, 0 warnings") { Ok(()) } else { Err("it has failed".to_owned()) }
}

#[cfg(test)]
mod tests {
    use super::judge;

    const OUTPUT: &str = "Checks:
t [sep-2640-skills-list-implemented     ] SUCCESS It lists.
t [sep-2640-skills-list-cache-attributes] SUCCESS It has cache members.
t [wire-schema-valid                    ] SUCCESS Every message is valid.

Passed: 3/3, 0 failed, 0 warnings
";

    #[test]
    fn every_check_must_have_succeeded() {
        assert_eq!(judge(OUTPUT, "2026-07-28", 2), Ok(()));
        assert!(judge(OUTPUT, "2026-07-28", 3).is_err());
        assert!(
            judge(&OUTPUT.replace("implemented     ] SUCCESS", "implemented     ] FAILURE"), "2026-07-28", 2)
                .is_err()
        );
        assert!(judge(&OUTPUT.replace("0 warnings", "1 warnings"), "2026-07-28", 2).is_err());
        assert!(judge("", "2026-07-28", 2).is_err());
    }

    #[test]
    fn only_the_checks_of_caches_are_skipped_and_only_in_the_handshake_era() {
        let skipped = OUTPUT.replace("attributes] SUCCESS", "attributes] SKIPPED");
        assert!(judge(&skipped, "2026-07-28", 2).is_err());
        assert_eq!(judge(&skipped, "2025-11-25", 2), Ok(()));
        let other = OUTPUT.replace("implemented     ] SUCCESS", "implemented     ] SKIPPED");
        assert!(judge(&other, "2025-11-25", 2).is_err());
    }
}
