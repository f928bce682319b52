//! The limit of open files, which must allow ten thousand connections in this process and in the server.

use std::env;
use std::fs;
use std::process::Command;

use crate::load::Fault;

/// Ten thousand connections and the other files of a process.
const NEEDED: u64 = 12_000;

/// Ensures that this process can open enough files. Returns `true` if it had to be started again for that, and this run
/// has succeeded.
pub(super) fn raised(command: &str, arguments: &[String]) -> Result<bool, Fault> {
    let limits = fs::read_to_string("/proc/self/limits").map_err(|error| {
        Fault(format!("what a process costs is read from /proc, as Linux has it: {error}"))
    })?;
    let (now, most) = limits_in(&limits)
        .ok_or_else(|| Fault("the system does not say how many files may be open".into()))?;
    if now >= NEEDED {
        return Ok(false);
    }
    if most < NEEDED {
        return Err(Fault(format!(
            "ten thousand connections need {NEEDED} open files, and at most {most} are allowed here: \
             raise the hard limit (`ulimit -Hn`, or LimitNOFILE, or limits.conf)"
        )));
    }
    // The standard library cannot raise the limit of the process, but a shell can.
    let mut again = Command::new("sh");
    again.args(["-c", &format!("ulimit -n {NEEDED} && exec \"$0\" \"$@\"")]);
    let status = again.arg(env::current_exe()?).arg(command).args(arguments).status()?;
    if status.success() {
        Ok(true)
    } else {
        Err(Fault("not all of it was measured, or not all of it is well".into()))
    }
}

/// Returns the soft and the hard limit of open files.
fn limits_in(text: &str) -> Option<(u64, u64)> {
    let line = text.lines().find_map(|line| line.strip_prefix("Max open files"))?;
    let mut numbers = line.split_whitespace().map(|number| match number {
        "unlimited" => Some(u64::MAX),
        number => number.parse().ok(),
    });
    Some((numbers.next()??, numbers.next()??))
}

#[cfg(test)]
mod tests {
    use super::limits_in;

    #[test]
    fn the_limits_of_open_files_are_found_among_the_others() {
        let text = "Limit                     Soft Limit           Hard Limit           Units\n\
                    Max processes             96412                96412                processes\n\
                    Max open files            1024                 unlimited            files\n";
        assert_eq!(limits_in(text), Some((1024, u64::MAX)));
        assert_eq!(limits_in("Max processes 1 2 processes\n"), None);
    }
}
