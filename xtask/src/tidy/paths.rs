//! Finds the paths in code (`crate::a::b`, `use x::{y, z}`) and resolves them.
//!
//! `self`, `super` and `crate` are resolved by the position of the file in the tree. A name that a crate root re-exports
//! is resolved to its module. Glob imports are not resolved.

use std::collections::BTreeMap;

use super::scan::is_word;
use super::tree::{Source, Tree};

/// A path with expanded groups, and the line of its last segment.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct PathUse {
    pub(crate) line: usize,
    pub(crate) segments: Vec<String>,
    /// Inline modules around the path.
    pub(crate) inside: Vec<String>,
}

#[derive(Debug, PartialEq, Eq)]
enum Token {
    Word(String),
    Separator,
    Mark(char),
}

/// Returns every path of a source, in production code and tests.
pub(crate) fn paths(code: &[String]) -> Vec<PathUse> {
    let tokens = tokens(code);
    let mut reader = Reader { tokens: &tokens, at: 0, braces: Vec::new(), found: Vec::new() };
    while let Some(token) = reader.token() {
        match token {
            Token::Word(word) if word == "mod" => reader.module(),
            Token::Word(_) => reader.path(&[]),
            Token::Mark('{') => reader.open(None),
            Token::Mark('}') => {
                reader.braces.pop();
                reader.at += 1;
            }
            _ => reader.at += 1,
        }
    }
    reader.found
}

fn tokens(code: &[String]) -> Vec<(usize, Token)> {
    let mut tokens = Vec::new();
    for (index, line) in code.iter().enumerate() {
        let mut rest = line.as_str();
        while let Some(first) = rest.chars().next() {
            let length = rest.find(|c| !is_word(c)).unwrap_or(rest.len());
            let (token, width) = if length > 0 {
                (Some(Token::Word(rest[..length].to_owned())), length)
            } else if rest.starts_with("::") {
                (Some(Token::Separator), 2)
            } else {
                ((!first.is_whitespace()).then_some(Token::Mark(first)), first.len_utf8())
            };
            tokens.extend(token.map(|token| (index + 1, token)));
            rest = &rest[width..];
        }
    }
    tokens
}

struct Reader<'a> {
    tokens: &'a [(usize, Token)],
    at: usize,
    /// Open braces, each with the inline module that it opens, if any.
    braces: Vec<Option<String>>,
    found: Vec<PathUse>,
}

impl Reader<'_> {
    fn token(&self) -> Option<&Token> {
        self.tokens.get(self.at).map(|(_, token)| token)
    }

    /// Consumes an opening brace.
    fn open(&mut self, module: Option<String>) {
        self.braces.push(module);
        self.at += 1;
    }

    /// `mod name {` opens an inline module.
    fn module(&mut self) {
        if let Some([(_, Token::Word(name)), (_, Token::Mark('{'))]) =
            self.tokens.get(self.at + 1..self.at + 3)
        {
            self.at += 2;
            self.open(Some(name.clone()));
        } else {
            self.at += 1;
        }
    }

    /// Reads one path, or one branch of a group.
    fn path(&mut self, prefix: &[String]) {
        let mut segments = prefix.to_vec();
        loop {
            match self.token() {
                Some(Token::Word(word)) => segments.push(word.clone()),
                Some(Token::Mark('*')) => segments.push("*".to_owned()),
                Some(Token::Mark('{')) => return self.group(&segments),
                _ => return self.end(segments),
            }
            self.at += 1;
            if self.token() != Some(&Token::Separator) {
                return self.end(segments);
            }
            self.at += 1;
        }
    }

    fn group(&mut self, prefix: &[String]) {
        self.at += 1;
        while let Some(token) = self.token() {
            match token {
                Token::Mark('}') => {
                    self.at += 1;
                    return;
                }
                Token::Word(_) | Token::Mark('*') => self.path(prefix),
                _ => self.at += 1,
            }
        }
    }

    fn end(&mut self, mut segments: Vec<String>) {
        if segments.len() > 1 && segments.last().is_some_and(|last| last == "self") {
            segments.pop();
        }
        let line = self.tokens.get(self.at.saturating_sub(1)).map_or(1, |(line, _)| *line);
        let inside = self.braces.iter().flatten().cloned().collect();
        self.found.push(PathUse { line, segments, inside });
        if self.token() == Some(&Token::Word("as".to_owned())) {
            self.at += 2;
        }
    }
}

/// Names that a crate root re-exports, with their modules.
pub(crate) type Exports = BTreeMap<String, Vec<String>>;

/// Returns the `pub use` names in the `lib.rs` of each crate.
pub(crate) fn exports(tree: &Tree) -> BTreeMap<String, Exports> {
    let mut all = BTreeMap::new();
    for source in tree.sources() {
        let Some((krate, module)) = source.module() else {
            continue;
        };
        if !module.is_empty() {
            continue;
        }
        let modules = declared_modules(source);
        let mut exports = Exports::new();
        for mut found in paths(&source.scan.code) {
            if matches!(found.segments.first().map(String::as_str), Some("crate" | "self")) {
                found.segments.remove(0);
            }
            if found.segments.len() > 1
                && modules.contains(&found.segments[0])
                && let Some(name) = found.segments.last().filter(|name| !modules.contains(name)).cloned()
            {
                exports.entry(name).or_insert(found.segments);
            }
        }
        all.insert(krate, exports);
    }
    all
}

fn declared_modules(source: &Source) -> Vec<String> {
    let names = source.scan.code.iter().filter_map(|line| {
        let (before, name) = line.trim().strip_suffix(';')?.rsplit_once(' ')?;
        before.ends_with("mod").then(|| name.to_owned())
    });
    names.collect()
}

/// Resolves a path to its full name, crate first: `duplexer_core::dispatch::Peer`. `None` for a path that leads out of
/// the workspace or is ambiguous with a local name.
pub(crate) fn resolve(
    source: &Source,
    found: &PathUse,
    exports: &BTreeMap<String, Exports>,
) -> Option<Vec<String>> {
    let (own, mut module) = source.module()?;
    module.extend_from_slice(&found.inside);
    let (first, mut rest) = found.segments.split_first()?;
    let krate = match first.as_str() {
        "crate" => {
            module.clear();
            own
        }
        "self" => own,
        "super" => {
            module.pop();
            while let Some((_, behind)) = rest.split_first().filter(|(next, _)| *next == "super") {
                module.pop();
                rest = behind;
            }
            own
        }
        other if other.starts_with("duplexer_") => {
            module.clear();
            other.to_owned()
        }
        _ => return None,
    };
    module.extend_from_slice(rest);
    if let Some(origin) = module.first().and_then(|name| exports.get(&krate)?.get(name)) {
        module.splice(..1, origin.iter().cloned());
    }
    module.insert(0, krate);
    Some(module)
}

#[cfg(test)]
mod tests {
    use super::{exports, paths, resolve};
    use crate::tidy::scan::Scan;
    use crate::tidy::tree::Tree;

    fn found(source: &str) -> Vec<String> {
        let paths = paths(&Scan::of(source).code);
        paths.iter().filter(|path| path.segments.len() > 1).map(|path| path.segments.join("::")).collect()
    }

    #[test]
    fn groups_are_spelled_out() {
        assert_eq!(
            found("use crate::{a::{self, B as C}, d::*,\n e};"),
            ["crate::a", "crate::a::B", "crate::d::*", "crate::e"]
        );
    }

    #[test]
    fn paths_in_expressions_are_found() {
        assert_eq!(
            found("let x = crate::a::b::<u8>(super::C::D { y: self::z() });"),
            ["crate::a::b", "super::C::D", "self::z"]
        );
    }

    #[test]
    fn a_path_is_reported_on_its_own_line() {
        let paths = paths(&Scan::of("use crate::{\n  a,\n  b,\n};").code);
        let lines: Vec<usize> = paths.iter().filter(|p| p.segments.len() > 1).map(|p| p.line).collect();
        assert_eq!(lines, [2, 3]);
    }

    #[test]
    fn a_path_is_resolved_by_the_place_of_its_file() {
        let tree = Tree::of(&[
            (
                "crates/duplexer-core/src/lib.rs",
                "mod server;\npub mod client;\npub use server::{Server, client, context::Context};",
            ),
            ("crates/duplexer-core/src/server/runner.rs", ""),
        ]);
        let source = tree.sources().find(|source| source.path.ends_with("runner.rs")).expect("in the tree");
        let check = |code: &str, want: Option<&str>| {
            let paths = paths(&Scan::of(code).code);
            let found = paths.iter().find(|path| path.segments.len() > 1).expect("a path");
            let resolved = resolve(source, found, &exports(&tree)).map(|path| path.join("::"));
            assert_eq!(resolved.as_deref(), want, "{code}");
        };
        check("crate::dispatch::Peer", Some("duplexer_core::dispatch::Peer"));
        check("self::x", Some("duplexer_core::server::runner::x"));
        check("super::context::Y", Some("duplexer_core::server::context::Y"));
        check("super::super::client", Some("duplexer_core::client"));
        check("mod a { fn f() {} mod b { super::x } }", Some("duplexer_core::server::runner::a::x"));
        check("mod a {} super::x", Some("duplexer_core::server::x"));
        check("crate::client::Z", Some("duplexer_core::client::Z"));
        check("crate::Server", Some("duplexer_core::server::Server"));
        check("crate::Context", Some("duplexer_core::server::context::Context"));
        check("duplexer_types::methods", Some("duplexer_types::methods"));
        check("std::fmt", None);
    }
}
