//! `Mcp-Param-*` headers: emits and checks the arguments that a tool's schema mirrors in headers.
//!
//! The arguments stay text: one walk finds the annotated ones.

use std::borrow::Cow;

use super::annotation::{self, InvalidAnnotation, Kind};
use super::number::Decimal;
use super::{PARAM_PREFIX, Values, value};
use crate::error::{ErrorCode, ErrorObject};
use crate::json::scan::{self, NotJson, Scanner};
use crate::json::{Json, Occurrence};

/// Arguments of one tool that are
/// [mirrored in headers](https://modelcontextprotocol.io/specification/2026-07-28/basic/transports/streamable-http).
#[derive(Clone, Debug, Default)]
pub struct ParamHeaders {
    params: Vec<Param>,
    root: Node,
}

#[derive(Clone, Debug)]
struct Param {
    header: String,
    /// Dotted path, for messages.
    path: String,
    kind: Kind,
}

/// Annotated property, or an ancestor of one.
#[derive(Clone, Debug, Default)]
struct Node {
    param: Option<usize>,
    /// Sorted by name.
    children: Vec<(String, Node)>,
}

impl ParamHeaders {
    /// Reads the annotations of an input schema.
    ///
    /// # Errors
    /// Fails if any annotation is invalid.
    pub fn from_schema(schema: &Json) -> Result<Self, InvalidAnnotation> {
        let mut headers = Self::default();
        for annotated in annotation::collect(schema)? {
            headers.root.insert(&annotated.path, headers.params.len());
            headers.params.push(Param {
                header: format!("{}{}", PARAM_PREFIX.canonical, annotated.token),
                path: annotated.path.join("."),
                kind: annotated.kind,
            });
        }
        Ok(headers)
    }

    /// Whether the tool mirrors no argument, as most do.
    pub fn is_empty(&self) -> bool {
        self.params.is_empty()
    }

    /// Returns the headers for a call with these arguments (JSON text): one for every annotated argument that is present.
    pub fn emit(&self, arguments: Option<&str>) -> Vec<(String, String)> {
        let found = self.find(arguments);
        let rendered = self.params.iter().zip(found).filter_map(|(param, argument)| {
            let Occurrence::One(json) = argument else {
                return None;
            };
            let text = param.render(json)?;
            Some((param.header.clone(), value::encode(&text).into_owned()))
        });
        rendered.collect()
    }

    /// Compares the headers of a call with its arguments (JSON text).
    ///
    /// `lookup` finds a header by its case-insensitive name. Arguments that are not an object are accepted here, because
    /// decoding rejects them. Headers without an annotation are ignored.
    ///
    /// # Errors
    /// Fails with the first difference.
    pub fn check<'h>(
        &self,
        arguments: Option<&str>,
        lookup: impl Fn(&str) -> Values<'h>,
    ) -> Result<(), ErrorObject> {
        if arguments.is_some_and(|arguments| arguments != "null" && !arguments.starts_with('{')) {
            return Ok(());
        }
        let found = self.find(arguments);
        self.params.iter().zip(found).try_for_each(|(param, argument)| {
            param.check(argument, lookup(&param.header)).map_err(|mismatch| {
                let message = format!("{} header {}", param.header, mismatch.text(&param.path));
                ErrorObject::new(ErrorCode::HEADER_MISMATCH, message)
            })
        })
    }

    fn find<'a>(&self, arguments: Option<&'a str>) -> Vec<Occurrence<&'a str>> {
        let mut found = vec![Occurrence::Absent; self.params.len()];
        if let Some(arguments) = arguments
            && !self.is_empty()
            && self.root.find(arguments, &mut found).is_err()
        {
            // The arguments are not an object.
            found.fill(Occurrence::Absent);
        }
        found
    }
}

impl Node {
    fn insert(&mut self, path: &[String], param: usize) {
        let Some((name, rest)) = path.split_first() else {
            self.param = Some(param);
            return;
        };
        let at = match self.position(name) {
            Ok(at) => at,
            Err(at) => {
                self.children.insert(at, (name.clone(), Self::default()));
                at
            }
        };
        if let Some((_, child)) = self.children.get_mut(at) {
            child.insert(rest, param);
        }
    }

    fn position(&self, name: &str) -> Result<usize, usize> {
        self.children.binary_search_by(|(child, _)| child.as_str().cmp(name))
    }

    /// Walks an object along the schema. The recursion is as deep as the schema, whatever the text.
    fn find<'a>(&self, object: &'a str, found: &mut [Occurrence<&'a str>]) -> Result<(), NotJson> {
        let mut seen = vec![false; self.children.len()];
        Scanner::new(object).members(|scanner, name| {
            let value = scanner.value(1)?;
            let Ok(at) = self.position(&name) else { return Ok(()) };
            let (Some((_, child)), Some(seen)) = (self.children.get(at), seen.get_mut(at)) else {
                return Ok(());
            };
            if std::mem::replace(seen, true) {
                child.mark_repeated(found);
                Ok(())
            } else {
                child.take(value, found)
            }
        })
    }

    fn take<'a>(&self, value: &'a str, found: &mut [Occurrence<&'a str>]) -> Result<(), NotJson> {
        if let Some(slot) = self.param.and_then(|param| found.get_mut(param))
            && value != "null"
        {
            *slot = Occurrence::One(value);
        }
        if !self.children.is_empty() && value.starts_with('{') {
            self.find(value, found)?;
        }
        Ok(())
    }

    /// Marks the arguments of this property and below as repeated: two readers could see different values.
    fn mark_repeated(&self, found: &mut [Occurrence<&str>]) {
        if let Some(slot) = self.param.and_then(|param| found.get_mut(param)) {
            *slot = Occurrence::Several;
        }
        for (_, child) in &self.children {
            child.mark_repeated(found);
        }
    }
}

/// Difference between a header and its argument.
#[derive(Clone, Copy)]
enum Mismatch {
    Repeated,
    Unexpected,
    Missing,
    Malformed,
    Different,
}

impl Mismatch {
    fn text(self, path: &str) -> String {
        match self {
            Self::Repeated => "appears more than once".to_owned(),
            Self::Unexpected => format!("is present but the request body's '{path}' argument is absent"),
            Self::Missing => format!("is missing but the request body's '{path}' argument is present"),
            Self::Malformed => "carries a malformed base64 sentinel value".to_owned(),
            Self::Different => format!("does not match the request body's '{path}' argument"),
        }
    }
}

impl Param {
    /// Returns the text of the argument in a header; `None` for objects and arrays, which have none.
    fn render<'a>(&self, json: &'a str) -> Option<Cow<'a, str>> {
        match json.as_bytes().first()? {
            b'{' | b'[' => None,
            b'"' => scan::string(json),
            b'-' | b'0'..=b'9' if self.kind == Kind::Integer => {
                let digits = Decimal::read(json).and_then(|number| number.integer());
                Some(digits.map_or(Cow::Borrowed(json), Cow::Owned))
            }
            _ => Some(Cow::Borrowed(json)),
        }
    }

    fn check(&self, argument: Occurrence<&str>, header: Values<'_>) -> Result<(), Mismatch> {
        let header = match header {
            Values::Several => return Err(Mismatch::Repeated),
            Values::Absent => None,
            Values::One(header) => Some(header),
        };
        let json = match (argument, header) {
            (Occurrence::Absent, None) => return Ok(()),
            (Occurrence::Absent, Some(_)) => return Err(Mismatch::Unexpected),
            (Occurrence::Several, None) => return Err(Mismatch::Missing),
            (Occurrence::Several, Some(_)) => return Err(Mismatch::Different),
            (Occurrence::One(json), _) => json,
        };
        match (self.render(json), header) {
            (None, None) => Ok(()),
            (None, Some(_)) => Err(Mismatch::Different),
            (Some(_), None) => Err(Mismatch::Missing),
            (Some(text), Some(header)) => self.compare(json, &text, header),
        }
    }

    fn compare(&self, json: &str, text: &str, header: &[u8]) -> Result<(), Mismatch> {
        let sent = match value::decode(header) {
            Some(sent) => sent,
            None if value::is_sentinel(header) => return Err(Mismatch::Malformed),
            None => return Err(Mismatch::Different),
        };
        if sent == text || sent == json && !json.starts_with('"') || self.equal_integers(json, &sent) {
            Ok(())
        } else {
            Err(Mismatch::Different)
        }
    }

    fn equal_integers(&self, json: &str, sent: &str) -> bool {
        self.kind == Kind::Integer
            && Decimal::read(json).is_some_and(|number| {
                number.is_integer() && Decimal::read_plain(sent).as_ref() == Some(&number)
            })
    }
}

#[cfg(test)]
mod tests;
