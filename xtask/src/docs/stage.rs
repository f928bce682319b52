//! The sources of the book: which pages there are, in which order, and what becomes of their links.

use std::fmt::Write as _;
use std::fs;
use std::path::{Component, Path, PathBuf};

use super::{DOCUMENTS, errors};

const GUIDES: &str = "crates/duplexer/guide";

/// A page of the site.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Page {
    /// Heading of the list of pages under which it stands.
    pub(super) part: String,
    pub(super) title: String,
    /// Half a sentence that says what it is for.
    pub(super) about: String,
    /// Its source in the repository.
    pub(super) source: String,
    /// Its source in the book.
    pub(super) file: String,
    pub(super) text: String,
}

impl Page {
    /// Returns whether it explains one error text.
    pub(super) fn is_error(&self) -> bool {
        self.file.starts_with("errors/")
    }
}

/// Returns all pages: the readme, the guides in their order, a page per error text, and the documents.
pub(super) fn pages(root: &Path) -> Result<Vec<Page>, String> {
    let read = |path: &str| fs::read_to_string(root.join(path)).map_err(|error| format!("{path}: {error}"));
    let mut pages = vec![Page {
        part: "Duplexer".to_owned(),
        title: "Introduction".to_owned(),
        about: "what it is, and the first server".to_owned(),
        source: "README.md".to_owned(),
        file: "index.md".to_owned(),
        text: read("README.md")?,
    }];
    for (part, title, name, about) in guides(&read("crates/duplexer/guide.md")?) {
        let source = format!("{GUIDES}/{name}.md");
        let text = read(&source)?;
        let explained = if name == "troubleshooting" { errors::pages(&text) } else { Vec::new() };
        let text = if explained.is_empty() { text } else { errors::index(&text, &explained) };
        pages.push(Page { part, title, about, source, file: format!("guide/{name}.md"), text });
        pages.extend(explained);
    }
    for document in DOCUMENTS {
        if let Ok(text) = read(document.path) {
            pages.push(Page {
                part: "Reference".to_owned(),
                title: document.title.to_owned(),
                about: document.about.to_owned(),
                source: document.path.to_owned(),
                file: document.path.to_owned(),
                text,
            });
        }
    }
    Ok(pages)
}

/// Reads the list of guides: heading, title, name and description of each.
fn guides(list: &str) -> Vec<(String, String, String, String)> {
    let mut part = String::new();
    let mut guides = Vec::new();
    for line in list.lines() {
        if let Some(heading) = line.strip_prefix('*').and_then(|rest| rest.strip_suffix('*')) {
            heading.clone_into(&mut part);
        } else if let Some(item) = line.strip_prefix("- ") {
            let about = item.rsplit_once("): ").map_or("", |(_, about)| about);
            for link in item.split('[').skip(1) {
                let Some((title, rest)) = link.split_once("](") else { continue };
                let Some((name, _)) = rest.split_once(')') else { continue };
                guides.push((part.clone(), capital(title), name.to_owned(), about.to_owned()));
            }
        }
    }
    guides
}

fn capital(title: &str) -> String {
    let mut letters = title.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

/// Returns the table of contents.
pub(super) fn summary(pages: &[Page]) -> String {
    let mut text = "# Summary\n".to_owned();
    let mut part = "";
    for page in pages {
        if page.part != part {
            part = &page.part;
            let _ = write!(text, "\n# {part}\n\n");
        }
        let indent = if page.is_error() { "  " } else { "" };
        let title = page.title.replace('[', "\\[").replace(']', "\\]");
        let _ = writeln!(text, "{indent}- [{title}]({})", page.file);
    }
    text
}

/// Returns the text of a page with the links of the book. A link to a file that is no page keeps its words only.
pub(super) fn rewritten(page: &Page, pages: &[Page]) -> String {
    let is_guide = page.source.starts_with(GUIDES);
    let mut text = String::new();
    let mut in_code = false;
    for line in page.text.lines() {
        if let Some(language) = line.trim_start().strip_prefix("```") {
            in_code = !in_code;
            text.push_str(match language {
                "" | "no_run" if in_code && is_guide => "```rust",
                // The highlighter of mdBook does not have this one, and warns.
                "dockerfile" => "```text",
                _ => line,
            });
        } else if in_code {
            text.push_str(line);
        } else {
            text.push_str(&linked(line, page, pages));
        }
        text.push('\n');
    }
    text
}

/// Rewrites the links of one line.
fn linked(line: &str, page: &Page, pages: &[Page]) -> String {
    let mut text = String::new();
    let mut rest = line;
    while let Some(middle) = rest.find("](") {
        let Some(end) = rest[middle..].find(')') else { break };
        let address = &rest[middle + 2..middle + end];
        let start = opening(&rest[..middle]);
        match (target(address, page, pages), start) {
            (Some(target), _) => {
                let _ = write!(text, "{}]({target})", &rest[..middle]);
            }
            (None, Some(start)) => {
                let _ = write!(text, "{}{}", &rest[..start], &rest[start + 1..middle]);
            }
            (None, None) => text.push_str(&rest[..=middle + end]),
        }
        rest = &rest[middle + end + 1..];
    }
    text.push_str(rest);
    text
}

/// Returns where the bracket opens that ends behind a text.
fn opening(text: &str) -> Option<usize> {
    let mut depth = 0usize;
    for (index, letter) in text.char_indices().rev() {
        match letter {
            ']' => depth += 1,
            '[' if depth == 0 => return Some(index),
            '[' => depth -= 1,
            _ => {}
        }
    }
    None
}

/// Returns the address in the book. `None` if the target is not part of it.
fn target(address: &str, page: &Page, pages: &[Page]) -> Option<String> {
    if address.starts_with("http") || address.starts_with('#') {
        return Some(address.to_owned());
    }
    let (path, anchor) = address.split_once('#').map_or((address, ""), |(path, anchor)| (path, anchor));
    let from = Path::new(&page.file).parent().unwrap_or(Path::new(""));
    if pages.iter().any(|other| other.is_error() && Path::new(&other.file) == plain(&from.join(path))) {
        return Some(address.to_owned());
    }
    let guide = path.strip_prefix("crate::guide::").or_else(|| path.strip_prefix("self::"));
    let wanted = match guide {
        Some(name) => PathBuf::from(format!("{GUIDES}/{name}.md")),
        None => plain(&Path::new(&page.source).parent().unwrap_or(Path::new("")).join(path)),
    };
    let found = pages.iter().find(|other| Path::new(&other.source) == wanted && !other.is_error());
    let file = match found {
        Some(found) => PathBuf::from(&found.file),
        None if is_picture(&wanted) => wanted,
        None => return None,
    };
    let up: PathBuf = from.components().map(|_| Component::ParentDir).collect();
    let anchor = if anchor.is_empty() { String::new() } else { format!("#{anchor}") };
    Some(format!("{}{anchor}", up.join(file).display()))
}

fn is_picture(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "svg" || extension == "png")
}

/// Returns a path without `.` and `..`.
fn plain(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => {
                plain.pop();
            }
            Component::CurDir => {}
            other => plain.push(other),
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::{Page, guides, rewritten, summary};

    fn page(source: &str, file: &str, text: &str) -> Page {
        let part = "Part".to_owned();
        let (title, about) = ("Title".to_owned(), String::new());
        Page { part, title, about, source: source.to_owned(), file: file.to_owned(), text: text.to_owned() }
    }

    #[test]
    fn the_list_of_guides_gives_the_order() {
        let list = "Intro.\n\n*Begin*\n- [First server](first_server): from `cargo new` to a host\n\n*Move here*\n\
            - [From rmcp](from_rmcp) and [from the Python SDK](from_python): their names\n";
        let names: Vec<String> = guides(list)
            .into_iter()
            .map(|(part, title, name, about)| format!("{part}|{title}|{name}|{about}"))
            .collect();
        assert_eq!(
            names,
            [
                "Begin|First server|first_server|from `cargo new` to a host",
                "Move here|From rmcp|from_rmcp|their names",
                "Move here|From the Python SDK|from_python|their names",
            ]
        );
    }

    #[test]
    fn links_lead_to_pages_and_other_files_keep_their_words() {
        let readme = page(
            "README.md",
            "index.md",
            "See [all](docs/a.md#part), [the code](src/x.rs), [a guide](crates/duplexer/guide/tools.md) and [web](https://x.example).",
        );
        let pages = [
            readme,
            page("docs/a.md", "docs/a.md", "Back [home](../README.md), ![plot](scale/x.svg)."),
            page("crates/duplexer/guide/tools.md", "guide/tools.md", "As [there](crate::guide::tools)."),
        ];
        let texts: Vec<String> = pages.iter().map(|page| rewritten(page, &pages)).collect();
        assert_eq!(
            texts,
            [
                "See [all](docs/a.md#part), the code, [a guide](guide/tools.md) and [web](https://x.example).\n",
                "Back [home](../index.md), ![plot](../docs/scale/x.svg).\n",
                "As [there](../guide/tools.md).\n",
            ]
        );
    }

    #[test]
    fn snippets_of_guides_are_rust_and_their_lines_stay() {
        let guide = page(
            "crates/duplexer/guide/tools.md",
            "guide/tools.md",
            "```\nlet x = [a](b);\n```\n```dockerfile\n$\n```",
        );
        assert_eq!(rewritten(&guide, &[]), "```rust\nlet x = [a](b);\n```\n```text\n$\n```\n");
    }

    #[test]
    fn pages_of_errors_stand_below_their_list() {
        let pages = [page("t.md", "guide/troubleshooting.md", ""), page("t.md", "errors/x.md", "")];
        assert_eq!(
            summary(&pages),
            "# Summary\n\n# Part\n\n- [Title](guide/troubleshooting.md)\n  - [Title](errors/x.md)\n"
        );
    }
}
