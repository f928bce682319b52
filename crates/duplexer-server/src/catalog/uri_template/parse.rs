//! Parses templates and rejects those that cannot be matched unambiguously.

use super::{Atom, UriTemplate, Variable};

/// Fault of a template.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{reason} (at byte {at} of '{template}')")]
pub(crate) struct TemplateError {
    pub(crate) template: String,
    pub(crate) at: usize,
    pub(crate) reason: String,
}

/// A literal, or an expression in braces.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Piece {
    Literal(String),
    Expression { operator: Option<char>, names: Vec<(String, bool)> },
}

impl UriTemplate {
    pub(crate) fn parse(text: &str) -> Result<Self, TemplateError> {
        let fail = |at, reason: String| TemplateError { template: text.to_owned(), at, reason };
        let pieces = pieces(text).map_err(|(at, reason)| fail(at, reason))?;
        check(&pieces).map_err(|(at, reason)| fail(at, reason))?;
        let pieces: Vec<Piece> = pieces.into_iter().map(|(_, piece)| piece).collect();
        let lenient = query_start(&pieces);
        let mut atoms = Vec::new();
        for piece in pieces.iter().take(lenient.unwrap_or(pieces.len())) {
            flatten(piece, &mut atoms);
        }
        let mut query = Vec::new();
        for piece in pieces.iter().skip(lenient.unwrap_or(pieces.len())) {
            if let Piece::Expression { names, .. } = piece {
                query.extend(names.iter().map(|(name, _)| name.clone()));
            }
        }
        Ok(Self { text: text.to_owned(), atoms, query, expressions: pieces })
    }
}

type Fault = (usize, String);

fn pieces(text: &str) -> Result<Vec<(usize, Piece)>, Fault> {
    let mut pieces = Vec::new();
    let mut at = 0;
    while let Some(rest) = text.get(at..).filter(|rest| !rest.is_empty()) {
        if let Some(inner) = rest.strip_prefix('{') {
            let end = inner.find('}').ok_or_else(|| (at, "this '{' is never closed".to_owned()))?;
            let inner = inner.get(..end).unwrap_or_default();
            pieces.push((at, expression(inner).map_err(|reason| (at, reason))?));
            at += end + 2;
        } else {
            let end = rest.find('{').unwrap_or(rest.len());
            let literal = rest.get(..end).unwrap_or_default();
            if let Some(stray) = literal.find('}') {
                return Err((at + stray, "this '}' closes nothing".to_owned()));
            }
            pieces.push((at, Piece::Literal(literal.to_owned())));
            at += end;
        }
    }
    Ok(pieces)
}

fn expression(text: &str) -> Result<Piece, String> {
    let operator = text.chars().next().filter(|first| "+#./;?&".contains(*first));
    let list = if operator.is_some() { text.get(1..).unwrap_or_default() } else { text };
    let mut names = Vec::new();
    for name in list.split(',') {
        if name.contains(':') {
            return Err(format!("'{{{text}}}' cuts its value off (':'), which cannot be matched"));
        }
        let (name, explode) = name.strip_suffix('*').map_or((name, false), |name| (name, true));
        let valid = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '.';
        if name.is_empty() || !name.chars().all(valid) || name.starts_with('.') {
            return Err(format!("'{name}' is not the name of a variable"));
        }
        if explode && !matches!(operator, Some('/' | '.' | ';')) {
            return Err(format!("'{{{text}}}': only '/', '.' and ';' take lists ('*')"));
        }
        names.push((name.to_owned(), explode));
    }
    Ok(Piece::Expression { operator, names })
}

fn check(pieces: &[(usize, Piece)]) -> Result<(), Fault> {
    let mut seen: Vec<&str> = Vec::new();
    let (mut spanning, mut queries, mut after_variable) = (0, 0, false);
    for (at, piece) in pieces {
        let Piece::Expression { operator, names } = piece else {
            after_variable = false;
            continue;
        };
        if after_variable && matches!(operator, None | Some('+')) {
            return Err((*at, "two variables need something between them".to_owned()));
        }
        after_variable = true;
        queries += usize::from(*operator == Some('?'));
        for (name, explode) in names {
            if seen.contains(&name.as_str()) {
                return Err((*at, format!("'{name}' occurs twice")));
            }
            seen.push(name);
            spanning += usize::from(spans(*operator, *explode));
        }
        if queries > 1 {
            return Err((*at, "there can be only one '{?..}'".to_owned()));
        }
        if spanning > 1 {
            return Err((*at, "only one variable may span several segments".to_owned()));
        }
    }
    Ok(())
}

fn spans(operator: Option<char>, explode: bool) -> bool {
    explode || matches!(operator, Some('+' | '#'))
}

/// Returns where a lenient query at the end begins. There is none if the path itself has a query or fragment.
fn query_start(pieces: &[Piece]) -> Option<usize> {
    let is_query = |piece: &Piece| matches!(piece, Piece::Expression { operator: Some('?' | '&'), .. });
    let start = pieces.iter().rposition(|piece| !is_query(piece)).map_or(0, |last| last + 1);
    let path = pieces.get(..start)?;
    let opens = matches!(pieces.get(start), Some(Piece::Expression { operator: Some('?'), .. }));
    let plain = path.iter().all(|piece| match piece {
        Piece::Literal(literal) => !literal.contains(['?', '#']),
        Piece::Expression { operator, .. } => !matches!(operator, Some('?' | '#' | '&')),
    });
    (opens && plain).then_some(start)
}

fn flatten(piece: &Piece, atoms: &mut Vec<Atom>) {
    let (operator, names) = match piece {
        Piece::Literal(literal) => return literal_atom(atoms, literal),
        Piece::Expression { operator, names } => (*operator, names),
    };
    let stops = match operator {
        None => "/?#&,",
        Some('+') => "?#",
        Some('#') => "",
        Some('.') => "./?#",
        Some(';') => ";/?#",
        Some('/') => "/?#",
        Some(_) => "&#",
    };
    for (place, (name, explode)) in names.iter().enumerate() {
        let mut variable = Variable {
            name: name.clone(),
            stops,
            list: None,
            spans: spans(operator, *explode),
            named: operator == Some(';') && !explode,
        };
        match operator {
            Some(separator @ ('/' | '.' | ';')) if *explode => variable.list = Some(separator),
            Some(prefix @ ('/' | '.')) => literal_atom(atoms, &prefix.to_string()),
            Some(';') => {}
            Some(prefix @ ('?' | '&')) => {
                let prefix = if place > 0 { '&' } else { prefix };
                literal_atom(atoms, &format!("{prefix}{name}="));
            }
            Some('#') if place == 0 => literal_atom(atoms, "#"),
            None | Some(_) if place > 0 => literal_atom(atoms, ","),
            None | Some(_) => {}
        }
        atoms.push(Atom::Variable(variable));
    }
}

/// Appends a literal; adjacent literals are merged.
fn literal_atom(atoms: &mut Vec<Atom>, text: &str) {
    match atoms.last_mut() {
        Some(Atom::Literal(last)) => last.push_str(text),
        _ => atoms.push(Atom::Literal(text.to_owned())),
    }
}
