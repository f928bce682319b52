//! `duplexer completions`: scripts for shells, and what they ask when a word is to be completed.
//!
//! The scripts hold no list of verbs or options. They pass the line to this command, which knows them, and which can ask a
//! server at a URL for its tools, resources and prompts. A server that does not answer at once completes nothing.

mod line;
mod server;

use crate::arguments::{LineArguments, Shell, described as description};
use crate::failure::Failure;
use crate::terminal::print;
use crate::text::{Text, clean};

use self::line::{Position, Typed, split};

const BASH: &str = include_str!("../templates/completions.bash");
const ZSH: &str = include_str!("../templates/completions.zsh");
const FISH: &str = include_str!("../templates/completions.fish");
const POWERSHELL: &str = include_str!("../templates/completions.ps1");

/// Maximum number of words that are offered, and of columns of an explanation.
const MAX_WORDS: usize = 1000;
const MAX_HELP: usize = 80;

/// A word that can be typed, and what it is.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Candidate {
    word: String,
    help: String,
}

impl Candidate {
    fn new(word: impl Into<String>, help: impl AsRef<str>) -> Self {
        let help = help.as_ref().lines().next().unwrap_or_default();
        let help = clean(help).replace('\t', " ");
        Self { word: word.into(), help: help.chars().take(MAX_HELP).collect() }
    }

    /// Returns whether a shell takes the word as it is. Others are not offered: a server chooses some of them.
    fn is_safe(&self) -> bool {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=@%+,".contains(c);
        !self.word.is_empty() && self.word.chars().all(is_plain)
    }
}

/// Prints the script of a shell.
#[expect(clippy::unnecessary_wraps, reason = "a verb like the others")]
pub(crate) fn script(shell: Shell) -> Result<(), Failure> {
    let script = match shell {
        Shell::Bash => BASH,
        Shell::Zsh => ZSH,
        Shell::Fish => FISH,
        Shell::Powershell => POWERSHELL,
    };
    print(&Text::plain(script.trim_end()));
    Ok(())
}

/// Prints the words that can stand at the end of a line, one on each line.
pub(crate) async fn complete(arguments: &LineArguments) -> Result<(), Failure> {
    let words = match (arguments.shell, &arguments.words[..]) {
        (Shell::Bash | Shell::Powershell, [line]) => split(line),
        (_, words) => words.to_vec(),
    };
    let found = candidates(&words).await;
    let part = words.last().map(String::as_str).unwrap_or_default();
    let shown: Vec<String> = found
        .iter()
        .filter(|candidate| candidate.word.starts_with(part) && candidate.is_safe())
        // A shell ends a word that is complete with a space, but the value follows directly behind this sign.
        .filter(|candidate| candidate.word != part || !part.ends_with('='))
        .take(MAX_WORDS)
        .map(|candidate| shown(arguments.shell, candidate, part))
        .collect();
    if !shown.is_empty() {
        print(&Text::plain(shown.join("\n")));
    }
    Ok(())
}

fn shown(shell: Shell, candidate: &Candidate, part: &str) -> String {
    if shell != Shell::Bash {
        return format!("{}\t{}", candidate.word, candidate.help);
    }
    // Bash breaks words at these characters and replaces only what is behind the last one.
    let kept = part.rfind([':', '=']).map_or(0, |at| at + 1);
    candidate.word.get(kept..).unwrap_or_default().to_owned()
}

async fn candidates(words: &[String]) -> Vec<Candidate> {
    let root = description();
    let Some(typed) = Typed::of(&root, words) else { return Vec::new() };
    match typed.position {
        Position::Option => typed.options(),
        Position::Value(argument) => {
            let values = argument.get_possible_values();
            let values = values.iter().filter(|value| !value.is_hide_set());
            values.map(|value| Candidate::new(value.get_name(), help_of(value.get_help()))).collect()
        }
        Position::Verb => typed.verbs(),
        Position::Word => match typed.possible_words() {
            Some(words) => words,
            None => server::words(&typed).await,
        },
    }
}

fn help_of(help: Option<&clap::builder::StyledStr>) -> String {
    help.map(ToString::to_string).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn check(line: &str, expected: &[&str], not: &[&str]) {
        let words = split(line);
        let part = words.last().cloned().unwrap();
        let found = candidates(&words).await;
        let found: Vec<_> =
            found.iter().filter(|one| one.word.starts_with(&part)).map(|one| one.word.as_str()).collect();
        for word in expected {
            assert!(found.contains(word), "{line}: {word} is not in {found:?}");
        }
        for word in not {
            assert!(!found.contains(word), "{line}: {word} is in {found:?}");
        }
    }

    #[tokio::test]
    async fn verbs_options_and_values_are_completed() {
        check("duplexer ", &["list", "call", "install", "skills"], &["complete-line", "--help"]).await;
        check("duplexer li", &["list", "listen"], &["call"]).await;
        check("duplexer skills ", &["list", "show", "fetch", "serve"], &["call"]).await;
        check("duplexer call --", &["--era", "--trace", "--json", "--color"], &["--port"]).await;
        check("duplexer call --era ", &["auto", "handshake", "envelope"], &["list"]).await;
        check("duplexer --color ", &["auto", "always", "never"], &["list"]).await;
        check("duplexer install notes --host c", &["claude-desktop", "claude-code", "cursor", "codex"], &[])
            .await;
        check("duplexer completions ", &["bash", "zsh", "fish", "powershell"], &[]).await;
        // What is behind `--` belongs to a program.
        check("duplexer call -- server --", &[], &["--era"]).await;
        check("duplexer call --header ", &[], &["--era", "auto"]).await;
    }

    #[test]
    fn a_word_that_a_shell_would_interpret_is_not_offered() {
        for unsafe_word in ["$(id)", "a b", "a;b", "a`b", "a\nb", "a'b", "\u{1b}[0m", "*", "~", ""] {
            assert!(!Candidate::new(unsafe_word, "").is_safe(), "{unsafe_word:?}");
        }
        assert!(Candidate::new("demo://clock", "").is_safe() && Candidate::new("a:=", "").is_safe());
        assert_eq!(Candidate::new("a", "one\ttwo\nthree").help, "one two");
        assert_eq!(Candidate::new("a", "\u{1b}[31mred").help, "\u{fffd}[31mred");
    }

    #[test]
    fn bash_gets_what_is_behind_its_last_break() {
        let candidate = Candidate::new("http://a/mcp", "");
        assert_eq!(shown(Shell::Bash, &candidate, "http:"), "//a/mcp");
        assert_eq!(shown(Shell::Bash, &candidate, "ht"), "http://a/mcp");
        assert_eq!(shown(Shell::Fish, &candidate, "http:"), "http://a/mcp\t");
    }
}
