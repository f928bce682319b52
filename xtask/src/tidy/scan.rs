//! Splits a Rust source into code, string literals and comments, keeping line numbers.
//!
//! A lexer, not a parser: it distinguishes code, literals and comments, and marks the lines under `#[cfg(test)]`. It
//! does not know macros or types.

/// A text and its first line, counted from 1.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Text {
    pub(crate) line: usize,
    pub(crate) text: String,
}

/// The parts of one source.
#[derive(Debug, Default)]
pub(crate) struct Scan {
    /// The lines of the source without comments and contents of literals.
    pub(crate) code: Vec<String>,
    /// String literals verbatim, without quotes.
    pub(crate) strings: Vec<Text>,
    /// Comments, one entry per line, without the leading slashes.
    pub(crate) comments: Vec<Text>,
    /// Per line, whether it is compiled for tests only.
    pub(crate) test: Vec<bool>,
}

impl Scan {
    pub(crate) fn of(source: &str) -> Self {
        let chars = source.chars().collect();
        let mut lexer = Lexer { chars, at: 0, line: 1, code: String::new(), out: Self::default() };
        lexer.run();
        let Lexer { code, mut out, .. } = lexer;
        out.test = test_lines(&code);
        out.code = code.split('\n').map(str::to_owned).collect();
        out
    }

    pub(crate) fn is_test(&self, line: usize) -> bool {
        line.checked_sub(1).and_then(|index| self.test.get(index)).copied().unwrap_or_default()
    }
}

struct Lexer {
    chars: Vec<char>,
    at: usize,
    line: usize,
    code: String,
    out: Scan,
}

impl Lexer {
    fn run(&mut self) {
        while let Some(here) = self.peek(0) {
            match (here, self.peek(1)) {
                ('/', Some('/')) => self.line_comment(),
                ('/', Some('*')) => self.block_comment(),
                ('"', _) => self.string(),
                ('\'', _) => self.quote(),
                _ if self.raw_hashes().is_some() => self.raw_string(),
                _ => self.keep(),
            }
        }
    }

    fn peek(&self, ahead: usize) -> Option<char> {
        self.chars.get(self.at + ahead).copied()
    }

    fn keep(&mut self) {
        if self.skip().is_some_and(|here| here != '\n') {
            self.code.push(self.chars[self.at - 1]);
        }
    }

    /// Skips a character that is not code. Keeps line ends, so that lines keep their numbers.
    fn skip(&mut self) -> Option<char> {
        let here = self.peek(0);
        if here == Some('\n') {
            self.code.push('\n');
            self.line += 1;
        }
        self.at += 1;
        here
    }

    fn line_comment(&mut self) {
        let line = self.line;
        self.at += 2;
        let mut text = String::new();
        while self.peek(0).is_some_and(|here| here != '\n') {
            text.extend(self.skip());
        }
        self.out.comments.push(Text { line, text });
    }

    fn block_comment(&mut self) {
        let first = self.line;
        let (mut depth, mut text) = (0_usize, String::new());
        while let Some(here) = self.peek(0) {
            match (here, self.peek(1)) {
                ('/', Some('*')) => depth += 1,
                ('*', Some('/')) => depth -= 1,
                _ => {
                    text.extend(self.skip());
                    continue;
                }
            }
            self.at += 2;
            if depth == 0 {
                break;
            }
        }
        let lines = text.split('\n').enumerate();
        self.out
            .comments
            .extend(lines.map(|(offset, text)| Text { line: first + offset, text: text.to_owned() }));
    }

    fn string(&mut self) {
        let line = self.line;
        let mut text = String::new();
        self.keep();
        while let Some(here) = self.peek(0).filter(|here| *here != '"') {
            text.extend(self.skip());
            if here == '\\' {
                text.extend(self.skip());
            }
        }
        self.keep();
        self.out.strings.push(Text { line, text });
    }

    /// Returns the number of hashes if a raw string begins here (`r"`, `r#"`, likewise `br` and `cr`).
    fn raw_hashes(&self) -> Option<usize> {
        let before = self.at.checked_sub(1).and_then(|index| self.chars.get(index));
        if self.peek(0) != Some('r') || before.is_some_and(|c| is_word(*c) && !matches!(c, 'b' | 'c')) {
            return None;
        }
        let hashes = self.chars[self.at + 1..].iter().take_while(|c| **c == '#').count();
        (self.peek(1 + hashes) == Some('"')).then_some(hashes)
    }

    fn raw_string(&mut self) {
        let line = self.line;
        let hashes = self.raw_hashes().unwrap_or_default();
        self.at += 2 + hashes;
        let mut text = String::new();
        while let Some(here) = self.peek(0) {
            let closing = (1..=hashes).all(|ahead| self.peek(ahead) == Some('#'));
            if here == '"' && closing {
                break;
            }
            text.extend(self.skip());
        }
        self.at += 1 + hashes;
        self.code.push_str("\"\"");
        self.out.strings.push(Text { line, text });
    }

    /// Skips a character literal; keeps a lifetime.
    fn quote(&mut self) {
        match (self.peek(1), self.peek(2)) {
            (Some('\\'), _) => {
                self.at += 3;
                while self.skip().is_some_and(|here| here != '\'') {}
            }
            (Some(_), Some('\'')) => self.at += 3,
            _ => self.keep(),
        }
    }
}

pub(crate) fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// Marks the lines of items under `#[cfg(test)]`, from the attribute to the end of the item.
fn test_lines(code: &str) -> Vec<bool> {
    let mut test = vec![code.contains("#![cfg(test)]"); code.split('\n').count()];
    for mark in ["#[cfg(test)]", "#[cfg(all(test,"] {
        for (start, _) in code.match_indices(mark) {
            let end = start + item_length(&code[start..]);
            let first = code[..start].matches('\n').count();
            let last = code[..end].matches('\n').count();
            test[first..=last].fill(true);
        }
    }
    test
}

/// Returns the length of the item that begins here with its attributes, in bytes.
fn item_length(code: &str) -> usize {
    let mut depth = 0_usize;
    for (offset, c) in code.char_indices() {
        match c {
            '{' | '(' | '[' => depth += 1,
            '}' if depth == 1 => return offset + 1,
            '}' | ')' | ']' if depth == 0 => return offset,
            '}' | ')' | ']' => depth -= 1,
            ';' if depth == 0 => return offset + 1,
            _ => {}
        }
    }
    code.len()
}

#[cfg(test)]
mod tests;
