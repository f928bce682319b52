//! One YAML document as JSON text. The parser gives events and expands nothing; what JSON has no place for is refused.

use std::collections::HashSet;

use granit_parser::{Event, Parser, ScalarStyle, StrInput, options};
use serde_json::Value;

use super::scalar::{self, Scalar};
use super::{FrontMatterError, MAX_DEPTH};

/// Converts a document whose root is a mapping.
pub(super) fn to_json(yaml: &str) -> Result<String, FrontMatterError> {
    let options = options! {
        disallow_directives: true,
        emit_comments: false,
        emit_unresolved_aliases: true,
        flow_nesting_limit: MAX_DEPTH,
        block_nesting_limit: MAX_DEPTH,
    };
    let mut reader = Reader { events: Parser::new_from_str_with_options(yaml, options), json: String::new() };
    reader.document()?;
    Ok(reader.json)
}

struct Reader<'a> {
    events: Parser<'a, StrInput<'a>>,
    json: String,
}

/// An event and its line in the file, which has one more line above the YAML.
type Located<'a> = (Event<'a>, usize);

impl<'a> Reader<'a> {
    fn next(&mut self) -> Result<Located<'a>, FrontMatterError> {
        match self.events.next() {
            Some(Ok((event, span))) => Ok((event, span.start.line() + 1)),
            Some(Err(error)) => Err(FrontMatterError::new(error.marker().line() + 1, error.info())),
            None => Ok((Event::StreamEnd, 1)),
        }
    }

    fn document(&mut self) -> Result<(), FrontMatterError> {
        let empty = || FrontMatterError::new(1, "the front matter is empty");
        loop {
            match self.next()? {
                (Event::StreamStart, _) => {}
                (Event::DocumentStart(..), _) => break,
                _ => return Err(empty()),
            }
        }
        match self.next()? {
            root @ (Event::MappingStart(..), _) => self.value(root, 1)?,
            (Event::Scalar(text, ..), _) if text.is_empty() => return Err(empty()),
            (_, line) => {
                return Err(FrontMatterError::new(line, "the front matter must be fields: `name: value`"));
            }
        }
        loop {
            match self.next()? {
                (Event::DocumentEnd, _) => {}
                (Event::StreamEnd, _) => return Ok(()),
                (_, line) => {
                    return Err(FrontMatterError::new(
                        line,
                        "the front matter must be a single YAML document",
                    ));
                }
            }
        }
    }

    /// Writes a value that begins with `event`, inside of `depth - 1` others.
    fn value(&mut self, (event, line): Located<'a>, depth: usize) -> Result<(), FrontMatterError> {
        let fail = |reason: &str| Err(FrontMatterError::new(line, reason));
        let is_collection = matches!(event, Event::SequenceStart(..) | Event::MappingStart(..));
        if is_collection && depth > MAX_DEPTH {
            return fail("the values are nested too deeply");
        }
        match event {
            Event::Scalar(.., Some(_))
            | Event::SequenceStart(.., Some(_))
            | Event::MappingStart(.., Some(_)) => fail("tags (`!name`) are not supported"),
            Event::Alias(_) | Event::UnresolvedAlias(_) => fail("aliases (`*name`) are not supported"),
            Event::Scalar(text, ScalarStyle::Plain, ..) => {
                let scalar = scalar::resolve(&text).map_err(|reason| FrontMatterError::new(line, reason))?;
                self.scalar(&scalar, &text);
                Ok(())
            }
            Event::Scalar(text, ..) => {
                self.scalar(&Scalar::Text, &text);
                Ok(())
            }
            Event::SequenceStart(..) => self.sequence(depth),
            Event::MappingStart(..) => self.mapping(depth),
            _ => fail("a value is expected here"),
        }
    }

    fn scalar(&mut self, scalar: &Scalar, text: &str) {
        let value = match scalar {
            Scalar::Null => Value::Null,
            Scalar::Bool(value) => Value::Bool(*value),
            Scalar::Number(number) => Value::Number(number.clone()),
            Scalar::Text => Value::String(text.to_owned()),
        };
        self.json.push_str(&value.to_string());
    }

    fn sequence(&mut self, depth: usize) -> Result<(), FrontMatterError> {
        self.json.push('[');
        let mut is_first = true;
        loop {
            let item = self.next()?;
            if matches!(item.0, Event::SequenceEnd) {
                self.json.push(']');
                return Ok(());
            }
            if !std::mem::replace(&mut is_first, false) {
                self.json.push(',');
            }
            self.value(item, depth + 1)?;
        }
    }

    fn mapping(&mut self, depth: usize) -> Result<(), FrontMatterError> {
        self.json.push('{');
        let mut keys = HashSet::new();
        loop {
            let (event, line) = self.next()?;
            if matches!(event, Event::MappingEnd) {
                self.json.push('}');
                return Ok(());
            }
            let key = key(event, line)?;
            if !keys.is_empty() {
                self.json.push(',');
            }
            self.scalar(&Scalar::Text, &key);
            self.json.push(':');
            if keys.contains(&key) {
                return Err(FrontMatterError::new(line, format!("the key `{key}` occurs twice")));
            }
            keys.insert(key);
            let value = self.next()?;
            self.value(value, depth + 1)?;
        }
    }
}

/// Returns the text of a key.
fn key(event: Event<'_>, line: usize) -> Result<String, FrontMatterError> {
    let fail = |reason: &str| Err(FrontMatterError::new(line, reason));
    match event {
        Event::Scalar(.., Some(_)) => fail("tags (`!name`) are not supported"),
        Event::Alias(_) | Event::UnresolvedAlias(_) => fail("aliases (`*name`) are not supported"),
        Event::Scalar(text, style, ..) => {
            if style == ScalarStyle::Plain && scalar::resolve(&text) != Ok(Scalar::Text) {
                return fail("a key must be a text: quote it");
            }
            Ok(text.into_owned())
        }
        _ => fail("a key must be a text"),
    }
}
