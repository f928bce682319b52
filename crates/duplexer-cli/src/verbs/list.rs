//! `duplexer list`: tools, resources, templates and prompts of a server.

use std::collections::HashSet;

use duplexer::Json;
use duplexer::client::{Call, ClientError};
use duplexer::types::json::JsonObject;
use duplexer::types::methods::Request;
use duplexer::types::page::PaginatedParams;

use super::{Output, no_more, unreadable};
use crate::failure::{Exit, Failure};
use crate::session::Session;
use crate::show;
use crate::terminal::print;

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

/// One kind, or all that the server has.
pub(super) struct List(Option<Kind>);

impl List {
    pub(super) fn parse(words: &[String]) -> Result<Self, Failure> {
        let Some((word, rest)) = words.split_first() else { return Ok(Self(None)) };
        no_more(rest)?;
        match Kind::ALL.into_iter().find(|kind| kind.plural() == word) {
            Some(kind) => Ok(Self(Some(kind))),
            None => Err(Failure::usage(format!(
                "`{word}` cannot be listed; tools, resources, templates and prompts can"
            ))),
        }
    }

    pub(super) async fn run(&self, session: &Session, output: Output) -> Result<(), Failure> {
        let kinds = match self.0 {
            Some(kind) => vec![kind],
            None => Kind::ALL.into_iter().filter(|kind| kind.is_offered(session)).collect(),
        };
        let mut all = Vec::new();
        for kind in kinds {
            all.push((kind, pages_of(kind, session).await?));
        }
        match output {
            Output::Text => {
                for (kind, pages) in &all {
                    print(&show::listing(*kind, &entries(*kind, pages)?));
                }
            }
            Output::Json => print(json(&all)?.as_str()),
        }
        Ok(())
    }
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

async fn pages<M>(session: &Session, first: impl Fn() -> Call<M>) -> Result<Vec<Json>, Failure>
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
