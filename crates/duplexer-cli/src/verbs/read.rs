//! `duplexer read`: the contents of a resource.

use duplexer::types::resource::{ReadResourceResult, ResourceContents};

use super::{Kind, no_more, unknown, unreadable};
use crate::failure::Failure;
use crate::output::Output;
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

    pub(super) async fn run(&self, session: &Session, output: &Output) -> Result<(), Failure> {
        let raw = match session.ask(session.client.read_resource(self.0.as_str())).await {
            Ok(raw) => raw,
            Err(error) => return Err(unknown(session, error, Kind::Resources, &self.0).await),
        };
        if output.is_json() {
            return output.json(&raw);
        }
        let result: ReadResourceResult = raw.decode().map_err(unreadable)?;
        if output.is_file() {
            let parts: Vec<_> = result.contents.iter().map(saved).collect();
            output.save(&parts)?;
            return Ok(());
        }
        for contents in &result.contents {
            let is_printed = show::bytes(contents).is_some_and(|bytes| print_bytes(&bytes));
            if !is_printed {
                print(&show::contents(contents, None));
            }
        }
        Ok(())
    }
}

/// Returns the contents for a file: bytes, or the text unchanged.
fn saved(contents: &ResourceContents) -> Vec<u8> {
    show::bytes(contents).unwrap_or_else(|| show::contents(contents, None).as_str().as_bytes().to_vec())
}
