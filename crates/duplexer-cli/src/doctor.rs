//! `duplexer doctor`: checks a server for the faults that hosts and users meet.
//!
//! It sends messages of its own instead of using the client, which would hide much of what there is to see: redirects,
//! statuses, noise. Everything that it reads is bounded, and nothing that a server says reaches a terminal unescaped.

mod http;
mod latency;
mod messages;
mod offers;
mod render;
mod report;
mod rules;
mod schemas;
mod stdio;

use std::time::Duration;

use duplexer::shutdown_signal::ShutdownSignals;

use crate::arguments::DoctorArguments;
use crate::failure::{Exit, Failure};
use crate::target::Target;
use crate::terminal::{Terminal, columns, print};
use crate::text::Text;
use report::Report;
use rules::Severity;

const USER_AGENT: &str = concat!("duplexer-doctor/", env!("CARGO_PKG_VERSION"));
/// Default time limit for each answer, and for the end of a program.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Checks a server and prints what was found.
pub(crate) async fn run(arguments: &DoctorArguments) -> Result<(), Failure> {
    let target = Target::of_either(arguments.target.as_deref(), &arguments.command)?;
    let signals = ShutdownSignals::listen();
    let mut signals = signals.map_err(|error| Failure::new(Exit::Connect, error.to_string()))?;
    let mut report = Report::new(target.to_string());
    tokio::select! {
        done = check(&target, arguments, &mut report) => done?,
        // Dropping the future ends the program.
        () = signals.next() => {
            Terminal::new().interrupted();
            return Err(Failure::silent(Exit::Interrupted));
        }
    }
    let fails = if arguments.strict { Severity::Warning } else { Severity::Error };
    if arguments.json {
        print(&Text::plain(render::json(&report).to_string()));
    } else if arguments.junit {
        print(&Text::plain(render::junit(&report, fails)));
    } else {
        print(&render::text(&report, columns()));
    }
    let is_sound = report.findings.iter().all(|finding| finding.rule.severity < fails);
    if is_sound { Ok(()) } else { Err(Failure::silent(Exit::Tool)) }
}

async fn check(target: &Target, arguments: &DoctorArguments, report: &mut Report) -> Result<(), Failure> {
    let limit = arguments.timeout.unwrap_or(TIMEOUT);
    match target {
        Target::Url(endpoint) => {
            let mut headers = endpoint.headers.clone();
            headers.extend(arguments.headers.iter().cloned());
            let token =
                arguments.token.iter().map(|token| ("authorization".to_owned(), format!("Bearer {token}")));
            headers.extend(token);
            http::check(&endpoint.url, &headers, limit, report).await
        }
        Target::Command(program) => {
            if !arguments.headers.is_empty() || arguments.token.is_some() {
                return Err(Failure::usage(
                    "--header and --token are for servers at a URL; a program gets --env",
                ));
            }
            stdio::check(program, &arguments.env, limit, report).await
        }
    }
}
