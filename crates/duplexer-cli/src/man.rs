//! `duplexer man`: manual pages, made from the description of the command line.

use std::fs;
use std::io::{self, Write as _};
use std::path::Path;

use clap::Command;
use clap_mangen::Man;

use crate::arguments::{ManArguments, described};
use crate::failure::Failure;
use crate::terminal::print;
use crate::text::Text;

/// Prints the page of the command, or writes all pages into a directory.
pub(crate) fn run(arguments: &ManArguments) -> Result<(), Failure> {
    let Some(directory) = &arguments.output else {
        let mut page = Vec::new();
        page_of(described()).render(&mut page).map_err(|error| Failure::usage(error.to_string()))?;
        let _ = io::stdout().write_all(&page).and_then(|()| io::stdout().flush());
        return Ok(());
    };
    let fail =
        |error: io::Error| Failure::usage(format!("{} cannot be written: {error}", directory.display()));
    fs::create_dir_all(directory).map_err(fail)?;
    let mut command = described().disable_help_subcommand(true);
    command.build();
    write(command, directory).map_err(fail)?;
    print(&Text::plain(format!("The pages are in {}.", directory.display())));
    Ok(())
}

/// Writes the pages of a command and of its verbs.
fn write(command: Command, directory: &Path) -> io::Result<()> {
    for verb in command.get_subcommands().filter(|verb| !verb.is_hide_set()) {
        write(verb.clone(), directory)?;
    }
    page_of(command).generate_to(directory).map(drop)
}

/// Returns the page of a command. The version is that of the program: verbs have none of their own.
fn page_of(command: Command) -> Man {
    let page = Man::new(command).source(concat!("duplexer ", env!("CARGO_PKG_VERSION"))).manual("Duplexer");
    // Without a date the source would take its place in the title line.
    page.date(" ")
}
