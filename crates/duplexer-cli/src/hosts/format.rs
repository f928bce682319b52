//! The formats of configuration files, behind one way to edit them. An edit that changes anything but its entry is refused.

use super::data::{Data, Fault};
use super::json::{self, Dialect};
use super::{toml, yaml};

/// A format, with what its host allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    Json(Dialect),
    Toml,
    Yaml,
}

impl Format {
    /// Returns the value of a text; an empty map if it has none.
    pub(crate) fn parse(self, text: &str) -> Result<Data, Fault> {
        let node = match self {
            Self::Json(dialect) => json::parse(text, dialect)?,
            Self::Yaml => yaml::parse(text)?,
            Self::Toml => return toml::parse(text),
        };
        Ok(node.map_or(Data::Map(Vec::new()), |node| node.data()))
    }

    /// Puts an entry under `name` into the map `container`. An entry that is there already is replaced.
    pub(crate) fn insert(
        self,
        text: &str,
        container: &str,
        (name, entry): (&str, &Data),
    ) -> Result<String, Fault> {
        let new = match self {
            Self::Json(dialect) => json::insert(text, dialect, &[container], (name, entry))?,
            Self::Toml => toml::insert(text, &[container], (name, entry))?,
            Self::Yaml => yaml::insert(text, container, (name, entry))?,
        };
        self.verified(text, new, &[container, name], Some(entry))
    }

    /// Removes the entry `name` from the map `container`. Returns `None` if there is none.
    pub(crate) fn remove(self, text: &str, container: &str, name: &str) -> Result<Option<String>, Fault> {
        let new = match self {
            Self::Json(dialect) => json::remove(text, dialect, &[container], name)?,
            Self::Toml => toml::remove(text, &[container], name)?,
            Self::Yaml => yaml::remove(text, container, name)?,
        };
        new.map(|new| self.verified(text, new, &[container, name], None)).transpose()
    }

    /// Returns the new text, if it means what the old one meant, apart from the entry.
    fn verified(self, old: &str, new: String, path: &[&str], entry: Option<&Data>) -> Result<String, Fault> {
        let expected = without_nothing(self.parse(old)?, path).with(path, entry);
        let holds = self.parse(&new).is_ok_and(|data| emptied(data, path).same(&emptied(expected, path)));
        if holds {
            Ok(new)
        } else {
            let name = path.last().copied().unwrap_or_default();
            let reason =
                format!("`{name}` is written in a way that cannot be edited safely; change it manually");
            Err(Fault { line: 1, reason })
        }
    }
}

/// Replaces a container that is not written, in YAML `extensions:` without a value, by an empty map.
fn without_nothing(data: Data, path: &[&str]) -> Data {
    let Some(container) = path.first() else { return data };
    match data.member(&[container]) {
        Some(Data::Literal(nothing)) if nothing.is_empty() => {
            data.with(&[container], Some(&Data::Map(Vec::new())))
        }
        _ => data,
    }
}

/// Removes a container without members: an empty one means the same as none.
fn emptied(data: Data, path: &[&str]) -> Data {
    let Some(container) = path.first() else { return data };
    match data.member(&[container]) {
        Some(Data::Map(members)) if members.is_empty() => data.with(&[container], None),
        _ => data,
    }
}
