//! The verbs of `duplexer task`.

use clap::Subcommand;

use super::Request;

/// What to do with a task.
#[derive(Debug, Subcommand)]
pub(crate) enum TaskVerb {
    /// Show the state of a task
    #[command(
        override_usage = "duplexer task get [OPTIONS] URL ID\n       duplexer task get [OPTIONS] ID -- COMMAND..."
    )]
    Get(Request),
    /// Wait for the end of a task, answer its questions, and show its result
    #[command(
        override_usage = "duplexer task wait [OPTIONS] URL ID\n       duplexer task wait [OPTIONS] ID -- COMMAND..."
    )]
    Wait(Request),
    /// Cancel a task
    #[command(
        override_usage = "duplexer task cancel [OPTIONS] URL ID\n       duplexer task cancel [OPTIONS] ID -- COMMAND..."
    )]
    Cancel(Request),
    /// List your tasks (revision 2025-11-25 only)
    #[command(
        override_usage = "duplexer task list [OPTIONS] URL\n       duplexer task list [OPTIONS] -- COMMAND..."
    )]
    List(Request),
}
