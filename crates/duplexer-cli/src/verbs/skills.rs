//! `duplexer skills list|show|fetch`: skills of a server, verified before they are shown or written.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use duplexer::Json;
use duplexer::client::{LoadedSkill, SkillError, UseSkills};
use duplexer::types::json::JsonObject;
use duplexer::types::methods::SkillsList;
use duplexer::types::page::PaginatedParams;
use duplexer::types::skill::{EXTENSION, GetSkillResult, ListSkillsResult, Skill};

use super::list::pages;
use super::unknown::closest;
use super::{no_more, unreadable};
use crate::failure::{Exit, Failure, chain};
use crate::output::Output;
use crate::session::Session;
use crate::show;
use crate::terminal::{columns, print};
use crate::text::Text;

/// What is done with which skills.
pub(super) enum Skills {
    List,
    /// By name or URI.
    Show(String),
    Fetch(String),
}

impl From<SkillError> for Failure {
    fn from(error: SkillError) -> Self {
        match error {
            SkillError::Client(error) => error.into(),
            other => Self::new(Exit::Protocol, chain(&other)),
        }
    }
}

impl Skills {
    pub(super) fn list(words: &[String]) -> Result<Self, Failure> {
        no_more(words)?;
        Ok(Self::List)
    }

    pub(super) fn show(words: &[String]) -> Result<Self, Failure> {
        named(words).map(Self::Show)
    }

    pub(super) fn fetch(words: &[String]) -> Result<Self, Failure> {
        named(words).map(Self::Fetch)
    }

    pub(super) async fn run(&self, session: &Session, output: &Output) -> Result<(), Failure> {
        let offered = session.client.server_capabilities().extensions.as_ref();
        if offered.is_none_or(|extensions| extensions.get(EXTENSION).is_none()) {
            return Err(Failure::new(Exit::Protocol, "the server offers no skills"));
        }
        let columns = if output.is_file() { None } else { columns() };
        match self {
            Self::List => {
                let pages = skill_pages(session).await?;
                match &pages[..] {
                    [page] if output.is_json() => output.json(page),
                    _ if output.is_json() => output.json(&joined(&pages)?),
                    _ => output.text(&show::skills(&entries(&pages)?, columns)),
                }
            }
            Self::Show(word) => {
                let found = find(session, word).await?;
                if output.is_json() {
                    return output.json(&session.ask(session.client.get_skill(found.uri)).await?);
                }
                let skill = session.client.load_skill(found).await?;
                output.text(&show::loaded_skill(&skill, columns))
            }
            Self::Fetch(word) => {
                let skill = session.client.load_skill(find(session, word).await?).await?;
                fetch(session, &skill, output.place()).await
            }
        }
    }
}

/// Returns the word that names a skill.
fn named(words: &[String]) -> Result<String, Failure> {
    let (word, rest) = words.split_first().ok_or_else(|| {
        Failure::usage(
            "which skill? Give its name or URI behind the server; `duplexer skills list` shows them",
        )
    })?;
    no_more(rest)?;
    Ok(word.clone())
}

async fn skill_pages(session: &Session) -> Result<Vec<Json>, Failure> {
    pages(session, || session.client.request::<SkillsList>(PaginatedParams::new())).await
}

fn entries(pages: &[Json]) -> Result<Vec<Skill>, Failure> {
    let mut all = Vec::new();
    for page in pages {
        all.extend(page.decode::<ListSkillsResult>().map_err(unreadable)?.skills);
    }
    Ok(all)
}

/// Joins the entries of several pages, each verbatim.
fn joined(pages: &[Json]) -> Result<Json, Failure> {
    let mut all: Vec<Json> = Vec::new();
    for page in pages {
        let entries: Vec<_> =
            serde_json::from_str(page.member("skills").unwrap_or("[]")).map_err(unreadable)?;
        all.extend(entries);
    }
    let skills = JsonObject::from_iter([("skills", all)]);
    Json::encode(&skills).map_err(unreadable)
}

/// Returns the entry of a skill by its URI, or by its name if only one has it.
async fn find(session: &Session, word: &str) -> Result<Skill, Failure> {
    if word.contains("://") {
        let result = session.ask(session.client.get_skill(word)).await?;
        return Ok(result.decode::<GetSkillResult>().map_err(unreadable)?.skill);
    }
    let all = entries(&skill_pages(session).await?)?;
    let name = |skill: &Skill| {
        skill.frontmatter.get("name").and_then(|name| name.decode::<String>().ok()).unwrap_or_default()
    };
    let names: Vec<String> = all.iter().map(name).collect();
    let mut found = all.into_iter().filter(|skill| name(skill) == word);
    match (found.next(), found.next()) {
        (Some(skill), None) => Ok(skill),
        (Some(one), Some(other)) => Err(Failure::usage(format!(
            "several skills are called `{word}`: {} and {}; give the URI",
            one.uri, other.uri
        ))),
        _ => {
            let failure = Failure::usage(format!("the server has no skill called `{word}`"));
            Err(match closest(word, &names) {
                Some(known) => failure.hint(&format!("did you mean `{known}`?")),
                None => failure.hint("`duplexer skills list` shows which there are"),
            })
        }
    }
}

/// Reads and verifies every file, then writes all of them into a new directory.
async fn fetch(session: &Session, skill: &LoadedSkill, place: Option<&Path>) -> Result<(), Failure> {
    let directory = place.map_or_else(|| PathBuf::from(skill.held().name()), Path::to_owned);
    if directory.symlink_metadata().is_ok() {
        let failure = Failure::usage(format!("{} exists already", directory.display()));
        return Err(failure.hint("--output gives another directory"));
    }
    let mut files = vec![("SKILL.md".to_owned(), skill.manifest().as_bytes().to_vec())];
    match skill.held().files() {
        Some(listed) => {
            for (path, _) in listed.filter(|(path, _)| *path != "SKILL.md") {
                files.push((path.to_owned(), skill.read(path).await?));
            }
        }
        None => session
            .terminal
            .note("The server makes the other files of this skill on demand; they are not listed."),
    }
    write(&directory, &files)
        .map_err(|error| Failure::usage(format!("{} cannot be written: {error}", directory.display())))?;
    let count = files.len();
    print(&Text::plain(format!("{count} verified files are in {}", directory.display())));
    Ok(())
}

/// Writes files into a new directory. The paths are those of a verified entry: plain names, joined by `/`.
fn write(directory: &Path, files: &[(String, Vec<u8>)]) -> std::io::Result<()> {
    fs::create_dir(directory)?;
    for (path, bytes) in files {
        let file = directory.join(path);
        if let Some(parent) = file.parent() {
            fs::create_dir_all(parent)?;
        }
        // Names that differ only by case are one file on some systems.
        fs::File::create_new(file)?.write_all(bytes)?;
    }
    Ok(())
}
