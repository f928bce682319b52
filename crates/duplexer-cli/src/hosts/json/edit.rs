//! Adds, replaces and removes one member of an object in JSON text. Every other byte stays.

use super::super::data::{
    Content, Data, Edit, Fault, Layout, Member, Node, apply, break_before, indent_at, position, quoted,
};
use super::{Dialect, parse};

/// Puts `entry` under `name` into the object at the path, which is created where it is missing.
pub(in super::super) fn insert(
    text: &str,
    dialect: Dialect,
    path: &[&str],
    (name, entry): (&str, &Data),
) -> Result<String, Fault> {
    let layout = Layout::of(text);
    let Some(root) = parse(text, dialect)? else { return Ok(fresh(text, path, name, entry, &layout)) };
    let mut object = &root;
    let mut what = "the file".to_owned();
    for (depth, key) in path.iter().enumerate() {
        let members = object.members(text, &what)?;
        let Some(at) = position(members, key, text)? else {
            let missing = nested(&path[depth + 1..], name, entry);
            return Ok(apply(text, added(text, object, members, (key, &missing), &layout)));
        };
        object = &members[at].value;
        what = format!("`{key}`");
    }
    let members = object.members(text, &what)?;
    let edits = match position(members, name, text)? {
        Some(at) => {
            let (member, value) = (&members[at], &members[at].value);
            vec![(value.start..value.end, written(entry, indent_at(text, member.start), &layout))]
        }
        None => added(text, object, members, (name, entry), &layout),
    };
    Ok(apply(text, edits))
}

/// Removes the member `name` from the object at the path.
pub(in super::super) fn remove(
    text: &str,
    dialect: Dialect,
    path: &[&str],
    name: &str,
) -> Result<Option<String>, Fault> {
    let Some(root) = parse(text, dialect)? else { return Ok(None) };
    let mut object = &root;
    let mut what = "the file".to_owned();
    for key in path {
        let members = object.members(text, &what)?;
        let Some(at) = position(members, key, text)? else { return Ok(None) };
        object = &members[at].value;
        what = format!("`{key}`");
    }
    let members = object.members(text, &what)?;
    Ok(position(members, name, text)?.map(|at| apply(text, removed(text, object, members, at))))
}

/// Returns the text of a file that had no value.
fn fresh(text: &str, path: &[&str], name: &str, entry: &Data, layout: &Layout) -> String {
    let bom = if text.starts_with('\u{feff}') { "\u{feff}" } else { "" };
    let rest = text.trim_start_matches('\u{feff}').trim_end();
    let gap = if rest.is_empty() { "" } else { layout.line_end };
    let root = written(&nested(path, name, entry), "", layout);
    format!("{bom}{rest}{gap}{root}{}", layout.line_end)
}

/// Returns the objects of a path with the entry in the last one.
fn nested(path: &[&str], name: &str, entry: &Data) -> Data {
    let inner = Data::Map(vec![(name.to_owned(), entry.clone())]);
    path.iter().rev().fold(inner, |inner, key| Data::Map(vec![((*key).to_owned(), inner)]))
}

/// Adds a member behind the last one, in the way that the object is written.
fn added(
    text: &str,
    object: &Node,
    members: &[Member],
    (key, value): (&str, &Data),
    layout: &Layout,
) -> Vec<Edit> {
    let insertion = |at: usize, new: String| (at..at, new);
    let Some(last) = members.last() else { return vec![into_empty(text, object, (key, value), layout)] };
    let first = members.first().map_or(object.start, |first| first.start);
    let is_one_line = !text.get(object.start..first).unwrap_or_default().contains('\n');
    if is_one_line {
        let member = format!(" {}: {}", quoted(key), on_one_line(value));
        return vec![match last.comma {
            Some(comma) => insertion(comma + 1, format!("{member},")),
            None => insertion(last.value.end, format!(",{member}")),
        }];
    }
    let indent = indent_at(text, last.start);
    let member = format!("{}{indent}{}: {}", layout.line_end, quoted(key), written(value, indent, layout));
    match last.comma {
        Some(comma) => vec![insertion(after_comments(text, comma + 1), format!("{member},"))],
        None => vec![
            insertion(last.value.end, ",".to_owned()),
            insertion(after_comments(text, last.value.end), member),
        ],
    }
}

/// Adds the first member of an object, behind the comments in it.
fn into_empty(text: &str, object: &Node, (key, value): (&str, &Data), layout: &Layout) -> Edit {
    let inside = object.start + 1..object.end - 1;
    let outer = indent_at(text, object.start);
    let indent = format!("{outer}{}", layout.unit);
    let end = layout.line_end;
    let member = format!("{end}{indent}{}: {}", quoted(key), written(value, &indent, layout));
    let comments = text.get(inside.clone()).unwrap_or_default().trim_end();
    if comments.is_empty() {
        return (inside, format!("{member}{end}{outer}"));
    }
    let at = inside.start + comments.len();
    (at..at, member)
}

fn removed(text: &str, object: &Node, members: &[Member], at: usize) -> Vec<Edit> {
    let member = &members[at];
    let end = member.comma.map_or(member.value.end, |comma| comma + 1);
    let nothing = String::new;
    if members.len() == 1 {
        let before = text.get(object.start + 1..member.start).unwrap_or_default();
        let after = text.get(end..object.end - 1).unwrap_or_default();
        if before.trim().is_empty() && after.trim().is_empty() {
            return vec![(object.start + 1..object.end - 1, nothing())];
        }
    }
    let own_line = break_before(text, member.start);
    let previous = at.checked_sub(1).and_then(|before| members.get(before));
    let is_last = at + 1 == members.len();
    let mut edits = Vec::new();
    if is_last
        && member.comma.is_none()
        && let Some(comma) = previous.and_then(|previous| previous.comma)
    {
        edits.push((comma..comma + 1, nothing()));
    }
    let range = match own_line {
        Some(start) => start..after_comments(text, end),
        None if is_last => previous.and_then(|one| one.comma).map_or(member.start, |comma| comma + 1)..end,
        None => member.start..members.get(at + 1).map_or(end, |next| next.start),
    };
    edits.push((range, nothing()));
    edits
}

/// Returns the end of the comments behind a position in its line; without any, the position.
fn after_comments(text: &str, position: usize) -> usize {
    let mut end = position;
    loop {
        let rest = text.get(end..).unwrap_or_default();
        let comment = rest.trim_start_matches([' ', '\t']);
        let blanks = rest.len() - comment.len();
        let length = if comment.starts_with("//") {
            comment.find('\n').unwrap_or(comment.len())
        } else if comment.starts_with("/*") {
            match comment.find("*/") {
                Some(length) if !comment[..length].contains('\n') => length + 2,
                _ => return end,
            }
        } else {
            return end;
        };
        let is_crlf = comment.get(..length).is_some_and(|comment| comment.ends_with('\r'));
        end += blanks + length - usize::from(is_crlf);
    }
}

/// Writes a value whose first line is already indented.
fn written(value: &Data, indent: &str, layout: &Layout) -> String {
    let members = match value {
        Data::Map(members) if !members.is_empty() => members,
        other => return on_one_line(other),
    };
    let (end, inner) = (layout.line_end, format!("{indent}{}", layout.unit));
    let lines: Vec<_> = members
        .iter()
        .map(|(key, value)| format!("{end}{inner}{}: {}", quoted(key), written(value, &inner, layout)))
        .collect();
    format!("{{{}{end}{indent}}}", lines.join(","))
}

/// Writes a value on one line. YAML reads it too.
pub(in super::super) fn on_one_line(value: &Data) -> String {
    match value {
        Data::Text(text) => quoted(text),
        Data::Literal(text) => text.clone(),
        Data::List(values) => {
            format!("[{}]", values.iter().map(on_one_line).collect::<Vec<_>>().join(", "))
        }
        Data::Map(members) if members.is_empty() => "{}".to_owned(),
        Data::Map(members) => {
            let members =
                members.iter().map(|(key, value)| format!("{}: {}", quoted(key), on_one_line(value)));
            format!("{{ {} }}", members.collect::<Vec<_>>().join(", "))
        }
    }
}

/// Returns whether a node is a map without members.
pub(in super::super) fn is_empty_map(node: &Node) -> bool {
    matches!(&node.content, Content::Map(members) if members.is_empty())
}
