//! Links of the finished site: every address without a host must lead to a file of it, and every anchor to an element.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// Returns each broken link, with the page that contains it.
pub(super) fn links(site: &Path) -> Result<Vec<String>, String> {
    let mut pages = BTreeMap::new();
    collect(site, &mut pages).map_err(|error| format!("{}: {error}", site.display()))?;
    let mut broken = Vec::new();
    for (page, text) in &pages {
        // The page for printing repeats all others, with their anchors renamed.
        if page.ends_with("print.html") || page.ends_with("toc.html") || page.ends_with("404.html") {
            continue;
        }
        for address in addresses(text) {
            if let Some(fault) = fault(page, address, &pages) {
                let page = page.strip_prefix(site).unwrap_or(page).display();
                broken.push(format!("{page}: {address}: {fault}"));
            }
        }
    }
    Ok(broken)
}

fn collect(folder: &Path, pages: &mut BTreeMap<PathBuf, String>) -> std::io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            collect(&path, pages)?;
        } else if path.extension().is_some_and(|extension| extension == "html") {
            let text = fs::read_to_string(&path)?;
            pages.insert(path, text);
        }
    }
    Ok(())
}

/// Returns the values of `href` and `src`.
fn addresses(html: &str) -> impl Iterator<Item = &str> {
    ["href=\"", "src=\""].into_iter().flat_map(move |attribute| {
        html.split(attribute).skip(1).filter_map(|rest| rest.split_once('"').map(|(value, _)| value))
    })
}

fn fault(page: &Path, address: &str, pages: &BTreeMap<PathBuf, String>) -> Option<&'static str> {
    if address.is_empty() || address.contains(':') || address.starts_with("//") {
        return None;
    }
    let (path, anchor) = address.split_once('#').map_or((address, ""), |(path, anchor)| (path, anchor));
    let file = if path.is_empty() { page.to_path_buf() } else { page.parent()?.join(path) };
    let Ok(file) = file.canonicalize() else { return Some("there is no such file") };
    if anchor.is_empty() {
        return None;
    }
    let text = pages
        .iter()
        .find(|(page, _)| page.canonicalize().is_ok_and(|page| page == file))
        .map(|(_, text)| text)?;
    let id = format!("id=\"{anchor}\"");
    if text.contains(&id) { None } else { Some("the page has no such anchor") }
}

#[cfg(test)]
mod tests {
    use super::links;
    use std::fs;

    #[test]
    fn a_link_to_nothing_is_found_and_others_are_not() {
        let site = std::env::temp_dir().join(format!("duplexer-docs-check-{}", std::process::id()));
        fs::create_dir_all(site.join("guide")).unwrap();
        let index = "<a href=\"guide/a.html#there\"></a><a href=\"https://x.example\"></a><a href=\"guide/b.html\"></a>\
            <img src=\"plot.svg\"><a href=\"guide/a.html#gone\"></a>";
        fs::write(site.join("index.html"), index).unwrap();
        fs::write(site.join("guide/a.html"), "<h1 id=\"there\"><a href=\"../index.html\"></a></h1>").unwrap();
        let found = links(&site).unwrap();
        fs::remove_dir_all(&site).unwrap();
        assert_eq!(
            found,
            [
                "index.html: guide/b.html: there is no such file",
                "index.html: guide/a.html#gone: the page has no such anchor",
                "index.html: plot.svg: there is no such file",
            ]
        );
    }
}
