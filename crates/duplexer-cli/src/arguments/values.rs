//! Arguments of tools and prompts: `name=text` and `name:=json`, or either from a file: `name=@file`.

use std::borrow::Cow;
use std::fs;

use duplexer::types::json::{Json, JsonObject};

use crate::failure::Failure;

/// One argument.
#[derive(Debug, PartialEq)]
pub(crate) struct Argument {
    pub(crate) name: String,
    pub(crate) value: Json,
}

impl Argument {
    pub(crate) fn parse(word: &str) -> Result<Self, Failure> {
        let wrong = || {
            Failure::usage(format!(
                "`{word}` is no argument; write name=text, or name:=json for anything else"
            ))
        };
        let (name, text) = word.split_once('=').ok_or_else(wrong)?;
        let (name, is_json) = match name.strip_suffix(':') {
            None => (name, false),
            Some(name) => (name, true),
        };
        if name.is_empty() {
            return Err(wrong());
        }
        let given = given(word, text)?;
        let value = if is_json {
            Json::parse(&given).map_err(|error| match given {
                Cow::Borrowed(text) => not_json(word, name, text, &error),
                Cow::Owned(_) => Failure::usage(format!("`{word}`: the file is not JSON ({error})")),
            })?
        } else {
            Json::from(&*given)
        };
        Ok(Self { name: name.to_owned(), value })
    }

    /// Returns the value as text for prompts: a text unchanged, anything else as JSON.
    pub(crate) fn into_text(self) -> (String, String) {
        let text = self.value.decode::<String>().unwrap_or_else(|_| self.value.as_str().to_owned());
        (self.name, text)
    }
}

/// Returns what was given: the text itself, or the file that it names with `@`. A second `@` makes the first one a letter.
fn given<'a>(word: &str, text: &'a str) -> Result<Cow<'a, str>, Failure> {
    match text.strip_prefix('@') {
        None => Ok(Cow::Borrowed(text)),
        Some(literal) if literal.starts_with('@') => Ok(Cow::Borrowed(literal)),
        Some(file) => fs::read_to_string(file).map(Cow::Owned).map_err(|error| {
            Failure::usage(format!(
                "`{word}`: {file} cannot be read ({error}); for a text that begins with @ write @@"
            ))
        }),
    }
}

fn not_json(word: &str, name: &str, text: &str, error: &serde_json::Error) -> Failure {
    Failure::usage(format!("`{word}` has no JSON after `:=` ({error}); for a text write {name}={text}"))
}

/// Builds the arguments of a tool. The last of equal names applies.
pub(crate) fn arguments(words: &[String]) -> Result<JsonObject, Failure> {
    words.iter().map(|word| Argument::parse(word).map(|one| (one.name, one.value))).collect()
}

/// Builds the arguments of a prompt, which are texts.
pub(crate) fn texts(words: &[String]) -> Result<JsonObject<String>, Failure> {
    words.iter().map(|word| Argument::parse(word).map(Argument::into_text)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_argument_is_text_or_json() {
        let check = |word: &str, name: &str, json: &str| {
            let parsed = Argument::parse(word).unwrap();
            assert_eq!((parsed.name.as_str(), parsed.value.as_str()), (name, json), "{word}");
        };
        check("a=b", "a", r#""b""#);
        check("a=5", "a", r#""5""#);
        check("a=", "a", r#""""#);
        check("a=b:=c", "a", r#""b:=c""#);
        check("a=say \"hi\"", "a", r#""say \"hi\"""#);
        check("a:=5", "a", "5");
        check("a:=-1.50", "a", "-1.50");
        check(r#"a:={"b": [1, null]}"#, "a", r#"{"b": [1, null]}"#);
        check(r#"a:="5""#, "a", r#""5""#);
        for wrong in ["a", "=b", ":=5", "a:=", "a:=b", ""] {
            assert!(Argument::parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn an_argument_can_come_from_a_file() {
        let path = std::env::temp_dir().join(format!("duplexer-{}-argument", std::process::id()));
        let check = |word: &str, json: &str| {
            let word = word.replace("FILE", path.to_str().unwrap());
            assert_eq!(Argument::parse(&word).unwrap().value.as_str(), json, "{word}");
        };
        fs::write(&path, "[1, 2.50]\n").unwrap();
        check("a=@FILE", r#""[1, 2.50]\n""#);
        check("a:=@FILE", "[1, 2.50]");
        check("a=@@FILE", &format!("\"@{}\"", path.display()));
        check("a=@@", r#""@""#);
        fs::write(&path, "text").unwrap();
        let wrong = Argument::parse(&format!("a:=@{}", path.display())).unwrap_err().to_string();
        assert!(wrong.contains("the file is not JSON"), "{wrong}");
        fs::remove_file(&path).unwrap();
        let wrong = Argument::parse("a=@no/such/file").unwrap_err().to_string();
        assert!(wrong.contains("no/such/file cannot be read") && wrong.ends_with("write @@"), "{wrong}");
    }

    #[test]
    fn prompts_take_texts() {
        let words = ["a=b", "n:=5", r#"t:="x""#].map(str::to_owned);
        let texts = texts(&words).unwrap();
        let all: Vec<_> = texts.iter().map(|(name, text)| (name, text.as_str())).collect();
        assert_eq!(all, [("a", "b"), ("n", "5"), ("t", "x")]);
    }

    #[test]
    fn what_is_wrong_says_what_to_write() {
        let text = Argument::parse("a:=b").unwrap_err().to_string();
        assert!(text.ends_with("for a text write a=b"), "{text}");
    }
}
