//! Tables of TOML: one is added at the end of the file, or removed with its lines. Every other byte stays.

use toml::{Table, Value};

use super::data::{Data, Fault, Layout, apply, break_before, line_end, line_start, quoted};

/// Parses a text.
pub(super) fn parse(text: &str) -> Result<Data, Fault> {
    let bom = text.len() - text.trim_start_matches('\u{feff}').len();
    let table: Table = text.get(bom..).unwrap_or_default().parse().map_err(|error: toml::de::Error| {
        let at = error.span().map_or(0, |span| span.start) + bom;
        Fault::at(text, at, error.message())
    })?;
    Ok(data_of(Value::Table(table)))
}

fn data_of(value: Value) -> Data {
    match value {
        Value::String(text) => Data::Text(text),
        Value::Array(values) => Data::List(values.into_iter().map(data_of).collect()),
        Value::Table(table) => {
            Data::Map(table.into_iter().map(|(key, value)| (key, data_of(value))).collect())
        }
        Value::Integer(number) => Data::Literal(number.to_string()),
        Value::Float(number) => Data::Literal(format!("{number:?}")),
        Value::Boolean(value) => Data::Literal(value.to_string()),
        Value::Datetime(time) => Data::Literal(time.to_string()),
    }
}

/// Puts the table `name` into the one at the path. An earlier one is removed first.
pub(super) fn insert(text: &str, path: &[&str], (name, entry): (&str, &Data)) -> Result<String, Fault> {
    let text = remove(text, path, name)?.unwrap_or_else(|| text.to_owned());
    let layout = Layout::of(&text);
    let end = layout.line_end;
    let header: Vec<_> = path.iter().copied().chain([name]).map(key).collect();
    let mut table = format!("[{}]{end}", header.join("."));
    for (member, value) in entry.members() {
        table.extend([&*key(member), " = ", &*written(value), end]);
    }
    let before = text.trim_start_matches('\u{feff}');
    let gap = if before.trim().is_empty() {
        String::new()
    } else if !before.ends_with('\n') {
        end.repeat(2)
    } else if before.ends_with("\n\n") || before.ends_with("\n\r\n") {
        String::new()
    } else {
        end.to_owned()
    };
    Ok(format!("{text}{gap}{table}"))
}

/// Removes the table `name` with its own tables from the one at the path.
pub(super) fn remove(text: &str, path: &[&str], name: &str) -> Result<Option<String>, Fault> {
    let data = parse(text)?;
    let container = path.iter().try_fold(&data, |data, key| data.member(&[key]));
    if container.and_then(|container| container.member(&[name])).is_none() {
        return Ok(None);
    }
    let wanted: Vec<_> = path.iter().copied().chain([name]).collect();
    let sections = sections(text);
    let mut edits = Vec::new();
    for (index, section) in sections.iter().enumerate() {
        if !section.path.iter().map(String::as_str).take(wanted.len()).eq(wanted.iter().copied()) {
            continue;
        }
        let next = sections.get(index + 1).map_or(text.len(), |next| next.start);
        edits.push((range_of(text, section, next), String::new()));
    }
    if edits.is_empty() {
        let at = text.find(name).unwrap_or_default();
        let reason = format!("`{name}` is not a table with a header of its own; it must be changed manually");
        return Err(Fault::at(text, at, reason));
    }
    Ok(Some(apply(text, edits)))
}

/// A table with its header.
struct Section {
    path: Vec<String>,
    start: usize,
    /// The end of its last line with content.
    end: usize,
}

/// Returns the part of the text that goes with a section: its lines, and one empty line that set it off.
fn range_of(text: &str, section: &Section, next: usize) -> std::ops::Range<usize> {
    let rest = text.get(section.end..).unwrap_or_default();
    let end = section.end + if rest.starts_with("\r\n") { 2 } else { usize::from(rest.starts_with('\n')) };
    let is_set_off = text.get(end..next).is_some_and(|after| after.trim().is_empty() && next == text.len())
        || text.get(end..).is_some_and(|after| after.starts_with('\n') || after.starts_with("\r\n"));
    let before = break_before(text, section.start).map(|at| line_start(text, at));
    match before {
        Some(line)
            if is_set_off && text.get(line..section.start).is_some_and(|line| line.trim().is_empty()) =>
        {
            line..end
        }
        _ => section.start..end,
    }
}

/// Finds the headers of a valid text.
fn sections(text: &str) -> Vec<Section> {
    let mut sections: Vec<Section> = Vec::new();
    let mut at = text.len() - text.trim_start_matches('\u{feff}').len();
    while at < text.len() {
        let line = text.get(at..).unwrap_or_default();
        let content = line.trim_start_matches([' ', '\t']);
        let start = at;
        at += line.len() - content.len();
        let end = statement_end(text, at);
        let is_content = !matches!(content.as_bytes().first(), None | Some(b'#' | b'\r' | b'\n'));
        if content.starts_with('[') {
            let path = path_of(text.get(at..end).unwrap_or_default());
            sections.push(Section { path, start, end });
        } else if is_content && let Some(section) = sections.last_mut() {
            section.end = end;
        }
        at = line_end(text, end);
        at += if text.get(at..).is_some_and(|rest| rest.starts_with("\r\n")) { 2 } else { 1 };
    }
    sections
}

/// Returns the keys of a header.
fn path_of(header: &str) -> Vec<String> {
    let mut path = Vec::new();
    let mut value = header.parse::<Table>().ok().map(Value::Table);
    loop {
        value = match value {
            Some(Value::Table(table)) => table.into_iter().next().map(|(key, value)| {
                path.push(key);
                value
            }),
            Some(Value::Array(values)) => values.into_iter().next(),
            _ => return path,
        };
    }
}

/// Returns the end of the line in which the statement at a position ends: one with brackets or a long text has several lines.
fn statement_end(text: &str, start: usize) -> usize {
    let bytes = text.as_bytes();
    let (mut at, mut depth) = (start, 0_usize);
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'\n' if depth == 0 => break,
            b'#' => at = line_end(text, at).max(at + 1) - 1,
            b'[' | b'{' => depth += 1,
            b']' | b'}' => depth = depth.saturating_sub(1),
            b'"' | b'\'' => at = string_end(text, at),
            _ => {}
        }
        at += 1;
    }
    let at = at.min(text.len());
    if at > start && bytes.get(at - 1) == Some(&b'\r') { at - 1 } else { at }
}

/// Returns the place of the last quote of a text.
fn string_end(text: &str, start: usize) -> usize {
    let bytes = text.as_bytes();
    let quote = bytes.get(start).copied().unwrap_or(b'"');
    let is_long = bytes.get(start..start + 3).is_some_and(|three| three.iter().all(|byte| *byte == quote));
    let mut at = start + if is_long { 3 } else { 1 };
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'\\' if quote == b'"' => at += 1,
            byte if *byte == quote && !is_long => return at,
            byte if *byte == quote && bytes.get(at..at + 3) == Some(&[quote; 3]) => {
                // Two more quotes can belong to the text.
                let more = bytes.iter().skip(at + 3).take(2).take_while(|byte| **byte == quote).count();
                return at + 2 + more;
            }
            _ => {}
        }
        at += 1;
    }
    text.len()
}

/// Writes a key, with quotes if it needs them.
fn key(key: &str) -> String {
    let is_bare = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    if !key.is_empty() && key.chars().all(is_bare) { key.to_owned() } else { quoted(key) }
}

/// Writes a value on one line.
fn written(value: &Data) -> String {
    match value {
        Data::Text(text) => quoted(text),
        Data::Literal(text) => text.clone(),
        Data::List(values) => format!("[{}]", values.iter().map(written).collect::<Vec<_>>().join(", ")),
        Data::Map(members) if members.is_empty() => "{}".to_owned(),
        Data::Map(members) => {
            let members = members.iter().map(|(name, value)| format!("{} = {}", key(name), written(value)));
            format!("{{ {} }}", members.collect::<Vec<_>>().join(", "))
        }
    }
}
