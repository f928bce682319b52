//! Development commands of the repository, run as `cargo xtask <command>`.
//!
//! [`COMMANDS`] has one entry per command. The package is not part of the product and uses only the standard library,
//! so that the first command on a clean clone starts at once.

#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a command line tool talks to a person; no protocol runs over its output"
)]

mod bench;
mod browser;
mod cluster;
mod compare;
mod conformance;
mod deny;
mod docs;
mod fuzz;
mod interop;
mod load;
mod mutants;
mod npm;
mod platforms;
mod process;
mod python;
mod release;
mod requirements;
mod scale;
mod server;
mod soak;
mod test;
mod tidy;
mod valkey;
mod weight;

use std::process::ExitCode;

/// One command: its usage, its description and its function.
struct Command {
    name: &'static str,
    usage: &'static str,
    about: &'static str,
    run: fn(&[String]) -> Result<(), Failure>,
}

const COMMANDS: &[Command] = &[
    Command {
        name: "test",
        usage: "test",
        about: "everything that must hold before a change is merged",
        run: test::command,
    },
    Command {
        name: "tidy",
        usage: "tidy",
        about: "the rules of the source tree: module edges, stray literals, file sizes, dependencies",
        run: tidy::command,
    },
    Command {
        name: "platforms",
        usage: "platforms",
        about: "compile for Windows and macOS, with all features where a C cross-compiler is found",
        run: platforms::command,
    },
    Command {
        name: "deny",
        usage: "deny",
        about: "the dependencies against the published advisories and deny.toml; needs cargo-deny",
        run: deny::command,
    },
    Command {
        name: "requirements",
        usage: "requirements [area ..]",
        about: "what the manifest lists and which tests show it; what is left out and why; what is missing",
        run: requirements::command,
    },
    Command {
        name: "fuzz",
        usage: "fuzz [--seconds N] [--jobs N] [target]",
        about: "run the fuzz targets, N seconds each (default: 60), some at the same time; needs nightly and cargo-fuzz",
        run: fuzz::command,
    },
    Command {
        name: "mutants",
        usage: "mutants [--list] [area ..]",
        about: "mutation tests of five areas, with survivors compared with xtask/mutants.txt; takes about an hour; installs cargo-mutants",
        run: mutants::command,
    },
    Command {
        name: "bench",
        usage: "bench [--record]",
        about: "instructions and allocations of one call, compared with those recorded (or record them); requires valgrind",
        run: bench::command,
    },
    Command {
        name: "compare",
        usage: "compare [client | proxy] [--seconds N] [--runs N] [--record] [--beside S=CMD] [scenario ..]",
        about: "the server under load, compared with a floor without any protocol and with other servers; or clients, or proxies",
        run: compare::command,
    },
    Command {
        name: "interop",
        usage: "interop",
        about: "clients of other implementations against our servers, and our clients against theirs; needs python3 and npm",
        run: interop::command,
    },
    Command {
        name: "browser",
        usage: "browser [--record | bench]",
        about: "the inspector page in a real browser (--record: pictures for the docs), or what it costs; needs python3 and npm",
        run: browser::command,
    },
    Command {
        name: "conformance",
        usage: "conformance [client] [--requirements R] [--behind-proxy | --through-proxy | --alone]",
        about: "the official conformance suite against our server, or with our client; needs npm",
        run: conformance::command,
    },
    Command {
        name: "restarts",
        usage: "restarts",
        about: "`duplexer proxy` under load while the program behind it is killed a hundred times",
        run: restarts,
    },
    Command {
        name: "soak",
        usage: "soak [tasks | hour [--minutes N] [--record] | --requests N]",
        about: "sessions by the thousand, and what they leave in memory; tasks with a 30 s lease; an hour of clients that fail",
        run: soak::command,
    },
    Command {
        name: "scale",
        usage: "scale [--plot | PART ..]",
        about: "how the cost of one process grows with what it holds, against a release build; --plot only redraws",
        run: scale::command,
    },
    Command {
        name: "cluster-test",
        usage: "cluster-test [--seeds N] [--seed N] [--seconds N] [--balancer B] [--record]",
        about: "three nodes on a store under load, while nodes and store fail; or --costs, what the store costs",
        run: cluster::command,
    },
    Command {
        name: "weight",
        usage: "weight [--crates | --record] [--beside DIR]",
        about: "what a build costs: crates compared with those recorded, CPU time and size; --beside builds others too",
        run: weight::command,
    },
    Command {
        name: "docs",
        usage: "docs",
        about: "the documentation as a site in target/book, with search; checks its links, and its pages in a browser; installs mdBook",
        run: docs::command,
    },
    Command {
        name: "release",
        usage: "release --dry-run | --list",
        about: "package all published crates in order and build them from their packages; publishes nothing",
        run: release::command,
    },
    Command { name: "help", usage: "help", about: "print this list", run: help },
];

/// Failure of a command, which determines the exit code.
#[derive(Debug, PartialEq, Eq)]
enum Failure {
    /// The command ran and failed. The reason is printed already.
    Failed,
    /// Wrong usage.
    Usage(String),
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match dispatch(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(Failure::Failed) => ExitCode::FAILURE,
        Err(Failure::Usage(message)) => {
            eprintln!("error: {message}\n\n{}", help_text());
            ExitCode::from(2)
        }
    }
}

fn dispatch(arguments: &[String]) -> Result<(), Failure> {
    let Some((name, rest)) = arguments.split_first() else {
        return Err(Failure::Usage("no command given".to_owned()));
    };
    let name = if name == "--help" || name == "-h" { "help" } else { name.as_str() };
    match COMMANDS.iter().find(|command| command.name == name) {
        Some(command) => (command.run)(rest),
        None => Err(Failure::Usage(format!("unknown command `{name}`"))),
    }
}

/// Runs the test of restarts, which kills the program ten times, with a hundred.
fn restarts(arguments: &[String]) -> Result<(), Failure> {
    no_arguments("restarts", arguments)?;
    let test = ["test", "--locked", "--package", "duplexer-cli", "--test", "cli", "killed_under_load"];
    let mut cargo = std::process::Command::new(process::program("cargo"));
    process::run(cargo.args(test).env("PROXY_CYCLES", "100")).map_err(|reason| {
        eprintln!("restarts: {reason}");
        Failure::Failed
    })
}

fn help(arguments: &[String]) -> Result<(), Failure> {
    no_arguments("help", arguments)?;
    println!("{}", help_text());
    Ok(())
}

fn help_text() -> String {
    let lines =
        COMMANDS.iter().map(|command| format!("\n  cargo xtask {:<53} {}", command.usage, command.about));
    format!("commands:{}", lines.collect::<String>())
}

/// Rejects arguments of a command without options: a mistyped option must not be ignored.
fn no_arguments(command: &str, arguments: &[String]) -> Result<(), Failure> {
    match arguments.first() {
        None => Ok(()),
        Some(argument) => {
            Err(Failure::Usage(format!("`cargo xtask {command}` takes no arguments, got `{argument}`")))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{COMMANDS, Failure, dispatch, help_text};

    #[test]
    fn an_unknown_command_is_a_usage_error_that_names_it() {
        let outcome = dispatch(&["tets".to_owned()]);
        assert_eq!(outcome, Err(Failure::Usage("unknown command `tets`".to_owned())));
    }

    #[test]
    fn a_missing_command_is_a_usage_error() {
        assert!(matches!(dispatch(&[]), Err(Failure::Usage(_))));
    }

    #[test]
    fn a_surplus_argument_is_rejected() {
        let outcome = dispatch(&["tidy".to_owned(), "--fast".to_owned()]);
        assert!(matches!(outcome, Err(Failure::Usage(message)) if message.contains("--fast")));
    }

    #[test]
    fn help_lists_every_command() {
        for command in COMMANDS {
            assert!(help_text().contains(&format!("cargo xtask {} ", command.usage)));
        }
    }
}
