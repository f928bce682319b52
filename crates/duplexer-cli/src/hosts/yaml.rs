//! Mappings of YAML: a member is added behind the last one, or removed with its lines. Every other byte stays.

use granit_parser::{Event, Parser, ScalarStyle, Span, StrInput, options};

use super::data::{
    Content, Data, Fault, Layout, Member, Node, apply, break_before, indent_at, line_end, position, quoted,
};
use super::json::{is_empty_map, on_one_line};

/// Maximum depth of values in a file.
const MAX_DEPTH: usize = 64;

/// Parses a text with one document. One without any value gives `None`.
pub(super) fn parse(text: &str) -> Result<Option<Node>, Fault> {
    let bom = text.len() - text.trim_start_matches('\u{feff}').len();
    let options = options! {
        emit_comments: false,
        emit_unresolved_aliases: true,
        flow_nesting_limit: MAX_DEPTH,
        block_nesting_limit: MAX_DEPTH,
    };
    let yaml = text.get(bom..).unwrap_or_default();
    let mut reader = Reader { text, bom, events: Parser::new_from_str_with_options(yaml, options), depth: 0 };
    reader.document()
}

struct Reader<'a> {
    text: &'a str,
    bom: usize,
    events: Parser<'a, StrInput<'a>>,
    depth: usize,
}

impl<'a> Reader<'a> {
    fn next(&mut self) -> Result<(Event<'a>, Span), Fault> {
        match self.events.next() {
            Some(Ok(event)) => Ok(event),
            Some(Err(error)) => Err(Fault { line: error.marker().line(), reason: error.info().clone() }),
            None => Err(Fault::at(self.text, self.text.len(), "the document has no end")),
        }
    }

    fn document(&mut self) -> Result<Option<Node>, Fault> {
        loop {
            match self.next()? {
                (Event::StreamStart, _) => {}
                (Event::DocumentStart(..), _) => break,
                _ => return Ok(None),
            }
        }
        let event = self.next()?;
        let is_nothing = matches!(&event.0, Event::Scalar(_, ScalarStyle::Plain, ..)) && event.1.is_empty();
        let root = self.node(event, 0)?;
        loop {
            match self.next()? {
                (Event::DocumentEnd, _) => {}
                (Event::StreamEnd, _) => return Ok((!is_nothing).then_some(root)),
                (_, span) => {
                    let reason = "the file holds several documents".to_owned();
                    return Err(Fault { line: span.start.line(), reason });
                }
            }
        }
    }

    fn range(&self, span: Span) -> (usize, usize) {
        let range = span.byte_range().unwrap_or(0..0);
        (range.start + self.bom, range.end + self.bom)
    }

    /// Reads the value that begins with an event. One that is not written has the place `absent`.
    fn node(&mut self, (event, span): (Event<'a>, Span), absent: usize) -> Result<Node, Fault> {
        let (start, mut end) = self.range(span);
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(Fault::at(self.text, start, "the values are nested too deeply"));
        }
        let content = match event {
            Event::Scalar(_, ScalarStyle::Plain, ..) if start == end => {
                self.depth -= 1;
                let content = Content::Literal(String::new());
                return Ok(Node { start: absent, end: absent, content });
            }
            Event::Scalar(text, ScalarStyle::Plain, ..) if is_literal(&text) => {
                Content::Literal(text.into_owned())
            }
            Event::Scalar(text, ..) => {
                // The place of a block of text ends with the line break behind it.
                end = start + self.text.get(start..end).unwrap_or_default().trim_end().len();
                Content::Text(text.into_owned())
            }
            Event::SequenceStart(..) => self.sequence(start, &mut end)?,
            Event::MappingStart(..) => self.mapping(start, &mut end)?,
            Event::Alias(_) | Event::UnresolvedAlias(_) => {
                Content::Literal(self.text.get(start..end).unwrap_or_default().to_owned())
            }
            _ => return Err(Fault::at(self.text, start, "a value is expected here")),
        };
        self.depth -= 1;
        Ok(Node { start, end, content })
    }

    fn sequence(&mut self, start: usize, end: &mut usize) -> Result<Content, Fault> {
        let mut nodes: Vec<Node> = Vec::new();
        loop {
            let event = self.next()?;
            if matches!(event.0, Event::SequenceEnd) {
                let last = nodes.last().map(|last| last.end);
                *end = self.end_of(event.1, start, last);
                return Ok(Content::List(nodes));
            }
            let absent = nodes.last().map_or(start, |last| last.end);
            nodes.push(self.node(event, absent)?);
        }
    }

    fn mapping(&mut self, start: usize, end: &mut usize) -> Result<Content, Fault> {
        let mut members: Vec<Member> = Vec::new();
        loop {
            let event = self.next()?;
            if matches!(event.0, Event::MappingEnd) {
                let last = members.last().map(|last| last.value.end);
                *end = self.end_of(event.1, start, last);
                return Ok(Content::Map(members));
            }
            let key = self.node(event, start)?;
            let event = self.next()?;
            let rest = self.text.get(key.end..).unwrap_or_default();
            let colon = key.end + rest.find(':').map_or(0, |at| at + 1);
            let value = self.node(event, colon)?;
            let name = match key.content {
                Content::Text(text) | Content::Literal(text) => text,
                // A key that is a collection is no name.
                Content::List(_) | Content::Map(_) => String::new(),
            };
            members.push(Member { key: name, start: key.start, key_end: colon, value, comma: None });
        }
    }

    /// Returns the end of a collection: of its bracket, or of its last value.
    fn end_of(&self, span: Span, start: usize, last: Option<usize>) -> usize {
        if is_flow(self.text, start) { self.range(span).1 } else { last.unwrap_or(start) }
    }
}

fn is_flow(text: &str, start: usize) -> bool {
    matches!(text.as_bytes().get(start), Some(b'{' | b'['))
}

/// Returns whether an unquoted text is something other than a text.
fn is_literal(text: &str) -> bool {
    let words =
        ["~", "null", "true", "false", "yes", "no", "on", "off", "y", "n", ".nan", ".inf", "-.inf", "+.inf"];
    words.iter().any(|word| text.eq_ignore_ascii_case(word)) || is_number(text)
}

fn is_number(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_digit() || matches!(c, '+' | '-' | '.'))
        && text.contains(|c: char| c.is_ascii_digit())
        && text.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.' | '_' | ':'))
}

/// Puts `entry` under `name` into the mapping `container`, which is created where it is missing.
pub(super) fn insert(text: &str, container: &str, (name, entry): (&str, &Data)) -> Result<String, Fault> {
    let text = remove(text, container, name)?.unwrap_or_else(|| text.to_owned());
    let text = text.as_str();
    let layout = Layout::of(text);
    let end = layout.line_end;
    let member = |indent: &str| lines(name, entry, indent, &layout).join(end);
    let Some(root) = parse(text)? else {
        let gap = if text.is_empty() || text.ends_with('\n') || text == "\u{feff}" { "" } else { end };
        return Ok(format!("{text}{gap}{container}:{end}{}{end}", member(&layout.unit)));
    };
    let members = root.members(text, "the file")?;
    if is_flow(text, root.start) {
        return Err(Fault::at(
            text,
            root.start,
            "the file is written in braces; it must be changed manually",
        ));
    }
    let Some(at) = position(members, container, text)? else {
        let at = line_end(text, root.end);
        let indent = indent_at(text, root.start);
        let block = format!("{end}{indent}{container}:{end}{}", member(&format!("{indent}{}", layout.unit)));
        return Ok(apply(text, vec![(at..at, block)]));
    };
    let (owner, value) = (&members[at], &members[at].value);
    let inner = || format!("{}{}", indent_at(text, owner.start), layout.unit);
    let edit = match &value.content {
        Content::Literal(nothing) if nothing.is_empty() => {
            let at = line_end(text, owner.key_end);
            (at..at, format!("{end}{}", member(&inner())))
        }
        _ if is_empty_map(value) => {
            let start = owner.key_end;
            (start..value.end, format!("{end}{}", member(&inner())))
        }
        Content::Map(_) if is_flow(text, value.start) => {
            let at = value.end - 1;
            (at..at, format!(", {}: {}", quoted(name), on_one_line(entry)))
        }
        Content::Map(children) => {
            let at = line_end(text, value.end);
            let indent = children.first().map_or("", |first| indent_at(text, first.start));
            (at..at, format!("{end}{}", member(indent)))
        }
        _ => return Err(Fault::at(text, value.start, format!("`{container}` is not a mapping"))),
    };
    Ok(apply(text, vec![edit]))
}

/// Removes the member `name` from the mapping `container`.
pub(super) fn remove(text: &str, container: &str, name: &str) -> Result<Option<String>, Fault> {
    let Some(root) = parse(text)? else { return Ok(None) };
    let members = root.members(text, "the file")?;
    let Some(at) = position(members, container, text)? else { return Ok(None) };
    let owner = &members[at];
    let Content::Map(children) = &owner.value.content else { return Ok(None) };
    let Some(at) = position(children, name, text)? else { return Ok(None) };
    let child = &children[at];
    let Some(start) = break_before(text, child.start).filter(|_| !is_flow(text, owner.value.start)) else {
        return Err(Fault::at(
            text,
            child.start,
            format!("`{name}` is written in braces; it must be changed manually"),
        ));
    };
    let mut edits = vec![(start..line_end(text, child.value.end), String::new())];
    if children.len() == 1 {
        edits.push((owner.key_end..owner.key_end, " {}".to_owned()));
    }
    Ok(Some(apply(text, edits)))
}

/// Writes a member, one line for each value.
fn lines(name: &str, entry: &Data, indent: &str, layout: &Layout) -> Vec<String> {
    let head = format!("{indent}{}:", scalar(name));
    let Data::Map(members) = entry else { return vec![format!("{head} {}", written(entry))] };
    let inner = format!("{indent}{}", layout.unit);
    let members = members.iter().map(|(key, value)| format!("{inner}{}: {}", scalar(key), written(value)));
    [head].into_iter().chain(members).collect()
}

fn written(value: &Data) -> String {
    match value {
        Data::Text(text) => scalar(text),
        other => on_one_line(other),
    }
}

/// Writes a text, with quotes unless it is plain beyond doubt.
fn scalar(text: &str) -> String {
    let is_plain = text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '/')
        && text.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | '/'))
        && !is_literal(text);
    if is_plain { text.to_owned() } else { quoted(text) }
}
