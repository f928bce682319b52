//! Patterns of ECMA-262, translated for the `regex` crate.
//!
//! `regex` has neither look-around nor back-references, and in return takes linear time. A pattern that it cannot
//! express makes the schema unusable: ignoring it would accept values that the author meant to refuse.

use std::fmt::Write as _;
use std::iter::Peekable;
use std::str::Chars;

use regex::{Regex, RegexBuilder};

/// White space and line ends as ECMA-262 defines `\s`.
const SPACE: &str =
    r"\t\n\x0B\x0C\r \u{A0}\u{1680}\u{2000}-\u{200A}\u{2028}\u{2029}\u{202F}\u{205F}\u{3000}\u{FEFF}";
/// Maximum memory that matching one pattern takes for its cache.
const DFA_BYTES: usize = 1 << 19;
const WORD: &str = "0-9A-Za-z_";
const DIGIT: &str = "0-9";

/// Compiles a pattern, or returns the reason why it cannot be used.
pub(crate) fn compile(pattern: &str) -> Result<Regex, String> {
    let unusable = |reason: String| format!("the pattern {pattern:?} cannot be used: {reason}");
    let translated = translate(pattern).map_err(unusable)?;
    let built = RegexBuilder::new(&translated).dfa_size_limit(DFA_BYTES).build();
    built.map_err(|error| {
        let text = error.to_string();
        let reason = text.lines().rfind(|line| !line.trim().is_empty()).unwrap_or_default();
        unusable(reason.trim().trim_start_matches("error: ").to_owned())
    })
}

fn translate(pattern: &str) -> Result<String, String> {
    let mut translation = Translation { rest: pattern.chars().peekable(), out: String::new() };
    while let Some(letter) = translation.rest.next() {
        translation.letter(letter)?;
    }
    Ok(translation.out)
}

/// A part of a character class.
#[derive(Clone, Copy)]
enum Atom {
    Character,
    Set,
}

struct Translation<'a> {
    rest: Peekable<Chars<'a>>,
    out: String,
}

impl Translation<'_> {
    fn letter(&mut self, letter: char) -> Result<(), String> {
        match letter {
            '\\' => return self.escape(),
            '[' => return self.class(),
            '(' => return self.group(),
            '.' => self.out.push_str(r"[^\n\r\u{2028}\u{2029}]"),
            '{' if !self.is_quantifier() => self.out.push_str(r"\{"),
            ']' => self.out.push_str(r"\]"),
            other => self.out.push(other),
        }
        Ok(())
    }

    /// Whether what follows `{` is a count: `3}`, `3,}` or `3,5}`. Anything else is a plain brace.
    fn is_quantifier(&self) -> bool {
        let mut rest = self.rest.clone();
        let mut digits = 0;
        let mut commas = 0;
        loop {
            match rest.next() {
                Some(letter) if letter.is_ascii_digit() => digits += usize::from(commas == 0),
                Some(',') => commas += 1,
                Some('}') => return digits > 0 && commas <= 1,
                _ => return false,
            }
        }
    }

    fn group(&mut self) -> Result<(), String> {
        self.out.push('(');
        let mut rest = self.rest.clone();
        if rest.next() != Some('?') {
            return Ok(());
        }
        match (rest.next(), rest.next()) {
            (Some('=' | '!'), _) | (Some('<'), Some('=' | '!')) => {
                Err("it looks ahead or behind, which takes unbounded time; write it without".to_owned())
            }
            _ => Ok(()),
        }
    }

    fn escape(&mut self) -> Result<(), String> {
        let Some(letter) = self.rest.next() else { return Err("it ends in a backslash".to_owned()) };
        match letter {
            'd' => self.set("[", DIGIT),
            'D' => self.set("[^", DIGIT),
            'w' => self.set("[", WORD),
            'W' => self.set("[^", WORD),
            's' => self.set("[", SPACE),
            'S' => self.set("[^", SPACE),
            'b' => self.out.push_str(r"(?-u:\b)"),
            'B' => self.out.push_str(r"\B"),
            'k' | '1'..='9' => {
                return Err(
                    "it refers back to a group, which takes unbounded time; write it without".to_owned()
                );
            }
            other => return self.character(other),
        }
        Ok(())
    }

    fn set(&mut self, open: &str, members: &str) {
        self.out.push_str(open);
        self.out.push_str(members);
        self.out.push(']');
    }

    /// What an escape means both inside a class and outside: a code, a property or the character itself.
    fn character(&mut self, letter: char) -> Result<(), String> {
        match letter {
            't' | 'n' | 'r' => self.out.extend(['\\', letter]),
            'v' => self.push_code(0x0B),
            'f' => self.push_code(0x0C),
            '0' => self.push_code(0),
            'c' => match self.rest.next() {
                Some(control) if control.is_ascii_alphabetic() => self.push_code(u32::from(control) % 32),
                _ => return Err(r"`\c` lacks its letter".to_owned()),
            },
            'x' => {
                let code = self.hex(2)?;
                self.push_code(code);
            }
            'u' => {
                let code = self.unicode()?;
                self.push_code(code);
            }
            'p' | 'P' => return self.property(letter),
            other if other.is_ascii_alphanumeric() => {
                return Err(format!(r"there is no escape `\{other}`"));
            }
            other => self.push_literal(other),
        }
        Ok(())
    }

    fn property(&mut self, letter: char) -> Result<(), String> {
        if self.rest.next() != Some('{') {
            return Err(format!(r"`\{letter}` lacks its braces"));
        }
        self.out.extend(['\\', letter, '{']);
        for letter in self.rest.by_ref() {
            self.out.push(letter);
            if letter == '}' {
                return Ok(());
            }
        }
        Err("a property has no end".to_owned())
    }

    fn unicode(&mut self) -> Result<u32, String> {
        if self.rest.peek() == Some(&'{') {
            self.rest.next();
            let digits: String = self.rest.by_ref().take_while(|letter| *letter != '}').collect();
            return u32::from_str_radix(&digits, 16).map_err(|_| r"`\u{..}` holds no code".to_owned());
        }
        let first = self.hex(4)?;
        let mut ahead = self.rest.clone();
        if !(0xD800..0xDC00).contains(&first) || ahead.next() != Some('\\') || ahead.next() != Some('u') {
            return Ok(first);
        }
        // A character beyond the first plane, as two surrogates.
        self.rest = ahead;
        let second = self.hex(4)?;
        Ok(0x10000 + ((first - 0xD800) << 10) + second.wrapping_sub(0xDC00) % 0x400)
    }

    fn hex(&mut self, digits: usize) -> Result<u32, String> {
        let text: String = self.rest.by_ref().take(digits).collect();
        let is_whole = text.len() == digits && text.chars().all(|digit| digit.is_ascii_hexdigit());
        let code = if is_whole { u32::from_str_radix(&text, 16).ok() } else { None };
        code.ok_or_else(|| format!("an escape needs {digits} hexadecimal digits"))
    }

    /// Inside a class `regex` has set operations that ECMA-262 has not, so everything unusual is escaped.
    fn class(&mut self) -> Result<(), String> {
        let negated = self.rest.next_if_eq(&'^').is_some();
        if self.rest.next_if_eq(&']').is_some() {
            // `[]` matches nothing, `[^]` anything.
            self.out.push_str(if negated { r"[\s\S]" } else { r"[^\s\S]" });
            return Ok(());
        }
        self.out.push_str(if negated { "[^" } else { "[" });
        loop {
            let Some(letter) = self.rest.next() else {
                return Err("a character class has no end".to_owned());
            };
            if letter == ']' {
                self.out.push(']');
                return Ok(());
            }
            let first = self.class_atom(letter)?;
            if self.is_range() {
                self.rest.next();
                let end = self.out.len();
                let second = self.rest.next().map_or(Ok(Atom::Set), |letter| self.class_atom(letter))?;
                // A hyphen beside a set is plain: `[\w-.]`.
                let is_range = matches!((first, second), (Atom::Character, Atom::Character));
                self.out.insert_str(end, if is_range { "-" } else { r"\-" });
            }
        }
    }

    /// Whether a hyphen follows, and something behind it that can end a range.
    fn is_range(&self) -> bool {
        let mut ahead = self.rest.clone();
        ahead.next() == Some('-') && ahead.next().is_some_and(|next| next != ']')
    }

    fn class_atom(&mut self, letter: char) -> Result<Atom, String> {
        if letter != '\\' {
            self.push_literal(letter);
            return Ok(Atom::Character);
        }
        let Some(letter) = self.rest.next() else { return Err("it ends in a backslash".to_owned()) };
        match letter {
            'd' => self.out.push_str(DIGIT),
            'w' => self.out.push_str(WORD),
            's' => self.out.push_str(SPACE),
            'D' => self.set("[^", DIGIT),
            'W' => self.set("[^", WORD),
            'S' => self.set("[^", SPACE),
            'b' => self.push_code(8),
            other => self.character(other)?,
        }
        let is_set = matches!(letter, 'd' | 'D' | 'w' | 'W' | 's' | 'S' | 'p' | 'P');
        Ok(if is_set { Atom::Set } else { Atom::Character })
    }

    fn push_literal(&mut self, letter: char) {
        if letter.is_ascii_punctuation() && letter != '_' {
            self.push_code(u32::from(letter));
        } else {
            self.out.push(letter);
        }
    }

    fn push_code(&mut self, code: u32) {
        // Writing into a string does not fail.
        let _ = write!(self.out, r"\x{{{code:X}}}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_mean_what_ecma_262_says() {
        let check = |pattern: &str, text: &str, expected: bool| {
            let regex = compile(pattern).unwrap_or_else(|error| panic!("{error}"));
            assert_eq!(regex.is_match(text), expected, "{pattern} on {text:?}");
        };
        check("a", "xay", true);
        check(r"^\d$", "߀", false);
        check(r"^\w$", "é", false);
        check(r"^\W$", "é", true);
        check(r"^\s$", "\u{FEFF}", true);
        check(r"^\S$", "\u{2003}", false);
        check("^.$", "\r", false);
        check("^a$", "a\n", false);
        check(r"^[\d.]+$", "1.2", true);
        check(r"^[\w-.]+$", "a-b.c", true);
        check(r"^[-a]+$", "a-", true);
        check(r"^[a-c-]+$", "b-", true);
        check(r"^[[a]+$", "[a", true);
        check(r"^[a&&b]+$", "a&b", true);
        check(r"^[+--]$", ",", true);
        check(r"^[^]$", "\n", true);
        check(r"^[\b]$", "\u{8}", true);
        check(r"\bfoo\b", "a foo b", true);
        check(r"^\cA$", "\u{1}", true);
        check(r"^\u0041\x42\u{43}$", "ABC", true);
        check(r"^\uD83D\uDC32*$", "🐲🐲", true);
        check("^🐲*$", "🐲🐲", true);
        check(r"^\p{Letter}+$", "Größe", true);
        check(r"^\p{Script=Greek}$", "α", true);
        check(r"^a{2,3}$", "aaa", true);
        check("^{a}$", "{a}", true);
        check("^a{,2}$", "a{,2}", true);
        check(r"^\/x\/$", "/x/", true);
        check(r"^(?<year>\d{4})$", "2026", true);
        check(r"^(?:a|b)$", "b", true);
        check(r"^\$ref$", "$ref", true);
        check("^a]$", "a]", true);
    }

    #[test]
    fn what_cannot_be_expressed_is_an_error_that_says_why() {
        let check = |pattern: &str, reason: &str| {
            let error = compile(pattern).expect_err(pattern);
            assert!(error.contains(reason), "{error}");
        };
        check("^(?=a)", "looks ahead");
        check("(?<!a)b", "looks ahead or behind");
        check(r"(a)\1", "refers back");
        check(r"\a", r"no escape `\a`");
        check("(", "unclosed group");
        check("[a", "no end");
        check(r"\u12", "4 hexadecimal digits");
        check("((a{1000}){1000}){1000}", "size limit");
    }
}
