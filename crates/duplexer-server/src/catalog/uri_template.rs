//! URI templates (RFC 6570): parsed once, matched in linear time, expanded again.
//!
//! Matching does not backtrack: the part before the one variable that can span segments is matched from the left, the
//! part after it from the right, and the variable gets the rest.

mod expand;
mod parse;

use std::borrow::Cow;

/// Maximum length of a URI in bytes. Longer URIs match no template.
const LONGEST: usize = 64 * 1024;

/// A parsed template.
#[derive(Clone, Debug)]
pub(crate) struct UriTemplate {
    text: String,
    /// The path part: the whole template, unless it ends in a query that is matched leniently.
    atoms: Vec<Atom>,
    /// Variables of the query. Its members can be in any order, absent, or mixed with unknown ones.
    query: Vec<String>,
    expressions: Vec<parse::Piece>,
}

/// One step of matching.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Atom {
    Literal(String),
    Variable(Variable),
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Variable {
    name: String,
    /// Characters that cannot be part of a value.
    stops: &'static str,
    /// The variable is a list; each value follows this character.
    list: Option<char>,
    /// The value can span segments.
    spans: bool,
    /// `;name` precedes the value, with or without `=`.
    named: bool,
}

/// The value of a variable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Value {
    One(String),
    Many(Vec<String>),
}

impl Value {
    pub(crate) fn parts(&self) -> &[String] {
        match self {
            Self::One(one) => std::slice::from_ref(one),
            Self::Many(many) => many,
        }
    }
}

/// Variables and their values, in the order of the template.
pub(crate) type Values = Vec<(String, Value)>;

impl UriTemplate {
    pub(crate) fn as_str(&self) -> &str {
        &self.text
    }

    /// Returns the names of all variables, in order.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        let in_path = self.atoms.iter().filter_map(|atom| match atom {
            Atom::Variable(variable) => Some(variable.name.as_str()),
            Atom::Literal(_) => None,
        });
        in_path.chain(self.query.iter().map(String::as_str))
    }

    /// Matches a URI and returns the values of the variables.
    pub(crate) fn matches(&self, uri: &str) -> Option<Values> {
        if uri.len() > LONGEST {
            return None;
        }
        if self.query.is_empty() {
            return match_atoms(&self.atoms, uri);
        }
        let uri = uri.split('#').next().unwrap_or_default();
        let (path, query) = uri.split_once('?').map_or((uri, ""), |(path, query)| (path, query));
        let mut values = match_atoms(&self.atoms, path)?;
        match_query(&self.query, query, &mut values)?;
        Some(values)
    }
}

fn match_atoms(atoms: &[Atom], text: &str) -> Option<Values> {
    let spanning = atoms.iter().position(|atom| matches!(atom, Atom::Variable(variable) if variable.spans));
    let (before, rest) = atoms.split_at(spanning.unwrap_or(0));
    let mut values = Vec::new();
    let text = from_left(before, text, &mut values)?;
    let (spanning, after) = match (spanning, rest) {
        (Some(_), [Atom::Variable(variable), after @ ..]) => (Some(variable), after),
        _ => (None, rest),
    };
    let mut behind = Vec::new();
    let text = from_right(after, text, &mut behind)?;
    match spanning {
        Some(variable) => values.push((variable.name.clone(), variable.read(text)?)),
        None if text.is_empty() => {}
        None => return None,
    }
    values.extend(behind.into_iter().rev());
    Some(values)
}

/// Matches from the left: each variable ends at the next literal. Returns the rest of the text.
fn from_left<'t>(atoms: &[Atom], mut text: &'t str, values: &mut Values) -> Option<&'t str> {
    for (place, atom) in atoms.iter().enumerate() {
        match atom {
            Atom::Literal(literal) => text = text.strip_prefix(literal.as_str())?,
            Atom::Variable(variable) => {
                let end = match atoms.get(place + 1) {
                    Some(Atom::Literal(next)) => text.find(next.as_str())?,
                    _ => text.find(|c| variable.stops.contains(c)).unwrap_or(text.len()),
                };
                let (value, rest) = text.split_at(end);
                values.push((variable.name.clone(), variable.read(value)?));
                text = rest;
            }
        }
    }
    Some(text)
}

/// Matches from the right: each variable begins after the previous literal, so the first variable gets the most.
fn from_right<'t>(atoms: &[Atom], mut text: &'t str, values: &mut Values) -> Option<&'t str> {
    for (place, atom) in atoms.iter().enumerate().rev() {
        match atom {
            Atom::Literal(literal) => text = text.strip_suffix(literal.as_str())?,
            Atom::Variable(variable) => {
                let start = match place.checked_sub(1).and_then(|before| atoms.get(before)) {
                    Some(Atom::Literal(before)) => text.rfind(before.as_str())? + before.len(),
                    Some(Atom::Variable(_)) => variable.start_in(text)?,
                    None => 0,
                };
                let (rest, value) = text.split_at(start);
                values.push((variable.name.clone(), variable.read(value)?));
                text = rest;
            }
        }
    }
    Some(text)
}

impl Variable {
    /// Returns the start of the value of a variable with its own separator.
    fn start_in(&self, text: &str) -> Option<usize> {
        match (self.list, self.named) {
            (_, true) => text.rfind(&format!(";{}", self.name)),
            (Some(separator), _) => {
                // All trailing parts that the variable can contain.
                let own = |c: char| c == separator || !self.stops.contains(c);
                Some(text.rfind(|c| !own(c)).map_or(0, |at| at + 1))
            }
            _ => Some(text.len()),
        }
    }

    fn read(&self, text: &str) -> Option<Value> {
        let text = if self.named {
            let value = text.strip_prefix(';')?.strip_prefix(self.name.as_str())?;
            if value.is_empty() { value } else { value.strip_prefix('=')? }
        } else {
            text
        };
        if let Some(separator) = self.list {
            let mut parts = text.split(separator);
            // Every part follows a separator, so nothing precedes the first.
            if !parts.next()?.is_empty() {
                return None;
            }
            return parts.map(|part| self.part(part)).collect::<Option<_>>().map(Value::Many);
        }
        if text.is_empty() && !self.spans && !self.named {
            return None;
        }
        self.part(text).map(Value::One)
    }

    fn part(&self, text: &str) -> Option<String> {
        if text.contains(|c| self.stops.contains(c)) { None } else { decoded(text).map(Cow::into_owned) }
    }
}

/// Adds the named members of a query. The first of duplicate members counts; names are compared without decoding.
fn match_query(names: &[String], query: &str, values: &mut Values) -> Option<()> {
    for member in query.split('&') {
        let (name, value) = member.split_once('=').unwrap_or((member, ""));
        let known = names.iter().any(|known| known == name);
        if known && !values.iter().any(|(seen, _)| seen == name) {
            values.push((name.to_owned(), Value::One(decoded(value)?.into_owned())));
        }
    }
    Some(())
}

/// Percent-decodes a text once. Returns `None` if the encoding is malformed or the result is not UTF-8.
fn decoded(text: &str) -> Option<Cow<'_, str>> {
    if !text.contains('%') {
        return Some(Cow::Borrowed(text));
    }
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&byte, after)) = rest.split_first() {
        if byte == b'%' {
            let digit = |at: usize| char::from(*after.get(at)?).to_digit(16);
            bytes.push(u8::try_from(digit(0)? * 16 + digit(1)?).ok()?);
            rest = after.get(2..)?;
        } else {
            bytes.push(byte);
            rest = after;
        }
    }
    String::from_utf8(bytes).ok().map(Cow::Owned)
}

#[cfg(test)]
mod tests;
