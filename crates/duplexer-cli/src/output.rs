//! Where the result of a command goes: standard output, or the file of `--output`.

use std::fs;
use std::path::{Path, PathBuf};

use duplexer::Json;

use crate::arguments::Request;
use crate::failure::Failure;
use crate::show;
use crate::terminal::print;
use crate::text::Text;

/// Format and destination of a result.
#[derive(Debug)]
pub(crate) struct Output {
    format: Format,
    file: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Format {
    /// Text for people.
    Text,
    /// JSON, exactly as the server sent it.
    Json,
}

impl Output {
    pub(crate) fn of(request: &Request) -> Self {
        let format = if request.json { Format::Json } else { Format::Text };
        Self { format, file: request.output.clone() }
    }

    pub(crate) fn is_json(&self) -> bool {
        self.format == Format::Json
    }

    pub(crate) fn is_file(&self) -> bool {
        self.file.is_some()
    }

    /// Prints JSON verbatim, on one line.
    pub(crate) fn json(&self, json: &Json) -> Result<(), Failure> {
        self.text(&show::verbatim(json.as_str()))
    }

    pub(crate) fn text(&self, text: &Text) -> Result<(), Failure> {
        match &self.file {
            None => print(text),
            Some(file) => write(file, format!("{}\n", text.as_str()).as_bytes())?,
        }
        Ok(())
    }

    /// Returns the file, or directory, that was chosen.
    pub(crate) fn place(&self) -> Option<&Path> {
        self.file.as_deref()
    }

    /// Writes each part into a file of its own: the first into the given one, each other with its number before the
    /// extension. Returns the names of the files: none if standard output was chosen.
    pub(crate) fn save(&self, parts: &[Vec<u8>]) -> Result<Vec<String>, Failure> {
        let Some(file) = &self.file else { return Ok(Vec::new()) };
        let mut names = Vec::new();
        for (index, part) in parts.iter().enumerate() {
            let file = numbered(file, index + 1);
            write(&file, part)?;
            names.push(file.display().to_string());
        }
        Ok(names)
    }
}

fn write(file: &Path, bytes: &[u8]) -> Result<(), Failure> {
    fs::write(file, bytes)
        .map_err(|error| Failure::usage(format!("{} cannot be written: {error}", file.display())))
}

fn numbered(file: &Path, number: usize) -> PathBuf {
    if number < 2 {
        return file.to_owned();
    }
    let stem = file.file_stem().unwrap_or_default().to_string_lossy();
    let name = match file.extension() {
        Some(extension) => format!("{stem}-{number}.{}", extension.to_string_lossy()),
        None => format!("{stem}-{number}"),
    };
    file.with_file_name(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn further_files_are_numbered() {
        let check = |file: &str, number, expected: &str| {
            assert_eq!(numbered(Path::new(file), number), Path::new(expected));
        };
        check("a/dot.png", 1, "a/dot.png");
        check("a/dot.png", 2, "a/dot-2.png");
        check("dot", 10, "dot-10");
    }
}
