//! The command `duplexer`: a demo server, and a client for the terminal. Without a verb it starts the demo.
//!
//! `arguments` parses the command line, `verbs` sends requests over a `session` with a `target`, `show` formats
//! results, `output` puts them where they belong, `questions` asks the user on behalf of the server. `demo` is an ordinary
//! server.

mod arguments;
mod bench;
mod bundle;
mod completions;
mod demo;
mod dev;
mod doctor;
mod events;
mod failure;
mod gateway;
mod hosts;
mod inspect;
mod install;
mod login;
mod man;
mod new;
mod output;
mod proxy;
mod questions;
mod record;
mod roots;
mod sampling;
mod serving;
mod session;
mod show;
mod skills_server;
mod target;
mod terminal;
mod text;
mod verbs;

use std::process::ExitCode;

use duplexer::types::version::ProtocolVersion;

use crate::arguments::{CommandLine, Request, SkillsVerb, TaskVerb, Verb};
use crate::failure::{Exit, Failure};
use crate::login::Account;
use crate::show::Details;
use crate::terminal::{Terminal, print};
use crate::text::Text;
use crate::verbs::{Action, Ending, Word};

/// Can return memory to the system after a peak, which the C library's allocator does not: see `docs/performance.md`.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    // Exits on wrong usage.
    let line = CommandLine::read();
    line.choose_colour();
    let done = match line.verb {
        None => demo::serve(&line.demo),
        Some(Verb::Demo(arguments)) => demo::serve(&arguments),
        Some(Verb::List(list)) => {
            let details = if list.schema { Details::Schemas } else { Details::Description };
            ask(Word::List(details), &list.request)
        }
        Some(Verb::Call(call)) => {
            let ending = if call.detach { Ending::Detach } else { Ending::Wait };
            ask(Word::Call(ending), &call.request)
        }
        Some(Verb::Task(verb)) => {
            let (action, request) = match verb {
                TaskVerb::Get(request) => (Action::Get, request),
                TaskVerb::Wait(request) => (Action::Wait, request),
                TaskVerb::Cancel(request) => (Action::Cancel, request),
                TaskVerb::List(request) => (Action::List, request),
            };
            ask(Word::Task(action), &request)
        }
        Some(Verb::Read(request)) => ask(Word::Read, &request),
        Some(Verb::Prompt(request)) => ask(Word::Prompt, &request),
        Some(Verb::Complete(request)) => ask(Word::Complete, &request),
        Some(Verb::Listen(request)) => ask(Word::Listen, &request),
        Some(Verb::Ping(request)) => ask(Word::Ping, &request),
        Some(Verb::Doctor(arguments)) => run(doctor::run(&arguments)),
        Some(Verb::Bench(arguments)) => run(bench::run(&arguments)),
        Some(Verb::Record(arguments)) => run(record::record(&arguments)),
        Some(Verb::Replay(arguments)) => record::replay(&arguments),
        Some(Verb::Inspect(arguments)) => run(inspect::run(&arguments)),
        Some(Verb::Skills(SkillsVerb::List(request))) => ask(Word::ListSkills, &request),
        Some(Verb::Skills(SkillsVerb::Show(request))) => ask(Word::ShowSkill, &request),
        Some(Verb::Skills(SkillsVerb::Fetch(request))) => ask(Word::FetchSkill, &request),
        Some(Verb::Skills(SkillsVerb::Serve(arguments))) => skills_server::serve(&arguments),
        Some(Verb::Proxy(arguments)) => proxy::serve(&arguments),
        Some(Verb::Gateway(arguments)) => gateway::serve(&arguments),
        Some(Verb::Install(arguments)) => install::install(&arguments),
        Some(Verb::Uninstall(arguments)) => install::uninstall(&arguments),
        Some(Verb::Servers(arguments)) => install::servers(&arguments),
        Some(Verb::Bundle(arguments)) => run(bundle::write(&arguments)),
        Some(Verb::Dev(arguments)) => dev::serve(&arguments),
        Some(Verb::New(arguments)) => new::create(&arguments),
        Some(Verb::Completions(arguments)) => completions::script(arguments.shell),
        Some(Verb::CompleteLine(arguments)) => run(completions::complete(&arguments)),
        Some(Verb::Man(arguments)) => man::run(&arguments),
        Some(Verb::Login(arguments)) => run(login::run(Account::Login, &arguments)),
        Some(Verb::Logout(arguments)) => run(login::run(Account::Logout, &arguments)),
        Some(Verb::Status(arguments)) => run(login::run(Account::Status, &arguments)),
        Some(Verb::Version) => version(),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            if let Some(line) = failure.line() {
                Terminal::new().error(line);
            }
            failure.code()
        }
    }
}

fn ask(word: Word, request: &Request) -> Result<(), Failure> {
    run(verbs::run(word, request))
}

fn run(verb: impl Future<Output = Result<(), Failure>>) -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    let runtime = runtime.map_err(|error| Failure::new(Exit::Connect, error.to_string()))?;
    let done = runtime.block_on(verb);
    // Do not wait for a pending read of standard input.
    runtime.shutdown_background();
    done
}

#[expect(clippy::unnecessary_wraps, reason = "a verb like the others")]
fn version() -> Result<(), Failure> {
    let revisions: Vec<_> = ProtocolVersion::ALL.iter().map(|version| version.as_str()).collect();
    print(&Text::plain(format!("duplexer {} (MCP {})", env!("CARGO_PKG_VERSION"), revisions.join(", "))));
    Ok(())
}
