//! `duplexer read`: the contents of a resource.

use duplexer::types::resource::ReadResourceResult;

use super::{Kind, Output, no_more, unknown, unreadable};
use crate::failure::Failure;
use crate::session::Session;
use crate::show;
use crate::terminal::{print, print_bytes};

/// A resource, by its URI.
pub(super) struct Read(String);

impl Read {
    pub(super) fn parse(words: &[String]) -> Result<Self, Failure> {
        let (uri, rest) = words.split_first().ok_or_else(|| {
            Failure::usage(
                "which resource? Give its URI behind the server; `duplexer list` shows which there are",
            )
        })?;
        no_more(rest)?;
        Ok(Self(uri.clone()))
    }

    pub(super) async fn run(&self, session: &Session, output: Output) -> Result<(), Failure> {
        let asked = session.ask(session.client.read_resource(self.0.as_str())).await;
        let raw = asked.map_err(|error| unknown(error, Kind::Resources))?;
        if output == Output::Json {
            print(raw.as_str());
            return Ok(());
        }
        let result: ReadResourceResult = raw.decode().map_err(unreadable)?;
        for contents in &result.contents {
            let is_printed = show::bytes(contents).is_some_and(|bytes| print_bytes(&bytes));
            if !is_printed {
                print(&show::contents(contents));
            }
        }
        Ok(())
    }
}
