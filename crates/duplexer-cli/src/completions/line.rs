//! A line that is being typed: which verb it has, and what can stand at its end.

use clap::{Arg, ArgAction, Command};

use super::{Candidate, help_of};

/// A line up to the cursor.
pub(super) struct Typed<'a> {
    root: &'a Command,
    command: &'a Command,
    /// The verbs of the line.
    pub(super) verbs: Vec<&'a str>,
    /// The words behind them that are no options.
    pub(super) words: Vec<&'a str>,
    pub(super) position: Position<'a>,
}

/// What stands at the end of a line.
pub(super) enum Position<'a> {
    Option,
    /// The value of an option.
    Value(&'a Arg),
    Verb,
    Word,
}

impl<'a> Typed<'a> {
    /// Reads a line whose first word is the name of this command. Returns `None` where a program is being typed.
    pub(super) fn of(root: &'a Command, line: &'a [String]) -> Option<Self> {
        let (last, before) = line.get(1..)?.split_last()?;
        let mut typed =
            Self { root, command: root, verbs: Vec::new(), words: Vec::new(), position: Position::Word };
        let mut value_of = None;
        for word in before {
            if value_of.take().is_some() {
                continue;
            }
            if word == "--" {
                return None;
            }
            if word.starts_with('-') && word.len() > 1 {
                value_of = typed.option(word).filter(|option| takes_value(option) && !word.contains('='));
            } else if let Some(verb) = typed.command.find_subcommand(word).filter(|_| typed.words.is_empty())
            {
                typed.verbs.push(verb.get_name());
                typed.command = verb;
            } else {
                typed.words.push(word);
            }
        }
        typed.position = match value_of {
            Some(option) => Position::Value(option),
            None if last.starts_with('-') => Position::Option,
            None if typed.command.has_subcommands() => Position::Verb,
            None => Position::Word,
        };
        Some(typed)
    }

    /// Returns the option that a word names.
    fn option(&self, word: &str) -> Option<&'a Arg> {
        let long = word.strip_prefix("--").map(|word| word.split('=').next().unwrap_or_default());
        let short = word.strip_prefix('-').and_then(|word| word.chars().next_back());
        self.arguments().find(|argument| match long {
            Some(long) => argument.get_long() == Some(long),
            None => argument.get_short().is_some() && argument.get_short() == short,
        })
    }

    /// Returns the options and words of the verb, and the options of all verbs.
    fn arguments(&self) -> impl Iterator<Item = &'a Arg> + use<'a> {
        let global = self.root.get_arguments().filter(|argument| argument.is_global_set());
        self.command.get_arguments().chain(global)
    }

    pub(super) fn options(&self) -> Vec<Candidate> {
        let shown = self.arguments().filter(|argument| !argument.is_hide_set());
        let mut options: Vec<_> = shown
            .filter_map(|argument| {
                Some(Candidate::new(format!("--{}", argument.get_long()?), help_of(argument.get_help())))
            })
            .collect();
        options.push(Candidate::new("--help", "Print help"));
        options.dedup_by(|this, that| this.word == that.word);
        options
    }

    pub(super) fn verbs(&self) -> Vec<Candidate> {
        let verbs = self.command.get_subcommands().filter(|verb| !verb.is_hide_set());
        verbs.map(|verb| Candidate::new(verb.get_name(), help_of(verb.get_about()))).collect()
    }

    /// Returns whether the first word of the verb is a server.
    pub(super) fn takes_target(&self) -> bool {
        let names = self.command.get_positionals().next().and_then(Arg::get_value_names);
        names.is_some_and(|names| names.iter().any(|name| name.starts_with("URL")))
    }

    /// Returns the values of the word at the end, if the verb lists them.
    pub(super) fn possible_words(&self) -> Option<Vec<Candidate>> {
        let word = self.command.get_positionals().nth(self.words.len())?;
        let values = word.get_possible_values();
        let candidates =
            values.iter().map(|value| Candidate::new(value.get_name(), help_of(value.get_help())));
        (!values.is_empty()).then(|| candidates.collect())
    }
}

fn takes_value(option: &Arg) -> bool {
    matches!(option.get_action(), ArgAction::Set | ArgAction::Append)
}

/// Splits a line into words as shells do, without expanding anything. The last word can be empty.
pub(super) fn split(line: &str) -> Vec<String> {
    let (mut words, mut word, mut quote) = (Vec::new(), String::new(), None);
    let mut is_word = true;
    let mut chars = line.chars();
    while let Some(c) = chars.next() {
        match (c, quote) {
            ('\\', None | Some('"')) => word.extend(chars.next()),
            (c, Some(open)) if c == open => quote = None,
            ('"' | '\'', None) => quote = Some(c),
            (' ' | '\t', None) => {
                if is_word {
                    words.push(std::mem::take(&mut word));
                }
                is_word = false;
                continue;
            }
            (c, _) => word.push(c),
        }
        is_word = true;
    }
    words.push(word);
    words
}

#[cfg(test)]
mod tests {
    use super::split;

    #[test]
    fn a_line_is_split_into_words() {
        assert_eq!(split("duplexer li"), ["duplexer", "li"]);
        assert_eq!(split("duplexer  list "), ["duplexer", "list", ""]);
        assert_eq!(split("a 'b c' \"d \\\" e\" f\\ g"), ["a", "b c", "d \" e", "f g"]);
        assert_eq!(split("a 'b"), ["a", "b"]);
        assert_eq!(split("a '' "), ["a", "", ""]);
        assert_eq!(split(""), [""]);
    }
}
