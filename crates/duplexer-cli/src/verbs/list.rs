//! `duplexer list`: tools, resources, templates and prompts of a server.

use std::collections::HashSet;

use duplexer::Json;
use duplexer::client::{Call, ClientError};
use duplexer::types::json::JsonObject;
use duplexer::types::methods::Request;
use duplexer::types::page::PaginatedParams;

use super::unknown::closest;
use super::{no_more, unreadable};
use crate::failure::{Exit, Failure};
use crate::output::Output;
use crate::session::Session;
use crate::show::{self, Details};
use crate::terminal::columns;
use crate::text::lines;

/// Maximum number of pages of a list.
const MAX_PAGES: usize = 1000;

/// Kind of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Tools,
    Resources,
    Templates,
    Prompts,
}

impl Kind {
    const ALL: [Self; 4] = [Self::Tools, Self::Resources, Self::Templates, Self::Prompts];

    pub(crate) fn plural(self) -> &'static str {
        match self {
            Self::Tools => "tools",
            Self::Resources => "resources",
            Self::Templates => "templates",
            Self::Prompts => "prompts",
        }
    }

    pub(crate) fn heading(self) -> &'static str {
        match self {
            Self::Tools => "Tools",
            Self::Resources => "Resources",
            Self::Templates => "Templates",
            Self::Prompts => "Prompts",
        }
    }

    /// Returns the member that holds the entries of a page.
    fn member(self) -> &'static str {
        match self {
            Self::Templates => "resourceTemplates",
            other => other.plural(),
        }
    }

    /// Returns whether the server declares the capability.
    fn is_offered(self, session: &Session) -> bool {
        let capabilities = session.client.server_capabilities();
        match self {
            Self::Tools => capabilities.tools.is_some(),
            Self::Resources | Self::Templates => capabilities.resources.is_some(),
            Self::Prompts => capabilities.prompts.is_some(),
        }
    }
}

/// What to list, and how much of it.
pub(super) struct List {
    what: What,
    details: Details,
}

enum What {
    /// All kinds that the server has.
    All,
    Kind(Kind),
    /// The entries that a word means.
    Named(String),
}

impl List {
    pub(super) fn parse(words: &[String], details: Details) -> Result<Self, Failure> {
        let Some((word, rest)) = words.split_first() else { return Ok(Self { what: What::All, details }) };
        no_more(rest)?;
        let kind = Kind::ALL.into_iter().find(|kind| kind.plural() == word);
        let what = kind.map_or_else(|| What::Named(word.clone()), What::Kind);
        Ok(Self { what, details })
    }

    pub(super) async fn run(&self, session: &Session, output: &Output) -> Result<(), Failure> {
        let kinds = match self.what {
            What::Kind(kind) => vec![kind],
            What::All | What::Named(_) => {
                Kind::ALL.into_iter().filter(|kind| kind.is_offered(session)).collect()
            }
        };
        let mut all = Vec::new();
        for kind in kinds {
            all.push((kind, pages_of(kind, session).await?));
        }
        match &self.what {
            What::Named(word) => self.show(&named(&all, word)?, output),
            _ if output.is_json() => output.json(&json(&all)?),
            _ => {
                let all: Result<Vec<_>, Failure> =
                    all.iter().map(|(kind, pages)| Ok((*kind, entries(*kind, pages)?))).collect();
                self.show(&all?, output)
            }
        }
    }

    fn show(&self, all: &[(Kind, Vec<Json>)], output: &Output) -> Result<(), Failure> {
        if output.is_json() {
            let lists: JsonObject<Vec<Json>> =
                all.iter().map(|(kind, entries)| (kind.member(), entries.clone())).collect();
            return output.json(&Json::encode(&lists).map_err(unreadable)?);
        }
        let columns = if output.is_file() { None } else { columns() };
        output.text(&lines(
            all.iter().map(|(kind, entries)| show::listing(*kind, entries, self.details, columns)),
        ))
    }
}

/// Returns the entries that a word means. Fails if there are none.
fn named(all: &[(Kind, Vec<Json>)], word: &str) -> Result<Vec<(Kind, Vec<Json>)>, Failure> {
    let (mut found, mut names) = (Vec::new(), Vec::new());
    for (kind, pages) in all {
        let entries = entries(*kind, pages)?;
        names.extend(entries.iter().filter_map(|entry| show::name(*kind, entry)));
        let meant: Vec<Json> =
            entries.into_iter().filter(|entry| show::describes(*kind, entry, word)).collect();
        if !meant.is_empty() {
            found.push((*kind, meant));
        }
    }
    if found.is_empty() {
        let failure = Failure::usage(format!("the server has nothing called `{word}`"));
        return Err(match closest(word, &names) {
            Some(known) => failure.hint(&format!("did you mean `{known}`?")),
            None => failure.hint("tools, resources, templates and prompts can be listed"),
        });
    }
    Ok(found)
}

/// Returns the names of all entries of a kind.
pub(super) async fn names_of(kind: Kind, session: &Session) -> Result<Vec<String>, Failure> {
    let pages = pages_of(kind, session).await?;
    Ok(entries(kind, &pages)?.iter().filter_map(|entry| show::name(kind, entry)).collect())
}

/// Prints one page unchanged; joins several.
fn json(all: &[(Kind, Vec<Json>)]) -> Result<Json, Failure> {
    if let [(_, pages)] = all
        && let [page] = &pages[..]
    {
        return Ok(page.clone());
    }
    let lists = all.iter().map(|(kind, pages)| Ok((kind.member(), entries(*kind, pages)?)));
    let lists: JsonObject<Vec<Json>> = lists.collect::<Result<_, Failure>>()?;
    Json::encode(&lists).map_err(unreadable)
}

fn entries(kind: Kind, pages: &[Json]) -> Result<Vec<Json>, Failure> {
    let mut all = Vec::new();
    for page in pages {
        let list: Vec<Json> =
            serde_json::from_str(page.member(kind.member()).unwrap_or("[]")).map_err(unreadable)?;
        all.extend(list);
    }
    Ok(all)
}

async fn pages_of(kind: Kind, session: &Session) -> Result<Vec<Json>, Failure> {
    let client = &session.client;
    match kind {
        Kind::Tools => pages(session, || client.list_tools()).await,
        Kind::Resources => pages(session, || client.list_resources()).await,
        Kind::Templates => pages(session, || client.list_resource_templates()).await,
        Kind::Prompts => pages(session, || client.list_prompts()).await,
    }
}

/// Requests all pages of a list.
pub(super) async fn pages<M>(session: &Session, first: impl Fn() -> Call<M>) -> Result<Vec<Json>, Failure>
where
    M: Request<Params = PaginatedParams> + 'static,
{
    let (mut pages, mut seen) = (Vec::new(), HashSet::new());
    let mut call = first();
    loop {
        let page = session.ask(call).await?;
        let next = page.member("nextCursor").and_then(|text| serde_json::from_str::<String>(text).ok());
        pages.push(page);
        let Some(cursor) = next else { return Ok(pages) };
        if !seen.insert(cursor.clone()) {
            return Err(Failure::new(Exit::Protocol, ClientError::RepeatedCursor(M::METHOD).to_string()));
        }
        if pages.len() >= MAX_PAGES {
            let error = ClientError::TooManyPages { method: M::METHOD, pages: MAX_PAGES };
            return Err(Failure::new(Exit::Protocol, error.to_string()));
        }
        call = first().cursor(cursor);
    }
}
