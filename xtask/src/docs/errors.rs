//! A page per error text, made from the headings of the guide *Troubleshooting*.

use std::fmt::Write as _;

use super::stage::Page;

/// Maximum length of the name of a file.
const NAME: usize = 60;

/// Returns a page for each `##` heading.
pub(super) fn pages(guide: &str) -> Vec<Page> {
    let mut pages: Vec<Page> = Vec::new();
    let mut in_code = false;
    for line in guide.lines() {
        in_code ^= line.starts_with("```");
        if let Some(heading) = line.strip_prefix("## ").filter(|_| !in_code) {
            let name = name(heading);
            let twins = pages.iter().filter(|page| page.file.starts_with(&format!("errors/{name}"))).count();
            let name = if twins == 0 { name } else { format!("{name}-{}", twins + 1) };
            pages.push(Page {
                part: "Stuck?".to_owned(),
                title: heading.to_owned(),
                about: String::new(),
                source: "crates/duplexer/guide/troubleshooting.md".to_owned(),
                file: format!("errors/{name}.md"),
                text: format!("# {heading}\n"),
            });
        } else if line.starts_with("# ") && !in_code {
            // A group of texts begins: it belongs to no page.
            if let Some(page) = pages.last_mut() {
                page.text.push('\n');
            }
        } else if let Some(page) = pages.last_mut() {
            page.text.push_str(line);
            page.text.push('\n');
        }
    }
    pages
}

/// Returns the guide with links instead of the explanations.
pub(super) fn index(guide: &str, pages: &[Page]) -> String {
    let mut text = String::new();
    let mut rest = pages.iter();
    let mut is_introduction = true;
    let mut in_code = false;
    for line in guide.lines() {
        in_code ^= line.starts_with("```");
        let is_heading = !in_code && (line.starts_with("# ") || line.starts_with("## "));
        if is_heading && line.starts_with("## ") {
            is_introduction = false;
            if let Some(page) = rest.next() {
                let _ = writeln!(text, "- [{}](../{})", page.title, page.file);
            }
        } else if is_heading {
            is_introduction = true;
            let level = if text.is_empty() { "" } else { "\n#" };
            let _ = write!(text, "{level}{line}\n\n");
        } else if is_introduction {
            text.push_str(line);
            text.push('\n');
        }
    }
    text
}

/// Returns a name for a file: letters, digits and dashes.
fn name(heading: &str) -> String {
    let mut name = String::new();
    for letter in heading.chars() {
        if letter.is_ascii_alphanumeric() {
            name.push(letter.to_ascii_lowercase());
        } else if !name.ends_with('-') && !name.is_empty() {
            name.push('-');
        }
        if name.len() >= NAME {
            break;
        }
    }
    name.trim_end_matches('-').to_owned()
}

#[cfg(test)]
mod tests {
    use super::{index, pages};

    const GUIDE: &str = "# Troubleshooting\n\nIntro.\n\n# Over HTTP\n\n## host '…' is bad\n\n403.\n\n## host '…' is bad!\n\nTwo.\n";

    #[test]
    fn each_heading_is_a_page_with_a_name_of_its_own() {
        let pages = pages(GUIDE);
        let files: Vec<&str> = pages.iter().map(|page| page.file.as_str()).collect();
        assert_eq!(files, ["errors/host-is-bad.md", "errors/host-is-bad-2.md"]);
        assert_eq!(pages[0].text, "# host '…' is bad\n\n403.\n\n");
    }

    #[test]
    fn the_list_links_them_under_their_groups() {
        let text = index(GUIDE, &pages(GUIDE));
        assert!(text.starts_with("# Troubleshooting\n\n\nIntro.\n"), "{text}");
        assert!(text.contains("\n## Over HTTP\n"), "{text}");
        assert!(text.contains("- [host '…' is bad](../errors/host-is-bad.md)\n"), "{text}");
        assert!(!text.contains("403"), "{text}");
    }
}
