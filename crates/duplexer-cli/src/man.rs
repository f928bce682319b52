//! `duplexer man`: manual pages, made from the description of the command line.

use std::fs;
use std::io::{self, Write as _};

use clap_mangen::Man;

use crate::arguments::{ManArguments, described};
use crate::failure::Failure;
use crate::terminal::print;
use crate::text::Text;

/// Prints the page of the command, or writes all pages into a directory.
pub(crate) fn run(arguments: &ManArguments) -> Result<(), Failure> {
    let Some(directory) = &arguments.output else {
        let mut page = Vec::new();
        Man::new(described()).render(&mut page).map_err(|error| Failure::usage(error.to_string()))?;
        let _ = io::stdout().write_all(&page).and_then(|()| io::stdout().flush());
        return Ok(());
    };
    let fail =
        |error: io::Error| Failure::usage(format!("{} cannot be written: {error}", directory.display()));
    fs::create_dir_all(directory).map_err(fail)?;
    clap_mangen::generate_to(described(), directory).map_err(fail)?;
    print(&Text::plain(format!("The pages are in {}.", directory.display())));
    Ok(())
}
