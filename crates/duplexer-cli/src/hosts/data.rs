//! What the formats of configuration files have in common: values, their places in the text, faults with their lines, and
//! replacements of parts of a text.

use std::ops::Range;

/// A value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Data {
    Text(String),
    /// A number, `true`, `false`, `null` or a date, as it is written.
    Literal(String),
    List(Vec<Data>),
    /// Members in their order.
    Map(Vec<(String, Data)>),
}

impl Data {
    pub(crate) fn text(text: impl Into<String>) -> Self {
        Self::Text(text.into())
    }

    pub(crate) fn texts(texts: &[String]) -> Self {
        Self::List(texts.iter().map(Self::text).collect())
    }

    pub(crate) fn map_of(pairs: &[(String, String)]) -> Self {
        Self::Map(pairs.iter().map(|(key, text)| (key.clone(), Self::text(text))).collect())
    }

    /// Returns the first member with one of the names.
    pub(crate) fn member(&self, names: &[&str]) -> Option<&Self> {
        let Self::Map(members) = self else { return None };
        members.iter().find(|(key, _)| names.contains(&key.as_str())).map(|(_, value)| value)
    }

    pub(crate) fn as_text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            _ => None,
        }
    }

    /// Returns the members of a map.
    pub(crate) fn members(&self) -> &[(String, Self)] {
        match self {
            Self::Map(members) => members,
            _ => &[],
        }
    }

    /// Returns whether two values are equal, whatever the order of members.
    pub(crate) fn same(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::List(these), Self::List(those)) => {
                these.len() == those.len() && these.iter().zip(those).all(|(this, that)| this.same(that))
            }
            (Self::Map(these), Self::Map(those)) => {
                let (these, those) = (sorted(these), sorted(those));
                these.len() == those.len()
                    && these.iter().zip(those).all(|(this, that)| this.0 == that.0 && this.1.same(&that.1))
            }
            _ => self == other,
        }
    }

    /// Returns the value with `entry` at the end of the path: put there, or with `None` removed.
    pub(super) fn with(&self, path: &[&str], entry: Option<&Self>) -> Self {
        let Some((key, rest)) = path.split_first() else { return self.clone() };
        let mut members = self.members().to_vec();
        let at = members.iter().position(|(name, _)| name == key);
        let inner =
            at.and_then(|at| members.get(at)).map_or(Self::Map(Vec::new()), |(_, value)| value.clone());
        let changed = if rest.is_empty() { entry.cloned() } else { Some(inner.with(rest, entry)) };
        match (at, changed) {
            (Some(at), Some(changed)) => members[at].1 = changed,
            (Some(at), None) => drop(members.remove(at)),
            (None, Some(changed)) => members.push(((*key).to_owned(), changed)),
            (None, None) => {}
        }
        Self::Map(members)
    }
}

fn sorted(members: &[(String, Data)]) -> Vec<&(String, Data)> {
    let mut sorted: Vec<_> = members.iter().collect();
    sorted.sort_by(|this, that| this.0.cmp(&that.0));
    sorted
}

/// A value and its place in the text.
#[derive(Debug)]
pub(super) struct Node {
    pub(super) start: usize,
    pub(super) end: usize,
    pub(super) content: Content,
}

#[derive(Debug)]
pub(super) enum Content {
    Text(String),
    Literal(String),
    List(Vec<Node>),
    Map(Vec<Member>),
}

/// A member of a map.
#[derive(Debug)]
pub(super) struct Member {
    pub(super) key: String,
    /// The place of the key.
    pub(super) start: usize,
    pub(super) key_end: usize,
    pub(super) value: Node,
    /// The place of the comma behind the value.
    pub(super) comma: Option<usize>,
}

impl Node {
    pub(super) fn data(&self) -> Data {
        match &self.content {
            Content::Text(text) => Data::Text(text.clone()),
            Content::Literal(text) => Data::Literal(text.clone()),
            Content::List(nodes) => Data::List(nodes.iter().map(Self::data).collect()),
            Content::Map(members) => {
                Data::Map(members.iter().map(|member| (member.key.clone(), member.value.data())).collect())
            }
        }
    }

    /// Returns the members of a map, or the fault that it is none.
    pub(super) fn members(&self, text: &str, what: &str) -> Result<&[Member], Fault> {
        match &self.content {
            Content::Map(members) => Ok(members),
            _ => Err(Fault::at(text, self.start, format!("{what} is not an object"))),
        }
    }
}

/// Returns the position of a member. A name that occurs twice is a fault: programs differ in which of the two they take.
pub(super) fn position(members: &[Member], key: &str, text: &str) -> Result<Option<usize>, Fault> {
    let mut found = members.iter().enumerate().filter(|(_, member)| member.key == key);
    let first = found.next().map(|(at, _)| at);
    match found.next() {
        Some((_, second)) => Err(Fault::at(text, second.start, format!("`{key}` occurs twice"))),
        None => Ok(first),
    }
}

/// What is wrong with a file, and in which line.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Fault {
    pub(crate) line: usize,
    pub(crate) reason: String,
}

impl Fault {
    pub(super) fn at(text: &str, position: usize, reason: impl Into<String>) -> Self {
        let before = text.as_bytes().get(..position).unwrap_or(text.as_bytes());
        let line = before.iter().filter(|byte| **byte == b'\n').count() + 1;
        Self { line, reason: reason.into() }
    }
}

/// A part of a text, and what replaces it.
pub(super) type Edit = (Range<usize>, String);

/// Applies edits that do not overlap. Those at the same place keep their order.
pub(super) fn apply(text: &str, mut edits: Vec<Edit>) -> String {
    edits.sort_by_key(|(range, _)| range.start);
    let mut changed = String::with_capacity(text.len() + 256);
    let mut copied = 0;
    for (range, new) in edits {
        changed.push_str(text.get(copied..range.start).unwrap_or_default());
        changed.push_str(&new);
        copied = copied.max(range.end);
    }
    changed.push_str(text.get(copied..).unwrap_or_default());
    changed
}

/// How a file breaks and indents its lines.
#[derive(Clone, Debug)]
pub(super) struct Layout {
    pub(super) line_end: &'static str,
    pub(super) unit: String,
}

impl Layout {
    pub(super) fn of(text: &str) -> Self {
        let line_end = if text.contains("\r\n") { "\r\n" } else { "\n" };
        let indented = text.lines().find_map(|line| {
            let rest = line.trim_start_matches([' ', '\t']);
            let indent = line.strip_suffix(rest)?;
            (!indent.is_empty() && !rest.trim().is_empty() && !rest.starts_with('*')).then_some(indent)
        });
        let unit = match indented {
            Some(indent) if indent.starts_with('\t') => "\t".to_owned(),
            Some(indent) => " ".repeat(indent.len().min(8)),
            None => "  ".to_owned(),
        };
        Self { line_end, unit }
    }
}

/// Returns the white space at the begin of the line of a position.
pub(super) fn indent_at(text: &str, position: usize) -> &str {
    let line = text.get(line_start(text, position)..).unwrap_or_default();
    let rest = line.trim_start_matches([' ', '\t']);
    line.strip_suffix(rest).unwrap_or_default()
}

pub(super) fn line_start(text: &str, position: usize) -> usize {
    text.get(..position).and_then(|before| before.rfind('\n')).map_or(0, |at| at + 1)
}

/// Returns the end of the line of a position, without its line break.
pub(super) fn line_end(text: &str, position: usize) -> usize {
    let rest = text.get(position..).unwrap_or_default();
    let end = position + rest.find('\n').unwrap_or(rest.len());
    if end > position && text.as_bytes().get(end - 1) == Some(&b'\r') { end - 1 } else { end }
}

/// Returns the line break before the line of a position, if only white space is between them.
pub(super) fn break_before(text: &str, position: usize) -> Option<usize> {
    let start = line_start(text, position);
    let is_first = text.get(start..position)?.trim().is_empty();
    let break_at = start.checked_sub(1).filter(|_| is_first)?;
    let is_crlf = break_at > 0 && text.as_bytes().get(break_at - 1) == Some(&b'\r');
    Some(if is_crlf { break_at - 1 } else { break_at })
}

/// Writes a text in quotes, as JSON, TOML and YAML all read it.
pub(crate) fn quoted(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for c in text.chars() {
        match c {
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            '\n' => quoted.push_str("\\n"),
            '\r' => quoted.push_str("\\r"),
            '\t' => quoted.push_str("\\t"),
            c if c.is_control() || matches!(c, '\u{2028}' | '\u{2029}' | '\u{feff}') => {
                quoted.push_str(&format!("\\u{:04x}", u32::from(c)));
            }
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}
